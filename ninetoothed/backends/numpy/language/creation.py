"""Tiles from nothing: ranges, constants; and the running program's index."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.empty import empty_mask
from ninetoothed.backends.numpy.values.tile import Tile, Validity, number
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import checked_dtype, refuse
from ninetoothed.symbols.operators import next_power_of_2

_LARGEST_TILE = 1048576


def integer(value: Any, what: str) -> int:
    """``value`` as a Python int; an error that says ``what`` it is for if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        value = number(value)
    if not isinstance(value, int):
        raise refuse(f"{what} must be an integer, but got {value!r}.")
    return value


def padded(size: Any) -> int:
    """The next power of two: the size that a tile has in a dimension of ``size``."""
    size = integer(size, "A tile's size")
    if size < 0:
        raise refuse(f"A tile's size must be 0 or more, but got {size}.")
    return next_power_of_2(size)


def tile_shape(shape: Any) -> tuple[int, ...]:
    """``shape`` (an int or several) with each dimension padded to the next power of two."""
    sizes = shape if isinstance(shape, Iterable) else (shape,)
    result = tuple(padded(size) for size in sizes)
    elements = 1
    for size in result:
        elements *= size
    if elements > _LARGEST_TILE:
        raise refuse(f"A tile has at most {_LARGEST_TILE} elements, but {result} has {elements}.")
    return result


def arange(start: Any, end: Any) -> Tile:
    """The int32 values from ``start`` to ``end``, exclusive, held in a power of two of elements."""
    first, last = integer(start, "arange's start"), integer(end, "arange's end")
    size = last - first
    if size < 0:
        raise refuse(f"arange's end must not be less than its start, but got {first} and {last}.")
    if not -(2**31) <= first <= last <= 2**31:
        raise refuse(f"arange must fit in int32, but got {first} and {last}.")
    values = np.arange(first, first + padded(size), dtype=np.int32)
    return Tile(values, dtypes.int32, validity_of_shape(size))


def validity_of_shape(shape: Any) -> Validity:
    """Where the elements of a tile made of this shape exist: in the sizes that were asked for."""
    sizes = tuple(shape) if isinstance(shape, Iterable) else (shape,)
    validity: list[Any] = []
    for dim, size in enumerate(sizes):
        asked, held = integer(size, "A tile's size"), padded(size)
        if not asked:
            validity.append(empty_mask(dim, len(sizes)))
        elif asked < held:
            beside = [-1 if other == dim else 1 for other in range(len(sizes))]
            validity.append((np.arange(held) < asked).reshape(beside))
    return tuple(validity)


def full(shape: Any, value: Any, dtype: DType) -> Tile:
    """A tile of ``shape`` with ``value``, a number or a one-element tile, in every element."""
    dtype = checked_dtype(dtype)
    if isinstance(value, Tile):
        if value.data.size != 1:
            raise refuse(f"ntl.full takes one value, but got a tile of shape {value.shape}.")
        element = value.to(dtype).data.reshape(())[()]
    else:
        element = Tile.of(number(value), dtype).data
    data = np.empty(tile_shape(shape), dtype.numpy)
    data.fill(element)
    return Tile(data, dtype, validity_of_shape(shape))


def zeros(shape: Any, dtype: DType) -> Tile:
    """A tile of ``shape`` with zeros."""
    dtype = checked_dtype(dtype)
    return Tile(np.zeros(tile_shape(shape), dtype.numpy), dtype, validity_of_shape(shape))


def zeros_like(input: Tile) -> Tile:
    """Zeros in the shape and the type of ``input``, where it has elements."""
    return Tile(np.zeros(input.shape, input.dtype.numpy), input.dtype, input.validity)


def program_id(axis: Any) -> Tile:
    """The running program's index along ``axis`` of the grid, a 0-d int32 tile."""
    return Tile(np.int32(context.program_index(integer(axis, "The grid's axis"))), dtypes.int32)


def num_programs(axis: Any) -> Tile:
    """The grid's extent along ``axis``, a 0-d int32 tile."""
    return Tile(np.int32(context.program_count(integer(axis, "The grid's axis"))), dtypes.int32)
