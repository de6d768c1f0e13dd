"""What `Arrangement.verify` has seen to in every call: tiles, their steps and dilations are 1 or more.

Declared bounds are promises that a call may break, so nothing is proved by them; by this it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ninetoothed.errors import ApplicationError, ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import ElementLoad, ElementPlace, ElementStore, location
from ninetoothed.program.program import Program
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Symbol, evaluated
from ninetoothed.tensors.level import operations
from ninetoothed.tensors.metaops import Tile


def check_tile_sizes(kernel: Definition, environment: Mapping[Symbol, int]) -> None:
    """`ArgumentError` where a call makes a tile's size negative: so many windows do not fit into what it is of."""
    for name, size in _counts(kernel):
        if (found := evaluated(size, environment)) < 0:
            raise ArgumentError(
                f"kernel `{kernel.name}`: a size of the tile of `{name}`, `{size}`, is {found} in this call, as a "
                "window is longer than what it goes over. Give it more, or pad it in the arrangement."
            )


def empty_slices(
    kernel: Definition, program: Program, environment: Mapping[Symbol, int]
) -> Iterator[ApplicationError]:
    """An error for each slice of a tile in a program of the kernel that has no element in a call."""
    for node in program.nodes():
        if not isinstance(node, ElementLoad | ElementStore | ElementPlace):
            continue
        shape = kernel.program.parameter(node.parameter).tile_shape
        for count in () if node.view.is_whole(shape) else node.view.shape:
            if (found := evaluated(count, environment)) < 1:
                yield ApplicationError(
                    f"A slice of `{node.parameter}` has no element in this call: `{count}` is {found}.",
                    location(node),
                )


@analysis
def _counts(kernel: Definition) -> list[tuple[str, Symbol]]:
    """The sizes of tiles that a call may make negative, with the tensors' names."""
    sizes = [(p.name, size) for p in kernel.arranged_parameters for size in p.tile_shape]
    return [
        (name, size)
        for name, size in sizes
        if isinstance(size, Symbol) and interval(size, verified_ranges(kernel))[0] < 0
    ]


@analysis
def positive_names(kernel: Definition) -> frozenset[Symbol]:
    """The names that are 1 or more in every call: sizes, steps or dilations of tiles."""
    touched = kernel.arranged
    names = [
        need.value
        for parameter in kernel.tensor_parameters
        if parameter.name in touched and parameter.tensor is not None
        for operation in operations(parameter.tensor)
        if isinstance(operation, Tile)
        for need in operation.needs
        if need.low == 1
    ]
    return frozenset(name for name in names if isinstance(name, Symbol) and name.op == "leaf")


@analysis
def verified_ranges(kernel: Definition) -> Mapping[Symbol, Interval]:
    """Between which numbers those names lie."""
    return dict.fromkeys(positive_names(kernel), (1, float("inf")))
