"""`Tile`: a NumPy array that behaves as a value of Triton's language does.

What the executor needs to know:

- ``Tile(data, dtype, marks)``. ``data`` is an ndarray, or a NumPy scalar for a 0-d value, of
  ``dtype.numpy``. It is never written to: every operation returns a new tile, so that arrays may
  be shared and be views of an argument (copy what a later store could change).
- ``marks`` says which lanes are real, for a tile loaded from a tensor without ``other``: a tuple of
  boolean arrays, all of which must hold; ``()`` means that every lane is real. A mark has as many
  dimensions as ``data``, with size 1 where it does not depend on one: ``offs_m < M`` is
  shaped (BLOCK_M, 1). Element-wise operations join the marks of their operands; a reduction
  puts its identity where a mark does not hold and drops the marks that depend on the reduced
  dimension. Lanes which are not real must hold 0 when the tile is made.
- ``tile.unmarked()`` is the same value with no marks, `unmarked` does so for any value (in
  tuples too, and leaves what is no tile alone): what a loop needs for the names that it assigns.
- A run-time scalar is a 0-d tile, ``Tile.of(value, dtype)``. Python numbers stay Python numbers:
  they are compile-time constants and yield to a tile's type, which a 0-d tile does not.
- ``tile.cast(dtype)`` is what a store needs; `as_tile` accepts numbers too.
- Pointers: `ninetoothed.backends.numpy.pointer`. The running program: `…numpy.context`.
- ``if tile:`` and ``tile`` as an index work for one-element tiles. For Python's ``max``, ``min``,
  ``and``, ``or`` and ``not`` of larger ones use `language.FUNCTIONS`' ``builtin_max``,
  ``builtin_min``, ``logical_and``, ``logical_or`` and ``logical_not``.
- NumPy's warnings are the caller's: run programs within ``numpy.errstate(all="ignore")``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ninetoothed import dtypes
from ninetoothed.backends.numpy.casting import (
    Array,
    bitcast_array,
    cast_array,
    narrowing_cast,
)
from ninetoothed.backends.numpy.pointer import PointerTile
from ninetoothed.backends.numpy.promotion import (
    common_dtype,
    dtype_with_scalar,
    is_signed,
    refuse,
    scalar_dtype,
)
from ninetoothed.dtypes import DType
from ninetoothed.errors import CompilationError, caller_location

#: Conditions that hold where a lane is real; see the module's docstring.
Marks = tuple[Any, ...]


class SeveralElementsError(CompilationError):
    """One number was needed, as in an ``if``, but a tile of several elements stood there."""


class TileType(NamedTuple):
    """What a tile is: the type of its elements and its shape."""

    scalar: DType
    shape: tuple[int, ...]

    @property
    def element_ty(self) -> DType:
        """The type of the elements."""
        return self.scalar

    def is_block(self) -> bool:
        """Whether it has dimensions."""
        return bool(self.shape)


class Tile:
    """A value of the language: elements of one type, immutable.

    Attributes:
        data: the elements.
        dtype: their type.
        marks: the conditions under which a lane is real, ``()`` for "all are".
    """

    __slots__ = ("data", "dtype", "marks")

    # NumPy must not take over ``array + tile``.
    __array_ufunc__ = None

    def __init__(self, data: Array, dtype: DType, marks: Marks = ()) -> None:
        self.data = data
        self.dtype = dtype
        self.marks = marks

    @staticmethod
    def of(value: bool | int | float, dtype: DType | None = None) -> Tile:
        """A 0-d tile of a Python number, by default of the type that the number has by itself."""
        dtype = scalar_dtype(value) if dtype is None else dtype
        return Tile(_constant(value, dtype), dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The tile's shape; ``()`` for a scalar."""
        return self.data.shape

    @property
    def type(self) -> TileType:
        """The shape and the element type in one, as helpers written for Triton ask for it."""
        return TileType(self.dtype, self.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.data.ndim

    @property
    def numel(self) -> int:
        """The number of elements."""
        return self.data.size

    @property
    def T(self) -> Tile:
        """The last two dimensions exchanged."""
        if self.data.ndim < 2:
            raise refuse(
                f"`.T` needs two dimensions or more, but the tile's shape is {self.shape}."
            )
        return Tile(
            self.data.swapaxes(-1, -2), self.dtype, tuple(m.swapaxes(-1, -2) for m in self.marks)
        )

    def to(
        self, dtype: DType, fp_downcast_rounding: str | None = None, bitcast: bool = False
    ) -> Tile:
        """The tile as another type; ``bitcast`` keeps the bits, else the values are kept.

        Args:
            dtype: the type to convert to.
            fp_downcast_rounding: ``"rtne"`` or ``"rtz"``, for a narrowing float conversion only.
            bitcast: read the same bits as ``dtype``.
        """
        if dtype is self.dtype and fp_downcast_rounding is None:
            return self
        if not isinstance(dtype, DType):
            raise refuse(f"A tile is cast to an element type, but got {dtype!r}.")
        if bitcast:
            return Tile(bitcast_array(self.data, self.dtype, dtype), dtype, self.marks)
        if fp_downcast_rounding is None:
            data = cast_array(self.data, self.dtype, dtype)
        else:
            data = narrowing_cast(self.data, self.dtype, dtype, fp_downcast_rounding)
        return Tile(data, dtype, self.marks)

    cast = to

    def unmarked(self) -> Tile:
        """The same elements, all taken to be real."""
        return Tile(self.data, self.dtype) if self.marks else self

    def __getitem__(self, key: Any) -> Tile:
        for part in key if isinstance(key, tuple) else (key,):
            if not (part is None or (isinstance(part, slice) and part == slice(None))):
                raise refuse(
                    f"A tile takes `None` and `:` as indices, but got {part!r}; ntl.gather, "
                    "ntl.split and ntl.where select elements."
                )
        try:
            return Tile(self.data[key], self.dtype, tuple(m[key] for m in self.marks))
        except IndexError as error:
            raise refuse(f"Index {key!r} has too many `:` for shape {self.shape}.") from error

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}\n{np.asarray(self.data)!r}"

    def __format__(self, spec: str) -> str:
        return format(self._item(), spec) if spec else repr(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.data, dtype=dtype)

    __hash__ = object.__hash__

    def _item(self) -> Any:
        if self.data.size != 1:
            raise SeveralElementsError(
                f"One number is needed here, but the tile's shape is {self.shape}; "
                "ntl.where chooses element by element, ntl.max and ntl.sum reduce to one.",
                caller_location(),
            )
        return self.data.item()

    def __bool__(self) -> bool:
        return bool(self._item())

    def __index__(self) -> int:
        if self.dtype.kind == "float":
            raise refuse(f"An integer is needed here, but the tile is of {self.dtype}.")
        return int(self._item())

    def __int__(self) -> int:
        return int(self._item())

    def __float__(self) -> float:
        return float(self._item())

    def __pos__(self) -> Tile:
        return self

    def __neg__(self) -> Tile:
        return subtract(Tile(self.dtype.numpy.type(0), self.dtype), self)

    def __invert__(self) -> Tile:
        if self.dtype.kind == "float":
            raise refuse(f"`~` needs integers, but the tile is of {self.dtype}.")
        return Tile(np.invert(self.data), self.dtype, self.marks)


