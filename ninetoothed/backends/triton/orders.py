"""What is in order, and how often: for emitted kernels, where Triton's own say less than the language does.

Triton sorts floats by ``>``, which holds of no NaN: elements near one are lost, others come twice. It finds
the place of whatever NaN leaves last. It counts by a number's last bits, so that what is in no bin is counted
in another, and compiles that for 32 bits alone.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.constexpr_function
def _is_keyed(dtype: tl.dtype) -> bool:
    """Whether elements are sorted by their bits; Triton does not compare 8-bit floats with themselves."""
    return dtype.is_floating() and dtype.primitive_bitwidth > 8


@triton.constexpr_function
def _bits_type(dtype: tl.dtype) -> tl.dtype:
    return {16: tl.int16, 32: tl.int32, 64: tl.int64}[dtype.primitive_bitwidth]


@triton.constexpr_function
def _greatest_key(dtype: tl.dtype) -> int:
    return (1 << (dtype.primitive_bitwidth - 1)) - 1


@triton.jit
def _in_order(bits):
    """The bits of floats as integers in their order, or back."""
    greatest: tl.constexpr = _greatest_key(bits.dtype)
    sign = bits >> (bits.dtype.primitive_bitwidth - 1)
    return bits ^ (sign & tl.full((), greatest, bits.dtype))


@triton.jit
def _keys(value):
    """Integers in the order of floats, NaN the greatest."""
    dtype: tl.constexpr = _bits_type(value.dtype)
    greatest: tl.constexpr = _greatest_key(dtype)
    keys = _in_order(value.to(dtype, bitcast=True))
    return tl.where(value == value, keys, tl.full((), greatest, dtype))


@triton.jit
def _of_keys(keys, dtype: tl.constexpr):
    """The floats that `_keys` were made of."""
    narrow: tl.constexpr = _bits_type(dtype)
    return _in_order(keys.to(narrow)).to(dtype, bitcast=True)


@triton.jit
def sort(x, dim: tl.constexpr = None, descending: tl.constexpr = False):
    """``x`` in order along its last dimension, NaN as the greatest."""
    if _is_keyed(x.dtype):
        return _of_keys(tl.sort(_keys(x), dim, descending), x.dtype)
    else:
        return tl.sort(x, dim, descending)


@triton.jit
def bitonic_merge(x, dim: tl.constexpr = None, descending: tl.constexpr = False):
    """`sort` of what rises and then falls along its last dimension, or is turned round so."""
    # Of a single element Triton makes a tile without dimensions, which it has none of.
    if x.shape[len(x.shape) - 1] == 1:
        return x
    elif _is_keyed(x.dtype):
        return _of_keys(tl.bitonic_merge(_keys(x), dim, descending), x.dtype)
    else:
        return tl.bitonic_merge(x, dim, descending)


@triton.constexpr_function
def _is_within(count: int, size: int) -> bool:
    return 1 <= count <= size and count & (count - 1) == 0


@triton.jit
def _greatest(value, k: tl.constexpr, dim: tl.constexpr):
    # Triton's own is lost where a single element is left of a whole tile.
    last: tl.constexpr = len(value.shape) - 1
    if k == 1 and value.shape[last] > 1 and value.numel == value.shape[last]:
        return tl.max(value, axis=last, keep_dims=True)
    else:
        return tl.topk(value, k, dim)


@triton.jit
def topk(x, k: tl.constexpr, dim: tl.constexpr = None):
    """The ``k`` greatest elements along the last dimension, of a size that is known only here; NaN first."""
    tl.static_assert(
        _is_within(k, x.shape[len(x.shape) - 1]),
        "ntl.topk needs a power of two of at most as many elements as the tile has",
    )
    if _is_keyed(x.dtype):
        found = _of_keys(_greatest(_keys(x), k, dim), x.dtype)
        # Fewer than all are found by `max`, which widens.
        if k < x.shape[len(x.shape) - 1] and x.dtype.primitive_bitwidth < 32:
            return found.to(tl.float32)
        else:
            return found
    else:
        return _greatest(x, k, dim)


@triton.jit
def histogram(input, num_bins: tl.constexpr, mask=None):
    """How often each of 0 … ``num_bins`` - 1 is in ``input``, where ``mask`` holds."""
    wide = input.to(tl.int32) if input.dtype.primitive_bitwidth < 32 else input
    is_counted = (wide >= 0) & (wide < num_bins)
    if mask is not None:
        is_counted = is_counted & mask
    return tl.histogram(wide.to(tl.int32), num_bins, mask=is_counted)
