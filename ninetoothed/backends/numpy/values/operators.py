"""What ``+``, ``<``, ``>>`` and the others do to tiles, with Triton's types and signs.

The operators are functions of tiles and numbers; at the end they become `Tile`'s.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.casting import Array, cast_array
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.size import typed
from ninetoothed.backends.numpy.values.tile import (
    Tile,
    Validity,
    constant,
    dtype_of_number,
    joined_validity,
    number,
    of_python,
)
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import (
    Double,
    as_count_of,
    common_dtype,
    dtype_with_scalar,
    loses_signs,
    refuse,
    scalar_dtype,
)

_LARGEST_CACHE = 4096


@functools.lru_cache(maxsize=_LARGEST_CACHE, typed=True)
def _yielding(value: Any, tile: DType, division: bool) -> tuple[DType, Any]:
    """The type for a tile and a number that yields to it, and the number in that type."""
    dtype = dtype_with_scalar(tile, value, division)
    return dtype, constant(value, dtype)


@functools.lru_cache(maxsize=_LARGEST_CACHE, typed=True)
def unyielding(value: Any, tile: DType, division: bool) -> tuple[DType, Any]:
    """The same for a number that counts as a 0-d tile, as it does in comparisons."""
    own = scalar_dtype(value)
    dtype = common_dtype(tile, own, division)
    if dtype is dtypes.float64:
        return dtype, constant(value, dtype)
    return dtype, cast_array(constant(value, own), own, dtype)


def operands(
    left: Any, right: Any, division: bool = False, scalar: Callable[..., Any] = _yielding
) -> tuple[Array, Array, DType, Validity]:
    """Both operands' elements in their common type, that type, and the result's masks."""
    left, right = typed(left), typed(right)
    if not isinstance(left, Tile):
        if not isinstance(right, Tile):
            right = number(right)
            left = Tile.of(float(number(left)) if isinstance(right, float) else number(left))
        else:
            y, x, dtype, validity = _with_number(right, left, division, scalar)
            return x, y, dtype, validity
    if not isinstance(right, Tile):
        return _with_number(left, right, division, scalar)
    x, y, dtype = left.data, right.data, left.dtype
    if dtype is not right.dtype or division:
        dtype = common_dtype(dtype, right.dtype, division)
        x, y = cast_array(x, left.dtype, dtype), cast_array(y, right.dtype, dtype)
    if not left.validity and not right.validity:
        return x, y, dtype, ()
    if left.validity is right.validity and x.ndim == y.ndim:
        return x, y, dtype, left.validity
    return x, y, dtype, joined_validity(left, right)


def _with_number(
    tile: Tile, value: Any, division: bool, scalar: Callable[..., Any]
) -> tuple[Array, Array, DType, Validity]:
    if type(value) not in (int, bool, float):
        value = number(value)
    if type(value) is float and tile.dtype.kind != "float" and context.is_wide():
        value = Double(value)
    if isinstance(value, float) and value == 0 and math.copysign(1, value) < 0:
        scalar = scalar.__wrapped__  # type: ignore[attr-defined]  # -0.0 is the same key as 0.0
    dtype, constant = scalar(value, tile.dtype, division)
    x = tile.data
    return (
        (x if dtype is tile.dtype else cast_array(x, tile.dtype, dtype)),
        constant,
        dtype,
        tile.validity,
    )


def elementwise(ufunc: Callable[..., Any], symbol: str, *arrays: Array) -> Array:
    """``ufunc`` of arrays, with an error that shows the shapes where they do not fit."""
    try:
        return ufunc(*arrays)
    except ValueError as error:
        shapes = " and ".join(str(array.shape) for array in arrays)
        raise refuse(
            f"{symbol} needs tiles whose shapes match or are 1, but got {shapes}."
        ) from error


def counted(
    x: Array, y: Array, dtype: DType, validity: Validity
) -> tuple[Array, Array, DType, Validity]:
    """`operands` of arithmetic: truth values count, as Python's do."""
    if dtype is not dtypes.bool:
        return x, y, dtype, validity
    return x.astype(np.int32), y.astype(np.int32), dtypes.int32, validity


