"""Which lanes of a value are padding, as far as it follows from the loads that it is made of.

A value has masks of tiles. A mask says: where that of this tile does not hold, the lane is padding. An
element-wise result is padding where an operand is. Shapes are the types' matter: what is known of a result
gets its type where it is visited (`values`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.program import types
from ninetoothed.program.nodes import ElementRef, TileRef, Within
from ninetoothed.program.tile_masks import TileMask, changed, with_dimensions
from ninetoothed.program.types import Shape, ValueType, are_same, differ, is_one
from ninetoothed.records import dataclass

#: Which zero operands make an operator's result zero; see `joined`.
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "all",
    ast.Sub: "less",
    ast.Mult: "product",
    ast.Div: "first",
    ast.FloorDiv: "first",
    ast.Mod: "first",
    ast.BitOr: "all",
    ast.BitXor: "all",
    ast.BitAnd: "all",
    ast.Pow: "none",
    ast.LShift: "first",
    ast.RShift: "first",
}


@dataclass(frozen=True)
class Known:
    """What is known of a value.

    Attributes:
        type: what inference finds of it.
        validity: the masks, all of which must hold for a lane to be real.
        is_zero: whether it is the number 0.
        is_finite: whether it is a number other than infinity and NaN.
        is_positive: whether it is such a number, and greater than 0.
        items: for a tuple of values, what is known of each.
        false_at: the places of masks where it is a truth value that is False where they do not hold.
        below: pairs of the place of a mask and a number: it is below that number where it holds, alone.
        is_lowest: whether it is minus infinity.
        is_scale: whether it is a number that a call says is a scale (`Call.scales`), or a product of some.
    """

    type: ValueType = types.UNKNOWN
    validity: tuple[TileMask, ...] = ()
    is_zero: bool = False
    is_finite: bool = False
    is_positive: bool = False
    items: tuple[Known, ...] | None = None
    false_at: frozenset[Any] = frozenset()
    below: frozenset[Any] = frozenset()
    is_lowest: bool = False
    is_scale: bool = False

    @property
    def shape(self) -> Shape | None:
        """Its type's; None where not even the number of dimensions is known."""
        return self.type.shape

    @property
    def rank(self) -> int:
        """The number of dimensions; that of the masks where the shape is not known."""
        if self.type.shape is not None:
            return len(self.type.shape)
        return max((len(mask.layout) for mask in self.validity), default=0)

    def changed(self) -> Known:
        """Another value in the same lanes: not known to be zero anywhere."""
        validity = tuple(
            replace(mask, is_zero=False, is_lowest=False, is_kept=False) for mask in self.validity
        )
        return Known(self.type, validity)


def typed(known: Known, found: ValueType) -> Known:
    """What is known of a value of this type."""
    items = known.items
    if items is not None and found.items is not None and len(items) == len(found.items):
        items = tuple(map(typed, items, found.items))
    return replace(known, type=found, items=items)


UNKNOWN = Known()


def number(value: Any) -> Known:
    """What is known of a literal."""
    finite = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return Known(is_zero=finite and value == 0, is_finite=finite, is_positive=finite and value > 0)


def joined(operands: Sequence[Known], zero_of: str = "none") -> Known:
    """What is known of an element-wise result.

    Args:
        zero_of: which operands make the result zero: ``"all"`` of them together; ``"product"``,
            all, or one with finite numbers; ``"first"``, the first with a finite number that is
            not zero; ``"less"``, all, in a difference; ``"none"``.
    """
    rank = max((operand.rank for operand in operands), default=0)
    aligned = [_by_place(operand, rank) for operand in operands]
    validity: dict[Any, TileMask] = {}
    lowest = (
        {
            place
            for place, mask in aligned[0].items()
            if mask.is_lowest and _stays_lowest(mask, operands[1:], zero_of)
        }
        if aligned
        else set()
    )
    for own in aligned:
        for place, mask in own.items():
            if place not in validity:
                is_zero = _is_zero(place, operands, aligned, zero_of)
                is_lowest = place in lowest
                there = [each[place] for each in aligned if place in each]
                validity[place] = changed(
                    mask,
                    is_zero=is_zero,
                    is_lowest=is_lowest,
                    is_kept=False,
                    is_loaded=all(each.is_loaded for each in there),
                    is_met=all(each.is_met for each in there),
                    is_moved=any(each.is_moved for each in there),
                )
    return Known(validity=tuple(validity.values()))


def _by_place(value: Known, rank: int) -> dict[Any, TileMask]:
    return {mask.place: mask for mask in with_rank(value, rank).validity}


def _stays_lowest(mask: TileMask, others: Sequence[Known], zero_of: str) -> bool:
    """Whether minus infinity stays what it is with these operands.

    From it anything may be taken that is the same where elements exist: where that is minus infinity
    too, what exists is no number either.
    """
    if zero_of == "product":
        return all(other.is_scale or other.is_positive for other in others)
    return zero_of == "less" and not any(_differs_along(mask, other) for other in others)


def _differs_along(mask: TileMask, value: Known) -> bool:
    """Whether a value may have another element where a mask holds than where it does not.

    Where its shape is not known, its masks say along which dimensions it may.
    """
    own = mask.layout[::-1]
    if value.shape is None:
        others = (each.layout[::-1] for each in value.validity)
        pairs = (pair for other in others for pair in zip(own, other))
        return any(None not in pair for pair in pairs)
    return any(dim is not None and not is_one(size) for dim, size in zip(own, value.shape[::-1]))


