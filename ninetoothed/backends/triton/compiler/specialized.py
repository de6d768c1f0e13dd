"""What is compiled: a kernel's source for one kind of call, and what the compiler is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ninetoothed.backends.triton.printers.emission import KernelParameter
from ninetoothed.backends.triton.printers.triton import Emitted
from ninetoothed.backends.triton.specialization.boxes import Box, Description
from ninetoothed.kernels.constant_keys import constant_key
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol


@dataclass(frozen=True)
class Specialized:
    """A kernel for one kind of call and one configuration.

    Attributes:
        emitted: the source.
        signature: the type of each kernel parameter.
        constants: the values of those that are compile-time constants.
        divisors: what those are multiples of, addresses in bytes, where more than 1 is told.
        integers: the values of the sizes and strides among the run-time parameters.
        num_programs: of the grid.
        programs: the same, over sizes and what the tuner chooses.
        described: what the descriptors among the parameters are made of.
        boxes: the boxes that these move.
        workspace: bytes that all programs together need for the sums of parts (`split_k`).
        most_registers: that a thread may have; None where the compiler decides.
        is_persistent: whether there need be no more programs than the device holds at a time.
    """

    emitted: Emitted
    signature: Mapping[str, str]
    constants: Mapping[str, Any]
    divisors: Mapping[str, int]
    integers: Mapping[str, int]
    num_programs: int
    programs: Symbol
    described: Mapping[str, Description] = field(default_factory=dict)
    boxes: Mapping[str, Box] = field(default_factory=dict)
    workspace: int = 0
    is_persistent: bool = False
    most_registers: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What the compiled code depends on, besides target, warps and stages."""
        constants = tuple((n, type(v), constant_key(v)) for n, v in self.constants.items())
        told = tuple(self.divisors.items())
        signature = tuple(self.signature.items())
        return self.emitted.text, signature, constants, told, self.most_registers

    @property
    def run_time_parameters(self) -> list[KernelParameter]:
        return [p for p in self.emitted.parameters if not p.is_constexpr]
