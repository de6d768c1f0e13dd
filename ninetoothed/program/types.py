"""What a value of a Program is: its shape, its elements' type, its sign where that is known.

A size is an int; or a symbol, which is held in the next power of two; or None where it is not known.
An element type is a `DType` where the Program tells it, and otherwise a kind alone: what a call's
tensors hold is known at the call. No backend is known here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from typing import Any

from ninetoothed.errors import CompilationError
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import (
    Double,
    Undecided,
    common_dtype,
    dtype_with_scalar,
    scalar_dtype,
)
from ninetoothed.program.nodes import Flipped, Kept, Masked
from ninetoothed.program.tile_masks import TileMask
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, maximum
from ninetoothed.symbols.expr import padded as next_power_of_two
from ninetoothed.symbols.operators import next_power_of_2

#: The sizes of a value's dimensions.
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class ValueType:
    """What is known of a value; `UNKNOWN` is all that nothing is known of.

    Attributes:
        shape: () of one number; None where not even the number of dimensions is known.
        kind: ``"bool"``, ``"int"`` or ``"float"``; ``""`` where that is not known; ``"nothing"`` where there is
            no value, ``"type"`` of an element type.
        dtype: the element type; None where that is not known.
        is_natural: whether every element that exists is known not to be negative, however its arithmetic wraps around.
        number: the Python number that it is, which takes the type of the tile that it meets; or the
            symbol of the integer.
        least_bits: of integers of no known type, how many bits they have at least; 0 where that is not known, and
            -1 where only this is known, that they have a width: a variable of the running kernel holds them.
        items: of a tuple of values, theirs.
        pointed: of pointers, the type of the elements that they point to, where that is known.
        validity: where it holds an element: where all of these masks hold. Known once padding has been
            followed (`passes.mask_padding`).
    """

    shape: Shape | None = None
    kind: str = ""
    dtype: DType | None = None
    is_natural: bool = False
    number: Any = None
    least_bits: int = 0
    items: tuple[ValueType, ...] | None = None
    pointed: DType | None = None
    validity: tuple[TileMask, ...] = field(default=(), compare=False)

    @property
    def is_scalar(self) -> bool:
        """Whether it is known to be one number, and no tile."""
        return self.shape == ()

    @property
    def rank(self) -> int | None:
        """The number of dimensions."""
        return None if self.shape is None else len(self.shape)

    def __str__(self) -> str:
        """As ``float32[64, BLOCK_SIZE]``; ``?`` stands for what is not known."""
        if self.items is not None:
            return f"({', '.join(map(str, self.items))})"
        kind = f"int{self.least_bits}" if self.least_bits > 0 else self.kind
        element = (self.dtype.name if self.dtype else kind) or "?"
        if self.shape is None:
            return f"{element}[...]"
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return f"{element}[{sizes}]" if self.shape else element


UNKNOWN = ValueType()
#: What a call gives that is made for its effect.
NOTHING = ValueType(kind="nothing")
#: What ``.dtype`` of a value is.
TYPE = ValueType(kind="type")
#: One integer that is not negative, whatever its width.
COUNT = ValueType((), "int", is_natural=True)
INTEGER = ValueType((), "int")
TRUTH = ValueType(None, "bool", dtypes.bool, is_natural=True)

_KINDS = {"bool": "bool", "int": "int", "uint": "int", "float": "float"}


def of_dtype(dtype: Any, shape: Shape | None = None) -> ValueType:
    """A value of this shape with elements of this type."""
    if not isinstance(dtype, DType):
        return ValueType(shape)
    return ValueType(shape, _KINDS[dtype.kind], dtype, dtype.kind in ("uint", "bool"))


def of_number(value: Any, is_wide: bool | None = False) -> ValueType:
    """A literal; with ``is_wide`` one of a call that has elements of float64, with None of any call."""
    if isinstance(value, bool):
        return ValueType((), "bool", None, True, value)
    if isinstance(value, float) and is_wide is not False:
        value = Double(value) if is_wide else Undecided(value)
    if isinstance(value, int | float):
        return ValueType((), "int" if isinstance(value, int) else "float", None, value >= 0, value)
    return UNKNOWN


#: What a pass puts around a value.
_MADE_SINCE = (Masked, Kept, Flipped)


def type_of(node: ast.AST) -> ValueType:
    """The type of an expression of a typed Program; `UNKNOWN` where a pass put it in since.

    Of a name that is assigned it is what it gets; of ``x += y``, the statement, what ``x`` was before.
    """
    found = node.__dict__.get("type")
    if found is None and isinstance(node, _MADE_SINCE):
        return type_of(node.value)
    return UNKNOWN if found is None else found


def leave(node: ast.expr, found: ValueType) -> ValueType:
    """Leaves a type on a node, but for its validity: a pass alone follows padding, what it found stays."""
    validity = type_of(node).validity
    if validity is not found.validity:
        found = replace(found, validity=validity)
    node.__dict__["type"] = found
    return found


def held(value: ValueType) -> ValueType:
    """What a variable of the running kernel holds of a value: a number has a type there."""
    if value.number is None:
        return value
    if isinstance(value.number, Symbol):
        return replace(value, number=None)
    return replace(value, number=None, dtype=scalar_dtype(value.number))


# Sizes.


def told_by(dtype: DType | None, name: str) -> ValueType:
    """What an attribute of an element type is, or a method gives."""
    found = getattr(dtype, name, None)
    answer = found() if callable(found) else found
    return of_number(answer) if isinstance(answer, int) else UNKNOWN


def of_size(size: Any) -> ValueType:
    """The integer that a size is."""
    return replace(COUNT, number=next_power_of_two(size) if isinstance(size, Symbol) else size)


def padded(size: Any) -> Any:
    """The next power of two of an int; symbols stand for themselves padded."""
    if isinstance(size, int) and size > 0:
        return next_power_of_2(size)
    if isinstance(size, Symbol) and size.op == "const":
        return padded(size.operands[0])
    return size


def held_shape(sizes: Iterable[Any]) -> Shape:
    """The shape that a tile of these sizes is held in."""
    return tuple(map(padded, sizes))


def is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def are_same(one: Any, other: Any) -> bool:
    """Whether two sizes are known to be the same."""
    if one is None or other is None:
        return False
    return one is other or (isinstance(one, int) and isinstance(other, int) and one == other)


def differ(one: Shape | None, other: Shape | None) -> bool:
    """Whether two shapes are known not to be the same."""
    if one is None or other is None:
        return False
    return len(one) != len(other) or any(
        isinstance(a, int) and isinstance(b, int) and a != b for a, b in zip(one, other)
    )


def broadcast(shapes: Sequence[Shape | None]) -> Shape | None:
    """The common shape of values that meet element by element.

    Raises:
        ValueError: they do not fit.
    """
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    if None in shapes:
        return None
    known = [shape for shape in shapes if shape]
    if len(known) < 2:
        return known[0] if known else ()
    result: list[Any] = []
    for dim in range(-max(map(len, known)), 0):
        sizes = [shape[dim] for shape in known if len(shape) >= -dim]
        parts = (part for size in dict.fromkeys(sizes) for part in _maximum_of(size))
        larger = [size for size in dict.fromkeys(parts) if not is_one(size)]
        numbers = {size for size in larger if isinstance(size, int)}
        if len(numbers) > 1:
            raise ValueError(f"{numbers}")
        if numbers:
            result += numbers
        else:
            # Where they are not the same, they are so but for those that are 1.
            result.append(None if None in larger else functools.reduce(maximum, larger or [1]))
    return tuple(result)


def may_fit(value: Shape | None, place: Shape | None) -> bool:
    """Whether a value may fit where it is stored to: a dimension is as large, or 1, or is not there."""
    try:
        stored = broadcast([value, place])
    except ValueError:
        return False
    if stored is None or place is None:
        return True
    return not differ((1,) * (len(place) - len(stored)) + stored, place)


@functools.lru_cache(maxsize=4096)
def _maximum_of(size: Any) -> tuple[Any, ...]:
    """The sizes that one is the maximum of: however often they met, each is to stand once in what is common."""
    if not isinstance(size, Symbol) or size.op != "max":
        return (size,)
    parts = tuple(part for operand in size.operands for part in _maximum_of(operand))
    is_of_numbers = any(isinstance(part, Symbol) and part.op == "const" for part in parts)
    return (size,) if is_of_numbers else tuple(dict.fromkeys(parts))


# Values together.


def met(one: ValueType, other: ValueType) -> ValueType:
    """What holds of a value that is one or the other, and has one shape in both cases."""
    if one is other or one == other:
        return one
    items = None
    if one.items is not None and other.items is not None and len(one.items) == len(other.items):
        items = tuple(map(met, one.items, other.items))
    dtype = one.dtype if one.dtype is other.dtype else None
    return ValueType(
        unified(one.shape, other.shape),
        one.kind if one.kind == other.kind else "",
        dtype,
        one.is_natural and other.is_natural,
        least_bits=_least_bits_of_either(one, other) if dtype is None else 0,
        items=items,
        pointed=one.pointed if one.pointed is other.pointed else None,
    )


def _least_bits_of_either(one: ValueType, other: ValueType) -> int:
    least = min(one.least_bits, other.least_bits)
    is_held = one.kind == other.kind == "int" and bool(_least_bits(one) or _least_bits(other))
    return least or (-1 if is_held else 0)


def are_unlike(one: ValueType, other: ValueType) -> bool:
    """Whether one value is a number of another kind than the other's, or none where that is one."""
    if one.kind and other.kind and one.kind != other.kind:
        return True
    return one.is_scalar is not other.is_scalar


