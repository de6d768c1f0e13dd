"""Which meta-operations give several positions the same element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import difference, difference_interval, simplify
from ninetoothed.tensors import metaops
from ninetoothed.tensors.access import positions, source_indices, steps
from ninetoothed.tensors.level import Level
from ninetoothed.tensors.meta_operation import Indices, MetaOperation


def lanes_share(tensor: Level) -> bool:
    """Whether several elements of one tile may be the same element of the source."""
    levels = _levels(tensor)
    for operation, taken, _ in steps(tensor, levels):
        if isinstance(operation, metaops.Expand):
            expanded = [p for p, is_expanded in zip(taken[0], operation.expanded) if is_expanded]
            if any(set(position.leaves()) & set(levels[-1]) for position in expanded):
                return True
    return False


def windows_overlap(tensor: Level) -> bool:
    """Whether several tiles may have the same elements, but for dimensions that are expanded."""
    return any(overlaps(operation, taken) for operation, taken, _ in steps(tensor, _levels(tensor)))


def are_apart(tensor: Level, one: Sequence[int], other: Sequence[int]) -> bool:
    """Whether the tiles that two positions in the middle levels select are known to have no element in common."""
    levels = _levels(tensor)
    selected = [position for level in levels[1:-1] for position in level]
    elsewhere = positions("elsewhere", tensor.levels[-1].shape)
    lanes = dict(zip(levels[-1], elsewhere))
    steps_between = {
        step
        for operation, *_ in steps(tensor, levels)
        if isinstance(operation, metaops.Tile)
        for step in operation.dilation
        if isinstance(step, int) and step > 1
    }
    for position in source_indices(tensor, levels)[0]:
        first = as_symbol(position).substitute(dict(zip(selected, one)))
        second = as_symbol(position).substitute({**dict(zip(selected, other)), **lanes})
        between = as_symbol(difference(first, second))
        least, greatest = interval(between)
        if least > 0 or greatest < 0:
            return True
        if any(simplify(between % step) in range(1, step) for step in steps_between):
            return True
    return False


def _levels(tensor: Level) -> list[Indices]:
    return [positions(f"level_{depth}", level.shape) for depth, level in enumerate(tensor.levels)]


def overlaps(operation: MetaOperation, taken: Sequence[Indices]) -> bool:
    """Whether an operation makes windows that overlap, at these indices of its levels."""
    if not isinstance(operation, metaops.Tile):
        return False
    outer, inner = taken
    for dim, (tile, stride, step) in enumerate(
        zip(operation.tile_shape, operation.strides, operation.dilation)
    ):
        if operation.whole[dim] or most(outer[dim]) == 0 or most(inner[dim]) == 0:
            continue
        # Tiles beside each other, or one between the elements of another.
        if _is_at_least(stride, as_symbol(step) * (as_symbol(tile) - 1) + 1):
            continue
        last = most(outer[dim])
        if last is not None and _is_at_least(step, as_symbol(stride) * last + 1):
            continue
        return True
    return False


def most(position: Symbol) -> int | None:
    """The largest value of a position; None where there is none."""
    found = interval(simplify(position))[1]
    return None if found == float("inf") else int(found)


def _is_at_least(one: Any, other: Any) -> bool:
    return difference_interval(one, other)[0] >= 0
