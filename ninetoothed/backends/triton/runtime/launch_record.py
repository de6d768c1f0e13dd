"""A launch in the driver's own terms, for who launches again without Python.

A plan's ``run`` calls Triton's C launcher from Python. Code that is called by a framework in C can do
without: a `LaunchRecord` is what the driver is given, with the arguments of a call left open.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy

from ninetoothed.backends.triton.compiler import versions
from ninetoothed.records import dataclass

if TYPE_CHECKING:
    from ninetoothed.backends.triton.compiler.specialized import Specialized
    from ninetoothed.backends.triton.runtime.driver import Describe, Launchable

#: A kernel's type of a number -> `struct`'s.
_FORMATS = {
    "i1": "<b", "i8": "<b", "i16": "<h", "i32": "<i", "i64": "<q",
    "u1": "<B", "u8": "<B", "u16": "<H", "u32": "<I", "u64": "<Q",
    "fp16": "<e", "fp64": "<d",
}  # fmt: skip


@dataclass(frozen=True)
class Given:
    """A parameter that is an argument of the call: `values[place]`, as the kernel's type has it."""

    place: int
    type: str


@dataclass(frozen=True)
class Described:
    """A parameter that is the tensor descriptor of the address `values[place]`."""

    place: int
    make: Callable[[int], bytes]


@dataclass(frozen=True)
class LaunchRecord:
    """One launch of one kernel, which holds for every call of a plan.

    Attributes:
        name: the kernel's.
        function: the driver's handle; it stays valid as long as the process lives.
        grid: programs.
        threads: of a program.
        shared_memory: bytes of a program.
        is_dependent: whether it may begin before the launch ahead of it has ended (`dependent_launch`).
        parameters: the kernel's, in order; bytes are what never changes.
    """

    name: str
    function: int
    grid: int
    threads: int
    shared_memory: int
    is_dependent: bool
    parameters: tuple[bytes | Given | Described, ...]

    @property
    def is_of_addresses(self) -> bool:
        """Whether some parameter is made of an address, so that it is another one for another."""
        return any(isinstance(parameter, Described) for parameter in self.parameters)


def packed(type_: str, value: Any) -> bytes:
    """A number or an address as a kernel's parameter of this type, as Triton's launcher packs it."""
    if type_.startswith("*"):
        return struct.pack("<Q", value)
    if type_ in ("fp32", "f32", "bf16"):
        with warnings.catch_warnings():
            # What is too large is infinite, as in C.
            warnings.simplefilter("ignore", RuntimeWarning)
            data = numpy.float32(value).tobytes()
        return data[2:] if type_ == "bf16" else data
    return struct.pack(_FORMATS[type_], value)


def programs_of(specialized: Specialized, launchable: Launchable) -> int:
    """How many programs are launched."""
    if specialized.is_persistent:
        return min(specialized.num_programs, launchable.resident)
    return specialized.num_programs


def launch_record_of(
    specialized: Specialized, launchable: Launchable, values: list[str]
) -> LaunchRecord | None:
    """The record; None where a launch is more than that, or on another device than NVIDIA's.

    More is memory that is taken and given back around each launch.

    Args:
        values: the names of what the plan is called with, after the stream.
    """
    if launchable.backend != "cuda" or specialized.workspace or launchable.scratch_size:
        return None
    metadata = launchable.metadata
    parameters: list[bytes | Given | Described] = []
    for parameter in specialized.run_time_parameters:
        name, of = parameter.name, parameter.parameter
        if parameter.kind == "descriptor":
            described = specialized.described[name]
            shape, strides = tuple(described.shape), tuple(described.strides)
            make = _maker(launchable.describing(name), shape, strides)
            parameters.append(Described(values.index(of), make))
            parameters += [packed("i32", size) for size in described.shape]
            parameters += [packed("i64", stride) for stride in described.strides]
            continue
        type_ = launchable.signature[name]
        if parameter.kind == "symbol":
            parameters.append(packed(type_, specialized.integers[name]))
        elif parameter.kind in ("pointer", "scalar"):
            parameters.append(Given(values.index(of), type_))
        else:
            return None
    return LaunchRecord(
        launchable.name,
        launchable.function,
        programs_of(specialized, launchable),
        metadata.num_warps * metadata.warp_size,
        metadata.shared,
        bool(getattr(metadata, "launch_pdl", False)),
        (*parameters, *[bytes(8)] * versions.SCRATCH_PARAMETERS),
    )


def _maker(
    describe: Describe, shape: tuple[int, ...], strides: tuple[int, ...]
) -> Callable[[int], bytes]:
    return lambda address: describe(address, shape, strides)