def unlike(one: ValueType, other: ValueType) -> str:
    """What is known to differ between two values; ``""`` where nothing is."""
    if differ(one.shape, other.shape):
        return "different shapes"
    if one.dtype is not None and other.dtype is not None:
        return "" if one.dtype is other.dtype else "different element types"
    kinds = {one.kind, other.kind} & {"bool", "int", "float"}
    is_narrow = any(
        known.dtype is not None and known.kind == "int" and known.dtype.bits < open_.least_bits
        for known, open_ in ((one, other), (other, one))
    )
    return "different element types" if len(kinds) > 1 or is_narrow else ""


def may_be_of_two_types(one: ValueType, other: ValueType) -> bool:
    """Whether two values may be of other element types or shapes, as no variable is after branches."""
    is_known = one.dtype is not None and one.dtype is other.dtype
    return not is_known or one.is_scalar is not other.is_scalar or differ(one.shape, other.shape)


def unified(one: Shape | None, other: Shape | None) -> Shape | None:
    """The shape of a value that has one and the other, and so the same; None where they differ."""
    if one is None or other is None or differ(one, other):
        return None
    return tuple(b if a is None or isinstance(b, int) else a for a, b in zip(one, other))


def together(
    operands: Sequence[ValueType], shape: Shape | None, division: bool = False
) -> ValueType:
    """Values that meet element by element: their common type; natural where all are."""
    kinds = {operand.kind for operand in operands}
    ranked = [kind for kind in ("float", "int", "bool") if kind in kinds]
    kind = "" if "" in kinds or not ranked else ranked[0]
    common: ValueType | None = operands[0] if operands else None
    for operand in operands[1:]:
        common = None if common is None else _common(common, operand, division)
    dtype = None if common is None else common.dtype
    natural = all(operand.is_natural for operand in operands)
    is_open = dtype is None and kind == "int"
    bits = max(map(_least_bits, operands), key=abs, default=0) if is_open else 0
    known = _KINDS[dtype.kind] if dtype else kind
    return ValueType(shape, known, dtype, natural, least_bits=bits)


