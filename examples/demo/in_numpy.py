"""What the ten kernels of the paper compute, in NumPy: on float64 arrays, the references."""

from __future__ import annotations

import numpy


def silu(x: numpy.ndarray) -> numpy.ndarray:
    """The input times its sigmoid."""
    return x / (1 + numpy.exp(-x))


def softmax(x: numpy.ndarray) -> numpy.ndarray:
    """Along the last dimension."""
    numerator = numpy.exp(x - x.max(-1, keepdims=True))
    return numerator / numerator.sum(-1, keepdims=True)


def rms_norm(x: numpy.ndarray) -> numpy.ndarray:
    """Root-mean-square normalisation along the last dimension, with the epsilon of our example."""
    return x / numpy.sqrt((x**2).mean(-1, keepdims=True) + 1e-6)


def rope(x: numpy.ndarray, sin: numpy.ndarray, cos: numpy.ndarray) -> numpy.ndarray:
    """Rotary position embedding, interleaved: neighbours are turned together."""
    sin, cos = sin[:, None, :], cos[:, None, :]
    first, second = x[..., 0::2], x[..., 1::2]
    turned = numpy.empty_like(x)
    turned[..., 0::2] = first * cos - second * sin
    turned[..., 1::2] = first * sin + second * cos
    return turned


def addmm(
    z: numpy.ndarray, x: numpy.ndarray, y: numpy.ndarray, beta: float = 1.0, alpha: float = 1.0
) -> numpy.ndarray:
    """A product, scaled, added to a matrix, scaled."""
    return beta * z + alpha * (x @ y)


def conv2d(x: numpy.ndarray, filter: numpy.ndarray) -> numpy.ndarray:
    """Images (n, c, h, w) with filters (k, c, r, s), no padding, in steps of one."""
    windows = numpy.lib.stride_tricks.sliding_window_view(x, filter.shape[2:], axis=(2, 3))
    return numpy.einsum("ncpqrs,kcrs->nkpq", windows, filter, optimize=True)


def sdpa(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """Attention on (batch, heads, length, size), not causal."""
    return softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v
