"""Scans, sorting and counting."""

from __future__ import annotations

from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.creation import integer, padded
from ninetoothed.backends.numpy.language.identities import all_of, moved, without_padding
from ninetoothed.backends.numpy.language.math import promoted
from ninetoothed.backends.numpy.language.reduction import (
    accumulator,
    in_at_least_32_bits,
    sum_dtype,
)
from ninetoothed.backends.numpy.language.shape import wrapped_axis
from ninetoothed.backends.numpy.values.casting import cast_array
from ninetoothed.backends.numpy.values.empty import check_any
from ninetoothed.backends.numpy.values.tile import Tile, Validity, as_tile
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import identity_of
from ninetoothed.language.promotion import refuse


def _scanned(name: str, ufunc: np.ufunc, tile: Tile, axis: Any, reverse: bool) -> Tile:
    place = wrapped_axis(axis, tile.ndim)
    between = accumulator(tile.dtype)
    data = cast_array(without_padding(tile, identity_of(name)), tile.dtype, between)
    if reverse:
        data = np.flip(data, place)
    data = ufunc.accumulate(data, axis=place, dtype=between.numpy)
    if reverse:
        data = np.flip(data, place)
    return Tile(cast_array(data, between, tile.dtype), tile.dtype, tile.validity)


def cumsum(input: Any, axis: Any = 0, reverse: bool = False, dtype: DType | None = None) -> Tile:
    """The sums of the elements up to each one along ``axis``; narrow integers in 32 bits."""
    tile = promoted(input)
    return _scanned("cumsum", np.add, tile.to(sum_dtype(tile.dtype, dtype)), axis, reverse)


def cumprod(input: Any, axis: Any = 0, reverse: bool = False) -> Tile:
    """The products of the elements up to each one along ``axis``."""
    return _scanned("cumprod", np.multiply, promoted(input), axis, reverse)


def _check_last(name: str, tile: Tile, dim: Any) -> None:
    if not tile.ndim:
        raise refuse(f"ntl.{name} needs a tile with a dimension, but got a scalar.")
    if dim is not None and wrapped_axis(dim, tile.ndim) != tile.ndim - 1:
        raise refuse(
            f"ntl.{name} works along the last dimension only, but got dim={dim} for {tile.ndim} "
            "dimensions; transpose the tile first."
        )


def _validity_after_sorting(tile: Tile) -> Validity:
    """Padding comes last, and no element is taken to be where it was loaded."""
    return moved(np.flip(np.sort(mask, axis=-1), -1) for mask in _along_last(tile))


def _along_last(tile: Tile) -> Validity:
    """A tile's masks; those that depend on its last dimension as one."""
    others = tuple(mask for mask in tile.validity if mask.shape[-1] == 1)
    along = tuple(mask for mask in tile.validity if mask.shape[-1] != 1)
    return (*others, all_of(along)) if along else others


def _sorted(tile: Tile, identity: str, is_descending: bool) -> np.ndarray:
    # Of these NumPy knows what NaN is: it comes last.
    between = accumulator(tile.dtype)
    data = np.sort(cast_array(without_padding(tile, identity), tile.dtype, between), axis=-1)
    data = cast_array(data, between, tile.dtype)
    return np.flip(data, -1) if is_descending else data


def sort(x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """``x`` sorted along its last dimension, NaN as the greatest; padding comes last."""
    tile = as_tile(x)
    _check_last("sort", tile, dim)
    is_descending = bool(descending)
    data = _sorted(tile, "lowest" if is_descending else identity_of("sort"), is_descending)
    return Tile(data, tile.dtype, _validity_after_sorting(tile))


def bitonic_merge(x: Any, dim: Any = None, descending: Any = False) -> Tile:
    """A bitonic sequence along the last dimension of ``x``, sorted."""
    return sort(x, dim, descending)


def topk(x: Any, k: Any, dim: Any = None) -> Tile:
    """The ``k`` greatest elements along the last dimension, the greatest first."""
    tile = as_tile(x)
    _check_last("topk", tile, dim)
    check_any("topk", tile.ndim, tile.validity)
    count, size = integer(k, "topk's k"), tile.shape[-1]
    if not 1 <= count <= size or count & (count - 1):
        raise refuse(f"ntl.topk needs a power of two from 1 to {size}, but got {count}.")
    if count < size:
        # Triton reduces with `max` here, which widens.
        tile = in_at_least_32_bits(promoted(tile))
    data = _sorted(tile, identity_of("topk"), True)[..., :count]
    validity = tuple(mask[..., :count] for mask in _validity_after_sorting(tile))
    return Tile(data, tile.dtype, validity)


def histogram(input: Tile, num_bins: Any, mask: Any = None) -> Tile:
    """How often each of 0 … ``num_bins`` - 1 is in the one-dimensional ``input``, in int32."""
    if input.ndim != 1 or input.dtype.kind == "float":
        raise refuse(
            f"ntl.histogram takes one dimension of integers, but got {input.shape} of "
            f"{input.dtype}."
        )
    bins = padded(num_bins)
    values = input.data.astype(np.int64)
    is_counted = (values >= 0) & (values < bins)
    if mask is not None:
        is_counted = is_counted & as_tile(mask).data
    if input.validity:
        is_counted = is_counted & all_of(input.validity)
    counts = np.bincount(values[is_counted], minlength=bins)
    return Tile(counts.astype(np.int32), dtypes.int32)
