"""Functions that move elements and compute none: reshape, transpose, join, gather …

Where an element goes, what says whether it exists goes too.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.creation import integer, tile_shape, validity_of_shape
from ninetoothed.backends.numpy.language.identities import exists, in_other_lanes, moved
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.empty import EmptyMask, check_any, empty_mask
from ninetoothed.backends.numpy.values.tile import Tile, Validity, as_tile
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse


def _listed(values: tuple[Any, ...]) -> list[Any]:
    """A shape or dimensions, given as one sequence or one by one."""
    is_one_sequence = len(values) == 1 and isinstance(values[0], Iterable)
    return list(values[0]) if is_one_sequence else list(values)


def wrapped_axis(axis: Any, ndim: int) -> int:
    """``axis`` counted from the front; an error if a tile of ``ndim`` dimensions has none such."""
    axis = integer(axis, "An axis")
    if not -ndim <= axis < ndim:
        raise refuse(f"Axis {axis} is out of range for a tile of {ndim} dimensions.")
    return axis % ndim


def broadcast(input: Any, other: Any) -> tuple[Tile, Tile]:
    """Both tiles in their common shape."""
    left, right = as_tile(input), as_tile(other)
    try:
        shape = np.broadcast_shapes(left.shape, right.shape)
    except ValueError as error:
        raise refuse(f"Shapes {left.shape} and {right.shape} do not broadcast.") from error
    return _in_shape(left, shape), _in_shape(right, shape)


def _in_shape(tile: Tile, shape: tuple[int, ...]) -> Tile:
    if tile.shape == shape:
        return tile
    missing = len(shape) - tile.ndim
    validity = (
        tuple(mask[(None,) * missing] for mask in tile.validity) if missing else tile.validity
    )
    return Tile(np.broadcast_to(tile.data, shape), tile.dtype, validity)


def broadcast_to(input: Any, *shape: Any) -> Tile:
    """``input`` repeated along its dimensions of size 1 to ``shape``; a scalar fits any shape."""
    tile, target = as_tile(input), tile_shape(_listed(shape))
    fits = tile.ndim == len(target) and all(
        size in (1, wanted) for size, wanted in zip(tile.shape, target, strict=True)
    )
    if tile.ndim and not fits:
        raise refuse(f"A tile of shape {tile.shape} does not broadcast to {target}.")
    made = validity_of_shape(_listed(shape))
    result = _in_shape(tile, target)
    return Tile(result.data, result.dtype, (*result.validity, *made)) if made else result


def expand_dims(input: Any, axis: Any) -> Tile:
    """``input`` with a dimension of size 1 at ``axis``, or at each of several, of the result."""
    tile = as_tile(input)
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    ndim = tile.ndim + len(axes)
    places = sorted(wrapped_axis(place, ndim) for place in axes)
    if len(set(places)) != len(places):
        raise refuse(f"expand_dims was given an axis twice: {places}.")
    key = tuple(None if place in places else slice(None) for place in range(ndim))
    return tile[key]


def permute(input: Tile, *dims: Any) -> Tile:
    """``input`` with its dimensions in the order ``dims``."""
    order = [integer(dim, "A dimension") for dim in _listed(dims)]
    if sorted(order) != list(range(input.ndim)):
        raise refuse(
            f"permute needs each of {input.ndim} dimensions of shape {input.shape} once, "
            f"but got {tuple(order)}."
        )
    validity = tuple(mask.transpose(order) for mask in input.validity)
    return Tile(np.transpose(input.data, order), input.dtype, validity)


def trans(input: Tile, *dims: Any) -> Tile:
    """``input`` with its dimensions in the order ``dims``; by default the last two exchanged."""
    return permute(input, *dims) if _listed(dims) else input.T


def reshape(input: Any, *shape: Any, can_reorder: bool = False) -> Tile:
    """``input``'s elements, in their order, in ``shape``."""
    return _moved(as_tile(input), tile_shape(_listed(shape)))


def _moved(tile: Tile, shape: tuple[int, ...]) -> Tile:
    """The elements in a shape, and not those of a load any more, whichever shape it is."""
    result = _reshaped(tile, shape)
    return Tile(result.data, result.dtype, moved(result.validity))


def _reshaped(tile: Tile, shape: tuple[int, ...]) -> Tile:
    if math.prod(shape) != tile.data.size:
        raise refuse(
            f"A tile of shape {tile.shape} has {tile.data.size} elements and cannot become "
            f"{shape}, which has {math.prod(shape)}."
        )
    return Tile(tile.data.reshape(shape), tile.dtype, _reshaped_validity(tile, shape))


def _reshaped_validity(tile: Tile, shape: tuple[int, ...]) -> Validity:
    if not tile.validity:
        return ()
    if any(isinstance(mask, EmptyMask) for mask in tile.validity):
        check_any("reshape", len(shape), tile.validity)
        return (empty_mask(0, 1),) if shape else ()
    kept = [dim for dim, size in enumerate(tile.shape) if size != 1]
    if [tile.shape[dim] for dim in kept] != [size for size in shape if size != 1]:
        return (exists(tile).reshape(shape),)
    source = iter(kept)
    places = [next(source) if size != 1 else None for size in shape]
    return tuple(
        mask.reshape([1 if dim is None else mask.shape[dim] for dim in places])
        for mask in tile.validity
    )


def view(input: Any, *shape: Any) -> Tile:
    """``input``'s elements in ``shape``."""
    return reshape(input, *shape)


