"""Which lanes of a value are padding, as far as it follows from the loads that it is made of.

A value has a shape, as far as that is known, and marks. A mark says: where the mask of this tile
does not hold, the lane is padding. An element-wise result is padding where an operand is.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ninetoothed.program.effects import names_read
from ninetoothed.program.types import (
    Shape,
    ValueType,
    are_same,
    common_shape,
    differ,
    is_one,
    unified,
)

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
class Mark:
    """The mask of a loaded tile.

    Attributes:
        key: equal for marks of the same tile.
        origin: the tile, and the statement that loaded it.
        layout: for each dimension of the value the tile's dimension that it follows, or None.
        is_zero: whether the value is zero in all lanes where the mask does not hold.
        is_lowest: whether it is minus infinity there.
        is_kept: whether a variable holds there what it held before the statement that assigned it.
        wanted: what has to be done before the mask can be had, where that is only done on demand;
            None where it can be had. Till then those lanes hold anything.
        stands_for: of one of a loop's variable, the marks that are wanted.
    """

    key: Any
    origin: Origin
    layout: tuple[int | None, ...]
    is_zero: bool = False
    is_lowest: bool = False
    is_kept: bool = False
    wanted: Any = None
    stands_for: tuple[Mark, ...] = ()

    @property
    def place(self) -> Any:
        return self.key, self.layout

    @property
    def is_in_place(self) -> bool:
        """Whether each dimension of the value follows the same one of the tile, or none."""
        return all(dim in (None, place) for place, dim in enumerate(self.layout))


@dataclass(eq=False)
class Origin:
    """Where a mark comes from: the tile, and the statement that its indices are valid at.

    In place of a tile there may be what the mask is itself, a `Within` or a `Held`.
    """

    tile: Any
    statement: ast.stmt

    @property
    def names(self) -> set[str]:
        """The variables that decide what it is."""
        return names_read(self.tile)


#: The origin of a mark that cannot be had as it is.
NOWHERE = Origin(ast.Constant(value=None), ast.Pass())


@dataclass(frozen=True)
class Marked:
    """What is known of a value.

    Attributes:
        shape: None where not even the number of dimensions is known.
        marks: the marks, all of which must hold for a lane to be real.
        is_zero: whether it is the number 0.
        is_finite: whether it is a number other than infinity and NaN.
        is_positive: whether it is such a number, and greater than 0.
        items: for a tuple of values, what is known of each.
        false_at: the places of marks where it is a truth value that is False where they do not hold.
        below: pairs of the place of a mark and a number: it is below that number where it holds, alone.
        is_lowest: whether it is minus infinity.
    """

    shape: Shape | None = None
    marks: tuple[Mark, ...] = ()
    is_zero: bool = False
    is_finite: bool = False
    is_positive: bool = False
    items: tuple[Marked, ...] | None = field(default=None)
    false_at: frozenset[Any] = frozenset()
    below: frozenset[Any] = frozenset()
    is_lowest: bool = False

    def changed(self) -> Marked:
        """Another value in the same lanes: not known to be zero anywhere."""
        marks = tuple(
            replace(mark, is_zero=False, is_lowest=False, is_kept=False) for mark in self.marks
        )
        return Marked(self.shape, marks)


def shaped(known: Marked, found: ValueType) -> Marked:
    """What is known of a value with the shape that its type says."""
    items = known.items
    if items is not None and found.items is not None and len(items) == len(found.items):
        items = tuple(map(shaped, items, found.items))
    return replace(known, shape=found.shape, items=items)


def type_of_known(known: Marked) -> ValueType:
    """The type of a variable, as far as its shape goes."""
    items = None if known.items is None else tuple(map(type_of_known, known.items))
    return ValueType(known.shape, items=items)


UNKNOWN = Marked()
SCALAR = Marked(())


def number(value: Any) -> Marked:
    """What is known of a literal."""
    finite = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return Marked(
        (), is_zero=finite and value == 0, is_finite=finite, is_positive=finite and value > 0
    )


def joined(operands: Sequence[Marked], zero_of: str = "none") -> Marked:
    """What is known of an element-wise result.

    Args:
        zero_of: which operands make the result zero: ``"all"`` of them together; ``"product"``,
            all, or one with finite numbers; ``"first"``, the first with a finite number that is
            not zero; ``"less"``, all, in a difference; ``"none"``.
    """
    shape = common_shape([operand.shape for operand in operands])
    rank = len(shape) if shape is not None else max(map(_depth, operands), default=0)
    aligned = [
        {mark.place: mark for mark in (_aligned(mark, rank) for mark in operand.marks)}
        for operand in operands
    ]
    marks: dict[Any, Mark] = {}
    lowest = (
        {
            place
            for place, mark in aligned[0].items()
            if mark.is_lowest and _stays_lowest(operands[1:], zero_of)
        }
        if aligned
        else set()
    )
    for own in aligned:
        for place, mark in own.items():
            if place not in marks:
                is_zero = _is_zero(place, operands, aligned, zero_of)
                is_lowest = place in lowest
                marks[place] = replace(mark, is_zero=is_zero, is_lowest=is_lowest, is_kept=False)
    return Marked(shape, tuple(marks.values()))


def _stays_lowest(others: Sequence[Marked], zero_of: str) -> bool:
    """Whether minus infinity stays what it is with these operands.

    From it anything may be taken: where that is minus infinity too, what exists is no number either.
    """
    if zero_of == "product":
        # A softmax scales by a number, which is greater than 0 if it is to be one.
        return all(other.is_positive or other.shape == () for other in others)
    return zero_of == "less"


def accumulated(old: Marked, value: Marked) -> Marked:
    """What is known of ``old + value`` in the variable of ``old``: where 0 is added it keeps it."""
    result = joined([old, value], "all")
    rank = max(_depth(result), len(result.shape or ()))
    before = {mark.place: mark for mark in (_aligned(mark, rank) for mark in old.marks)}
    added = {mark.place: mark for mark in (_aligned(mark, rank) for mark in value.marks)}

    def is_kept(place: Any) -> bool:
        is_zero = place in added and added[place].is_zero
        return is_zero and (place not in before or before[place].is_kept)

    marks = tuple(replace(mark, is_kept=is_kept(mark.place)) for mark in result.marks)
    return replace(result, marks=marks)


def _is_zero(
    place: Any, operands: Sequence[Marked], aligned: list[dict[Any, Mark]], zero_of: str
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


def met(one: Marked, other: Marked, is_same: Callable[[Mark, Mark], bool]) -> Marked:
    """What holds of a value that is one or the other, as run time decides.

    Args:
        is_same: whether two marks of the same place are of one load; `Origin` says which.
    """
    # A compiler wants both in one shape: what is known of either holds of both.
    shape = one.shape if other.shape is None else other.shape
    if one.shape is not None and other.shape is not None:
        shape = unified(one.shape, other.shape)
    items = None
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        items = tuple(met(a, b, is_same) for a, b in zip(one.items, other.items))
    false_at = one.false_at & other.false_at
    if differ(one.shape, other.shape):
        return Marked(items=items, false_at=false_at)
    others = {mark.place: mark for mark in other.marks}
    marks = tuple(
        replace(
            mark,
            is_zero=mark.is_zero and others[mark.place].is_zero,
            is_lowest=mark.is_lowest and others[mark.place].is_lowest,
        )
        for mark in one.marks
        if mark.place in others and is_same(mark, others[mark.place])
    )
    # What holds anything in one case may do so.
    found = {mark.place for mark in marks}
    either = [m for m in (*one.marks, *other.marks) if m.wanted is not None]
    marks += tuple({m.place: m for m in either if m.place not in found}.values())
    return Marked(
        shape,
        marks,
        is_zero=one.is_zero and other.is_zero,
        is_finite=one.is_finite and other.is_finite,
        is_positive=one.is_positive and other.is_positive,
        items=items,
        false_at=false_at,
        below=one.below & other.below,
    )


def _depth(operand: Marked) -> int:
    return max((len(mark.layout) for mark in operand.marks), default=0)


def _aligned(mark: Mark, rank: int) -> Mark:
    missing = rank - len(mark.layout)
    return replace(mark, layout=(None,) * missing + mark.layout) if missing > 0 else mark


def rearranged(value: Marked, places: Sequence[int | None], shape: Shape | None = None) -> Marked:
    """The value with other dimensions: each is an old one (by its place) or a new one (None)."""
    if shape is None:
        assert value.shape is not None
        shape = tuple(1 if place is None else value.shape[place] for place in places)
    marks = tuple(
        replace(
            mark, layout=tuple(None if place is None else mark.layout[place] for place in places)
        )
        for mark in with_rank(value).marks
    )
    rank = len(value.shape or ())

    def moved(place: Any) -> Any:
        key, layout = place
        layout = (None,) * (rank - len(layout)) + layout
        return trailing((key, tuple(None if dim is None else layout[dim] for dim in places)))

    false_at = frozenset(map(moved, value.false_at))
    below = frozenset((moved(place), size) for place, size in value.below)
    return Marked(shape, marks, false_at=false_at, below=below)


def trailing(place: Any) -> Any:
    """The place of a mark without the dimensions in front that it does not depend on."""
    key, layout = place
    first = next((dim for dim, own in enumerate(layout) if own is not None), len(layout))
    return key, layout[first:]


def follows(mark: Mark, axis: int) -> bool:
    """Whether a mask depends on a dimension; yes where there is no such dimension."""
    rank = len(mark.layout)
    return not -rank <= axis < rank or mark.layout[axis] is not None


def aligned(value: Marked, rank: int) -> Marked:
    """The value with layouts of so many dimensions at least."""
    return replace(value, marks=tuple(_aligned(mark, rank) for mark in value.marks))


def with_rank(value: Marked) -> Marked:
    """The value with the layouts of its marks as long as its shape."""
    if value.shape is None:
        return value
    rank = len(value.shape)
    return replace(value, marks=tuple(_aligned(mark, rank) for mark in value.marks))


def reduced(value: Marked, axis: int | None, keep_dims: bool) -> Marked:
    """What remains after a reduction: the marks of the other dimensions.

    Without an axis nothing does. Where the rank is not known, that of the marks is taken.
    """
    rank = len(value.shape) if value.shape is not None else _depth(value)
    if axis is None:
        return Marked((1,) * rank if keep_dims else ())
    if value.shape is None:
        value = replace(value, shape=(None,) * rank)
    axis = axis % rank if rank else 0
    places = [place if place != axis else None for place in range(rank)]
    if not keep_dims:
        places = [place for place in places if place is not None]
    result = rearranged(value, places).changed()
    # What no dimension is left of says nothing about one element and another.
    marks = (m for m in result.marks if any(dim is not None for dim in m.layout))
    return replace(result, marks=tuple(marks))


def keep_zero(old: Marked, new: Marked) -> Marked:
    """Elements that only moved are zero where they were."""
    zeros = {mark.key for mark in old.marks if mark.is_zero}
    marks = tuple(replace(mark, is_zero=mark.key in zeros) for mark in new.marks)
    return Marked(new.shape, marks)


def reshaped(value: Marked, shape: Shape | None) -> Marked:
    """A reshape keeps marks where it only adds or removes dimensions of size 1."""
    if shape is None or value.shape is None:
        return Marked(shape)
    old = [(place, size) for place, size in enumerate(value.shape) if not is_one(size)]
    new = [size for size in shape if not is_one(size)]
    if len(old) != len(new) or any(not are_same(a, b) for (_, a), b in zip(old, new)):
        return Marked(shape)
    remaining = iter(old)
    places = [None if is_one(size) else next(remaining)[0] for size in shape]
    return rearranged(value, places, shape)
