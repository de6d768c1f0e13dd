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
