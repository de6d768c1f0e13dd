"""The paper's ten kernels, and rope in place, with inputs and references in NumPy: for frameworks that are not PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from examples import add, addmm, bmm, conv2d, mm, rms_norm, rope, rope_in_place, sdpa, silu, softmax
from ninetoothed.tuning.results import entries

#: The largest error, over the largest element of what is expected.
TOLERANCE = 5e-3


@dataclass(frozen=True)
class Output:
    """Stands among a kernel's arguments for one that it only writes."""

    shape: tuple[int, ...]


@dataclass(frozen=True)
class InOut:
    """Stands among a kernel's arguments for one that it reads and writes."""

    value: np.ndarray


@dataclass(frozen=True)
class Task:
    """A kernel and what it is called with.

    Attributes:
        name: as in the paper.
        kernel: the kernel.
        arguments: arrays, numbers, and one `Output` or `InOut`.
        expected: in float64.
        constants: what a call gives by keyword.
    """

    name: str
    kernel: Any
    arguments: tuple[Any, ...]
    expected: np.ndarray
    constants: dict[str, int] = field(default_factory=dict)

    @property
    def is_tunable(self) -> bool:
        """Whether there is something for the tuner to choose."""
        return bool(self.kernel.definition.meta_symbols)

    def measured(self) -> int:
        """How many configurations the tuner has measured."""
        return sum(
            len(entry.times)
            for entry in entries().values()
            if entry.subject.kernel == self.kernel.name
        )

    def error_of(self, result: np.ndarray) -> float:
        """The largest error over the largest element of what is expected."""
        assert result.shape == self.expected.shape, (result.shape, self.expected.shape)
        error = np.abs(result.astype(np.float64) - self.expected).max()
        return float(error / np.abs(self.expected).max())


def tasks(dtype: Any = np.float16, scale: int = 1) -> Sequence[Task]:
    """The tasks, at odd sizes; ``scale`` makes them larger."""
    random = np.random.default_rng(0)

    def make(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(dtype)

    def wide(array: np.ndarray) -> np.ndarray:
        return array.astype(np.float64)

    builders: list[Callable[..., Task]] = [
        _add, _addmm, _bmm, _conv2d, _mm, _rms_norm, _rope, _rope_in_place, _sdpa, _silu, _softmax,
    ]  # fmt: skip
    return [builder(make, wide, scale) for builder in builders]


def _add(make: Any, wide: Any, scale: int) -> Task:
    x, y = make(100_003 * scale), make(100_003 * scale)
    arguments = (x, y, Output(x.shape))
    return Task("add", add.kernel, arguments, wide(x) + wide(y), {"BLOCK_SIZE": 1024})


def _addmm(make: Any, wide: Any, scale: int) -> Task:
    m, k, n = 161 * scale, 131 * scale, 97 * scale
    z, x, y = make(m, n), make(m, k), make(k, n)
    expected = 0.5 * wide(z) - 1.5 * wide(x) @ wide(y)
    return Task("addmm", addmm.kernel, (z, x, y, 0.5, -1.5, Output((m, n))), expected)


def _bmm(make: Any, wide: Any, scale: int) -> Task:
    m, k, n = 129 * scale, 67 * scale, 115 * scale
    x, y = make(3, m, k), make(3, k, n)
    return Task("bmm", bmm.kernel, (x, y, Output((3, m, n))), wide(x) @ wide(y))


def _conv2d(make: Any, wide: Any, scale: int) -> Task:
    x, w = make(2, 8 * scale, 17, 19), make(24 * scale, 8 * scale, 3, 3)
    windows = np.lib.stride_tricks.sliding_window_view(wide(x), (3, 3), axis=(2, 3))
    expected = np.einsum("ncpqrs,kcrs->nkpq", windows, wide(w), optimize=True)
    return Task("conv2d", conv2d.kernel, (x, w, Output(expected.shape)), expected)


def _mm(make: Any, wide: Any, scale: int) -> Task:
    m, k, n = 257 * scale, 127 * scale, 193 * scale
    x, y = make(m, k), make(k, n)
    return Task("mm", mm.kernel, (x, y, Output((m, n))), wide(x) @ wide(y))


def _rms_norm(make: Any, wide: Any, scale: int) -> Task:
    x = make(67 * scale, 781)
    expected = wide(x) / np.sqrt((wide(x) ** 2).mean(-1, keepdims=True) + 1e-6)
    return Task("rms_norm", rms_norm.kernel, (x, 1e-6, Output(x.shape)), expected)


def _rope(make: Any, wide: Any, scale: int) -> Task:
    task = _rope_in_place(make, wide, scale)
    x, sin, cos = task.arguments
    return Task("rope", rope.kernel, (x.value, sin, cos, Output(x.value.shape)), task.expected)


def _rope_in_place(make: Any, wide: Any, scale: int) -> Task:
    x, sin, cos = make(2, 33 * scale, 7, 64), make(33 * scale, 32), make(33 * scale, 32)
    first, second = wide(x)[..., 0::2], wide(x)[..., 1::2]
    s, c = wide(sin)[:, None, :], wide(cos)[:, None, :]
    turned = (first * c - second * s, first * s + second * c)
    expected = np.stack(turned, -1).reshape(x.shape)
    return Task("rope in place", rope_in_place.kernel, (InOut(x), sin, cos), expected)


def _sdpa(make: Any, wide: Any, scale: int) -> Task:
    q = make(2, 4, 77 * scale, 64)
    k, v = make(2, 4, 101 * scale, 64), make(2, 4, 101 * scale, 64)
    scores = wide(q) @ wide(k).swapaxes(-1, -2) * 0.125
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ wide(v)
    arguments = (q, k, v, 0.125, False, Output(q.shape))
    return Task("sdpa", sdpa.kernel, arguments, expected)


def _silu(make: Any, wide: Any, scale: int) -> Task:
    x = make(100_003 * scale)
    expected = wide(x) / (1 + np.exp(-wide(x)))
    return Task("silu", silu.kernel, (x, Output(x.shape)), expected, {"BLOCK_SIZE": 1024})


def _softmax(make: Any, wide: Any, scale: int) -> Task:
    x = make(67 * scale, 781)
    numerator = np.exp(wide(x) - wide(x).max(-1, keepdims=True))
    expected = numerator / numerator.sum(-1, keepdims=True)
    return Task("softmax", softmax.kernel, (x, Output(x.shape)), expected)
