"""What stands in the lanes that are not real when a tile is reduced: the one place for it."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.casting import Array
from ninetoothed.backends.numpy.values.empty import EmptyMask, is_reduced
from ninetoothed.backends.numpy.values.tile import LevelMask, LoadedMask, MovedMask, Tile, Validity
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import integer_bounds


@functools.cache
def identity_value(identity: str, dtype: DType) -> Any:
    """``identity`` ("zero", "one", "lowest", "highest", "last", "all_ones") as a NumPy scalar of a type."""
    if identity in ("zero", "one"):
        return dtype.numpy.type(identity == "one")
    if identity == "all_ones":
        return np.invert(dtype.numpy.type(0))
    if identity == "last" and dtype.kind == "float":
        return dtype.numpy.type(np.nan)
    is_highest = identity in ("highest", "last")
    if dtype.kind != "float":
        return dtype.numpy.type(integer_bounds(dtype)[is_highest])
    if dtype.name == "float8_e4m3":  # has no infinity
        return dtype.numpy.type(448.0 if is_highest else -448.0)
    return dtype.numpy.type(np.inf if is_highest else -np.inf)


def all_of(validity: Validity) -> Array:
    """The lanes where every mask holds; ``validity`` must not be empty."""
    condition = validity[0]
    for mask in validity[1:]:
        condition = condition & mask
    is_loaded = all(isinstance(mask, LoadedMask) for mask in validity)
    return condition if is_loaded else np.asarray(condition)


def without_padding(tile: Tile, identity: str) -> Array:
    """The tile's elements, with ``identity`` in the lanes that are not real."""
    if not tile.validity:
        return tile.data
    value = identity_value(identity, tile.dtype)
    return np.where(all_of(tile.validity), tile.data, value)


def validity_after_reduction(tile: Tile, axis: int | None, keep_dims: bool) -> Validity:
    """What remains of a tile's ``validity``: an element exists where one that it was made of does.

    Masks that depend on ``axis`` alone (None: all) leave nothing, unless elements moved: one number of a whole tile
    exists.
    """
    if axis is None or tile.ndim == 1:
        return ()
    kept = []
    along = tuple(mask for mask in tile.validity if mask.shape[axis] != 1)
    for mask in tile.validity:
        is_moved = isinstance(mask, MovedMask)
        if isinstance(mask, EmptyMask) and is_reduced(mask, axis):
            continue
        if mask.shape[axis] == 1:
            if tile.shape[axis] == 1 or not isinstance(mask, LevelMask):
                kept.append(mask)
        elif is_moved or mask.size > mask.shape[axis]:
            # One element has to be in all of a kind.
            kind = tuple(other for other in along if isinstance(other, MovedMask) is is_moved)
            held = mask if isinstance(mask, LoadedMask) else mask & all_of(kind)
            kept.append(np.asarray(held).any(axis=axis, keepdims=True).view(type(mask)))
    return tuple(kept) if keep_dims else tuple(mask.squeeze(axis) for mask in kept)


def in_other_lanes(validity: Iterable[Any]) -> Validity:
    """Masks of elements that moved: a store to what they were loaded beside asks them."""
    return tuple(
        mask
        if isinstance(mask, EmptyMask)
        else mask.view(LevelMask if isinstance(mask, LevelMask) else np.ndarray)
        for mask in validity
    )


def moved(validity: Iterable[Any]) -> Validity:
    """What is left of masks of elements that moved: each exists by itself."""
    masks = tuple(validity)
    empty = tuple(mask for mask in masks if isinstance(mask, EmptyMask))
    rest = tuple(mask for mask in masks if not isinstance(mask, EmptyMask))
    return (*empty, np.asarray(all_of(rest)).view(MovedMask)) if rest else empty


def exists(tile: Tile) -> Array:
    """Where a tile's elements exist, in its whole shape."""
    return np.broadcast_to(all_of(tile.validity) if tile.validity else np.True_, tile.shape)
