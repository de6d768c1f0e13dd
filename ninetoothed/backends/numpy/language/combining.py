"""Functions that take the user's function: ``reduce``, ``associative_scan``, ``map_elementwise``.

The function is first given whole tiles. If it asks for one number, as in an ``if``, it is called
again element by element.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.callbacks import adapted
from ninetoothed.backends.numpy.language.identities import all_of, validity_after_reduction
from ninetoothed.backends.numpy.language.math import maximum, minimum, where
from ninetoothed.backends.numpy.language.shape import broadcast, wrapped_axis
from ninetoothed.backends.numpy.values import context, operators
from ninetoothed.backends.numpy.values.tile import SeveralElementsError, Tile, as_tile, as_tiles
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse

Tiles = tuple[Tile, ...]
Combine = Callable[[Tiles, Tiles], Tiles]


def _results(returned: Any) -> Tiles:
    items = returned if isinstance(returned, (tuple, list)) else (returned,)
    return tuple(as_tile(item) for item in items)


def _combination(function: Any, types: Sequence[DType]) -> Combine:
    plain = adapted(function)

    def combine(left: Tiles, right: Tiles) -> Tiles:
        results = _results(plain(*left, *right))
        if len(results) != len(types):
            raise refuse(
                f"A combine function of {len(types)} values must return as many, but it returned "
                f"{len(results)}."
            )
        shape = left[0].shape
        return tuple(
            Tile(np.broadcast_to(item.to(dtype).data, shape), dtype)
            for item, dtype in zip(results, types, strict=True)
        )

    def combine_any(left: Tiles, right: Tiles) -> Tiles:
        try:
            with context.combining():
                return combine(left, right)
        except SeveralElementsError:
            return _element_by_element(combine, left, right)

    return combine_any


def _element_by_element(combine: Combine, left: Tiles, right: Tiles) -> Tiles:
    outputs = tuple(Tile(np.empty_like(tile.data), tile.dtype) for tile in left)
    for place in np.ndindex(left[0].shape):
        first = tuple(Tile(tile.data[place], tile.dtype) for tile in left)
        second = tuple(Tile(tile.data[place], tile.dtype) for tile in right)
        for output, item in zip(outputs, combine(first, second), strict=True):
            output.data[place] = item.data
    return outputs


def _choosing_real(combine: Combine) -> Combine:
    """``combine`` for tiles with a boolean one appended: "this lane is real"."""

    def combine_real(left: Tiles, right: Tiles) -> Tiles:
        left_is_real, right_is_real = left[-1].data, right[-1].data
        both = combine(left[:-1], right[:-1])
        chosen = (
            Tile(
                np.where(
                    left_is_real & right_is_real, c.data, np.where(left_is_real, a.data, b.data)
                ),
                c.dtype,
            )
            for a, b, c in zip(left, right, both, strict=False)
        )
        return (*chosen, Tile(left_is_real | right_is_real, left[-1].dtype))

    return combine_real


def _operands(name: str, input: Any) -> Tiles:
    tiles = _results(input)
    if any(tile.shape != tiles[0].shape for tile in tiles):
        raise refuse(
            f"ntl.{name} needs tiles of one shape, but got {[tile.shape for tile in tiles]}."
        )
    return tiles


def _with_reality(tiles: Tiles, function: Any) -> tuple[Tiles, Combine, tuple[Any, ...]]:
    """The tiles, what combines them, and their masks; with "this lane is real" where marked."""
    combine = _combination(function, [tile.dtype for tile in tiles])
    validity = tuple({id(mask): mask for tile in tiles for mask in tile.validity}.values())
    if not validity:
        return tuple(Tile(tile.data, tile.dtype) for tile in tiles), combine, ()
    is_real = Tile(np.broadcast_to(all_of(validity), tiles[0].shape), dtypes.bool)
    # What is made of nothing, and may be stored, is 0.
    none = (np.zeros((), tile.data.dtype) for tile in tiles)
    plain = (
        Tile(np.where(is_real.data, tile.data, zero), tile.dtype) for tile, zero in zip(tiles, none)
    )
    return (*plain, is_real), _choosing_real(combine), validity


def _slices(tiles: Tiles, key: Any) -> Tiles:
    return tuple(Tile(tile.data[key], tile.dtype) for tile in tiles)


def _along(axis: int, part: slice) -> tuple[slice, ...]:
    return (*itertools.repeat(slice(None), axis), part)


def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False) -> Any:
    """Combines all elements along ``axis``, or all elements, of a tile or of several at once.

    Args:
        input: a tile, or a tuple of tiles of one shape.
        axis: the dimension, or None for all.
        combine_fn: of two elements of each tile, first all of one side; must be associative and commutative,
            since a device combines elements in an order of its own.
        keep_dims: whether the reduced dimensions stay, with size 1.
    """
    tiles = _operands("reduce", input)
    ndim = tiles[0].ndim
    place = None if axis is None else wrapped_axis(axis, ndim)
    values, combine, validity = _with_reality(tiles, combine_fn)
    if place is None:
        values = tuple(Tile(tile.data.reshape(-1), tile.dtype) for tile in values)
    along = place or 0
    while (size := values[0].shape[along]) > 1:
        even = size - size % 2
        left = _slices(values, _along(along, slice(0, even, 2)))
        right = _slices(values, _along(along, slice(1, even, 2)))
        combined = combine(left, right)
        if size % 2:
            rest = _slices(values, _along(along, slice(even, None)))
            combined = tuple(
                Tile(np.concatenate((c.data, r.data), along), c.dtype)
                for c, r in zip(combined, rest, strict=True)
            )
        values = combined
    whole = Tile(tiles[0].data, tiles[0].dtype, validity)
    kept = validity_after_reduction(whole, place, keep_dims)
    shape: Any = values[0].shape if keep_dims else values[0].data.squeeze(along).shape
    if place is None and keep_dims:
        shape = (1,) * ndim
    results = tuple(
        Tile(tile.data.reshape(shape)[()], tile.dtype, kept) for tile in values[: len(tiles)]
    )
    return results[0] if isinstance(input, Tile) else results


def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: bool = False) -> Any:
    """The combinations of each element with all before it along ``axis`` (behind it: ``reverse``).

    Args:
        input: a tile, or a tuple of tiles of one shape.
        axis: the dimension.
        combine_fn: of two elements of each tile, first all of one side; must be associative.
        reverse: whether to begin at the end.
    """
    tiles = _operands("associative_scan", input)
    place = wrapped_axis(axis, tiles[0].ndim)
    values, combine, _ = _with_reality(tiles, combine_fn)
    if reverse:
        values = tuple(Tile(np.flip(tile.data, place), tile.dtype) for tile in values)
    distance = 1
    while distance < values[0].shape[place]:
        left = _slices(values, _along(place, slice(None, -distance)))
        right = _slices(values, _along(place, slice(distance, None)))
        head = _slices(values, _along(place, slice(None, distance)))
        values = tuple(
            Tile(np.concatenate((first.data, rest.data), place), first.dtype)
            for first, rest in zip(head, combine(left, right), strict=True)
        )
        distance *= 2
    if reverse:
        values = tuple(Tile(np.flip(tile.data, place), tile.dtype) for tile in values)
    results = tuple(
        Tile(value.data, value.dtype, tile.validity)
        for value, tile in zip(values, tiles, strict=False)
    )
    return results[0] if isinstance(input, Tile) else results


def map_elementwise(scalar_fn: Any, *args: Any, pack: int = 1) -> Any:
    """``scalar_fn`` of each element; with ``pack`` it is given, and returns, so many at a time."""
    tiles = as_tiles(*args)
    for index in range(1, len(tiles)):
        tiles[0], tiles[index] = broadcast(tiles[0], tiles[index])
    tiles = [broadcast(tile, tiles[0])[0] for tile in tiles]
    shape = tiles[0].shape
    plain = adapted(scalar_fn)
    flat = [(tile.data.reshape(-1), tile.dtype) for tile in tiles]
    count = flat[0][0].size
    if count % pack:
        raise refuse(f"ntl.map_elementwise cannot pack {count} elements by {pack}.")
    columns: list[list[Any]] = []
    types: list[DType] = []
    is_one = True
    for start in range(0, count, pack):
        elements = [Tile(data[start + k], dtype) for data, dtype in flat for k in range(pack)]
        returned = plain(*elements)
        results = _results(returned)
        is_one = not isinstance(returned, (tuple, list)) or len(results) == pack
        columns = columns or [[] for _ in range(0, len(results), pack)]
        found = [results[k].dtype for k in range(0, len(results), pack)]
        if types and found != types:
            raise refuse(
                "The function of ntl.map_elementwise returns several element types, "
                f"{_listed(types)} of one element and {_listed(found)} of another: cast what it returns."
            )
        types = found
        for index, item in enumerate(results):
            columns[index // pack].append(item.data)
    validity = tuple(mask for tile in tiles for mask in tile.validity) if pack == 1 else ()
    outputs = tuple(
        Tile(np.array(column, dtype.numpy).reshape(shape), dtype, validity)
        for column, dtype in zip(columns, types, strict=True)
    )
    return outputs[0] if is_one else outputs


def _listed(types: Sequence[DType]) -> str:
    return ", ".join(map(str, types))


def _extremum(is_before: Callable[[Any, Any], Any], breaks_ties: bool) -> Callable[..., Any]:
    """Of two values with their indices, the one that comes before; of equals the one to the left."""

    def combine(value: Any, index: Any, other: Any, other_index: Any) -> tuple[Tile, Tile]:
        is_first = is_before(value, other)
        if breaks_ties:
            tie = operators.bitwise_and(
                operators.equal(value, other), operators.less(index, other_index)
            )
            is_first = operators.bitwise_or(is_first, tie)
        return where(is_first, value, other), where(is_first, index, other_index)

    return combine


#: The functions that Triton's own reductions combine with, which may be handed to ours.
_TRITONS = {
    "_argmax_combine_tie_break_fast": _extremum(operators.greater, False),
    "_argmax_combine_tie_break_left": _extremum(operators.greater, True),
    "_argmin_combine_tie_break_fast": _extremum(operators.less, False),
    "_argmin_combine_tie_break_left": _extremum(operators.less, True),
    "_elementwise_max": maximum,
    "_elementwise_min": minimum,
    "_or_combine": operators.bitwise_or,
    "_prod_combine": operators.multiply,
    "_sum_combine": operators.add,
    "_xor_combine": operators.bitwise_xor,
}

FUNCTIONS = {f"standard.{name}": function for name, function in _TRITONS.items()}