_LARGEST_CACHE = 4096


def _constant(value: bool | int | float, dtype: DType) -> Any:
    """``value`` as a NumPy scalar of ``dtype``; integers wrap around."""
    if dtype.kind in ("int", "uint") and isinstance(value, int):
        return np.array(value & (2**dtype.bits - 1), dtype=f"uint{dtype.bits}").view(dtype.numpy)[
            ()
        ]
    return dtype.numpy.type(value)


@functools.lru_cache(maxsize=_LARGEST_CACHE, typed=True)
def _yielding(value: Any, tile: DType, division: bool) -> tuple[DType, Any]:
    """The type for a tile and a number that yields to it, and the number in that type."""
    dtype = dtype_with_scalar(tile, value, division)
    return dtype, _constant(value, dtype)


@functools.lru_cache(maxsize=_LARGEST_CACHE, typed=True)
def unyielding(value: Any, tile: DType, division: bool) -> tuple[DType, Any]:
    """The same for a number that counts as a 0-d tile, as it does in comparisons."""
    own = scalar_dtype(value)
    dtype = common_dtype(tile, own, division)
    return dtype, cast_array(_constant(value, own), own, dtype)


def number(value: Any) -> Any:
    """A Python number behind ``value`` (a NumPy scalar, a constexpr); an error if there is none."""
    if isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ == "constexpr":
        return number(value.value)
    raise refuse(f"A tile or a number is needed here, but got {type(value).__name__} {value!r}.")


