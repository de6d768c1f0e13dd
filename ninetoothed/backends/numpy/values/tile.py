"""`Tile`: a NumPy array that behaves as a value of Triton's language does.

What the executor needs to know:

- ``Tile(data, dtype, validity)``. ``data`` is an ndarray, or a NumPy scalar for a 0-d value, of
  ``dtype.numpy``. It is never written to: every operation returns a new tile, so that arrays may
  be shared and be views of an argument (copy what a later store could change).
- ``validity`` says which lanes are real, for a tile loaded from a tensor without ``other``: a tuple of
  boolean arrays, all of which must hold; ``()`` means that every lane is real. A mask has as many
  dimensions as ``data``, with size 1 where it does not depend on one: ``offs_m < M`` is
  shaped (BLOCK_M, 1). Element-wise operations join the masks of their operands; a reduction
  puts its identity where a mask does not hold and drops the masks that depend on the reduced
  dimension. Lanes which are not real must hold 0 when the tile is made.
- What a variable holds after a round of a loop: `ninetoothed.backends.numpy.values.rounds`.
- A run-time scalar is a 0-d tile, ``Tile.of(value, dtype)``. Python numbers stay Python numbers:
  they are compile-time constants and yield to a tile's type, which a 0-d tile does not.
- ``tile.cast(dtype)`` is what a store needs; `as_tile` accepts numbers too.
- Pointers: `ninetoothed.backends.numpy.values.pointer`. The running program: `context`.
- ``if tile:`` and ``tile`` as an index work for one-element tiles. For Python's ``max``, ``min``,
  ``and``, ``or`` and ``not`` of larger ones use `language.implementations.FUNCTIONS`' ``builtin_max``,
  ``builtin_min``, ``logical_and``, ``logical_or`` and ``logical_not``.
- NumPy's warnings are the caller's: run programs within ``numpy.errstate(all="ignore")``.
"""

from __future__ import annotations

import enum
import operator
from typing import Any, NamedTuple

import numpy as np

from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.casting import (
    Array,
    bitcast_array,
    cast_array,
    check_range,
    narrowing_cast,
)
from ninetoothed.backends.numpy.values.members import add_members
from ninetoothed.errors import CompilationError, caller_location, near
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import checked_dtype, refuse, scalar_dtype

#: Conditions that hold where a lane is real; see the module's docstring.
Validity = tuple[Any, ...]

#: Among more masks than these one may stand often: as other dimensions were given to it, or as a loop's variable's own.
FEW_MASKS = 16


class LoadedMask(np.ndarray):
    """Where a tile has elements, in the lanes that it was loaded to: a store does without.

    Loaded tiles that meet have the same elements: each call is checked for that. What `pad` adds beside
    them is there to be read.
    """


class LevelMask(np.ndarray):
    """That a tile is within its level, where that depends on none of its elements.

    What the tile is reduced to, other than along one element, does not ask.
    """


class MovedMask(np.ndarray):
    """Where elements exist that were moved: each by itself.

    What they are reduced to along a dimension exists where one of them does.
    """


class LoadedLevelMask(LoadedMask, LevelMask):
    """Both."""


class SeveralElementsError(CompilationError):
    """One number was needed, as in an ``if``, but a tile of several elements stood there."""


