"""Values by the tiles that they are made of: for the walk that finds where tiles meet.

The key of a mask is a `Use`, and its layout says which of the tile's dimensions the value's follow. Where two
values were joined, it says in the new dimension which of them the tile is in (`HALVES`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.kernels.meetings.limits import Loop, Use
from ninetoothed.language.operations import Operation
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.calls import RULES
from ninetoothed.passes.padding.validity import UNKNOWN, Known, joined, met, with_rank
from ninetoothed.program.tile_masks import TileMask
from ninetoothed.program.types import ValueType
from ninetoothed.symbols.expr import Symbol

#: In a layout, in the place of a tile's dimension: the first and the second of what was joined.
HALVES = (-1, -2)
#: In how many ways a value may have come to a tile; beyond, it is taken to have come there whatever is decided. Where
#: two variables change places in one branch after another, each doubles them.
_MOST_WAYS = 64


def _joined(arguments: Arguments, operation: Operation) -> Known:
    """Side by side: each dimension there was has the elements of both, each in its half of the new one."""
    validity = [
        replace(mask, layout=(*mask.layout, half))
        for place, half in enumerate(HALVES)
        for mask in with_rank(arguments.known(place)).validity
        if mask.layout
    ]
    return Known(validity=tuple(validity))


def _interleaved(arguments: Arguments, operation: Operation) -> Known:
    """In turns, along the last dimension; others may have more elements where what was not loaded has."""
    both = [with_rank(arguments.known(place)).validity for place in (0, 1)]
    followed = [
        {dim for mask in validity for dim, own in enumerate(mask.layout) if own is not None}
        for validity in both
    ]

    def moved(layout: tuple[Any, ...]) -> tuple[Any, ...]:
        common = followed[0] & followed[1]
        kept = (own if dim in common else None for dim, own in enumerate(layout[:-1]))
        return (*kept, None)

    return _moved([mask for validity in both for mask in validity], moved)


def _split(arguments: Arguments, operation: Operation) -> Known:
    validity = with_rank(arguments.known(0)).validity
    halves = (
        [mask for mask in validity if mask.layout[-1:] != (other,)] for other in reversed(HALVES)
    )
    return Known(items=tuple(_moved(half, lambda layout: layout[:-1]) for half in halves))


def _mixed(arguments: Arguments, operation: Operation) -> Known:
    """By the rule for padding; which half an element was in is no longer told."""
    return in_either_half(RULES[operation.shape](arguments, operation))


def _reduced(arguments: Arguments, operation: Operation) -> Known:
    return along_halves(arguments, operation, RULES[operation.shape](arguments, operation))


def along_halves(arguments: Arguments, operation: Operation, result: Known) -> Known:
    """What was reduced along what was joined: one half exists anyway where the other alone has tiles to follow."""
    value = arguments.known(0)
    if value.items is not None:
        value = joined(value.items)
    axis = arguments.constant("axis", operation.places["axis"])
    if not isinstance(axis, int) or (axis + 1) % max(value.rank, 1):
        return result
    ends = [(m.layout[-1], (m.key, m.layout[:-1])) for m in value.validity if m.layout]
    if len({*HALVES}.intersection(end for end, _ in ends)) != 1:
        return result
    followed = {place for end, place in ends if end not in HALVES}
    beside = {place for end, place in ends if end in HALVES} - followed
    return _without(result, beside, value.rank - 1)


def _without(value: Known, places: Collection[Any], rank: int) -> Known:
    """A value without the masks of some places in its first dimensions."""
    items = value.items and tuple(_without(item, places, rank) for item in value.items)
    left = (mask for mask in value.validity if (mask.key, mask.layout[:rank]) not in places)
    return replace(value, validity=tuple(left), items=items)


def in_either_half(value: Known) -> Known:
    """A value whose elements may have come from the other one of what was joined."""
    validity = _moved(
        value.validity, lambda layout: tuple(None if dim in HALVES else dim for dim in layout)
    ).validity
    items = None if value.items is None else tuple(map(in_either_half, value.items))
    return replace(value, validity=validity, items=items)


def _gathered(arguments: Arguments, operation: Operation) -> Known:
    """Of what is gathered from, all dimensions but one stay; the index says what there is."""
    source, chosen = with_rank(arguments.known(0)), arguments.node_of("index", 1)
    axis = arguments.constant("axis", 2)
    index = arguments.named.get("index", arguments.known(1))
    if chosen is None or not isinstance(axis, int) or source.shape is None:
        return UNKNOWN
    axis %= len(source.shape) or 1
    validity = tuple(
        replace(mask, layout=(*mask.layout[:axis], None, *mask.layout[axis + 1 :]))
        for mask in source.validity
    )
    return joined([Known(validity=validity), index])


def _moved(
    validity: Sequence[TileMask], layout: Callable[[tuple[Any, ...]], tuple[Any, ...]]
) -> Known:
    """A value whose dimensions follow others than its argument's do."""
    return Known(validity=tuple(replace(m, layout=layout(m.layout)) for m in validity if m.layout))


#: Of what moves elements, by the rule for the operation's shape: dimensions that keep their elements.
MOVES: dict[str, Callable[[Arguments, Operation], Known]] = {
    "joined": _joined,
    "interleaved": _interleaved,
    "halved": _split,
    "gathered": _gathered,
    "reduced": _reduced,
    "scanned": _mixed,
    "sorted": _mixed,
    "flipped": _mixed,
}