def _least_bits(value: ValueType) -> int:
    """How many bits an integer brings at least to what it meets: a Python number none."""
    if isinstance(value.number, bool | int | float) or value.kind != "int":
        return 0
    return value.dtype.bits if value.dtype else value.least_bits


def _common(left: ValueType, right: ValueType, division: bool) -> ValueType | None:
    """Two types as the one that they meet in; None where that is not known."""
    try:
        dtype = _common_dtype(left, right, division)
    except CompilationError:
        return None
    return None if dtype is None else of_dtype(dtype)


def _common_dtype(left: ValueType, right: ValueType, division: bool) -> DType | None:
    if left.dtype is not None and right.dtype is not None:
        same = left.dtype is right.dtype and not division
        return left.dtype if same else common_dtype(left.dtype, right.dtype, division)
    if left.dtype is None:
        left, right = right, left
    if left.dtype is None:
        return None
    if isinstance(right.number, Undecided) and left.kind != "float":
        return None
    if isinstance(right.number, bool | int | float):
        return dtype_with_scalar(left.dtype, right.number, division)
    if right.least_bits and left.kind == "float":
        return common_dtype(left.dtype, dtypes.int32, division)
    # An integer of whatever width: to some floats it yields, whichever it is.
    yields = left.dtype in (dtypes.float64, dtypes.float32) or (
        left.dtype is dtypes.float16 and not division
    )
    return left.dtype if yields and right.kind in ("int", "bool") else None


