"""Random calls of the ten kernels: sizes that fit each other, strides and addresses of every kind."""

from __future__ import annotations

import ctypes
import math
import random
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.aot.unit import Unit
from ninetoothed.tensors.arrange import SCALES
from tests.aot.reference import NineToothedTensor, View


def by_address(number: Any) -> NineToothedTensor:
    """A number as the published interface has it."""
    made = NineToothedTensor(ctypes.addressof(number), None, None)
    made.number = number  # type: ignore[attr-defined]
    return made


def _size(source: random.Random) -> int:
    """Often a multiple of a tile, often not, sometimes nothing, seldom very large."""
    kind = source.random()
    if kind < 0.04:
        return 0
    if kind < 0.5:
        return source.choice((1, 2, 4, 8)) * 256
    if kind < 0.7:
        return 8 * source.randint(1, 200)
    if kind < 0.95:
        return source.randint(1, 3000)
    return source.choice((2**31 - 1, 2**31, 2**33))


def _shapes(name: str, source: random.Random) -> dict[str, tuple[int, ...]]:
    size: Callable[[], int] = lambda: _size(source)  # noqa: E731
    m, n, k, b = size(), size(), size(), source.randint(1, 5)
    if name in ("add", "silu"):
        return {"input": (m,), "other": (m,), "output": (m,)}
    if name in ("softmax", "rms_norm"):
        return {"input": (m, 781), "output": (m, 781)}
    if name in ("mm", "addmm"):
        product = {"mat1": (m, k), "mat2": (k, n), "output": (m, n)}
        if name == "addmm":
            return {"input": (m, n), **product}
        return {"input": (m, k), "other": (k, n), "output": (m, n)}
    if name == "bmm":
        return {"input": (b, m, k), "other": (b, k, n), "output": (b, m, n)}
    if name == "conv2d":
        h, w, c, f = (source.randint(3, 60) for _ in range(4))
        return {"input": (b, c, h, w), "other": (f, c, 3, 3), "output": (b, f, h - 2, w - 2)}
    if name == "rope":
        m = min(m, 4096)
        return {
            "input": (b, m, 7, 64),
            "sin_table": (m, 32),
            "cos_table": (m, 32),
            "output": (b, m, 7, 64),
        }
    assert name == "sdpa"
    heads, group = source.randint(1, 4), source.randint(1, 3)
    m, k = min(m, 8192), min(k, 8192)
    return {
        "query": (b, heads * group, m, 64),
        "key": (b, heads, k, 64),
        "value": (b, heads, k, 64),
        "output": (b, heads * group, m, 64),
    }


def _strides(shape: Sequence[int], source: random.Random) -> tuple[int, ...]:
    """Contiguous, with gaps after rows, with the dimensions in another order, or all of it 0."""
    kind = source.random()
    order = list(range(len(shape)))
    if kind > 0.85:
        source.shuffle(order)
    step = source.choice((1, 1, 1, 2)) if kind > 0.75 else 1
    gap = source.choice((0, 3, 16 - shape[-1] % 16)) if kind > 0.55 else 0
    strides = [0] * len(shape)
    for dim in reversed(order):
        strides[dim] = step
        step = step * max(shape[dim], 1) + gap
        gap = 0
    if kind > 0.97:
        strides = [0] * len(shape)
    if kind < 0.06:
        strides[0] = 2**33
    if 0.94 < kind < 0.97:
        strides[-1] = -strides[-1]
    return tuple(strides)


def random_call(name: str, unit: Unit, source: random.Random) -> dict[str, Any]:
    """Arguments by name."""
    shapes = _shapes(name, source)
    kind = source.random()
    is_plain, is_padded = kind < 0.4, kind > 0.8
    given: dict[str, Any] = {}
    for parameter in unit.parameters:
        if parameter.kind == "tensor":
            shape = shapes[parameter.name]
            if source.random() < 0.05:
                dim = source.randrange(len(shape))
                if (
                    unit.kernel.program.parameter(parameter.name).source.shape[dim].__class__
                    is not int
                ):
                    shape = (*shape[:dim], shape[dim] + 40, *shape[dim + 1 :])
            if is_plain:
                strides = _contiguous(shape)
            elif is_padded:
                # As a library allocates rows: each begins at a multiple of 16 elements.
                strides = _contiguous((*shape[:-1], -(-shape[-1] // 16) * 16))
            else:
                strides = _strides(shape, source)
            if (is_plain or is_padded) and len(shape) > 1 and source.random() < 0.1:
                # The same rows again and again.
                strides = (0, *strides[1:])
            # No address has more bits.
            strides = tuple(min(stride, 2**59) for stride in strides)
            address = 0x7000_0000 + (
                0 if is_plain or is_padded else 2 * source.choice((0, 0, 0, 1, 8))
            )
            offset = source.choice((0, 64))
            given[parameter.name] = View(tuple(shape), strides, address, byte_offset=offset)
        elif parameter.kind == "scalar":
            numbers = (0.5, *SCALES) if parameter.is_scale else (0.5, -1.5, 1e-6, 1e30, math.inf)
            given[parameter.name] = source.choice(numbers)
    return given


def _contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