def as_tile(value: Any) -> Tile:
    """``value`` as a tile: a number becomes a 0-d one of its own type."""
    return value if isinstance(value, Tile) else Tile.of(number(value))


def unmarked(value: Any) -> Any:
    """``value`` with every lane taken to be real: a tile, a tuple or a list of them, or anything."""
    if isinstance(value, Tile):
        return value.unmarked()
    if type(value) in (tuple, list):
        return type(value)(unmarked(item) for item in value)
    return value


def joined_marks(*tiles: Tile) -> Marks:
    """The marks of an element-wise result: a lane is real where it is in every operand."""
    ndim = max(tile.data.ndim for tile in tiles)
    joined: list[Any] = []
    for tile in tiles:
        missing = ndim - tile.data.ndim
        for mark in tile.marks:
            if not any(mark is other for other in joined):
                joined.append(mark[(None,) * missing] if missing else mark)
    return tuple(joined)


def operands(
    left: Any, right: Any, division: bool = False, scalar: Callable[..., Any] = _yielding
) -> tuple[Array, Array, DType, Marks]:
    """Both operands' elements in their common type, that type, and the result's marks."""
    if not isinstance(left, Tile):
        if not isinstance(right, Tile):
            left = Tile.of(number(left))
        else:
            y, x, dtype, marks = _with_number(right, left, division, scalar)
            return x, y, dtype, marks
    if not isinstance(right, Tile):
        return _with_number(left, right, division, scalar)
    x, y, dtype = left.data, right.data, left.dtype
    if dtype is not right.dtype or division:
        dtype = common_dtype(dtype, right.dtype, division)
        x, y = cast_array(x, left.dtype, dtype), cast_array(y, right.dtype, dtype)
    if not left.marks and not right.marks:
        return x, y, dtype, ()
    if left.marks is right.marks and x.ndim == y.ndim:
        return x, y, dtype, left.marks
    return x, y, dtype, joined_marks(left, right)


def _with_number(
    tile: Tile, value: Any, division: bool, scalar: Callable[..., Any]
) -> tuple[Array, Array, DType, Marks]:
    if type(value) not in (int, bool, float):
        value = number(value)
    if type(value) is float and value == 0 and math.copysign(1, value) < 0:
        scalar = scalar.__wrapped__  # type: ignore[attr-defined]  # -0.0 is the same key as 0.0
    dtype, constant = scalar(value, tile.dtype, division)
    x = tile.data
    return (
        (x if dtype is tile.dtype else cast_array(x, tile.dtype, dtype)),
        constant,
        dtype,
        tile.marks,
    )


def elementwise(ufunc: Callable[..., Any], symbol: str, x: Array, y: Array) -> Array:
    """``ufunc(x, y)``, with an error that shows the shapes where they do not fit."""
    try:
        return ufunc(x, y)
    except ValueError as error:
        raise refuse(
            f"{symbol} needs tiles whose shapes match or are 1, but got {x.shape} and {y.shape}."
        ) from error


#: Arithmetic on one bit wraps around as on any other width: 1 + 1 is 0.
_ON_ONE_BIT = {np.add: np.logical_xor, np.subtract: np.logical_xor, np.multiply: np.logical_and}


