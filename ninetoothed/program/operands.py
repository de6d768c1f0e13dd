"""What values are as operands, and why they are none of an operator."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from ninetoothed.errors import CompilationError
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import (
    Undecided,
    dtype_with_scalar,
    integer_bounds,
    loses_signs,
    scalar_dtype,
)
from ninetoothed.program.constancy import is_constant, is_constant_symbol
from ninetoothed.program.nodes import DTypeRef, ElementType, LanguageRef
from ninetoothed.program.types import ValueType
from ninetoothed.symbols.expr import Symbol

#: How the operators are written; `**` has rules of its own.
SIGNS: dict[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}

_DIVISIONS = ast.FloorDiv | ast.Mod
_SHIFTS = ast.LShift | ast.RShift
_OF_BITS = ast.BitAnd | ast.BitOr | ast.BitXor | _SHIFTS


def no_value(node: ast.expr) -> str:
    """What stands for neither a tile nor a number; empty where one may be."""
    if isinstance(node, ast.Constant) and not isinstance(node.value, bool | int | float):
        return repr(node.value)
    if isinstance(node, DTypeRef):
        return f"the type {node.dtype}"
    if isinstance(node, ElementType) or (isinstance(node, ast.Attribute) and node.attr == "dtype"):
        return "an element type"
    if isinstance(node, LanguageRef):
        return f"`ntl.{node.name}`"
    return "a tuple" if isinstance(node, ast.Tuple) else ""


def compared(node: ast.Compare, constants: Collection[str]) -> list[ast.expr]:
    """What must be a tile or a number in a comparison.

    Whether a value is a text or a tuple Python answers, and of what is no constant no compiler.
    """
    operands, (op, *_) = [node.left, *node.comparators], node.ops
    if isinstance(op, ast.Is | ast.IsNot):
        return []
    if not isinstance(op, ast.Eq | ast.NotEq):
        return operands
    if all(is_constant(each, constants) for each in operands):
        return []
    return [each for each in operands if isinstance(each, ast.Tuple) or _is_text(each)]


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def are_one(node: ast.Compare, dtype_of: Callable[[str], DType | None]) -> bool | None:
    """Whether two element types are as a comparison asks; None where it is of others, or they are not known.

    Args:
        dtype_of: the element type of a parameter's tensor, where it is known.
    """

    def dtype(part: ast.expr) -> DType | None:
        if isinstance(part, ElementType):
            return dtype_of(part.parameter)
        return part.dtype if type(part) is DTypeRef else None

    one, other = dtype(node.left), dtype(node.comparators[0])
    if one is None or other is None:
        return None
    return (one is other) is isinstance(node.ops[0], ast.Eq | ast.Is)


def no_position(value: ValueType) -> str:
    """Why a value selects no element of a tensor, or of a tile; empty where it may."""
    if value.kind == "float":
        return f"An index must be an integer, but got {value.dtype or 'a float'}: cast it, as in `.to(ntl.int32)`."
    if value.shape and value.dtype is dtypes.bool:
        return "A tile of truth values selects no elements: `ntl.where` chooses between values."
    return ""


def refusal(left: ValueType, op: ast.operator, right: ValueType) -> str:
    """Why ``left op right`` cannot be; empty where nothing is known to be wrong."""
    sign = SIGNS.get(type(op), "")
    if isinstance(op, _DIVISIONS) and (reason := _unlike_signs(sign, left, right)):
        return reason
    if isinstance(op, _OF_BITS) and "float" in (left.kind, right.kind):
        return f"{sign} needs integers, but got {_named(left)} and {_named(right)}."
    if isinstance(op, _SHIFTS):
        is_back = isinstance(right.number, int) and right.number < 0
        return (
            f"{sign} is by 0 or more, but got {right.number}." if is_back else misfit(right, left)
        )
    return misfit(left, right) or misfit(right, left) if sign else ""


def refusal_of_cdiv(left: ValueType, right: ValueType) -> str:
    """Why ``ntl.cdiv(left, right)`` cannot be; empty where nothing is known to be wrong."""
    for each in (left, right):
        if each.kind == "float":
            return f"`ntl.cdiv` takes integers, but got {_named(each)}: write `ntl.ceil(x / y)`."
    return _unlike_signs("`ntl.cdiv`", left, right) or misfit(left, right) or misfit(right, left)


def no_draw(name: str, operands: Iterable[ValueType]) -> str:
    """Why no random numbers are drawn by values; empty where nothing is known to be wrong."""
    if not name.startswith("rand"):
        return ""
    found = next((each for each in operands if each.kind == "float"), None)
    if found is None:
        return ""
    return f"`ntl.{name}` takes integers, but got {_named(found)}: cast it, as in `.to(ntl.int32)`."


def _unlike_signs(what: str, left: ValueType, right: ValueType) -> str:
    """Why a division cannot be of what has a sign and what has none; empty where it is not."""
    if {_sign(left), _sign(right)} != {"int", "uint"}:
        return ""
    return (
        f"{what} needs operands of one signedness, but got {_with_sign(left)} and "
        f"{_with_sign(right)}; cast one."
    )


def sign_lost(left: ValueType, right: ValueType) -> str:
    """In which types two values lose the sign of one; empty where none is known to."""
    one, other = _own(left), _own(right)
    if one is None or other is None or not loses_signs(one, other):
        return ""
    signed = left if one.kind == "int" else right
    return "" if signed.is_natural else f"{one} and {other}"


def may_lose_sign(left: ValueType, right: ValueType, has_unsigned: bool) -> bool:
    """Whether two values may lose the sign of one.

    Args:
        has_unsigned: whether a value of a type that is not known may be unsigned.
    """
    return _may_lose(left, right, has_unsigned) or _may_lose(right, left, has_unsigned)


def _may_lose(signed: ValueType, unsigned: ValueType, has_unsigned: bool) -> bool:
    one, other = _own(signed), _own(unsigned)
    if signed.is_natural or "float" in (signed.kind, unsigned.kind):
        return False
    if one is not None and one.kind != "int":
        return False
    if other is None:
        return has_unsigned and unsigned.kind != "bool"
    return other.kind == "uint" and (one is None or loses_signs(one, other))


def may_be_beyond(number: ValueType, other: ValueType, narrowest: int, has_unsigned: bool) -> bool:
    """Whether a literal, or a size that a compiler knows, may not fit the type of the integers that it meets.

    Args:
        narrowest: the bits that those of a type that is not known have at least.
        has_unsigned: as in `may_lose_sign`.
    """
    value = number.number
    if other.number is not None or other.kind not in ("int", ""):
        return False
    if isinstance(value, Symbol):
        return (narrowest if other.dtype is None else other.dtype.bits) < 32
    if not isinstance(value, int) or isinstance(value, bool) or number.dtype is not None:
        return False
    highest = 2 ** (narrowest - 1) - 1
    bounds = 0 if has_unsigned else -highest - 1, highest
    if other.dtype is not None:
        bounds = integer_bounds(other.dtype)
    return not bounds[0] <= value <= bounds[1]


def may_differ_in_sign(left: ValueType, right: ValueType, has_unsigned: bool) -> bool:
    """Whether two values may be a signed and an unsigned integer; ``has_unsigned`` as in `may_lose_sign`."""
    if not {left.kind, right.kind} <= {"int", ""} or _yields(left) or _yields(right):
        return False
    signs = {_sign(left), _sign(right)}
    return has_unsigned if "" in signs else len(signs) > 1


def _own(value: ValueType) -> DType | None:
    """The type of a value by itself."""
    if isinstance(value.number, Symbol):
        return dtypes.int32
    is_number = isinstance(value.number, int) and value.dtype is None
    return scalar_dtype(value.number) if is_number else value.dtype


def misfit(one: ValueType, number: ValueType) -> str:
    """Why a number does not take the type of what it meets; empty where it does, or is none."""
    if isinstance(number.number, bool) or not isinstance(number.number, int):
        return ""
    try:
        scalar_dtype(number.number)
        if one.dtype is not None and one.number is None:
            dtype_with_scalar(one.dtype, number.number)
    except CompilationError as error:
        return error.message
    return ""


def _yields(value: ValueType) -> bool:
    """Whether a value is a number that takes the type that it meets."""
    if isinstance(value.number, Symbol):
        return is_constant_symbol(value.number)
    return value.number is not None


def _sign(value: ValueType) -> str:
    """The kind of an element type, of a size too; empty of what takes the type that it meets."""
    if isinstance(value.number, Symbol) and not _yields(value):
        return "int"
    return value.dtype.kind if value.dtype is not None else ""


def _with_sign(value: ValueType) -> str:
    return "a size (int32)" if value.dtype is None else str(value.dtype)


def _named(value: ValueType) -> str:
    return str(value.dtype or value.kind or "a value")


def unyielding(operands: list[ValueType]) -> list[ValueType]:
    """Numbers where they have the types that they have by themselves, whatever they meet."""
    floats = [each.dtype for each in operands if each.number is None and each.kind == "float"]
    is_beside_others = bool(floats) and not {None, dtypes.float64} & set(floats)

    def typed(value: ValueType) -> ValueType:
        number = value.number
        if not isinstance(number, bool | int | float):
            return value
        if isinstance(number, Undecided) and not is_beside_others:
            return replace(value, number=None)
        # Beside a float32 a float is one, in a call that has elements of float64 as well.
        own = scalar_dtype(
            float(number) if is_beside_others and isinstance(number, float) else number
        )
        return replace(value, dtype=own, number=None)

    return list(map(typed, operands))
