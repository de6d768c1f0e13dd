"""Reductions. Lanes that are not real are left out; the result's type is Triton's.

Adjacent halves are combined, as a GPU does it, where the user gives the function, which therefore
need be associative only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.identities import (
    exists,
    validity_after_reduction,
    without_padding,
)
from ninetoothed.backends.numpy.language.math import exp, fdiv, promoted
from ninetoothed.backends.numpy.language.shape import wrapped_axis
from ninetoothed.backends.numpy.values.casting import Array, cast_array
from ninetoothed.backends.numpy.values.operators import subtract
from ninetoothed.backends.numpy.values.tile import Tile, as_tile
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import identity_of
from ninetoothed.language.promotion import refuse


def sum_dtype(dtype: DType, wanted: DType | None) -> DType:
    """The type that a sum of ``dtype`` has: what is ``wanted``, else at least 32 bits if integer; truth values count."""
    if wanted is not None:
        return wanted
    if dtype.kind == "float" or dtype.bits >= 32:
        return dtype
    return dtypes.uint32 if dtype.kind == "uint" else dtypes.int32


def accumulator(dtype: DType) -> DType:
    """The type in which values of ``dtype`` are added up before they are rounded to it."""
    return dtypes.float32 if dtype.kind == "float" and dtype.bits < 32 else dtype


def _reduced(
    name: str, ufunc: np.ufunc, tile: Tile, dtype: DType, axis: Any, keep_dims: bool
) -> Tile:
    """A reduction whose result is of a type; of nothing, it is that of the elements' own."""
    if tile.ndim == 0:
        raise refuse(f"ntl.{name} takes a tile, but got one number. Use it as it is.")
    place = None if axis is None else wrapped_axis(axis, tile.ndim)
    data = without_padding(tile, identity_of(name))
    between = accumulator(dtype)
    data = cast_array(data, tile.dtype, between)
    data = ufunc.reduce(data, axis=place, keepdims=keep_dims, dtype=between.numpy)
    validity = validity_after_reduction(tile, place, keep_dims)
    return Tile(cast_array(data, between, dtype), dtype, validity)


def sum(input: Any, axis: Any = None, keep_dims: bool = False, dtype: DType | None = None) -> Tile:
    """The sum along ``axis``, or of everything; narrow integers in 32 bits."""
    tile = as_tile(input)
    added = tile.to(sum_dtype(tile.dtype, dtype))
    return _reduced("sum", np.add, added, added.dtype, axis, keep_dims)


def _bitwise(name: str, ufunc: np.ufunc) -> Callable[..., Tile]:
    def reduce_bits(input: Any, axis: Any = None, keep_dims: bool = False) -> Tile:
        tile = as_tile(input)
        if tile.dtype.kind == "float":
            raise refuse(f"ntl.{name} takes integers, but got {tile.dtype}.")
        return _reduced(name, ufunc, tile, tile.dtype, axis, keep_dims)

    reduce_bits.__name__ = reduce_bits.__qualname__ = name
    return reduce_bits


def _in_at_least_32_bits(dtype: DType) -> DType:
    if dtype.bits >= 32:
        return dtype
    return dtypes.float32 if dtype.kind == "float" else dtypes.int32


def in_at_least_32_bits(tile: Tile) -> Tile:
    return tile.to(_in_at_least_32_bits(tile.dtype))


def _place_of(tile: Tile, data: Array, best: Array, axis: int) -> Array:
    """Where the first number is that is as the best one; of NaN alone the first that exists, of nothing 0."""
    is_real = exists(tile)
    is_best = (data == best) & is_real
    return np.where(is_best.any(axis=axis), is_best.argmax(axis=axis), is_real.argmax(axis=axis))


def _extremum(name: str, ufunc: np.ufunc) -> Callable[..., Any]:
    def extremum(
        input: Any,
        axis: Any = None,
        return_indices: bool = False,
        return_indices_tie_break_left: bool = True,
        keep_dims: bool = False,
    ) -> Any:
        tile = promoted(input)
        if not return_indices:
            return _reduced(name, ufunc, tile, _in_at_least_32_bits(tile.dtype), axis, keep_dims)
        if axis is None:
            raise refuse(f"ntl.{name} needs an axis to return indices.")
        place = wrapped_axis(axis, tile.ndim)
        data = without_padding(tile, identity_of(name))
        best = ufunc.reduce(data, axis=place, keepdims=True)
        indices = np.expand_dims(_place_of(tile, data, best, place), place)
        values = np.take_along_axis(data, indices, place)
        if not keep_dims:
            indices, values = indices.squeeze(place), values.squeeze(place)
        validity = validity_after_reduction(tile, place, keep_dims)
        return (
            Tile(values[()], tile.dtype, validity),
            Tile(indices.astype(np.int32)[()], dtypes.int32, validity),
        )

    extremum.__name__ = extremum.__qualname__ = name
    return extremum


max = _extremum("max", np.fmax)
min = _extremum("min", np.fmin)


def argmax(input: Any, axis: Any, tie_break_left: bool = True, keep_dims: bool = False) -> Tile:
    """The index of the greatest element along ``axis``, the first of several."""
    return max(input, axis, True, tie_break_left, keep_dims)[1]


def argmin(input: Any, axis: Any, tie_break_left: bool = True, keep_dims: bool = False) -> Tile:
    """The index of the least element along ``axis``, the first of several."""
    return min(input, axis, True, tie_break_left, keep_dims)[1]


def softmax(x: Any, dim: Any = None, keep_dims: bool = False, ieee_rounding: bool = False) -> Tile:
    """The exponentials along ``dim``, by default the first, divided by their sum.

    ``keep_dims`` says nothing of the result: Triton's own, without it, subtracts rows from columns.
    """
    axis = 0 if dim is None else dim
    shifted = subtract(x, max(x, axis, keep_dims=True))
    numerator = exp(shifted)
    return fdiv(numerator, sum(numerator, axis, keep_dims=True))


reduce_or = _bitwise("reduce_or", np.bitwise_or)
xor_sum = _bitwise("xor_sum", np.bitwise_xor)