def cast(value: ValueType, dtype: Any) -> ValueType:
    """A value whose elements are made ones of another type."""
    made = of_dtype(dtype, value.shape)
    return replace(made, is_natural=made.is_natural or (value.is_natural and _holds(made, value)))


def _holds(made: ValueType, value: ValueType) -> bool:
    """Whether no number that is not negative becomes one in another type; a size has 32 bits that matter."""
    if made.dtype is None or made.kind == "float":
        return made.kind != ""
    bits = 32 if value.dtype is None else value.dtype.bits
    is_unsigned = value.dtype is not None and value.dtype.kind == "uint"
    return made.dtype.bits >= bits + is_unsigned


# Dimensions.


def with_axes(shape: Shape | None, entries: Sequence[bool]) -> Shape | None:
    """A shape with a dimension of 1 for each False; for each True the next one of its own.

    Raises:
        ValueError: it has fewer.
    """
    if shape is None:
        return None
    rest = list(shape)
    result = [(rest.pop(0) if rest else ...) if entry else 1 for entry in entries]
    if ... in result:
        raise ValueError(f"{shape}")
    return (*result, *rest)


def without_axis(shape: Shape | None, axis: int | None, keeps: bool = False) -> Shape | None:
    """A shape that was reduced along an axis, or along all."""
    if axis is None:
        return None if keeps and shape is None else (1,) * len(shape or ()) if keeps else ()
    if shape is None:
        return None
    axis %= len(shape)
    return (*shape[:axis], *((1,) if keeps else ()), *shape[axis + 1 :])


def as_counted(value: ValueType) -> ValueType:
    """What arithmetic gives: truth values count as integers."""
    if value.kind != "bool":
        return value
    return replace(value, kind="int", dtype=dtypes.int32 if value.dtype else None)


def wrapped(value: ValueType) -> ValueType:
    """What arithmetic gives that its type may not hold: it wraps around, and may be negative where that has a sign.

    Numbers that the compiler computes, as of a tile's sizes, have no width.
    """
    is_known = value.shape == () and value.kind == "int" and not (value.dtype or value.least_bits)
    is_unsigned = value.dtype is not None and value.dtype.kind == "uint"
    natural = is_unsigned or (value.is_natural and is_known)
    return value if natural == value.is_natural else replace(value, is_natural=natural)


def in_float32(value: ValueType) -> ValueType:
    """What a comparison gives: bfloat16 is compared in float32."""
    return replace(value, dtype=dtypes.float32) if value.dtype is dtypes.bfloat16 else value


def in_32_bits(value: ValueType) -> ValueType:
    """What a reduction gives: what is narrower is made 32 bits wide."""
    dtype = value.dtype
    if dtype is None or dtype.bits >= 32:
        return replace(value, kind="int") if value.kind == "bool" else value
    wide = of_dtype(dtypes.float32 if dtype.kind == "float" else dtypes.int32, value.shape)
    return replace(wide, is_natural=value.is_natural)