def _arithmetic(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    def operate(left: Any, right: Any) -> Tile:
        x, y, dtype, validity = counted(*operands(left, right))
        return Tile(elementwise(ufunc, symbol, x, y), dtype, validity)

    return operate


_add_tiles = _arithmetic("+", np.add)
_subtract_tiles = _arithmetic("-", np.subtract)
multiply = _arithmetic("*", np.multiply)


def add(left: Any, right: Any) -> Any:
    """``left + right``, of tiles and numbers, or a pointer and integers."""
    if isinstance(left, PointerTile):
        return left + right
    return right + left if isinstance(right, PointerTile) else _add_tiles(left, right)


def subtract(left: Any, right: Any) -> Any:
    """``left - right``, of tiles and numbers, or a pointer and integers."""
    return left - right if isinstance(left, PointerTile) else _subtract_tiles(left, right)


def _kind(value: Any) -> str:
    return value.dtype.kind if isinstance(value, Tile) else ""


def divide(left: Any, right: Any) -> Tile:
    """``left / right``: of integers in float32, or float64 beside such elements; of 16-bit floats in float32."""
    left, right = typed(left), typed(right)
    own = dtypes.float64 if context.is_wide() else dtypes.float32
    if {_kind(left), _kind(right)} == {"int", "uint"}:
        # These have no type together.
        left, right = left.to(own), right.to(own)
    x, y, dtype, validity = operands(left, right, True)
    if dtype.kind != "float":
        x, y, dtype = x.astype(own.numpy), y.astype(own.numpy), own
    return Tile(elementwise(np.true_divide, "/", x, y), dtype, validity)


def floor_divide(left: Any, right: Any) -> Tile:
    """``left // right``, rounded down; of floats by 0 no number."""
    x, y, dtype, validity = counted(*operands(left, right, True))
    quotient = elementwise(np.floor_divide, "//", x, y)
    if dtype.kind == "float":
        quotient = np.where(y == 0, np.asarray(np.nan, quotient.dtype), quotient)
    return Tile(quotient, dtype, validity)


def ceil_divide(left: Any, right: Any) -> Tile:
    """``left / right``, of integers, rounded up."""
    x, y, dtype, validity = counted(*operands(left, right, True))
    if dtype.kind == "float":
        raise refuse(f"`ntl.cdiv` takes integers, but got {dtype}: write `ntl.ceil(x / y)`.")
    quotient = elementwise(np.floor_divide, "//", x, y)
    is_off = (y != 0) & (np.remainder(x, np.where(y == 0, 1, y)) != 0)
    return Tile(quotient + is_off.astype(quotient.dtype), dtype, validity)


def remainder(left: Any, right: Any) -> Tile:
    """``left % right``, with the sign of ``right``."""
    x, y, dtype, validity = counted(*operands(left, right, True))
    return Tile(elementwise(np.remainder, "%", x, y), dtype, validity)


def truncating_divide(left: Any, right: Any) -> Any:
    """``left // right`` in a function of Triton's own: of integers, rounded toward zero as in C."""
    if not isinstance(left, Tile) and not isinstance(right, Tile):
        return left // right
    x, y, dtype, validity = operands(left, right, True)
    if dtype.kind == "float":
        raise refuse(f"// needs integers, but the operands meet in {dtype}; use tl.floor(x / y).")
    return Tile(elementwise(np.floor_divide, "//", x - np.fmod(x, y), y), dtype, validity)


def truncating_cdiv(x: Any, div: Any) -> Any:
    """``cdiv`` in a function of Triton's own, which takes for granted that nothing is negative."""
    if isinstance(div, Tile) and div.dtype is dtypes.bool:
        div = div.to(dtypes.int32)
    less = subtract(div, 1) if isinstance(div, Tile) else div - 1
    return truncating_divide(add(x, less), div)


def truncating_remainder(left: Any, right: Any) -> Any:
    """``left % right`` in a function of Triton's own, with the sign of ``left`` as in C."""
    if not isinstance(left, Tile) and not isinstance(right, Tile):
        return left % right
    x, y, dtype, validity = operands(left, right, True)
    return Tile(elementwise(np.fmod, "%", x, y), dtype, validity)


def _bitwise(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    def operate(left: Any, right: Any) -> Tile:
        x, y, dtype, validity = integer_operands(symbol, left, right)
        return Tile(elementwise(ufunc, symbol, x, y), dtype, validity)

    return operate


def integer_operands(symbol: str, left: Any, right: Any) -> tuple[Array, Array, DType, Validity]:
    """`operands` that must be integers."""
    x, y, dtype, validity = operands(left, right)
    if dtype.kind == "float":
        raise refuse(f"{symbol} needs integers, but the operands meet in {dtype}.")
    return x, y, dtype, validity


bitwise_and = _bitwise("&", np.bitwise_and)
bitwise_or = _bitwise("|", np.bitwise_or)
bitwise_xor = _bitwise("^", np.bitwise_xor)


def _shifted(symbol: str, left: Any, right: Any) -> tuple[Array, Array, DType, Validity]:
    """The operands of a shift: what is shifted counts, and is gone once no bit of it is left."""
    if isinstance(left, bool):
        left = int(left)
    if isinstance(left, Tile) and left.dtype is dtypes.bool:
        left = left.to(dtypes.int32)
    if isinstance(left, Tile) and isinstance(right, Tile):
        right = right.to(as_count_of(left.dtype, right.dtype))
    right = right if isinstance(right, Tile) else number(right)
    if type(right) is int and isinstance(left, Tile):
        if right < 0:
            raise refuse(f"{symbol} is by 0 or more, but got {right}.")
        right = min(right, left.dtype.bits)
    return integer_operands(symbol, left, right)


def shift_left(left: Any, right: Any) -> Tile:
    """``left << right``."""
    x, y, dtype, validity = _shifted("<<", left, right)
    return Tile(elementwise(np.left_shift, "<<", x, y).astype(dtype.numpy), dtype, validity)


def shift_right(left: Any, right: Any) -> Tile:
    """``left >> right``, arithmetic where the tile is signed, else logical."""
    x, y, dtype, validity = _shifted(">>", left, right)
    return Tile(elementwise(np.right_shift, ">>", x, y).astype(dtype.numpy), dtype, validity)


def _own_dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, Tile) else dtype_of_number(number(value))


def _exactly(value: Any) -> Tile:
    """A value of integers that has all bits it takes."""
    tile = value if isinstance(value, Tile) else Tile.of(number(value))
    return Tile(np.asarray(tile.data).astype(object), dtypes.int64, tile.validity)


def _comparison(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    def operate(left: Any, right: Any) -> Tile:
        left, right = typed(left), typed(right)
        if loses_signs(_own_dtype(left), _own_dtype(right)):
            left, right = _exactly(left), _exactly(right)
            data = elementwise(ufunc, symbol, left.data, right.data)
            return Tile(np.asarray(data, bool)[()], dtypes.bool, joined_validity(left, right))
        x, y, _, validity = operands(left, right, scalar=unyielding)
        return Tile(elementwise(ufunc, symbol, x, y), dtypes.bool, validity)

    return operate


less = _comparison("<", np.less)
less_equal = _comparison("<=", np.less_equal)
greater = _comparison(">", np.greater)
greater_equal = _comparison(">=", np.greater_equal)
_equal_tiles = _comparison("==", np.equal)
_not_equal_tiles = _comparison("!=", np.not_equal)


def equal(left: Any, right: Any) -> Any:
    """``left == right``, element by element; False for what is neither tile nor number."""
    return _equal_tiles(left, right) if _is_comparable(right) else False


def not_equal(left: Any, right: Any) -> Any:
    """``left != right``, element by element; True for what is neither tile nor number."""
    return _not_equal_tiles(left, right) if _is_comparable(right) else True


def _is_comparable(value: Any) -> bool:
    value = of_python(value)
    return isinstance(value, (Tile, int, float)) or type(value).__name__ == "constexpr"


def negate(tile: Tile) -> Tile:
    """``-tile``; a truth value counts."""
    if tile.dtype.kind != "float":
        return taken_off_zero(tile)
    return Tile(np.negative(tile.data), tile.dtype, tile.validity)


def taken_off_zero(value: Any) -> Any:
    """``-value`` in a function of Triton's own, which is ``0 - value``: there ``-0.0`` is ``0.0``."""
    if not isinstance(value, Tile):
        return -value
    return subtract(Tile(value.dtype.numpy.type(0), value.dtype), value)


def power(tile: Tile, count: int) -> Tile:
    """``tile ** count``, a whole power of 1 or more, as the products that a compiler is given."""
    if count == 1:
        return tile
    half = power(tile, count // 2)
    result: Tile = multiply(half, half)
    return multiply(result, tile) if count % 2 else result


_OPERATORS = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": shift_left,
    "rshift": shift_right,
}

_OTHERS: dict[str, Callable[..., Any]] = {
    "neg": negate,
    "pow": power,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
    "eq": equal,
    "ne": not_equal,
}


def _reflected(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(other, self)


for _name, _function in _OPERATORS.items():
    setattr(Tile, f"__{_name}__", _function)
    setattr(Tile, f"__r{_name}__", _reflected(_function))
for _name, _function in _OTHERS.items():
    setattr(Tile, f"__{_name}__", _function)