def accumulated(old: Known, value: Known) -> Known:
    """What is known of ``old + value`` in the variable of ``old``: where 0 is added it keeps it."""
    result = joined([old, value], "all")
    rank = max(old.rank, value.rank)
    before, added = _by_place(old, rank), _by_place(value, rank)

    def is_kept(place: Any) -> bool:
        is_zero = place in added and added[place].is_zero
        return is_zero and (place not in before or before[place].is_kept)

    validity = tuple(replace(mask, is_kept=is_kept(mask.place)) for mask in result.validity)
    return replace(result, validity=validity)


def _is_zero(
    place: Any, operands: Sequence[Known], aligned: list[dict[Any, TileMask]], zero_of: str
) -> bool:
    zeros = [
        operand.is_zero or (place in own and own[place].is_zero)
        for operand, own in zip(operands, aligned)
    ]
    if zero_of == "less":
        zero_of = "all"
    if zero_of == "all" or all(zeros):
        return zero_of != "none" and zero_of != "first" and all(zeros)
    others = [operand for operand, zero in zip(operands, zeros) if not zero]
    if zero_of == "product":
        return any(zeros) and all(operand.is_finite for operand in others)
    if zero_of == "first":
        return zeros[0] and all(operand.is_finite and not operand.is_zero for operand in others)
    return False


def met(one: Known, other: Known) -> Known:
    """What holds of a value that is one or the other, as run time decides."""
    common = types.met(one.type, other.type)
    items = None
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        items = tuple(map(met, one.items, other.items))
    false_at = one.false_at & other.false_at
    if differ(one.shape, other.shape):
        return Known(common, items=items, false_at=false_at)
    others = {mask.place: mask for mask in other.validity}
    validity = tuple(
        changed(
            mask,
            is_zero=mask.is_zero and others[mask.place].is_zero,
            is_lowest=mask.is_lowest and others[mask.place].is_lowest,
            is_loaded=mask.is_loaded and others[mask.place].is_loaded,
            is_moved=mask.is_moved or others[mask.place].is_moved,
        )
        for mask in one.validity
        if mask.place in others
    )
    # What holds anything in one case may do so.
    found = {mask.place for mask in validity}
    either = [m for m in (*one.validity, *other.validity) if m.wanted is not None]
    validity += tuple({m.place: m for m in either if m.place not in found}.values())
    return Known(
        common,
        validity,
        is_zero=one.is_zero and other.is_zero,
        is_finite=one.is_finite and other.is_finite,
        is_positive=one.is_positive and other.is_positive,
        items=items,
        false_at=false_at,
        below=one.below & other.below,
    )


def rearranged(value: Known, places: Sequence[int | None]) -> Known:
    """The value with other dimensions: each is an old one (by its place) or a new one (None)."""
    validity = tuple(
        replace(
            mask, layout=tuple(None if place is None else mask.layout[place] for place in places)
        )
        for mask in with_rank(value).validity
    )
    return Known(validity=validity)


def in_other_lanes(value: Known) -> Known:
    """The value with its elements, as far as a store can tell, in other lanes than they were loaded to."""
    return replace(value, validity=tuple(replace(m, is_loaded=False) for m in value.validity))


def moved(value: Known) -> Known:
    """The value with its elements, as far as a store or a reduction can tell, each by itself."""
    validity = tuple(replace(m, is_moved=True) for m in in_other_lanes(value).validity)
    return replace(value, validity=validity)


def trailing(place: Any) -> Any:
    """The place of a mask without the dimensions in front that it does not depend on."""
    key, layout = place
    first = next((dim for dim, own in enumerate(layout) if own is not None), len(layout))
    return key, layout[first:]


def with_rank(value: Known, rank: int | None = None) -> Known:
    """The value with the layouts of its masks as long as its shape, or so long."""
    rank = value.rank if rank is None else rank
    if all(len(mask.layout) >= rank for mask in value.validity):
        return value
    return replace(value, validity=tuple(with_dimensions(mask, rank) for mask in value.validity))


def reduced(value: Known, axis: int | None, keep_dims: bool) -> Known:
    """What remains after a reduction: the masks of the other dimensions. Without an axis nothing does."""
    if axis is None:
        return Known()
    rank = value.rank
    axis = axis % rank if rank else 0
    places = [place if place != axis else None for place in range(rank)]
    if not keep_dims:
        places = [place for place in places if place is not None]
    result = rearranged(value, places).changed()
    if rank == 1:
        return replace(result, validity=())
    pairs = zip(with_rank(value).validity, result.validity)
    validity = tuple(mask for own, mask in pairs if is_left(own, mask, axis))
    return replace(result, validity=validity)


def is_left(before: TileMask, after: TileMask, axis: int) -> bool:
    """Whether a mask says something of what elements along an axis become.

    What no dimension is left of says nothing about one element and another; nor does it of all of them
    that a whole tile, which may be outside of its level, depends on none. Of what moved it does.
    """
    tile = before.origin.tile
    if any(dim is not None for dim in after.layout):
        return True
    if before.is_moved and not isinstance(tile, TileRef | Within):
        return True
    is_of_level = isinstance(tile, TileRef) and not isinstance(tile, ElementRef)
    return before.layout[axis] is None and not is_of_level


def reshaped(value: Known, shape: Shape | None) -> Known:
    """A reshape keeps masks where it only adds or removes dimensions of size 1."""
    if shape is None or value.shape is None:
        return Known()
    old = [(place, size) for place, size in enumerate(value.shape) if not is_one(size)]
    new = [size for size in shape if not is_one(size)]
    if len(old) != len(new) or any(not are_same(a, b) for (_, a), b in zip(old, new)):
        return Known()
    remaining = iter(old)
    places = [None if is_one(size) else next(remaining)[0] for size in shape]
    return rearranged(value, places)
