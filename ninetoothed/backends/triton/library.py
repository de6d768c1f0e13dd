"""Functions that emitted kernels call, in Triton's language.

A lane that holds no element must not take part in a reduction. Each function here puts the
identity of one kind of reduction in its place.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.constexpr_function
def _lowest(dtype: tl.dtype) -> float | int:
    """What every value of the type is at least as great as: the identity of a maximum."""
    if dtype.is_floating():
        # This one has no infinity; 448 is its largest number.
        return -448.0 if dtype.is_fp8e4nv() else float("-inf")
    return -(1 << (dtype.primitive_bitwidth - 1)) if dtype.is_int_signed() else 0


@triton.constexpr_function
def _highest(dtype: tl.dtype) -> float | int:
    """What every value of the type is at most as great as: the identity of a minimum."""
    if dtype.is_floating():
        return 448.0 if dtype.is_fp8e4nv() else float("inf")
    return (1 << (dtype.primitive_bitwidth - dtype.is_int_signed())) - 1


@triton.constexpr_function
def _all_ones(dtype: tl.dtype) -> int:
    """All bits set: the identity of a conjunction of bits."""
    if dtype.is_floating():
        raise TypeError(f"the bits of {dtype} are no set")
    return -1 if dtype.is_int_signed() else (1 << dtype.primitive_bitwidth) - 1


@triton.jit
def _constant(value: tl.constexpr, dtype: tl.constexpr):
    # Triton makes no constants of the 8-bit floats but 0.
    if dtype.is_fp8():
        return tl.full((), value, tl.float32).to(dtype)
    else:
        return tl.full((), value, dtype)


@triton.jit
def exclude_zero(value, mask):
    """``value`` where ``mask`` holds, else 0: the identity of a sum, of an exclusive or."""
    return tl.where(mask, value, _constant(0, value.dtype))


@triton.jit
def exclude_one(value, mask):
    """``value`` where ``mask`` holds, else 1: the identity of a product."""
    return tl.where(mask, value, _constant(1, value.dtype))


@triton.jit
def exclude_lowest(value, mask):
    """``value`` where ``mask`` holds, else the least value of its type: the identity of a maximum."""
    return tl.where(mask, value, _constant(_lowest(value.dtype), value.dtype))


@triton.jit
def exclude_highest(value, mask):
    """``value`` where ``mask`` holds, else the greatest value of its type: that of a minimum."""
    return tl.where(mask, value, _constant(_highest(value.dtype), value.dtype))


@triton.jit
def exclude_all_ones(value, mask):
    """``value`` where ``mask`` holds, else all bits set: the identity of a conjunction of bits."""
    return tl.where(mask, value, _constant(_all_ones(value.dtype), value.dtype))
