"""Element-wise functions: arithmetic by name, choices, and mathematics."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed import language
from ninetoothed.backends.numpy.values.casting import Array, cast_array
from ninetoothed.backends.numpy.values.operators import (
    add,
    bitwise_and,
    bitwise_or,
    ceil_divide,
    divide,
    elementwise,
    multiply,
    operands,
    subtract,
    truncating_divide,
    truncating_remainder,
    unyielding,
)
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import (
    Tile,
    Validity,
    as_tile,
    as_tiles,
    joined_validity,
    number,
)
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import common_dtype, refuse

_SINGLE_OR_DOUBLE = (dtypes.float32, dtypes.float64)
_SINGLE = (dtypes.float32,)
_WIDE_INTEGERS = (dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64)


def checked(name: str, tile: Tile, allowed: tuple[DType, ...]) -> Tile:
    """``tile``, if it is of a type that the function ``name`` takes."""
    if tile.dtype not in allowed:
        names = " or ".join(str(dtype) for dtype in allowed)
        raise refuse(
            f"ntl.{name} takes {names}, but got {tile.dtype}; cast it first: "
            f"`.to(ntl.{allowed[0].triton_name})`."
        )
    return tile


def in_one_type(*values: Any) -> tuple[list[Array], DType, Validity]:
    """The elements of tiles and numbers in their common type, that type, and the result's masks."""
    tiles = as_tiles(*values)
    dtype = tiles[0].dtype
    for tile in tiles[1:]:
        dtype = dtype if tile.dtype is dtype else common_dtype(dtype, tile.dtype)
    return (
        [cast_array(tile.data, tile.dtype, dtype) for tile in tiles],
        dtype,
        joined_validity(*tiles),
    )


def _unary(
    name: str, function: Callable[[Array], Array], allowed: tuple[DType, ...] = _SINGLE_OR_DOUBLE
) -> Callable[[Any], Tile]:
    def operate(x: Any) -> Tile:
        tile = checked(name, as_tile(x), allowed)
        return Tile(function(tile.data), tile.dtype, tile.validity)

    operate.__name__ = operate.__qualname__ = name
    return operate


def elementwise_of(name: str, function: Callable[..., Array]) -> Callable[..., Tile]:
    """A function of arrays of one type as one of tiles, whose result has that type."""

    def operate(*values: Any) -> Tile:
        arrays, dtype, validity = in_one_type(*values)
        data = elementwise(function, f"ntl.{name}", *arrays)
        return Tile(np.asarray(data).astype(dtype.numpy, copy=False)[()], dtype, validity)

    operate.__name__ = operate.__qualname__ = name
    return operate


def _reciprocal_root(data: Array) -> Array:
    return data.dtype.type(1) / np.sqrt(data)


def in_double(function: Callable[..., Array]) -> Callable[..., Array]:
    """``function``, computed in float64 and rounded to the first argument's type."""
    return lambda x, *others: function(np.asarray(x, np.float64), *others).astype(x.dtype)[()]


exp = _unary("exp", np.exp)
log = _unary("log", np.log)
sqrt = _unary("sqrt", np.sqrt)
sin = _unary("sin", np.sin)
cos = _unary("cos", np.cos)


def each(function: Callable[..., float]) -> Callable[..., Array]:
    """A function of Python floats, on arrays: NumPy has no error function, no gamma function."""

    def operate(*arrays: Array) -> Array:
        spread = np.broadcast_arrays(*arrays)
        lists = [array.reshape(-1).tolist() for array in spread]
        results = np.fromiter(map(function, *lists), np.float64, spread[0].size)
        return results.reshape(spread[0].shape).astype(arrays[0].dtype)[()]

    return operate


def _exact_of_sizes(name: str) -> Callable[[Callable[..., Tile]], Callable[..., Any]]:
    """Of sizes and numbers alone a function is Python's of that name, as their arithmetic is."""
    exact = getattr(builtins, name)

    def of(function: Callable[..., Tile]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*operands: Any, **keywords: Any) -> Any:
            is_exact = any(type(each) is Size for each in operands)
            is_exact &= all(isinstance(each, int) for each in operands)
            return Size(exact(*operands)) if is_exact else function(*operands, **keywords)

        return call

    return of


@_exact_of_sizes("abs")
def abs(x: Any) -> Tile:
    """The absolute value; an unsigned tile is its own."""
    tile = as_tile(x)
    if tile.dtype.kind in ("bool", "uint"):
        return tile
    return Tile(np.abs(tile.data), tile.dtype, tile.validity)


def fdiv(x: Any, y: Any, ieee_rounding: bool = False) -> Tile:
    """The quotient of floats, in their own type."""
    left, right = as_tiles(x, y)
    if left.dtype.kind != "float" or right.dtype.kind != "float":
        raise refuse(f"ntl.fdiv needs floats, but got {left.dtype} and {right.dtype}.")
    (a, b), dtype, validity = in_one_type(left, right)
    return Tile(elementwise(np.true_divide, "ntl.fdiv", a, b), dtype, validity)


