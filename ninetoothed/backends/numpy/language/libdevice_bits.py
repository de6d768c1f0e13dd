"""libdevice's functions of integers and of bits, on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.math import HIGH_HALF


def leading_zeros(x: Any) -> Any:
    """How many of the highest bits are 0."""
    x, count = unsigned(x), np.zeros(np.shape(x), np.int32)
    bits = x.dtype.itemsize * 8
    for position in range(bits):
        count = np.where(x >> x.dtype.type(position) != 0, bits - 1 - position, count)
    return np.where(x == 0, bits, count)


def set_bits(x: Any) -> Any:
    """How many bits are 1."""
    x = unsigned(x)
    one = x.dtype.type(1)
    return sum((x >> x.dtype.type(k) & one).astype(np.int32) for k in range(x.dtype.itemsize * 8))


def first_set(x: Any) -> Any:
    """The position of the lowest bit that is 1, counted from 1; 0 where there is none."""
    x = unsigned(x)
    lowest = x & (~x + x.dtype.type(1))
    return np.where(x == 0, 0, x.dtype.itemsize * 8 - leading_zeros(lowest))


def reversed_bits(x: Any) -> Any:
    """The bits in the opposite order."""
    plain = unsigned(x)
    bits, one = plain.dtype.itemsize * 8, plain.dtype.type(1)
    result = np.zeros_like(plain)
    for position in range(bits):
        result |= (plain >> plain.dtype.type(position) & one) << plain.dtype.type(
            bits - 1 - position
        )
    return result.view(np.asarray(x).dtype)


def unsigned(x: Any) -> Any:
    """The same bits as an unsigned integer."""
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}")


def product_high(x: Any, y: Any) -> Any:
    """The upper half of the bits of the product, with its sign."""
    high = HIGH_HALF[x.dtype.itemsize * 8](unsigned(x), unsigned(y)).view(x.dtype)
    if x.dtype.kind == "u":
        return high
    # A negative factor was read as itself plus 2 to the width.
    return high - np.where(x < 0, y, 0).astype(x.dtype) - np.where(y < 0, x, 0).astype(x.dtype)


def product_24(x: Any, y: Any) -> Any:
    """The lower 32 bits of the product of the lowest 24 bits."""
    if x.dtype.kind == "u":
        mask = np.uint64(0xFFFFFF)
        return ((x.astype(np.uint64) & mask) * (y.astype(np.uint64) & mask)).astype(np.uint32)
    low_x, low_y = (np.left_shift(v.astype(np.int64), 40) >> 40 for v in (x, y))
    return (low_x * low_y).astype(np.int32)


def permuted_bytes(x: Any, y: Any, selector: Any) -> Any:
    """Four bytes of eight, ``x``'s first, each chosen by a half-byte; its 8 copies the sign."""
    x, y, selector = np.broadcast_arrays(x, y, selector)
    pool = unsigned(x).astype(np.uint64) | (unsigned(y).astype(np.uint64) << np.uint64(32))
    result = np.zeros(x.shape, np.uint32)
    for position in range(4):
        chosen = (unsigned(selector) >> np.uint32(4 * position)) & np.uint32(15)
        byte = (pool >> ((chosen & np.uint32(7)).astype(np.uint64) * np.uint64(8))) & np.uint64(255)
        sign = np.where(byte & np.uint64(128), np.uint64(255), np.uint64(0))
        byte = np.where(chosen & np.uint32(8), sign, byte)
        result |= byte.astype(np.uint32) << np.uint32(8 * position)
    return result.view(np.int32)


def halved_sum(extra: int) -> Callable[..., Any]:
    """The average rounded down, or up with ``extra`` = 1, without overflow."""
    return lambda x, y: (x.astype(np.int64) + y.astype(np.int64) + extra) >> 1


def sum_of_difference(x: Any, y: Any, z: Any) -> Any:
    """``|x - y| + z``."""
    return np.abs(x.astype(np.int64) - y.astype(np.int64)) + z.astype(np.int64)


def reinterpreted(dtype: str) -> Callable[..., Any]:
    """The same bits as ``dtype``."""
    return lambda x: np.asarray(x).view(dtype)


def halves(x: Any) -> Any:
    """The upper and the lower 32 bits of a float64."""
    x = np.asarray(x).view(np.uint64)
    return (x >> np.uint64(32)).astype(np.uint32).view(np.int32), x.astype(np.uint32).view(np.int32)


def from_halves(high: Any, low: Any) -> Any:
    """The float64 of its upper and lower 32 bits."""
    joined = (unsigned(high).astype(np.uint64) << np.uint64(32)) | unsigned(low)
    return joined.view(np.float64)
