"""Functions decorated with `triton.jit`, for the contract's tests."""

import triton


@triton.jit
def plus_product(x, y, factor):
    return x + y * factor
