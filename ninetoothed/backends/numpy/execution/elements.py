"""Elements of a tile (``x[i]``, ``x[indices]``, ``x[1:]``): at which positions of it they are.

A result has a dimension for each slice, and where the first tile of positions stands those of all tiles of
positions together, broadcast.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ninetoothed.backends.numpy.execution.addressing import Shape
from ninetoothed.backends.numpy.language.identities import in_other_lanes
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import Tile, Validity, joined_validity, member_value
from ninetoothed.errors import ApplicationError
from ninetoothed.symbols.operators import next_power_of_2


class Positions(NamedTuple):
    """Positions in a tile.

    Attributes:
        along: for each dimension of the tile, arrays that broadcast to the shape.
        shape: of all together.
        validity: where they exist, each with as many dimensions.
        given: of those masks the positions' own.
    """

    along: tuple[Any, ...]
    shape: Shape
    validity: Validity
    given: Validity


def is_reshaped_only(keys: Sequence[Any]) -> bool:
    """Whether there are only ``:`` and ``None`` among the keys."""
    return all(key is None or _is_whole(key) for key in keys)


def _is_whole(key: Any) -> bool:
    return isinstance(key, slice) and key == slice(None)


def positions(name: str, tile: Shape, keys: Sequence[Any]) -> Positions:
    """The positions in a tile that keys select: integers, tiles of them, and slices.

    Raises:
        ApplicationError: there are too many, one is none of these, or their shapes do not match.
    """
    if any(key is None for key in keys):
        raise ApplicationError(
            f"`None` cannot stand beside positions in `{name}`: select the elements first."
        )
    keys = completed(keys, len(tile))
    is_whole_tile = all(map(_is_whole, keys))
    if len(keys) > len(tile):
        raise ApplicationError(
            f"`{name}` is one tile of shape {tile} here, and takes no {len(keys)} indices."
        )
    chosen = [key for key in keys if isinstance(key, Tile) and key.data.ndim]
    together = shape_of_all(name, chosen)
    first = next((place for place, key in enumerate(keys) if isinstance(key, Tile)), len(keys))
    runs_before = sum(isinstance(key, slice) for key in keys[:first])
    num_runs = sum(isinstance(key, slice) for key in keys)
    rank = num_runs + len(together)
    behind = (1,) * (num_runs - runs_before)
    along: list[Any] = []
    validity, given = list[Any](), list[Any]()
    run = 0
    for key, size in zip(keys, tile, strict=True):
        if isinstance(key, slice):
            dim = run + (len(together) if run >= runs_before else 0)
            found, exists = _run(name, key, size, is_whole_tile)
            shape = [1] * rank
            shape[dim] = found.size
            along.append(found.reshape(shape))
            if not exists.all():
                validity.append(exists.reshape(shape))
            run += 1
            continue
        if not isinstance(key, Tile):
            along.append(np.asarray(_number(name, key, size)))
            continue
        if key.dtype.kind not in ("int", "uint"):
            raise ApplicationError(
                f"A position in `{name}` is an integer, but got a tile of {key.dtype}."
            )
        data = np.asarray(key.data).astype(np.int64)
        along.append(data.reshape(data.shape + behind) if data.ndim else data)
    if chosen:
        behind_first = (1,) * rank
        given = [
            _ranked(m.reshape(m.shape + behind), behind_first)
            for m in in_other_lanes(joined_validity(*chosen))
        ]
    validity += given
    validity += [
        _ranked(inside, (1,) * rank)
        for position, size in zip(along, tile, strict=True)
        if not (inside := (position >= 0) & (position < size)).all()
    ]
    whole = np.broadcast_shapes((1,) * rank, *(a.shape for a in along))
    return Positions(tuple(along), whole, tuple(validity), tuple(given))


def shape_of_all(name: str, indices: Sequence[Any]) -> Shape:
    """The shape of indices together, each a tile or an array.

    Raises:
        ApplicationError: two sizes that meet differ, and neither is 1.
    """
    shapes = [np.shape(index.data) if isinstance(index, Tile) else index.shape for index in indices]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        shown = " and ".join(map(str, shapes))
        raise ApplicationError(
            f"The indices of `{name}` need shapes that match or are 1, but got {shown}. For each row with "
            "each column write `rows[:, None]` and `columns[None, :]`."
        ) from error


def _ranked(mask: Any, shape: Shape) -> Any:
    """A mask with so many dimensions."""
    return np.asanyarray(mask).reshape((1,) * (len(shape) - np.ndim(mask)) + np.shape(mask))


def completed(keys: Sequence[Any], count: int) -> list[Any]:
    """Keys for all dimensions, with no ``...`` among them."""
    places = [place for place, key in enumerate(keys) if key is Ellipsis]
    place = places[0] if places else len(keys)
    left_out = [slice(None)] * (count - len(keys) + len(places))
    return [*keys[:place], *left_out, *keys[place + 1 :]]


def _run(name: str, key: slice, size: int, may_have_none: bool) -> tuple[Any, Any]:
    """A slice's positions, to a power of two, and which of them there are."""
    try:
        start, stop, step = key.indices(size)
    except TypeError as error:
        raise ApplicationError(
            f"The bounds of a slice of `{name}` are needed at compile time: {error}."
        ) from error
    # What is made of sizes does not count from the end: it is before the tile, where it is negative.
    if type(key.start) is Size:
        start = min(int(key.start), size)
    if type(key.stop) is Size:
        stop = min(int(key.stop), size)
    count = len(range(start, stop, step))
    if not count and not may_have_none:
        raise ApplicationError(
            f"A slice of `{name}`, along a dimension of size {size}, has no element."
        )
    lanes = np.arange(next_power_of_2(count))
    return start + step * lanes, lanes < count


def _number(name: str, key: Any, size: int) -> int:
    """A position as an int; a constant one that is negative counts from the end."""
    try:
        number = operator.index(key := member_value(key))
    except TypeError as error:
        raise ApplicationError(
            f"`{name}` is one tile here, and is indexed with {key!r}: integers, tiles of them, and "
            "slices select its elements."
        ) from error
    return number + size if type(key) is int and number < 0 else number
