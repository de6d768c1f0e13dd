"""A kernel compiled ahead of its calls, in the core's own terms: what is launched when, and with what.

A backend gives `Variant`s of a kernel, the strongest first. Each assumes something of a call, and says
what as conditions over sizes, strides and addresses; the last assumes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

#: A position and the least and the greatest value that it takes, inclusive.
Position = tuple[Symbol, Symbol, Symbol]


@dataclass(frozen=True)
class Within:
    """An integer lies between two bounds, inclusive, whatever values its positions have.

    Attributes:
        expression: over sizes, strides and positions.
        low, high: the bounds; None where there is none.
        positions: the positions in the expression.
    """

    expression: Symbol
    low: int | None
    high: int | None
    positions: tuple[Position, ...] = ()


@dataclass(frozen=True)
class Aligned:
    """A tensor's address is a multiple of so many bytes."""

    parameter: str
    bytes: int


Condition = Within | Aligned


def offsets_of(parameter: str) -> str:
    """What a call's offsets of a jagged tensor are called; no parameter of an application is."""
    return f"{parameter}.offsets"


@dataclass(frozen=True)
class Described:
    """What the copy engine is told of a tensor besides its address, in elements.

    Attributes:
        shape, strides: in the order of the box's dimensions, the contiguous one last.
    """

    shape: tuple[Symbol, ...]
    strides: tuple[Symbol, ...]


@dataclass(frozen=True)
class Workspace:
    """Memory of the device that the programs of a launch share.

    Attributes:
        size: its bytes, over sizes.
        zeros: so many bytes at its start are 0 before a launch, and again after it.
    """

    size: Symbol
    zeros: int


@dataclass(frozen=True)
class LaunchArgument:
    """What a kernel is launched with in one place.

    Attributes:
        name: as the source calls it; what the source has no name for follows a descriptor.
        type: in Triton's spelling: ``"*fp16"``, ``"i32"``, ``"fp32"``, ``"tensordesc<fp16[64,64]>"``.
        parameter: the application's parameter, whose address or value it is, or `offsets_of` one; None
            where it is computed.
        expression: what is computed of sizes and strides; None where it is a parameter.
        described: of what the parameter's descriptor is made; None where it is no descriptor.
        in_workspace: where in the workspace an address points, in bytes; None where it does not.
    """

    name: str
    type: str
    parameter: str | None = None
    expression: Symbol | None = None
    described: Described | None = None
    in_workspace: int | None = None


@dataclass(frozen=True)
class Variant:
    """A kernel for all calls that fulfil some conditions.

    Attributes:
        name: what it assumes, in a word.
        added: what it assumes beyond the variants after it.
        arguments: of a launch, in order.
        source: what is compiled.
        work: what the backend compiles it from; equal where nothing differs.
        programs: how many there are; None where there is one for each element of the grid.
        workspace: what they share; None where they need nothing.
    """

    name: str
    added: tuple[Condition, ...]
    arguments: tuple[LaunchArgument, ...]
    source: str
    work: Any = field(repr=False)
    programs: Symbol | None = None
    workspace: Workspace | None = None


@dataclass(frozen=True)
class TensorMap:
    """How a compiled kernel wants a descriptor: the driver's numbers for what a box is.

    Attributes:
        dtype: of CUtensorMapDataType.
        itemsize: bytes of an element.
        swizzle: of CUtensorMapSwizzle.
        extents: of the box, the contiguous dimension last.
    """

    dtype: int
    itemsize: int
    swizzle: int
    extents: tuple[int, ...]


@dataclass(frozen=True)
class Image:
    """A variant, compiled for a target.

    Attributes:
        target: ``"sm_90"``, ``"gfx942"``, or ``"ptx_80"``, text that a driver compiles.
        data: the bytes.
        function: the name of the kernel within.
        is_specific: whether only devices of just this target run it, and none of a later one.
        threads: of a program.
        shared_memory: bytes of a program.
        num_scratch_arguments: addresses that are taken after the arguments, and are null.
        tensor_maps: of the descriptors among the arguments, in order.
        is_persistent: whether there need be no more programs than the device holds at a time.
        is_dependent: whether its programs wait for the kernel before, so that it may be launched early.
    """

    target: str
    data: bytes
    function: str
    is_specific: bool
    threads: int
    shared_memory: int
    num_scratch_arguments: int
    tensor_maps: tuple[TensorMap, ...] = ()
    is_persistent: bool = False
    is_dependent: bool = False


@dataclass(frozen=True)
class Fixed:
    """What is fixed of all calls of a kernel that is compiled ahead.

    Attributes:
        dtypes: the element types of tensors and scalars by parameter.
        constants: the values of constexpr parameters and symbols by name.
    """

    dtypes: Mapping[str, DType]
    constants: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Edition:
    """A kernel with a configuration: its variants, for the targets that it was chosen for.

    Attributes:
        known: the values of the constexpr and meta symbols.
        num_warps, num_stages: of its programs.
        variants: the one that assumes most first, the one that assumes nothing last.
        seconds: of a large call, by the estimate; infinite where none can be made.
        sizes: what a call's sizes are where it is launched; nothing where they may be any.
    """

    known: Mapping[Symbol, int]
    num_warps: int
    num_stages: int
    variants: tuple[Variant, ...]
    seconds: float
    sizes: tuple[Condition, ...] = ()

    @property
    def interface(self) -> tuple[Any, ...]:
        """What a launch depends on, besides its binaries."""
        variants = [
            (each.name, each.added, each.arguments, each.programs, each.workspace)
            for each in self.variants
        ]
        return tuple(self.known.items()), tuple(variants)