class TileAttributeError(CompilationError, AttributeError):
    """A tile has no such attribute. Python's `hasattr` and `getattr` know it too."""


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
        validity: the conditions under which a lane is real, ``()`` for "all are".
    """

    __slots__ = ("data", "dtype", "validity")

    # NumPy must not take over ``array + tile``.
    __array_ufunc__ = None

    def __init__(self, data: Array, dtype: DType, validity: Validity = ()) -> None:
        self.data = data
        self.dtype = dtype
        self.validity = validity

    @staticmethod
    def of(value: bool | int | float, dtype: DType | None = None) -> Tile:
        """A 0-d tile of a Python number, by default of the type that the number has by itself."""
        if dtype is None:
            is_double = isinstance(value, float) and context.is_wide()
            dtype = dtypes.float64 if is_double else dtype_of_number(value)
        return Tile(constant(value, dtype), dtype)

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
            self.data.swapaxes(-1, -2), self.dtype, tuple(m.swapaxes(-1, -2) for m in self.validity)
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
        if dtype is self.dtype:
            return self
        dtype = checked_dtype(dtype)
        if bitcast:
            return Tile(bitcast_array(self.data, self.dtype, dtype), dtype, self.validity)
        if context.is_checked():
            check_range(self.data, self.dtype, dtype, self.validity)
        if fp_downcast_rounding is None:
            data = cast_array(self.data, self.dtype, dtype)
        else:
            data = narrowing_cast(self.data, self.dtype, dtype, fp_downcast_rounding)
        return Tile(data, dtype, self.validity)

    cast = to

    def __getitem__(self, key: Any) -> Tile:
        for part in key if isinstance(key, tuple) else (key,):
            if not (part is None or (isinstance(part, slice) and part == slice(None))):
                raise refuse(
                    f"A value that is computed takes `None` and `:` as indices, but got {part!r}: its "
                    "elements are held by several threads. Slice the parameter that it is computed "
                    "from (`x[1:]`), or select with ntl.gather, ntl.split or ntl.where."
                )
        try:
            return Tile(self.data[key], self.dtype, tuple(m[key] for m in self.validity))
        except IndexError as error:
            raise refuse(f"Index {key!r} has too many `:` for shape {self.shape}.") from error

    def __repr__(self) -> str:
        return f"{self.dtype}{list(self.shape)}\n{np.asarray(self.data)!r}"

    def __format__(self, spec: str) -> str:
        return format(self._item(), spec) if spec else repr(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.data, dtype=dtype)

    __hash__ = object.__hash__

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__"):
            known = [member for member in dir(self) if not member.startswith("_")]
            raise TileAttributeError(
                f"A tile has no {name!r}.{near(name, known)} It has what Triton's tensors have; "
                "functions of tiles are in `ninetoothed.language`.",
                caller_location(),
            )
        raise AttributeError(name)

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

    def __invert__(self) -> Tile:
        if self.dtype.kind == "float":
            raise refuse(f"`~` needs integers, but the tile is of {self.dtype}.")
        return Tile(np.invert(self.data), self.dtype, self.validity)


def dtype_of_number(value: bool | int | float) -> DType:
    """The type that a number has by itself: of one that a call gives, that of an argument."""
    return getattr(value, "own_dtype", None) or scalar_dtype(value)


def constant(value: bool | int | float, dtype: DType) -> Any:
    """``value`` as a NumPy scalar of ``dtype``; integers wrap around."""
    if dtype.kind in ("int", "uint") and isinstance(value, int):
        bits = int(value) & (2**dtype.bits - 1)
        return np.array(bits, dtype=f"uint{dtype.bits}").view(dtype.numpy)[()]
    return dtype.numpy.type(value)


def of_python(value: Any) -> Any:
    """A scalar of NumPy's, or an array without dimensions, as a number of Python's; else the object."""
    is_scalar = isinstance(value, np.generic | np.ndarray) and value.ndim == 0
    return value.item() if is_scalar else value


class Member:
    """A member of an enumeration as an index: itself to a dictionary, its value to what is counted."""

    __slots__ = ("member",)

    def __init__(self, member: enum.Enum) -> None:
        self.member = member

    def __index__(self) -> int:
        return operator.index(self.member.value)

    def __hash__(self) -> int:
        return hash(self.member)

    def __eq__(self, other: object) -> bool:
        return self.member == (other.member if isinstance(other, Member) else other)


def member_value(value: Any) -> Any:
    """What a member of an enumeration counts as; else the object."""
    value = value.member if isinstance(value, Member) else value
    return value.value if isinstance(value, enum.Enum) else value


def number(value: Any) -> Any:
    """A Python number behind ``value`` (a NumPy scalar, a constexpr, a member of an enumeration)."""
    value = of_python(member_value(value))
    if isinstance(value, (bool, int, float)):
        return value
    if type(value).__name__ == "constexpr":
        return number(value.value)
    raise refuse(f"A tile or a number is needed here, but got {type(value).__name__} {value!r}.")


def as_tile(value: Any) -> Tile:
    """``value`` as a tile: a number becomes a 0-d one of its own type."""
    return value if isinstance(value, Tile) else Tile.of(number(value))


def as_tiles(*values: Any) -> list[Tile]:
    """Values that meet as tiles: a float beside float64 is one, beside other floats a float32."""
    floats = {v.dtype for v in values if isinstance(v, Tile) and v.dtype.kind == "float"}
    if not floats:
        return list(map(as_tile, values))
    own = dtypes.float64 if dtypes.float64 in floats else None
    return [value if isinstance(value, Tile) else _beside(number(value), own) for value in values]


def _beside(value: bool | int | float, own: DType | None) -> Tile:
    is_float = isinstance(value, float)
    return Tile.of(value, own if own is not None and is_float else dtype_of_number(value))


def joined_validity(*tiles: Tile) -> Validity:
    """The masks of an element-wise result: a lane is real where it is in every operand."""
    ndim = max(tile.data.ndim for tile in tiles)
    joined: list[Any] = []
    for tile in tiles:
        missing = ndim - tile.data.ndim
        for mask in tile.validity:
            if not any(mask is other for other in joined):
                joined.append(mask[(None,) * missing] if missing else mask)
    if len(joined) <= FEW_MASKS:
        return tuple(joined)
    # By what they are, not by what they hold: a loop asks whose a mask is (`rounds`).
    kinds = {(type(mask), place_of_mask(mask)): mask for mask in reversed(joined)}
    return tuple(kinds.values())[::-1]


def place_of_mask(mask: Any) -> Any:
    """What a mask is, of all that there are at a time: its memory, and along which dimensions it lies there."""
    if not mask.ndim:
        return id(mask)
    steps = (step for step, size in zip(mask.strides, mask.shape, strict=True) if size > 1)
    return mask.ctypes.data, mask.shape, *steps


add_members(Tile, "tile")
