"""Which type an operation is computed in: Triton's rules, on the neutral element types.

Source: ``triton/language/semantic.py`` (``computation_type_impl``, ``integer_promote_impl`` and
``to_tensor``) of Triton 3.6. Only `DType` is known here: no array and no tile.
"""

from __future__ import annotations

import functools
from typing import Any

from ninetoothed.errors import CompilationError, caller_location
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType

#: bool < integer < float: a scalar of a kind not above the tile's takes the tile's type.
_RANKS = {"bool": 0, "int": 1, "uint": 1, "float": 2}

_SMALLEST_NORMAL_FLOAT32 = 2.0**-126
_LARGEST_FLOAT32 = (2 - 2**-23) * 2.0**127


def refuse(message: str) -> CompilationError:
    """The error for an application that Triton's language would not accept, at the user's line."""
    return CompilationError(message, caller_location())


def checked_dtype(dtype: Any) -> DType:
    """What an application gives as a type, as ours. A name is none there."""
    found = None if isinstance(dtype, str) else dtypes.element_type(dtype)
    if found is None:
        raise refuse(f"An element type such as ntl.float32 is needed here, but got {dtype!r}.")
    return found


#: Why there is no ``int(x)`` of a tile of uint64.
TOO_LARGE = (
    "`int` makes an int64, and not every uint64 fits one: leave it as it is, or write `.to(ntl.int64)` where "
    "all of them do."
)


def float_type(dtype: DType, is_wide: bool) -> DType:
    """What Python's ``float`` makes of elements of a type; ``is_wide`` in a call with elements of float64."""
    if dtype is dtypes.float64 or (is_wide and not dtype.is_floating()):
        return dtypes.float64
    return dtypes.float32


class Double(float):
    """A Python float of a call that has elements of float64: by itself, and beside integers, it is one too."""


class Undecided(float):
    """A Python float of a kernel whose calls may or may not have elements of float64: each call says."""


def scalar_dtype(value: bool | int | float) -> DType:
    """The type that a Python number has by itself (``ntl.full`` without one, comparisons)."""
    if isinstance(value, Double):
        return dtypes.float64
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return _integer_dtype(value)
    magnitude = abs(value)
    if magnitude in (0.0, float("inf")) or value != value:
        return dtypes.float32
    fits = _SMALLEST_NORMAL_FLOAT32 <= magnitude <= _LARGEST_FLOAT32
    return dtypes.float32 if fits else dtypes.float64


def _integer_dtype(value: int) -> DType:
    if -(2**31) <= value < 2**31:
        return dtypes.int32
    if 2**31 <= value < 2**32:
        return dtypes.uint32
    if -(2**63) <= value < 2**63:
        return dtypes.int64
    if 2**63 <= value < 2**64:
        return dtypes.uint64
    raise refuse(f"The integer {value} fits no 64-bit type; beside floats write it as one.")


@functools.cache
def common_dtype(left: DType, right: DType, division: bool = False) -> DType:
    """The type in which two tiles are combined; ``division`` for ``/``, ``//`` and ``%``."""
    pair = (left, right)
    for wide in (dtypes.float64, dtypes.float32):
        if wide in pair:
            return wide
    if dtypes.float16 in pair:
        return dtypes.float32 if division else dtypes.float16
    if left is right is dtypes.bfloat16:
        return dtypes.float32 if division else dtypes.bfloat16
    if dtypes.bfloat16 in pair:
        return dtypes.float32
    if left.kind == right.kind == "float":
        return left if left is right else dtypes.float16
    if "float" in (left.kind, right.kind):
        raise refuse(f"A tile of {left} and a tile of {right} have no common type; cast one.")
    if division and dtypes.bool not in pair and is_signed(left) != is_signed(right):
        raise refuse(
            f"// and % need operands of one signedness, but got {left} and {right}; cast one."
        )
    return promoted_integer(left, right)


def is_signed(dtype: DType) -> bool:
    """Whether ``dtype`` is a signed integer; ``bool`` is not, as in Triton."""
    return dtype.kind == "int"


@functools.cache
def promoted_integer(left: DType, right: DType) -> DType:
    """C's usual arithmetic conversions between two integer types."""
    if is_signed(left) == is_signed(right):
        return left if left.bits > right.bits else right
    unsigned, signed = (right, left) if is_signed(left) else (left, right)
    return unsigned if unsigned.bits >= signed.bits else signed


def as_count_of(value: DType, count: DType) -> DType:
    """The type in which a shift's count meets what is shifted: one that leaves that its sign."""
    if {value.kind, count.kind} == {"int", "uint"} and is_signed(value):
        return getattr(dtypes, f"int{count.bits}")
    return count


def loses_signs(left: DType, right: DType) -> bool:
    """Whether two integer types meet in one that holds no negative number of theirs."""
    if {left.kind, right.kind} != {"int", "uint"}:
        return False
    return not is_signed(promoted_integer(left, right))


@functools.cache
def _dtype_with_scalar(tile: DType, scalar: DType, division: bool) -> DType:
    if _RANKS[scalar.kind] > _RANKS[tile.kind]:
        return common_dtype(tile, scalar, division)
    if division and tile.bits == 16 and tile.kind == "float":
        return dtypes.float32
    return tile


@functools.cache
def integer_bounds(dtype: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    if dtype.kind == "int":
        return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1
    return 0, 2**dtype.bits - 1


def dtype_with_scalar(tile: DType, value: bool | int | float, division: bool = False) -> DType:
    """The type in which a tile and a Python number are combined: the number yields where it can.

    Raises:
        CompilationError: the number does not fit that type.
    """
    dtype = _dtype_with_scalar(tile, scalar_dtype(value), division)
    if dtype.kind != "float":
        lowest, highest = integer_bounds(dtype)
        if not lowest <= value <= highest:
            raise refuse(f"The number {value} does not fit a tile of {dtype}; cast the tile.")
    return dtype


#: The types of matrix products, by those of what is multiplied; of narrower floats a call says it.
_PRODUCTS = {
    dtypes.int8: dtypes.int32,
    dtypes.bfloat16: dtypes.float32,
    dtypes.float32: dtypes.float32,
    dtypes.float64: dtypes.float64,
}


def product_dtype(operand: DType, wanted: DType | None) -> DType | None:
    """The type of a matrix product of tiles of one type that is wanted in another; None where that is not known."""
    return _PRODUCTS.get(operand, wanted)


def no_product(operand: DType | None, wanted: DType | None) -> str:
    """Why a matrix product is not given in a type; empty where it is, or the types are not known."""
    # A float32 is wanted where a call says nothing, whatever is multiplied.
    given = [dtypes.float32, dtypes.float16]
    if operand is None:
        given += [dtypes.float64, dtypes.int32]
    elif operand in _PRODUCTS:
        given = [_PRODUCTS[operand]]
    if wanted is None or wanted in (dtypes.float32, *given):
        return ""
    of = "" if operand is None else f" of {operand}"
    return (
        f"`ntl.dot`{of} gives {' or '.join(map(str, given))}, but `out_dtype` is {wanted}: cast the product, as "
        f"in `.to(ntl.{wanted.triton_name})`."
    )
