"""What the variables of a loop hold after a round, and which of their elements its condition asks.

A variable begins a round with masks of its own, copies: so a mask that it has after the round is its own or came
from what the round has made, whatever either holds. Masks are told apart by their memory, which those have in common that
other dimensions were given or that an operation handed on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.empty import EmptyMask
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import (
    FEW_MASKS,
    LoadedMask,
    MovedMask,
    Tile,
    Validity,
    as_tile,
    place_of_mask,
)
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.steps import STEP_OF_0
from ninetoothed.language import dtypes
from ninetoothed.language.promotion import refuse


def rounds(function: Callable[..., Any], *bounds: Any, **keywords: Any) -> Iterable[Any]:
    """The numbers of a loop over a range: int64 where a bound is of a type that no int32 holds, else int32."""
    step = keywords.get("step", bounds[2] if len(bounds) > 2 else 1)
    if isinstance(step, Tile | int) and not step:
        raise ArgumentError(STEP_OF_0)
    numbers = function(*bounds, **keywords)
    return Counted(numbers, bounds) if isinstance(numbers, range) else numbers


class Counted:
    """A range that the running kernel counts.

    Args:
        bounds: what it was made of.
    """

    def __init__(self, numbers: range, bounds: Sequence[Any]) -> None:
        self._numbers, self._bounds = numbers, bounds

    def __iter__(self) -> Iterator[Tile]:
        own = [as_tile(bound).dtype for bound in self._bounds]
        is_wide = any(dtype.bits > 32 or dtype is dtypes.uint32 for dtype in own)
        dtype = dtypes.int64 if is_wide else dtypes.int32
        return (Tile.of(number, dtype) for number in self._numbers)

    def __reversed__(self) -> Counted:
        return Counted(self._numbers[::-1], self._bounds)


def counted(*bounds: Any) -> range | Counted:
    """Python's ``range``: one of the running kernel where a bound is not known before."""
    numbers = range(*bounds)
    is_known = not any(isinstance(bound, Tile | Size) for bound in bounds)
    return numbers if is_known else Counted(numbers, bounds)


def turns(items: Any) -> Iterable[Any]:
    """What a loop goes over that is not spelled as a range: of one, the numbers of the running kernel."""
    if not isinstance(items, range):
        return items  # type: ignore[no-any-return]
    return Counted(items, (items.start, items.stop, items.step))


def lasting(value: Any, before: Any, name: str, is_assigned: bool = True, turns: Any = None) -> Any:
    """What a variable holds after a round of a loop: a lane without an element keeps what it had.

    A number becomes a 0-d tile, as a compiler has it, but in a loop that is unrolled.

    Args:
        before: what it held before the round; a tuple item by item.
        is_assigned: whether the round is known to assign it; else a number may stay what it is.
        turns: of a loop that is not spelled as one over a range, what it goes over: where that is none, a round may
            change the value's type, and its shape: it keeps nothing then.

    Raises:
        CompilationError: the round changed its shape or type, which a compiled loop cannot do.
    """
    is_unrolled = turns is not None and not isinstance(turns, Counted)
    if type(value) in (tuple, list):
        known = before if type(before) is type(value) and len(before) == len(value) else ()
        paired = itertools.zip_longest(value, known)
        how = is_assigned, turns
        return type(value)(lasting(item, was, name, *how) for item, was in paired)
    if type(value) is dict:
        known = before if type(before) is dict and before.keys() == value.keys() else {}
        items = value.items()
        how = is_assigned, turns
        return {key: lasting(item, known.get(key), name, *how) for key, item in items}
    if isinstance(value, (bool, int, float)):
        if is_unrolled or (value is before and not is_assigned):
            return value
        if not is_assigned and isinstance(before, (bool, int, float)):
            raise refuse(
                f"The number {name!r} is changed in a loop by a helper that a parameter, a variable or an item "
                "stands for; on CPUs it is a constant until then. Have the helper return what it makes of it: "
                f"`{name} = helper({name})`."
            )
        value = Tile.of(value)
    if not isinstance(value, Tile) or before is None:
        return value
    if isinstance(before, (bool, int, float)):
        before = Tile.of(before)
    if not isinstance(before, Tile):
        return value
    if value is before:
        return _owning(value)
    if value.shape != before.shape or value.dtype is not before.dtype:
        if is_unrolled:
            is_cast = value.shape == before.shape
            return _owning(_kept(value, before.to(value.dtype))) if is_cast else value
        was, became = (f"{tile.dtype}{list(tile.shape)}" for tile in (before, value))
        raise refuse(
            f"The loop changes what {name!r} is: {was} before a round, {became} after it. Give it the "
            f"shape and the element type that the loop leaves it before the loop, as `{name} = "
            "ntl.zeros(shape, dtype=ntl.float32)` does."
        )
    return _owning(_kept(value, before))


