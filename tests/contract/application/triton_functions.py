"""Functions decorated with `triton.jit`, for the contract's tests."""

import triton
import triton.language as tl


@triton.jit
def plus_product(x, y, factor):
    return x + tl.cast(y, x.dtype) * factor


@triton.jit
def divided_up(x, divisor):
    return tl.cdiv(x, divisor) + x.cdiv(div=divisor) * 100
