"""What sizes must fulfil for an arrangement to fit them, as expressions: `Arrangement.verify` says the
same of numbers, and refuses them with a better message. For who asks where there is no Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, maximum, minimum
from ninetoothed.symbols.simplify import difference, product, simplify
from ninetoothed.tensors import metaops
from ninetoothed.tensors.arrange import Arrangement
from ninetoothed.tensors.grids import Places
from ninetoothed.tensors.level import operations


@dataclass(frozen=True)
class Requirement:
    """An expression that must be at least so much, and at most, None where that is open.

    Attributes:
        parameter: whose arrangement asks for it.
        text: what must be, for people.
    """

    parameter: str
    expression: Symbol
    low: int
    high: int | None
    text: str

    def given(self, values: Mapping[Symbol, int]) -> Requirement | None:
        """The same where some values are known; None where it holds whatever the others are."""
        known = as_symbol(simplify(self.expression.substitute(values)))
        low, high = interval(known)
        is_certain = low >= self.low and (self.high is None or high <= self.high)
        return None if is_certain else replace(self, expression=known)


def requirements(
    arrangement: Arrangement, touched: Collection[str] | None = None
) -> Iterator[Requirement]:
    """All that must hold, what holds for every size too.

    Args:
        touched: the tensors that take part, by default all.
    """
    for parameter in arrangement.tensors:
        name, tensor = parameter.name, parameter.tensor
        if tensor is None or (touched is not None and name not in touched):
            continue
        for operation in operations(tensor):
            for expression, low, high, text in _of(operation):
                yield Requirement(name, as_symbol(simplify(expression)), low, high, text)
        for own, shared in _pairs(parameter.levels[0], arrangement.grid, arrangement.places[name]):
            apart = difference(maximum(own, 0), maximum(shared, 0))
            text = f"the outermost shapes must be the same: {own} must be {shared}"
            yield Requirement(name, as_symbol(apart), 0, 0, text)


def _pairs(
    shape: metaops.Shape, grid: metaops.Shape, placed: Places
) -> Iterator[tuple[Expression, Expression]]:
    """The sizes of an outermost shape and of the grid that are the same, as `grids.agrees` has it.

    Where it shows only in a call which dimensions are of size 1, the number of elements is.
    """
    if placed is None:
        yield product(shape), product(grid)
        return
    for size, dim in zip(shape, placed):
        yield size, 1 if dim is None else grid[dim]
    for dim, size in enumerate(grid):
        if dim not in placed:
            yield size, 1


def _of(operation: metaops.MetaOperation) -> Iterator[tuple[Expression, int, int | None, str]]:
    """What one operation needs, as its `verify` has it."""
    if isinstance(operation, metaops.Tile):
        for dim, is_whole in enumerate(operation.whole):
            if is_whole:
                continue
            for what, value in (
                ("tile size", operation.tile_shape[dim]),
                ("stride", operation.strides[dim]),
                ("dilation", operation.dilation[dim]),
            ):
                yield value, 1, None, f"`tile` needs a {what} of at least 1 in dimension {dim}"
    elif isinstance(operation, metaops.Expand):
        for dim, is_expanded in enumerate(operation.expanded):
            if is_expanded:
                yield operation.input[dim], 1, 1, f"`expand` needs a size of 1 in dimension {dim}"
    elif isinstance(operation, metaops.Squeeze):
        for dim in operation.dims:
            yield operation.input[dim], 1, 1, f"`squeeze` needs a size of 1 in dimension {dim}"
    elif isinstance(operation, metaops.Flatten):
        sizes = operation.input[operation.start : operation.end]
        # None is negative, or there is no element.
        elements = as_symbol(product(tuple(sizes)))
        for dim, size in enumerate(sizes, operation.start):
            fits = maximum(size, minimum(0 - elements, 0))
            yield fits, 0, None, f"`flatten` needs a size of at least 0 in dimension {dim}"
    elif isinstance(operation, metaops.Pad):
        for dim, sides in enumerate(operation.padding):
            for side in sides:
                yield side, 0, None, f"`pad` needs a padding of at least 0 in dimension {dim}"
    elif isinstance(operation, metaops.Index):
        sizes_left = iter(operation.input)
        for entry in operation.entries:
            size = next(sizes_left) if entry[0] != "new" else 0
            if entry[0] == "int":
                yield entry[1], 0, None, "an index must be at least 0"
                yield as_symbol(size) - entry[1], 1, None, "an index must be below the size"
