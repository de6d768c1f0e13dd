"""A call in the core's own terms: one exact key of arguments, of which a plan may depend on nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Device:
    """A device: its kind (``"cpu"``, ``"cuda"``, ``"hip"``, …) and its index among those."""

    kind: str
    index: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.index}"


@dataclass(frozen=True)
class Argument:
    """What is known of a tensor argument.

    Attributes:
        shape: the sizes; a jagged dimension has the longest sequence's.
        strides: in elements.
        dtype: the element type.
        alignment: of 1, 2, 4, 8 and 16 the largest that the address in bytes is a multiple of.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: DType
    alignment: int = 16


@dataclass(frozen=True)
class Call:
    """One exact key: all that a plan may depend on.

    Attributes:
        arguments: the tensors by parameter.
        scalars: the element types of the values passed by value, by parameter.
        constants: the constexpr parameters and symbols, by name.
        device: where the tensors are.
        frontend: the `Frontend` whose tensors they are; None where no device is asked.
        scales: the parameters of which the values passed by value are scales (`Parameter.is_scale`).
        is_general: whether its sizes and strides stand for all of their class, so that nothing may be
            made of them that does not hold for the others.
    """

    arguments: Mapping[str, Argument]
    scalars: Mapping[str, DType] = field(default_factory=dict)
    constants: Mapping[str, Any] = field(default_factory=dict)
    device: Device = Device("cpu")
    frontend: Any = None
    scales: frozenset[str] = frozenset()
    is_general: bool = False

    def of_dtype(self, dtype: DType) -> frozenset[str]:
        """The tensors and scalars whose elements have a type."""
        given = {**self.scalars, **{name: each.dtype for name, each in self.arguments.items()}}
        return frozenset(name for name, own in given.items() if own is dtype)