def div_rn(x: Any, y: Any) -> Tile:
    """The quotient of float32 tiles, rounded to nearest."""
    tiles = (v if isinstance(v, Tile) else as_tile(v).to(dtypes.float32) for v in (x, y))
    left, right = (checked("div_rn", tile, _SINGLE) for tile in tiles)
    return fdiv(left, right)


def umulhi(x: Any, y: Any) -> Tile:
    """The upper half of the bits of the product, taken as unsigned."""
    left = checked("umulhi", as_tile(x), _WIDE_INTEGERS)
    right = checked("umulhi", as_tile(y), _WIDE_INTEGERS)
    (a, b), dtype, validity = in_one_type(left, right)
    unsigned = np.dtype(f"uint{dtype.bits}")
    high = elementwise(HIGH_HALF[dtype.bits], "ntl.umulhi", a.view(unsigned), b.view(unsigned))
    return Tile(high.view(dtype.numpy), dtype, validity)


def _high_half_32(a: Array, b: Array) -> Array:
    product = a.astype(np.uint64) * b.astype(np.uint64)
    return (product >> np.uint64(32)).astype(np.uint32)


def _high_half_64(a: Array, b: Array) -> Array:
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a_low, a_high, b_low, b_high = a & mask, a >> half, b & mask, b >> half
    # The product of the halves, added up from the lowest 32 bits to the highest.
    middle = a_high * b_low + ((a_low * b_low) >> half)
    other = a_low * b_high + (middle & mask)
    return a_high * b_high + (middle >> half) + (other >> half)


HIGH_HALF = {32: _high_half_32, 64: _high_half_64}


def fma(x: Any, y: Any, z: Any) -> Tile:
    """``x * y + z``, rounded once where that is a float."""
    (a, b, c), dtype, validity = in_one_type(x, y, z)
    if dtype is dtypes.float64:
        return Tile(_fused(a, b, c), dtype, validity)
    is_float = dtype.kind == "float"
    if is_float:
        a, b, c = a.astype(np.float64), b.astype(np.float64), c.astype(np.float64)
    data = elementwise(np.add, "ntl.fma", elementwise(np.multiply, "ntl.fma", a, b), c)
    return Tile(cast_array(data, dtypes.float64, dtype) if is_float else data, dtype, validity)


def _fused(a: Array, b: Array, c: Array) -> Array:
    """``a * b + c`` of float64 with what rounding the product and the sum loses added last.

    Both are floats themselves (T. J. Dekker, "A floating-point technique for extending the available precision", 1971);
    of numbers past about 1e300 the halves of which are infinite they are left out.
    """
    with np.errstate(all="ignore"):
        product = elementwise(np.multiply, "ntl.fma", a, b)
        total = elementwise(np.add, "ntl.fma", product, c)
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        of_product = a_low * b_low - (
            ((product - a_high * b_high) - a_low * b_high) - a_high * b_low
        )
        added = total - product
        lost = (product - (total - added)) + (c - added) + of_product
        return np.where(np.isfinite(lost) & (lost != 0), total + lost, total)


def _halves(x: Array) -> tuple[Array, Array]:
    """Two floats of 26 bits that add up to one of 53."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high


def promoted(x: Any) -> Tile:
    """``x`` as a tile; bfloat16 as float32, since no hardware compares bfloat16."""
    tile = as_tile(x)
    return tile.to(dtypes.float32) if tile.dtype is dtypes.bfloat16 else tile


def _compared(x: Any, y: Any) -> tuple[Array, Array, DType, Validity]:
    """The operands of a maximum or a minimum; a number counts as a 0-d tile."""
    left = promoted(x) if isinstance(x, Tile) else x
    right = promoted(y) if isinstance(y, Tile) else y
    return operands(left, right, scalar=unyielding)


def _propagates(propagate_nan: Any) -> bool:
    if propagate_nan is language.PropagateNan.NONE:
        return False
    if propagate_nan is language.PropagateNan.ALL:
        return True
    name = getattr(propagate_nan, "name", None)  # Triton's own, which prints the same
    if name in ("ALL", "NONE"):
        return name == "ALL"
    raise refuse(
        "propagate_nan is ntl.PropagateNan.ALL or ntl.PropagateNan.NONE, but got "
        f"{propagate_nan!r}."
    )


@_exact_of_sizes("max")
def maximum(x: Any, y: Any, propagate_nan: Any = language.PropagateNan.NONE) -> Tile:
    """The greater element; where one is NaN the other, or NaN with ``PropagateNan.ALL``."""
    function = np.maximum if _propagates(propagate_nan) else np.fmax
    a, b, dtype, validity = _compared(x, y)
    return Tile(elementwise(function, "ntl.maximum", a, b), dtype, validity)


@_exact_of_sizes("min")
def minimum(x: Any, y: Any, propagate_nan: Any = language.PropagateNan.NONE) -> Tile:
    """The lesser element; where one is NaN the other, or NaN with ``PropagateNan.ALL``."""
    function = np.minimum if _propagates(propagate_nan) else np.fmin
    a, b, dtype, validity = _compared(x, y)
    return Tile(elementwise(function, "ntl.minimum", a, b), dtype, validity)


def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = language.PropagateNan.NONE) -> Tile:
    """``x``, no less than ``min`` and no greater than ``max``; floats only."""
    (a, low, high), dtype, validity = in_one_type(*map(promoted, as_tiles(x, min, max)))
    if dtype.kind != "float":
        raise refuse(f"ntl.clamp takes floats, but the operands meet in {dtype}.")
    is_kept = _propagates(propagate_nan)
    least, most = (np.maximum, np.minimum) if is_kept else (np.fmax, np.fmin)
    data = elementwise(most, "ntl.clamp", elementwise(least, "ntl.clamp", a, low), high)
    return Tile(data, dtype, validity)


def builtin_max(*values: Any) -> Any:
    """What Python's ``max(a, b, …)`` means where a tile is among the arguments."""
    return _folded("max", maximum, values)