def of_product(type: ValueType, one: Known, other: Known) -> Known:
    """The last dimension of one met the last but one of the other, and both are gone."""
    validity = [replace(a, layout=(*a.layout[:-1], None)) for a in one.validity if a.layout]
    validity += [
        replace(b, layout=(*b.layout[:-2], None, b.layout[-1]))
        for b in other.validity
        if len(b.layout) >= 2
    ]
    return Known(type, tuple(validity))


def of_loads(value: Known) -> Known:
    """A value with the masks alone that loads left, and not what was made or moved."""
    items = None if value.items is None else tuple(map(of_loads, value.items))
    validity = tuple(mask for mask in value.validity if isinstance(mask.key, Use))
    return replace(value, validity=validity, items=items)


def uses_of(value: Known) -> set[Use]:
    return {mask.key for mask in value.validity}.union(*map(uses_of, value.items or ()))


def _with_uses(value: Known, changed: Callable[[Use], Use]) -> Known:
    items = None
    if value.items is not None:
        items = tuple(_with_uses(item, changed) for item in value.items)
    validity = tuple(replace(mask, key=changed(mask.key)) for mask in value.validity)
    return replace(value, validity=validity, items=items)


def after(value: Known, loop: Loop, outside: set[Use]) -> Known:
    """What is known after a loop, if it has a round: which round a tile was of is not.

    Args:
        outside: uses that there are anyway, of before the loop.
    """

    def left(use: Use) -> Use:
        if use in outside:
            return use
        indices = tuple(
            None if at is None or loop.round in set(at.leaves()) else at for at in use.indices
        )
        return replace(use, indices=indices).within(loop)

    return _with_uses(value, left)


def given_by(value: Known, loop: Loop, again: Loop, round: Symbol) -> Known:
    """What a round of a loop is given by the one before it, in the loop that has them all but the first.

    Args:
        round: the number of the round before.
    """

    def given(use: Use) -> Use:
        indices = tuple(
            None if at is None else at.substitute({loop.round: round}) for at in use.indices
        )
        loops = tuple(again if each is loop else each for each in use.loops)
        return replace(use, indices=indices, loops=loops)

    return _with_uses(value, given)


def either(one: Known, other: Known, loops: tuple[Loop | None, Loop]) -> Known:
    """A value that is one in the first loop, which has a round where the second has none, else the other.

    Args:
        loops: None where it is known of all that the value is made of.
    """
    first, second = loops

    def masks(ways: _Ways, others: _Ways) -> Iterator[TileMask]:
        yield from _within(first, second, ways, others)
        yield from _within(second, first, others, ways)

    return _united(one, other, masks)


def in_both(one: Known, other: Known) -> Known:
    """What there is of a value that is one or the other, nobody knows which."""

    def masks(ways: _Ways, others: _Ways) -> Iterator[TileMask]:
        for tile, own in ways.items():
            for mask, beside in itertools.product(own, others.get(tile, ())):
                loops = dict.fromkeys((*mask.key.loops, *beside.key.loops))
                yield replace(mask, key=replace(mask.key, loops=tuple(loops)))

    return _united(one, other, masks)


def _united(one: Known, other: Known, masks: Callable[[_Ways, _Ways], Iterator[TileMask]]) -> Known:
    """A value made of two, with these of their masks."""
    known = met(one, other)
    if known.items is not None and one.items is not None and other.items is not None:
        pairs = zip(one.items, other.items)
        return replace(known, items=tuple(_united(*pair, masks) for pair in pairs))
    if known.shape is None:
        return known
    ways = (_ways(with_rank(value).validity) for value in (one, other))
    return replace(known, validity=tuple(_without_implied(masks(*ways))))


#: The masks of a value, by tile and layout: of one tile there is one for each way that it has come there.
_Ways = dict[Any, list[TileMask]]


def _ways(masks: Iterable[TileMask]) -> _Ways:
    found: _Ways = {}
    for mask in masks:
        found.setdefault(_tile_of(mask), []).append(mask)
    return found


def _tile_of(mask: TileMask) -> Any:
    return mask.key.parameter, mask.key.indices, mask.layout


def _within(
    loop: Loop | None, opposite: Loop | None, ways: _Ways, beside: _Ways
) -> Iterator[TileMask]:
    """The masks of a value that there is in a loop alone; what the value beside it has too is there anyway."""
    for mask in itertools.chain(*ways.values()):
        if loop is None or _is_implied(mask, beside):
            yield mask
        elif opposite is None or opposite not in mask.key.loops:
            yield replace(mask, key=mask.key.within(loop))


def _is_implied(mask: TileMask, ways: _Ways) -> bool:
    """Whether a value has the tile of a mask wherever that is there: in loops that are all around it too."""
    loops = {*mask.key.loops}
    return any(loops.issuperset(each.key.loops) for each in ways.get(_tile_of(mask), ()))


def _without_implied(masks: Iterable[TileMask]) -> Iterator[TileMask]:
    """Those that another one does not imply, the ones in the fewest loops first."""
    left: _Ways = {}
    for mask in sorted(masks, key=lambda mask: len(mask.key.loops)):
        own = left.setdefault(_tile_of(mask), [])
        if _is_implied(mask, left):
            continue
        if len(own) == _MOST_WAYS:
            loops = tuple(loop for loop in mask.key.loops if loop.decision is None)
            mask = replace(mask, key=replace(mask.key, loops=loops))
            own[:] = [each for each in own if not {*each.key.loops}.issuperset(loops)]
        own.append(mask)
    return itertools.chain(*left.values())
