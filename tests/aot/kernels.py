"""The paper's ten kernels as they are declared for callers in C: element types, and sizes of tiles."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import ninetoothed
from examples import (
    add,
    addmm,
    bmm,
    conv2d,
    jagged_to_padded,
    mm,
    rms_norm,
    rope,
    sdpa,
    silu,
    softmax,
)
from ninetoothed import Tensor
from ninetoothed.aot.unit import fixed_of
from ninetoothed.kernels.ahead import Fixed
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.making import specializations_of

#: What is chosen in a test, so that a tile is smaller than most sizes.
BLOCK = 32

Premade = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...]]


def _tensors(count: int, rank: int, dtype: Any, **keywords: Any) -> tuple[Tensor, ...]:
    return tuple(Tensor(rank, dtype=dtype, **keywords) for _ in range(count))


def premake_add(dtype: Any = ninetoothed.float16, BLOCK_SIZE: int = 1024) -> Premade:
    arrangement = functools.partial(add.arrangement, BLOCK_SIZE=BLOCK_SIZE)
    return arrangement, add.application, _tensors(3, 1, dtype)


def premake_silu(dtype: Any = ninetoothed.float16, BLOCK_SIZE: int = 1024) -> Premade:
    arrangement = functools.partial(silu.arrangement, BLOCK_SIZE=BLOCK_SIZE)
    return arrangement, silu.application, _tensors(2, 1, dtype)


def premake_softmax(dtype: Any = ninetoothed.float16, columns: int = 781) -> Premade:
    tensors = _tensors(2, 2, dtype, shape=(None, columns))
    return softmax.arrangement, softmax.application, tensors


def premake_rms_norm(dtype: Any = ninetoothed.float16, columns: int = 781) -> Premade:
    input, output = _tensors(2, 2, dtype, shape=(None, columns))
    eps = Tensor(0, dtype=ninetoothed.float32)
    return rms_norm.arrangement, rms_norm.application, (input, eps, output)


def premake_mm(dtype: Any = ninetoothed.float16) -> Premade:
    return mm.arrangement, mm.application, _tensors(3, 2, dtype)


def premake_addmm(dtype: Any = ninetoothed.float16) -> Premade:
    input, mat1, mat2, output = _tensors(4, 2, dtype)
    beta, alpha = _tensors(2, 0, ninetoothed.float32)
    return addmm.arrangement, addmm.application, (input, mat1, mat2, beta, alpha, output)


def premake_bmm(dtype: Any = ninetoothed.float16) -> Premade:
    return bmm.arrangement, mm.application, _tensors(3, 3, dtype)


def premake_conv2d(
    dtype: Any = ninetoothed.float16,
    input_shape: tuple[int | None, ...] = (None, None, None, None),
    filters: tuple[int | None, ...] = (None, None),
) -> Premade:
    batch, _, height, width = input_shape
    windows = tuple(size and size - 2 for size in (height, width))
    (input,) = _tensors(1, 4, dtype, shape=input_shape)
    (filter,) = _tensors(1, 4, dtype, shape=(*filters, 3, 3))
    (output,) = _tensors(1, 4, dtype, shape=(batch, filters[0], *windows))
    return conv2d.arrangement, mm.application, (input, filter, output)


def premake_rope(dtype: Any = ninetoothed.float16, heads: int = 7, size: int = 64) -> Premade:
    input, output = _tensors(2, 4, dtype, shape=(None, None, heads, size))
    sin, cos = _tensors(2, 2, dtype, shape=(None, size // 2))
    return rope.arrangement, rope.application, (input, sin, cos, output)


def premake_sdpa(
    dtype: Any = ninetoothed.float16, size: int = 64, is_causal: bool = True
) -> Premade:
    query, key, value, output = _tensors(4, 4, dtype, shape=(None, None, None, size))
    scale = Tensor(0, dtype=ninetoothed.float32)
    causal = Tensor(0, constexpr=True, value=is_causal)
    return sdpa.arrangement, sdpa.application, (query, key, value, scale, causal, output)


PREMAKES: dict[str, Callable[..., Premade]] = {
    name.removeprefix("premake_"): function
    for name, function in list(globals().items())
    if name.startswith("premake_")
}


#: A kernel whose sizes are all declared, so few tiles that their reduction is divided.
DECLARED: dict[str, Callable[..., Premade]] = {
    "convolution": functools.partial(premake_conv2d, input_shape=(1, 512, 6, 6), filters=(32, 512))
}


#: The value of padding, where sequences are shorter than the longest.
PADDING = -1.0


def premake_jagged(dtype: Any = ninetoothed.float16) -> Premade:
    arrangement = functools.partial(_tiled, shape=(1, 16, 32))
    tensors = (Tensor(3, jagged_dim=1, other=PADDING, dtype=dtype), Tensor(3, dtype=dtype))
    return arrangement, jagged_to_padded.application, tensors


def _tiled(*tensors: Tensor, shape: tuple[int, ...]) -> tuple[Tensor, ...]:
    return tuple(tensor.tile(shape) for tensor in tensors)


#: Kernels of sequences of different lengths, packed.
JAGGED: dict[str, Callable[..., Premade]] = {"jagged": premake_jagged}


def defined(name: str, **options: Any) -> tuple[Definition, Fixed]:
    """One of the ten as its declaration has it, and what is fixed of its calls."""
    return defined_of(PREMAKES[name], name, **options)


def defined_of(
    premake: Callable[..., Premade], name: str, **options: Any
) -> tuple[Definition, Fixed]:
    """Any kernel as its declaration has it."""
    return fixed_of(specializations_of(*premake(), name, **options), {})
