"""The inputs of the examples: sizes, small and large, and what is built of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from examples import jagged_to_padded, rope_in_place
from tests.examples.maker import Maker

# Element-wise kernels.

ELEMENTWISE = {
    "one": (1,),
    "odd": (37,),
    "one block": (1024,),
    "blocks and a rest": (2051,),
    "matrix": (5, 37),
    "empty": (0,),
    "empty matrix": (3, 0),
}
LARGE_ELEMENTWISE = {
    "one": (1,),
    "odd": (1_000_003,),
    "paper": (16_777_216,),
    "matrix": (4097, 4095),
    "empty": (0,),
}

# Kernels of one row a program.

ROWS = {
    "one": (1, 1),
    "odd": (3, 37),
    "power of two": (4, 64),
    "many rows": (33, 5),
    "three dimensions": (2, 3, 70),
    "empty": (0, 37),
    "empty rows": (5, 0),
}
LARGE_ROWS = {
    "one": (1, 1),
    "paper": (4096, 4096),
    "odd": (1823, 781),
    "long rows": (17, 20_001),
    "three dimensions": (4, 129, 4095),
    "empty": (0, 37),
}


def with_vectors(count: int) -> Callable[..., tuple[Any, ...]]:
    """A builder of a tensor and so many vectors of its last dimension."""
    return lambda make, *shape: (make(*shape), *(make(shape[-1]) for _ in range(count)))


# Products.

PRODUCTS = {
    "one": (1, 1, 1),
    "odd": (33, 17, 35),
    "power of two": (64, 32, 64),
    "long sum": (5, 130, 3),
    "no rows": (0, 5, 7),
    "no sum": (3, 0, 5),
}
LARGE_PRODUCTS = {
    "one": (1, 1, 1),
    "square": (1024, 1024, 1024),
    "paper": (4096, 4096, 4096),
    "odd": (1001, 777, 515),
    "vector": (1, 4096, 4096),
    "long sum": (65, 20_000, 63),
    "no rows": (0, 5, 7),
    "no sum": (3, 0, 5),
}
BATCHED_PRODUCTS = {
    "one": (1, 1, 1, 1),
    "odd": (3, 33, 17, 35),
    "power of two": (2, 32, 32, 32),
    "empty": (0, 5, 6, 7),
}
LARGE_BATCHED_PRODUCTS = {
    "one": (1, 1, 1, 1),
    "paper": (4, 2048, 2048, 2048),
    "odd": (5, 333, 517, 129),
    "empty": (0, 5, 6, 7),
}


def build_mm(make: Maker, m: int, k: int, n: int) -> tuple[Any, ...]:
    return make(m, k), make(k, n)


def build_addmm(make: Maker, m: int, k: int, n: int) -> tuple[Any, ...]:
    return make(m, n), make(m, k), make(k, n)


def build_addmm_with_bias(make: Maker, m: int, k: int, n: int) -> tuple[Any, ...]:
    return make(n), make(m, k), make(k, n)


def build_bmm(make: Maker, b: int, m: int, k: int, n: int) -> tuple[Any, ...]:
    return make(b, m, k), make(b, k, n)


# Windows. The parameters are (input's shape, filter's or window's shape).

CONVOLUTIONS = {
    "one": ((1, 1, 1, 1), (1, 1, 1, 1)),
    "odd": ((2, 3, 7, 9), (5, 3, 3, 3)),
    "uneven filter": ((1, 2, 8, 11), (4, 2, 5, 3)),
    "empty": ((0, 3, 7, 9), (5, 3, 3, 3)),
}
LARGE_CONVOLUTIONS = {
    "one": ((1, 1, 1, 1), (1, 1, 1, 1)),
    "paper": ((4, 512, 14, 14), (512, 512, 3, 3)),
    "odd": ((3, 17, 45, 51), (37, 17, 5, 3)),
    "empty": ((0, 3, 7, 9), (5, 3, 3, 3)),
}


def build_conv2d(make: Maker, input_shape: Any, filter_shape: Any) -> tuple[Any, ...]:
    return make(*input_shape), make(*filter_shape)


def conv2d_reduction(input_shape: Any, filter_shape: Any) -> int:
    return math.prod(filter_shape[1:])


# The parameters are (input's shape, window, stride).
POOLS = {
    "one": ((1, 1, 1, 1), (1, 1), None),
    "odd": ((2, 3, 9, 11), (3, 2), None),
    "overlapping": ((1, 2, 10, 13), (3, 3), (2, 2)),
    "gaps": ((1, 2, 12, 13), (2, 2), (4, 5)),
    "empty": ((0, 3, 9, 11), (3, 3), None),
}
LARGE_POOLS = {
    "image": ((8, 64, 112, 112), (3, 3), (2, 2)),
    "odd": ((3, 17, 101, 95), (3, 5), None),
    "gaps": ((2, 5, 120, 131), (2, 2), (4, 5)),
    "empty": ((0, 3, 9, 11), (3, 3), None),
}


def build_max_pool2d(make: Maker, shape: Any, window: Any, stride: Any) -> tuple[Any, ...]:
    return make(*shape), window, stride


# Attention. The parameters are (batch, query heads, key heads, queries, keys, size of a head).

ATTENTIONS = {
    "one query": (1, 1, 1, 1, 1, 16),
    "odd": (2, 2, 2, 33, 37, 16),
    "grouped": (1, 4, 2, 35, 35, 32),
    "odd head": (1, 2, 1, 20, 40, 24),
    "more queries than keys": (1, 1, 1, 70, 33, 16),
    "empty": (0, 2, 2, 5, 5, 16),
    "no query": (1, 2, 2, 0, 5, 16),
}
LARGE_ATTENTIONS = {
    "one query": (1, 1, 1, 1, 1, 16),
    "paper": (4, 48, 48, 1024, 1024, 64),
    "grouped": (2, 32, 8, 1000, 1000, 128),
    "odd": (2, 6, 3, 777, 1111, 72),
    "more queries than keys": (1, 4, 4, 1025, 513, 64),
    "empty": (0, 2, 2, 5, 5, 16),
}


def build_sdpa(
    make: Maker, batch: int, heads: int, key_heads: int, queries: int, keys: int, size: int
) -> tuple[Any, ...]:
    return (
        make(batch, heads, queries, size),
        make(batch, key_heads, keys, size),
        make(batch, key_heads, keys, size),
    )


# Rotary embedding. The parameters are (batch, sequence, heads, size of a head).

ROTATIONS = {
    "one": (1, 1, 1, 2),
    "odd": (2, 5, 3, 10),
    "power of two": (1, 4, 8, 16),
    "empty": (0, 5, 3, 8),
}
LARGE_ROTATIONS = {
    "one": (1, 1, 1, 2),
    "paper": (4, 1024, 48, 64),
    "odd": (3, 517, 7, 90),
    "empty": (0, 5, 3, 8),
}


def build_rope(make: Maker, batch: int, length: int, heads: int, size: int) -> tuple[Any, ...]:
    # The tables are longer than the sequence, as a model's are.
    return (
        make(batch, length, heads, size),
        make(length + 3, size // 2),
        make(length + 3, size // 2),
    )


def turned_in_place(input: torch.Tensor, *tables: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """A copy, turned in place."""
    return rope_in_place.rope_(input.clone(), *tables, interleaved)


# Dropout.


def build_dropout(make: Maker, *shape: int) -> tuple[Any, ...]:
    return make(*shape), 0.3, 1234


# Jagged tensors. The parameters are (lengths, size).

JAGGED = {
    "one": ((1,), 1),
    "odd": ((3, 0, 17, 5), 37),
    "long": ((40, 33), 70),
    "all empty": ((0, 0), 5),
}
LARGE_JAGGED = {
    "one": ((1,), 1),
    "odd": ((3, 0, 1700, 517), 391),
    "many": (tuple(range(0, 512, 3)), 128),
}


def build_jagged(make: Maker, lengths: tuple[int, ...], size: int) -> tuple[Any, ...]:
    offsets = torch.tensor((0, *lengths), device=make.device).cumsum(0)
    return make(sum(lengths), size), offsets


def pad_jagged(values: torch.Tensor, offsets: torch.Tensor, padding_value: float) -> torch.Tensor:
    nested = torch.nested.nested_tensor_from_jagged(values, offsets)
    return jagged_to_padded.jagged_to_padded(nested, padding_value)
