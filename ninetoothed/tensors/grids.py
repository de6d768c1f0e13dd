"""The rule of arrangement: outermost shapes that are the same, dimensions of size 1 aside.

One shape is the grid. How another lies in it is known where its sizes are: which are 1 in a call may
show only then. Nothing is known here of tensors or programs.
"""

from __future__ import annotations

from collections.abc import Sequence

from ninetoothed.symbols.expr import Symbol, as_symbol, constant
from ninetoothed.symbols.simplify import are_equal, difference_interval, simplify
from ninetoothed.tensors.meta_operation import Indices, Shape

#: For each dimension of a shape the one of the grid that it is, None where its size is 1. None: which
#: it is is not known, and an element is found by the program's number, which is the same in both.
Places = tuple[int | None, ...] | None


def common(shapes: Sequence[Shape]) -> Shape:
    """The grid: the smallest of the shapes, its sizes as they are written shortest."""
    first = smallest(shapes)
    like = [(shape, places(shape, first)) for shape in shapes if len(shape) == len(first)]
    return tuple(
        1
        if size == 1
        else min((s[dim] for s, at in like if at and at[dim] == dim), key=lambda n: len(str(n)))
        for dim, size in enumerate(first)
    )


def smallest(shapes: Sequence[Shape]) -> Shape:
    """Of the shapes with the fewest dimensions that may not be 1 the first."""
    return min(shapes, key=lambda shape: len(_others_than_1(shape)))


def places(shape: Shape, grid: Shape) -> Places:
    """How a shape lies in the grid."""
    own, theirs = _others_than_1(shape), _others_than_1(grid)
    if len(own) == len(theirs):
        found = dict(zip(own, theirs))
    elif len(shape) == len(grid):
        found = {dim: dim for dim in own if dim in theirs}
    else:
        left, found = iter(own), {}
        for of_grid in theirs:
            equal = (dim for dim in left if are_equal(shape[dim], grid[of_grid]))
            if (dim := next(equal, None)) is not None:
                found[dim] = of_grid
        if len(found) < len(theirs):
            return None
    return tuple(found.get(dim) for dim in range(len(shape)))


def positions_in(shape: Shape, grid: Shape, programs: Indices, placed: Places) -> Indices:
    """The position in a shape of the program at a position in the grid."""
    if placed is not None:
        return tuple(constant(0) if dim is None else programs[dim] for dim in placed)
    number: Symbol = constant(0)
    for position, size in zip(programs, grid):
        number = number * size + position
    result = [constant(0)] * len(shape)
    own = _others_than_1(shape)
    for dim in reversed(own):
        result[dim] = as_symbol(simplify(number if dim == own[0] else number % shape[dim]))
        number = number // as_symbol(shape[dim])
    return tuple(result)


def agrees(shape: Sequence[int], grid: Sequence[int], placed: Places) -> bool:
    """Whether known sizes are the grid's, where `places` took them to be."""
    if placed is None:
        return [n for n in shape if n != 1] == [n for n in grid if n != 1]
    ones = [size for dim, size in enumerate(grid) if dim not in placed]
    same = (size == (1 if dim is None else grid[dim]) for size, dim in zip(shape, placed))
    return all(same) and all(size == 1 for size in ones)


def may_agree(shapes: Sequence[Shape]) -> bool:
    """Whether there may be a call in which all are the same, dimensions of size 1 aside."""
    return all(_may_agree(shapes[0], shape) for shape in shapes[1:])


def _may_agree(a: Shape, b: Shape) -> bool:
    if not a or not b:
        return all(_may_be_equal(size, 1) for size in (*a, *b))
    return (
        (_may_be_equal(a[0], b[0]) and _may_agree(a[1:], b[1:]))
        or (_may_be_equal(a[0], 1) and _may_agree(a[1:], b))
        or (_may_be_equal(b[0], 1) and _may_agree(a, b[1:]))
    )


def _may_be_equal(a: Symbol | int, b: Symbol | int) -> bool:
    low, high = difference_interval(a, b)
    return low <= 0 <= high


def _others_than_1(shape: Shape) -> list[int]:
    return [dim for dim, size in enumerate(shape) if size != 1]