def ravel(x: Any, can_reorder: bool = False) -> Tile:
    """``x``'s elements in one dimension."""
    tile = as_tile(x)
    return _moved(tile, (tile.numel,))


def item(input: Any) -> Tile:
    """A one-element tile as a scalar."""
    tile = as_tile(input)
    return _reshaped(tile, ()) if tile.ndim else tile


def _of_one_type(function: str, a: Tile, b: Tile) -> DType:
    if a.dtype is not b.dtype:
        raise refuse(f"ntl.{function} needs tiles of one type, but got {a.dtype} and {b.dtype}.")
    return a.dtype


def cat(input: Tile, other: Tile, can_reorder: bool = False) -> Tile:
    """Two one-dimensional tiles, one after the other; as in Triton, ``can_reorder`` must be set."""
    if not can_reorder:
        raise refuse("ntl.cat may reorder elements: it needs can_reorder=True.")
    if input.ndim != 1 or input.shape != other.shape:
        raise refuse(
            f"ntl.cat takes two one-dimensional tiles of one shape, but got {input.shape} and "
            f"{other.shape}."
        )
    dtype = _of_one_type("cat", input, other)
    return Tile(
        np.concatenate((input.data, other.data)),
        dtype,
        _of_both("cat", 1, np.concatenate, input, other),
    )


def _of_both(
    name: str, ndim: int, together: Callable[[list[Any]], Any], a: Tile, b: Tile
) -> Validity:
    """Where the elements of two tiles exist that are put together."""
    check_any(name, ndim, a.validity, b.validity)
    return moved([together([exists(a), exists(b)])]) if a.validity or b.validity else ()


def join(a: Any, b: Any) -> Tile:
    """Both tiles side by side in a new last dimension of size 2."""
    left, right = broadcast(a, b)
    return _side_by_side("join", left, right, left.ndim + 1)


def _side_by_side(name: str, left: Tile, right: Tile, ndim: int) -> Tile:
    """Two tiles of one shape in a new last dimension, to be in a result of so many."""
    dtype = _of_one_type(name, left, right)
    together = functools.partial(np.stack, axis=-1)
    validity = _of_both(name, ndim, together, left, right)
    return Tile(together((left.data, right.data)), dtype, validity)


def split(a: Tile) -> tuple[Tile, Tile]:
    """The two halves along the last dimension, which has size 2: what `join` joined."""
    if not a.ndim or a.shape[-1] != 2:
        raise refuse(f"ntl.split needs a last dimension of size 2, but the shape is {a.shape}.")
    masks = moved(a.validity)
    first, second = (
        Tile(a.data[..., side], a.dtype, tuple(mask[..., -side] for mask in masks))
        for side in (0, 1)
    )
    return first, second


def interleave(a: Any, b: Any) -> Tile:
    """The elements of both tiles in turn along the last dimension."""
    left, right = broadcast(a, b)
    joined = _side_by_side("interleave", left, right, max(left.ndim, 1))
    if joined.ndim == 1:
        return joined
    return _moved(joined, (*joined.shape[:-2], 2 * joined.shape[-2]))


def flip(x: Tile, dim: Any = None) -> Tile:
    """``x`` with its elements along ``dim``, by default the last, in reverse order where those are."""
    axis = wrapped_axis(-1 if dim is None else dim, x.ndim)
    validity = [mask for mask in x.validity if mask.shape[axis] != 1]
    if not validity:
        return Tile(np.flip(x.data, axis), x.dtype, x.validity)
    there = exists(Tile(x.data, x.dtype, tuple(validity)))
    places = np.argsort(~there, axis=axis, kind="stable")
    after = np.sum(there, axis=axis, keepdims=True) - np.cumsum(there, axis=axis)
    data = np.take_along_axis(x.data, np.take_along_axis(places, after, axis), axis)
    return Tile(np.where(there, data, x.data), x.dtype, x.validity)


def gather(src: Tile, index: Tile, axis: Any) -> Tile:
    """``src``'s elements at ``index`` along ``axis``; the shape is ``index``'s."""
    if index.dtype.kind == "float":
        raise refuse(f"ntl.gather needs an integer index, but got {index.dtype}.")
    check_any("gather", src.ndim, src.validity, index.validity)
    if src.ndim != index.ndim:
        raise refuse(
            f"ntl.gather needs an index of the source's rank, but got {index.shape} for {src.shape}."
        )
    place = wrapped_axis(axis, src.ndim)
    for dim, (size, wanted) in enumerate(zip(src.shape, index.shape, strict=True)):
        if dim != place and size != wanted:
            raise refuse(
                f"ntl.gather needs an index like the source but in axis {place}, yet got "
                f"{index.shape} for {src.shape}."
            )
    # A position that does not exist may be any number, and is none of the source's.
    at = np.where(exists(index), index.data, 0) if index.validity else index.data
    is_outside = (at < 0) | (at >= src.shape[place])
    if context.is_beside():
        at = np.where(is_outside, 0, at)
    elif np.any(is_outside):
        raise refuse(
            f"ntl.gather's index leaves axis {place} of the source, of size {src.shape[place]}."
        )
    validity = in_other_lanes(index.validity)
    if src.validity:
        validity = (*validity, *moved([np.take_along_axis(exists(src), at, place)]))
    return Tile(np.take_along_axis(src.data, at, place), src.dtype, validity)