def _arithmetic(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    on_one_bit = _ON_ONE_BIT[ufunc]

    def operate(left: Any, right: Any) -> Tile:
        x, y, dtype, marks = operands(left, right)
        function = on_one_bit if dtype is dtypes.bool else ufunc
        return Tile(elementwise(function, symbol, x, y), dtype, marks)

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


def divide(left: Any, right: Any) -> Tile:
    """``left / right``: of integers in float32, of 16-bit floats in float32."""
    x, y, dtype, marks = operands(left, right, True)
    if dtype.kind != "float":
        x, y = x.astype(np.float32), y.astype(np.float32)
        dtype = dtypes.float32
    return Tile(elementwise(np.true_divide, "/", x, y), dtype, marks)


def floor_divide(left: Any, right: Any) -> Tile:
    """``left // right`` of integers, rounded toward zero as in C."""
    x, y, dtype, marks = operands(left, right, True)
    if dtype.kind == "float":
        raise refuse(f"// needs integers, but the operands meet in {dtype}; use ntl.floor(x / y).")
    return Tile(elementwise(_quotient, "//", x, y), dtype, marks)


def _quotient(x: Array, y: Array) -> Array:
    if x.dtype.kind != "i":
        return np.floor_divide(x, y)
    return np.floor_divide(x - np.fmod(x, y), y)


def remainder(left: Any, right: Any) -> Tile:
    """``left % right``, with the sign of ``left`` as in C."""
    x, y, dtype, marks = operands(left, right, True)
    return Tile(elementwise(np.fmod, "%", x, y), dtype, marks)


def _bitwise(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    def operate(left: Any, right: Any) -> Tile:
        x, y, dtype, marks = integer_operands(symbol, left, right)
        return Tile(elementwise(ufunc, symbol, x, y), dtype, marks)

    return operate


def integer_operands(symbol: str, left: Any, right: Any) -> tuple[Array, Array, DType, Marks]:
    """`operands` that must be integers."""
    x, y, dtype, marks = operands(left, right)
    if dtype.kind == "float":
        raise refuse(f"{symbol} needs integers, but the operands meet in {dtype}.")
    return x, y, dtype, marks


bitwise_and = _bitwise("&", np.bitwise_and)
bitwise_or = _bitwise("|", np.bitwise_or)
bitwise_xor = _bitwise("^", np.bitwise_xor)


def shift_left(left: Any, right: Any) -> Tile:
    """``left << right``."""
    x, y, dtype, marks = integer_operands("<<", left, right)
    return Tile(elementwise(np.left_shift, "<<", x, y).astype(dtype.numpy), dtype, marks)


def shift_right(left: Any, right: Any) -> Tile:
    """``left >> right``, arithmetic where the tile is signed, else logical."""
    tile = left if isinstance(left, Tile) else right
    x, y, dtype, marks = integer_operands(">>", left, right)
    if is_signed(tile.dtype) and not is_signed(dtype):
        # The operands met in an unsigned type, but the shift still copies the sign.
        signed = np.dtype(f"int{dtype.bits}")
        shifted = elementwise(np.right_shift, ">>", x.view(signed), y.view(signed))
        return Tile(shifted.view(dtype.numpy), dtype, marks)
    return Tile(elementwise(np.right_shift, ">>", x, y).astype(dtype.numpy), dtype, marks)


def _comparison(symbol: str, ufunc: Any) -> Callable[[Any, Any], Tile]:
    def operate(left: Any, right: Any) -> Tile:
        x, y, _, marks = operands(left, right, scalar=unyielding)
        return Tile(elementwise(ufunc, symbol, x, y), dtypes.bool, marks)

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
    return isinstance(value, (Tile, int, float, np.generic)) or type(value).__name__ == "constexpr"


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

_COMPARISONS = {
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
for _name, _function in _COMPARISONS.items():
    setattr(Tile, f"__{_name}__", _function)