def _owning(value: Tile) -> Tile:
    """The value, with masks that nothing else has.

    All are the variable's from here on: of equal ones it needs one, else those of variables that refer to each
    other would double in each round.
    """
    masks = value.validity
    if not masks:
        return value
    if len(masks) > FEW_MASKS:
        kinds = {(type(mask), mask.shape, mask.tobytes()): mask for mask in reversed(masks)}
        masks = tuple(kinds.values())[::-1]
    return Tile(value.data, value.dtype, tuple(np.array(mask, subok=True) for mask in masks))


def _kept(value: Tile, before: Tile) -> Tile:
    """``value`` where it exists, elsewhere what was before it."""
    new = [mask for mask in value.validity if not _is_among(mask, before.validity)]
    if not new:
        return value
    # What the variable itself did not have is computed on, as it is outside of a loop.
    is_given = np.logical_and.reduce(np.broadcast_arrays(*new))
    data = np.where(is_given, value.data, before.data)
    if all(_is_among(mask, value.validity) for mask in before.validity):
        return Tile(data, value.dtype, before.validity)
    # What has no element for a size of 0 has none afterwards, and says along which dimension.
    sizes = {mask.along.shape for mask in value.validity if isinstance(mask, EmptyMask)}
    either: list[Any] = [mask for mask in before.validity if _is_empty_in(mask, sizes)]
    after = [mask for mask in value.validity if not (either and isinstance(mask, EmptyMask))]
    exists = np.logical_and.reduce(np.broadcast_arrays(np.True_, *after))
    earlier = [mask for mask in before.validity if not (either and isinstance(mask, EmptyMask))]
    # A lane that keeps what it had is stored where it was: what was loaded stays so.
    for kind in (LoadedMask, np.ndarray):
        own = [mask for mask in earlier if _is_loaded(mask) is (kind is LoadedMask)]
        if own:
            existed = np.logical_and.reduce(np.broadcast_arrays(*own))
            is_moved = any(isinstance(mask, MovedMask) for mask in own)
            either.append(np.asarray(exists | existed).view(MovedMask if is_moved else kind))
    return Tile(data, value.dtype, tuple(either))


def _is_empty_in(mask: Any, shapes: Collection[tuple[int, ...]]) -> bool:
    return isinstance(mask, EmptyMask) and mask.along.shape in shapes


def _is_among(mask: Any, validity: Validity) -> bool:
    return any(
        _is_loaded(mask) is _is_loaded(other) and place_of_mask(mask) == place_of_mask(other)
        for other in validity
    )


def _is_loaded(mask: Any) -> bool:
    return isinstance(mask, LoadedMask)


def reached(value: Any, before: Any, earlier: Any) -> Any:
    """In which lanes a variable got an element in the round at hand or in one before; item by item of a tuple.

    Args:
        value: what the round left, not yet `lasting`.
        before: what the variable held before the round.
        earlier: what this gave after the round before; None after the first one.
    """
    if type(value) in (tuple, list):
        known = before if type(before) is type(value) and len(before) == len(value) else ()
        past = earlier if type(earlier) is list and len(earlier) == len(value) else ()
        return [reached(*each) for each in itertools.zip_longest(value, known, past)][: len(value)]
    if not isinstance(value, Tile):
        return None
    masks = () if value is before else value.validity
    exists = np.logical_and.reduce(np.broadcast_arrays(np.ones(value.shape, bool), *masks))
    return exists if earlier is None else exists | earlier


def asked(value: Any, lanes: Any) -> Any:
    """A variable as a loop's condition asks for it: without lanes that no round had an element for."""
    if type(value) in (tuple, list) and type(lanes) is list:
        return type(value)(map(asked, value, lanes))
    if not isinstance(value, Tile) or not isinstance(lanes, np.ndarray) or lanes.all():
        return value
    return Tile(value.data, value.dtype, (*value.validity, lanes))
