"""Python's numbers in emitted kernels, in Triton's language, where they are not Triton's."""

from __future__ import annotations

import triton
import triton.language as tl

from ninetoothed.backends.triton.division import integer_type, is_tensor, is_whole
from ninetoothed.backends.triton.minus_zero import MinusZero

#: The literal -0.0.
MINUS_ZERO = tl.constexpr(MinusZero(-0.0))


@triton.jit
def negative(value):
    """``-value``; of a float its sign is another, of 0.0 too."""
    if is_whole(value):
        return -value
    else:
        return value * -1.0


@triton.jit
def as_float(value):
    """``float(value)`` beside elements of float64: it stays one, as what is made of integers is one."""
    if is_whole(value):
        return tl.cast(value, tl.float64)
    elif value.dtype == tl.float64:
        return value
    else:
        return value.to(tl.float32)


@triton.constexpr_function
def _is_signed(value: object) -> bool:
    return integer_type(value).is_int_signed()


@triton.constexpr_function
def _bits(value: object) -> int:
    """The bits that a value is shifted in; of a number by itself 64."""
    return value.dtype.primitive_bitwidth if isinstance(value, tl.tensor) else 64


@triton.constexpr_function
def _count_type(value: object, count: tl.tensor) -> tl.dtype:
    """The type of what something is shifted by; it leaves an integer its sign, and a truth value its type.

    A number that is shifted takes this type: it has none to keep.
    """
    integer = integer_type(value)
    own = count.dtype.scalar if not count.dtype.is_bool() else integer or tl.int32
    keeps_its_own = isinstance(value, tl.tensor) and integer is not None
    is_signed = keeps_its_own and integer.is_int_signed()
    return (
        getattr(tl, f"int{own.primitive_bitwidth}") if is_signed and own.is_int_unsigned() else own
    )


@triton.jit
def shifted_left(value, count):
    """``value << count``; all bits are gone where there are not so many."""
    if is_tensor(count):
        count = count.to(_count_type(value, count))
        result = value << count
        return tl.where((count >= 0) & (count < _bits(result)), result, 0)
    elif count < _bits(value):
        return value << count
    else:
        return value & 0


@triton.jit
def shifted_right(value, count):
    """``value >> count``; what is left of a negative number, where it has not so many bits, is -1."""
    if is_tensor(count):
        count = count.to(_count_type(value, count))
        result = value >> count
        last = _bits(result) - 1
        is_there = (count >= 0) & (count <= last)
        if _is_signed(result):
            return value >> tl.where(is_there, count, last).to(count.dtype)
        else:
            return tl.where(is_there, result, 0)
    elif count < _bits(value):
        return value >> count
    elif _is_signed(value):
        return value >> (_bits(value) - 1)
    else:
        return value & 0


@triton.constexpr_function
def _loses_signs(left: object, right: object) -> bool:
    """Whether two integers meet in an unsigned type, one of which is signed."""
    one, other = integer_type(left), integer_type(right)
    if one is None or other is None or one.is_int_signed() == other.is_int_signed():
        return False
    signed, unsigned = (one, other) if one.is_int_signed() else (other, one)
    return unsigned.primitive_bitwidth >= signed.primitive_bitwidth


@triton.jit
def _compared(left, sign: tl.constexpr, right):
    if sign == "<":
        result = left < right
    elif sign == "<=":
        result = left <= right
    elif sign == ">":
        result = left > right
    elif sign == ">=":
        result = left >= right
    elif sign == "==":
        result = left == right
    else:
        result = left != right
    return result


@triton.jit
def _held(value):
    """A number as a tensor of the type that it has by itself."""
    if is_tensor(value):
        return value
    else:
        return tl.full((), value, integer_type(value))


@triton.constexpr_function
def _is_beyond(value: object, other: object) -> bool:
    """Whether an integer does not fit the type of the integers that it meets."""
    type_ = integer_type(other) if isinstance(other, tl.tensor) else None
    if type_ is None or not isinstance(value, int):
        return False
    bits = type_.primitive_bitwidth
    if type_.is_int_unsigned():
        return not 0 <= value < 2**bits
    return not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)


@triton.jit
def _beside(value, other):
    """A number in the type that it has by itself, which Triton (3.9) does not give it beside narrower ones."""
    if _is_beyond(value, other):
        return _held(value)
    else:
        return value


@triton.jit
def compared(left, sign: tl.constexpr, right):
    """A comparison of numbers, of which one may be signed, and one not."""
    # Triton compiles what stands behind a `return` in a branch that is taken, too: hence one `if` for all.
    if not _loses_signs(left, right):
        return _compared(_beside(left, right), sign, _beside(right, left))
    elif _is_signed(left):
        # Of one below 0 it is what it is of 0 and a greater number.
        result = _compared(_held(left), sign, _held(right))
        return tl.where(left < 0, _compared(-1, sign, 0), result)
    else:
        result = _compared(_held(left), sign, _held(right))
        return tl.where(right < 0, _compared(0, sign, -1), result)
