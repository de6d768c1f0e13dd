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

from ninetoothed.program.nodes import SymbolValue, TileRef, Widened
from ninetoothed.symbols.expr import Symbol

#: A dimension: an int or a symbol; None where it is not known.
Shape = tuple[Any, ...]


#: Which zero operands make an operator's result zero; see `joined`.
OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "all",
    ast.Sub: "all",
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
    """

    key: Any
    origin: Origin
    layout: tuple[int | None, ...]
    is_zero: bool = False

    @property
    def place(self) -> Any:
        return self.key, self.layout


@dataclass(eq=False)
class Origin:
    """Where a mark comes from: the tile, and the statement that its indices are valid at."""

    tile: TileRef
    statement: ast.stmt


@dataclass(frozen=True)
class Marked:
    """What is known of a value.

    Attributes:
        shape: None where not even the number of dimensions is known.
        marks: the marks, all of which must hold for a lane to be real.
        is_zero: whether it is the number 0.
        is_finite: whether it is a number other than infinity and NaN.
        items: for a tuple of values, what is known of each.
    """

    shape: Shape | None = None
    marks: tuple[Mark, ...] = ()
    is_zero: bool = False
    is_finite: bool = False
    items: tuple[Marked, ...] | None = field(default=None)

    def changed(self) -> Marked:
        """Another value in the same lanes: not known to be zero anywhere."""
        marks = tuple(replace(mark, is_zero=False) for mark in self.marks)
        return Marked(self.shape, marks)


UNKNOWN = Marked()
SCALAR = Marked(())


def number(value: Any) -> Marked:
    """What is known of a literal."""
    finite = isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value))
    return Marked((), is_zero=finite and value == 0, is_finite=finite)


def broadcast(shapes: Sequence[Shape | None]) -> Shape | None:
    """The common shape; a dimension of unknown size stays unknown unless a larger one is there."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max((len(shape) for shape in known), default=0)
    result: list[Any] = []
    for dim in range(-rank, 0):
        sizes = {size for shape in known if len(shape) >= -dim for size in [shape[dim]]}
        larger = {size for size in sizes if not (isinstance(size, int) and size == 1)}
        if not larger:
            result.append(1)
        else:
            result.append(larger.pop() if len(larger) == 1 else None)
    return tuple(result)


def joined(operands: Sequence[Marked], zero_of: str = "none") -> Marked:
    """What is known of an element-wise result.

    Args:
        zero_of: which operands make the result zero: ``"all"`` of them together; ``"product"``,
            all, or one with finite numbers; ``"first"``, the first with a finite number that is
            not zero; ``"none"``.
    """
    shape = broadcast([operand.shape for operand in operands])
    rank = len(shape) if shape is not None else max(map(_depth, operands), default=0)
    aligned = [
        {mark.place: mark for mark in (_aligned(mark, rank) for mark in operand.marks)}
        for operand in operands
    ]
    marks: dict[Any, Mark] = {}
    for own in aligned:
        for place, mark in own.items():
            if place not in marks:
                is_zero = _is_zero(place, operands, aligned, zero_of)
                marks[place] = replace(mark, is_zero=is_zero)
    return Marked(shape, tuple(marks.values()))


def _is_zero(
    place: Any, operands: Sequence[Marked], aligned: list[dict[Any, Mark]], zero_of: str
) -> bool:
    zeros = [
        operand.is_zero or (place in own and own[place].is_zero)
        for operand, own in zip(operands, aligned)
    ]
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
    items = None
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        items = tuple(met(a, b, is_same) for a, b in zip(one.items, other.items))
    if one.shape is not None and other.shape is not None and one.shape != other.shape:
        return Marked(items=items)
    others = {mark.place: mark for mark in other.marks}
    marks = tuple(
        replace(mark, is_zero=mark.is_zero and others[mark.place].is_zero)
        for mark in one.marks
        if mark.place in others and is_same(mark, others[mark.place])
    )
    return Marked(
        shape, marks, one.is_zero and other.is_zero, one.is_finite and other.is_finite, items
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
    return Marked(shape, marks)


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
    return rearranged(value, places).changed()


def keep_zero(old: Marked, new: Marked) -> Marked:
    """Elements that only moved are zero where they were."""
    zeros = {mark.key for mark in old.marks if mark.is_zero}
    marks = tuple(Mark(mark.key, mark.origin, mark.layout, mark.key in zeros) for mark in new.marks)
    return Marked(new.shape, marks)


def size_of(node: ast.expr) -> Any:
    """A dimension given in the program; None where it is not known."""
    if isinstance(node, Widened):
        return size_of(node.value)
    if isinstance(node, SymbolValue):
        return node.symbol
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return widened(node.value)
    return None


def widened(size: Any) -> Any:
    """The next power of two of an int; symbols stand for themselves widened."""
    if isinstance(size, int) and size > 0:
        return 1 << (size - 1).bit_length()
    if isinstance(size, Symbol) and size.op == "const":
        return widened(size.operands[0])
    return size


def reshaped(value: Marked, shape: Shape | None) -> Marked:
    """A reshape keeps marks where it only adds or removes dimensions of size 1."""
    if shape is None or value.shape is None:
        return Marked(shape)
    old = [(place, size) for place, size in enumerate(value.shape) if not _is_one(size)]
    new = [size for size in shape if not _is_one(size)]
    if len(old) != len(new) or any(
        a is None or b is None or not _same(a, b) for (_, a), b in zip(old, new)
    ):
        return Marked(shape)
    remaining = iter(old)
    places = [None if _is_one(size) else next(remaining)[0] for size in shape]
    return rearranged(value, places, shape)


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _same(a: Any, b: Any) -> bool:
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
