"""Python's numbers in emitted kernels, in Triton's language, where they are not Triton's."""

from __future__ import annotations

import triton
import triton.language as tl

from ninetoothed.backends.triton.division import is_whole
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
def _bits(value: object) -> int:
    """The bits that a value is shifted in; of a number by itself 64."""
    return value.dtype.primitive_bitwidth if isinstance(value, tl.tensor) else 64


@triton.constexpr_function
def _is_signed(value: object) -> bool:
    return not isinstance(value, tl.tensor) or value.dtype.is_int_signed()


@triton.constexpr_function
def _is_tensor(value: object) -> bool:
    return isinstance(value, tl.tensor)


@triton.jit
def shifted_left(value, count):
    """``value << count``; all bits are gone where there are not so many."""
    if _is_tensor(count):
        result = value << count
        return tl.where((count >= 0) & (count < _bits(result)), result, 0)
    elif count < _bits(value):
        return value << count
    else:
        return value & 0


@triton.jit
def shifted_right(value, count):
    """``value >> count``; what is left of a negative number, where it has not so many bits, is -1."""
    if _is_tensor(count):
        result = value >> count
        last = _bits(result) - 1
        is_there = (count >= 0) & (count <= last)
        if _is_signed(value):
            return value >> tl.where(is_there, count, last)
        else:
            return tl.where(is_there, result, 0)
    elif count < _bits(value):
        return value >> count
    elif _is_signed(value):
        return value >> (_bits(value) - 1)
    else:
        return value & 0
