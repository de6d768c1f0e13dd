"""The ten kernels' arguments in NumPy, laid out in memory in every way, and what must come out, in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.aot.kernels import PADDING

TOLERANCE = 5e-3

#: How a tensor may lie in memory.
HOW = ("contiguous", "misaligned", "strided", "transposed")

#: Halves of what no kernel computes: NaN.
POISON = 0x7E7E

_random = np.random.default_rng(0)


@dataclass
class View:
    """A tensor in a piece of memory: the values, and how they lie.

    Attributes:
        row: where rows lie far from one another, the elements of one; the storage has them without what is
            between, and so have the strides, but for that from one row to the next. 0 elsewhere.
        apart: from the beginning of a row to that of the next one.
    """

    values: np.ndarray
    storage: np.ndarray
    strides: tuple[int, ...]
    offset: int
    is_output: bool = False
    row: int = 0
    apart: int = 0

    def places(self) -> np.ndarray:
        """Where in the storage each element is."""
        found = np.full(self.values.shape, self.offset, dtype=np.int64)
        for dim, stride in enumerate(self.strides):
            steps = np.arange(self.values.shape[dim]) * stride
            found += steps.reshape([-1 if d == dim else 1 for d in range(self.values.ndim)])
        return found


def view(values: np.ndarray, how: str, is_output: bool = False) -> View:
    """Lays values out: contiguous, at an odd offset, with gaps, or the dimensions in another order."""
    order = list(range(values.ndim))
    if how == "transposed":
        order.reverse()
    step = 2 if how == "strided" else 1
    strides = [0] * values.ndim
    for dim in reversed(order):
        strides[dim] = step
        step *= max(values.shape[dim], 1)
        step += 3 if how == "strided" else 0
    offset = 1 if how in ("misaligned", "strided") else 0
    reach = offset + sum((n - 1) * s for n, s in zip(values.shape, strides)) if values.size else 0
    storage = np.full(reach + 40, np.nan, values.dtype)
    if values.dtype == np.float16:
        storage.view(np.uint16)[:] = POISON
    made = View(values, storage, tuple(strides), offset, is_output)
    if not is_output:
        storage[made.places()] = values
    return made


def far(values: np.ndarray, is_output: bool = False) -> View:
    """Laid out contiguously, but for the rows of the first dimension that has two: the last begins past 2^31 elements."""
    made = view(values, "contiguous", is_output)
    dim = next(dim for dim, size in enumerate(values.shape) if size > 1)
    made.row = made.strides[dim]
    made.storage = made.storage[: values.size]
    made.apart = max(2**31 // (values.shape[dim] - 1) + 1, made.row)
    return made


def normal(*shape: int) -> np.ndarray:
    return _random.standard_normal(shape).astype(np.float16)


def wide(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float64)


#: What a case is: inputs and scalars in order with None for the output, and what that must be.
Arguments = tuple[list[Any], np.ndarray]


def _product(m: int, k: int, n: int) -> Arguments:
    x, y = normal(m, k), normal(k, n)
    return [x, y, None], wide(x) @ wide(y)


def _addmm(m: int, k: int, n: int) -> Arguments:
    z, x, y = normal(m, n), normal(m, k), normal(k, n)
    return [z, x, y, 0.5, -1.5, None], 0.5 * wide(z) - 1.5 * wide(x) @ wide(y)


def _bmm(b: int, m: int, k: int, n: int) -> Arguments:
    x, y = normal(b, m, k), normal(b, k, n)
    return [x, y, None], wide(x) @ wide(y)


def _conv2d(n: int, c: int, h: int, w: int, f: int) -> Arguments:
    x, filters = normal(n, c, h, w), normal(f, c, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3), axis=(2, 3))
    expected = np.einsum("ncpqrs,kcrs->nkpq", windows, wide(filters), optimize=True)
    return [x, filters, None], expected


def _add(n: int) -> Arguments:
    x, y = normal(n), normal(n)
    return [x, y, None], wide(x) + wide(y)


def _silu(n: int) -> Arguments:
    x = normal(n)
    return [x, None], wide(x) / (1 + np.exp(-wide(x)))


def _softmax(m: int) -> Arguments:
    x = normal(m, 781)
    powers = np.exp(wide(x) - wide(x).max(-1, keepdims=True, initial=-math.inf))
    return [x, None], powers / powers.sum(-1, keepdims=True)


def _rms_norm(m: int) -> Arguments:
    x = normal(m, 781)
    return [x, 1e-6, None], wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6)


def _rope(b: int, m: int) -> Arguments:
    x, sin, cos = normal(b, m, 7, 64), normal(m, 32), normal(m, 32)
    first, second = wide(x)[..., 0::2], wide(x)[..., 1::2]
    s, c = wide(sin)[:, None, :], wide(cos)[:, None, :]
    turned = np.stack((first * c - second * s, first * s + second * c), -1).reshape(x.shape)
    return [x, sin, cos, None], turned


def _sdpa(b: int, heads: int, group: int, m: int) -> Arguments:
    q, k, v = normal(b, heads * group, m, 64), normal(b, heads, m, 64), normal(b, heads, m, 64)
    keys, values = (np.repeat(wide(each), group, axis=1) for each in (k, v))
    scores = wide(q) @ keys.transpose(0, 1, 3, 2) / 8
    scores = np.where(np.tril(np.ones((m, m), bool)), scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-1e30))
    return [q, k, v, 0.125, None], weights / weights.sum(-1, keepdims=True) @ values


def _jagged(*lengths: int) -> Arguments:
    """Sequences of rows of 48, packed; where one is shorter than the longest the result is padded."""
    size, longest = 48, max(lengths, default=0)
    values, offsets = normal(sum(lengths), size), np.cumsum([0, *lengths])
    expected = np.full((len(lengths), longest, size), PADDING)
    for number, length in enumerate(lengths):
        expected[number, :length] = wide(values[offsets[number] :][:length])
    packed = np.concatenate((values.ravel(), np.full(40, np.nan, np.float16)))
    shape = np.broadcast_to(np.float16(0), expected.shape)
    return [View(shape, packed, (0, size, 1), 0), View(offsets, offsets, (1,), 0), None], expected


#: By kernel: what makes its arguments, and sizes: odd ones, ones that tiles divide, empty ones.
CASES: dict[str, tuple[Callable[..., Arguments], list[tuple[int, ...]]]] = {
    "add": (_add, [(100_003,), (16_384,), (0,)]),
    "silu": (_silu, [(100_003,), (16_384,), (0,)]),
    "softmax": (_softmax, [(67,), (0,)]),
    "rms_norm": (_rms_norm, [(67,), (0,)]),
    "mm": (_product, [(257, 127, 193), (512, 256, 512), (0, 32, 64)]),
    "addmm": (_addmm, [(161, 131, 97), (512, 256, 512), (64, 32, 0)]),
    "bmm": (_bmm, [(3, 129, 67, 115), (2, 256, 128, 256), (0, 32, 32, 32)]),
    "conv2d": (_conv2d, [(2, 8, 17, 19, 24), (2, 16, 18, 34, 32)]),
    "convolution": (_conv2d, [(1, 512, 6, 6, 32)]),
    "jagged": (_jagged, [(5, 0, 33), (16, 32, 32), (0, 0), ()]),
    "rope": (_rope, [(2, 33), (1, 64), (0, 5)]),
    "sdpa": (_sdpa, [(1, 2, 2, 129), (1, 2, 1, 256), (0, 1, 1, 64)]),
}
