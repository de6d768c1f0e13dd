"""The arguments of the ten tasks, at the paper's sizes. It imports no compiler and no kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from tests.examples.maker import Maker

ELEMENTS = 16_777_216

Builder = Callable[[Maker], tuple[Any, ...]]


def normal(*shapes: tuple[int, ...]) -> Builder:
    """Builds normally distributed tensors of these shapes."""
    return lambda make: tuple(make(*shape) for shape in shapes)


def rotations(batch: int, length: int, heads: int, size: int) -> Builder:
    """Builds a tensor and its tables of real angles: turning in place must not make it grow."""

    def build(make: Maker) -> tuple[torch.Tensor, ...]:
        frequencies = 10000.0 ** (-torch.arange(0, size, 2, device=make.device) / size)
        angles = torch.arange(length, device=make.device)[:, None] * frequencies
        tables = (angles.sin().to(make.dtype), angles.cos().to(make.dtype))
        return make(batch, length, heads, size), *tables

    return build


#: (maker) -> the arguments, by the task's name.
BUILDERS: dict[str, Builder] = {
    "add": normal((ELEMENTS,), (ELEMENTS,)),
    "addmm": normal((4096, 4096), (4096, 4096), (4096, 4096)),
    "bmm": normal((4, 2048, 2048), (4, 2048, 2048)),
    "conv2d": normal((4, 512, 14, 14), (512, 512, 3, 3)),
    "mm": normal((4096, 4096), (4096, 4096)),
    "rms_norm": normal((4096, 4096)),
    "rope": rotations(4, 1024, 48, 64),
    "rope_": rotations(4, 1024, 48, 64),
    "sdpa": normal(*[(4, 48, 1024, 64)] * 3),
    "silu": normal((ELEMENTS,)),
    "softmax": normal((4096, 4096)),
}


def arguments_of(name: str, dtype: torch.dtype = torch.float16) -> tuple[Any, ...]:
    """Arguments of a task on the CUDA device."""
    return BUILDERS[name](Maker(dtype, "cuda"))