def builtin_min(*values: Any) -> Any:
    """What Python's ``min(a, b, …)`` means where a tile is among the arguments."""
    return _folded("min", minimum, values)


def _folded(name: str, function: Callable[[Any, Any], Tile], values: tuple[Any, ...]) -> Any:
    if len(values) < 2:
        raise refuse(f"{name} of tiles needs two values or more; ntl.{name} reduces one tile.")
    result = values[0]
    for value in values[1:]:
        result = function(result, value)
    return result


def where(condition: Any, x: Any, y: Any) -> Tile:
    """``x`` where ``condition`` holds, else ``y``; both are evaluated."""
    chosen = as_tile(condition).to(dtypes.bool)
    a, b, dtype, validity = operands(x, y)
    try:
        data = np.where(chosen.data, a, b)
    except ValueError as error:
        raise refuse(
            f"ntl.where needs shapes that match, but got {chosen.shape}, {a.shape} and {b.shape}."
        ) from error
    if chosen.validity:
        validity = joined_validity(chosen, Tile(data, dtype, _of_rank(validity, data.ndim)))
    elif validity:
        validity = _of_rank(validity, data.ndim)
    return Tile(data[()], dtype, validity)


def _of_rank(validity: Validity, ndim: int) -> Validity:
    # A mask that has the rank stays the same object, which joins with itself.
    return tuple(
        mask[(None,) * (ndim - mask.ndim)] if mask.ndim < ndim else mask for mask in validity
    )


def sigmoid(x: Any) -> Tile:
    """``1 / (1 + exp(-x))``."""
    tile = checked("sigmoid", as_tile(x), _SINGLE_OR_DOUBLE)
    one = tile.data.dtype.type(1)
    return Tile(one / (one + np.exp(-tile.data)), tile.dtype, tile.validity)


def cdiv(x: Any, div: Any) -> Any:
    """``x / div`` rounded up; of two Python numbers a Python number."""
    if isinstance(x, Tile) or isinstance(div, Tile):
        return ceil_divide(x, div)
    return -(-number(x) // number(div))


def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> tuple[Any, Any]:
    """A row-major index of a matrix, to the one that goes down columns in groups of rows."""
    linear = as_tile(add(multiply(i, size_j), j))
    in_group = multiply(size_g, size_j)
    first_row = multiply(truncating_divide(linear, in_group), size_g)
    rows = minimum(subtract(size_i, first_row), size_g)
    linear = truncating_remainder(linear, in_group)
    return add(first_row, truncating_remainder(linear, rows)), truncating_divide(linear, rows)


def logical_and(left: Any, right: Any) -> Tile:
    """Both are true, element by element; numbers are compared with 0."""
    return bitwise_and(as_tile(left).to(dtypes.bool), as_tile(right).to(dtypes.bool))


def logical_or(left: Any, right: Any) -> Tile:
    """One of both is true, element by element; numbers are compared with 0."""
    return bitwise_or(as_tile(left).to(dtypes.bool), as_tile(right).to(dtypes.bool))


def logical_not(value: Any) -> Tile:
    """It is not true, element by element; numbers are compared with 0."""
    return ~as_tile(value).to(dtypes.bool)


def cast(
    input: Any, dtype: DType, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> Tile:
    """``input`` as another type; see `Tile.to`."""
    return as_tile(input).to(dtype, fp_downcast_rounding, bitcast)


def _with_sanitizing(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """A sum, difference or product by name; overflow wraps around with and without the check."""
    return lambda x, y, sanitize_overflow=True: function(x, y)


ceil = _unary("ceil", np.ceil)
erf = _unary("erf", each(math.erf))
exp2 = _unary("exp2", np.exp2)
floor = _unary("floor", np.floor)
log2 = _unary("log2", np.log2)
rsqrt = _unary("rsqrt", _reciprocal_root)
sqrt_rn = _unary("sqrt_rn", np.sqrt, _SINGLE)

FUNCTIONS = {
    "add": _with_sanitizing(add),
    "builtin_max": builtin_max,
    "builtin_min": builtin_min,
    "logical_not": logical_not,
    "mul": _with_sanitizing(multiply),
    "sub": _with_sanitizing(subtract),
    "truediv": divide,
}
