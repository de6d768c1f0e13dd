"""What stands in the lanes that are not real when a tile is reduced: the one place for it."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.casting import Array
from ninetoothed.backends.numpy.values.tile import Marks, Tile
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import integer_bounds


@functools.cache
def identity_value(identity: str, dtype: DType) -> Any:
    """``identity`` ("zero", "one", "lowest", "highest", "all_ones") as a NumPy scalar of a type."""
    if identity in ("zero", "one"):
        return dtype.numpy.type(identity == "one")
    if identity == "all_ones":
        return np.invert(dtype.numpy.type(0))
    is_highest = identity == "highest"
    if dtype.kind != "float":
        return dtype.numpy.type(integer_bounds(dtype)[is_highest])
    if dtype.name == "float8_e4m3":  # has no infinity
        return dtype.numpy.type(448.0 if is_highest else -448.0)
    return dtype.numpy.type(np.inf if is_highest else -np.inf)


def all_of(marks: Marks) -> Array:
    """The lanes where every mark holds; ``marks`` must not be empty."""
    condition = marks[0]
    for mark in marks[1:]:
        condition = condition & mark
    return condition


def without_padding(tile: Tile, identity: str) -> Array:
    """The tile's elements, with ``identity`` in the lanes that are not real."""
    if not tile.marks:
        return tile.data
    value = identity_value(identity, tile.dtype)
    return np.where(all_of(tile.marks), tile.data, value)


def marks_after_reduction(marks: Marks, axis: int | None, keep_dims: bool) -> Marks:
    """What remains of ``marks``: an element exists where one that it was made of does.

    Those that depend on ``axis`` alone (None: all) leave nothing.
    """
    if axis is None:
        return ()
    kept = [mark for mark in marks if mark.shape[axis] == 1]
    for mark in marks:
        if mark.shape[axis] != 1 and mark.size > mark.shape[axis]:
            kept.append(mark.any(axis=axis, keepdims=True))
    return tuple(kept) if keep_dims else tuple(mark.squeeze(axis) for mark in kept)


def exists(tile: Tile) -> Array:
    """Where a tile's elements exist, in its whole shape."""
    return np.broadcast_to(all_of(tile.marks) if tile.marks else np.True_, tile.shape)
