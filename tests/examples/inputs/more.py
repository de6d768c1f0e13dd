"""The inputs of the further examples: sizes, small and large, and what is built of them."""

from __future__ import annotations

from typing import Any

import torch

from examples.more import attention_with_cache, jagged_softmax, rms_norm_with_residual
from examples.more.indices import scatter_add
from tests.examples.maker import Maker


def integers(make: Maker, end: int, *shape: int) -> torch.Tensor:
    """Random integers from 0 up to an end, on the maker's device."""
    return torch.randint(end, shape, generator=make.generator, device=make.device)


# Windows. The parameters are (shape, window, stride, padding).

POOLS = {
    "one": ((1, 1, 1, 1), (1, 1), None, (0, 0)),
    "odd": ((2, 3, 9, 11), (3, 2), None, (1, 0)),
    "no padding": ((2, 1, 8, 11), (3, 2), (2, 1), (0, 0)),
    "overlapping": ((1, 2, 10, 13), (3, 3), (2, 2), (1, 1)),
    "empty": ((0, 3, 9, 11), (3, 3), None, (0, 0)),
}
LARGE_POOLS = {
    "image": ((8, 64, 112, 112), (3, 3), (2, 2), (1, 1)),
    "odd": ((3, 17, 101, 95), (3, 5), None, (0, 2)),
    "no padding": ((3, 17, 101, 95), (3, 5), (2, 2), (0, 0)),
}


def build_pool2d(make: Maker, shape: Any, *rest: Any) -> tuple[Any, ...]:
    return make(*shape), *rest


# The parameters are (batch, channels, time, size of a filter).
CAUSAL_CONVOLUTIONS = {
    "one": (1, 1, 1, 1),
    "odd": (2, 3, 70, 4),
    "short": (1, 2, 2, 5),
    "empty": (0, 3, 9, 4),
}
LARGE_CAUSAL_CONVOLUTIONS = {"model": (4, 512, 2048, 4), "odd": (3, 37, 1001, 3)}


def build_causal_conv1d(make: Maker, b: int, c: int, t: int, k: int) -> tuple[Any, ...]:
    return make(b, c, t), make(c, k), make(c)


# The parameters are (shape, size).
UPSAMPLINGS = {
    "one": ((1, 1, 1, 1), (1, 1)),
    "odd": ((2, 3, 5, 7), (10, 21)),
    "smaller": ((1, 1, 9, 8), (5, 2)),
    "empty": ((0, 3, 5, 7), (10, 14)),
}
LARGE_UPSAMPLINGS = {"image": ((2, 3, 128, 128), (256, 512)), "odd": ((3, 5, 31, 17), (62, 68))}


# Norms.

IMAGES = {
    "one": (1, 2, 1, 2),
    "odd": (2, 6, 5, 7),
    "power of two": (1, 4, 8, 8),
    "empty": (0, 6, 5, 7),
}
LARGE_IMAGES = {"image": (8, 16, 28, 28), "odd": (3, 6, 45, 51)}


def build_norm(make: Maker, *shape: int) -> tuple[Any, ...]:
    return make(*shape), make(shape[1]), make(shape[1])


def build_residual(make: Maker, *shape: int) -> tuple[Any, ...]:
    return make(*shape), make(*shape), make(shape[-1])


def add_to_residual(input: Any, residual: Any, weight: Any) -> tuple[torch.Tensor, ...]:
    """Of a copy of the residual, which the kernel writes to."""
    residual = residual.clone()
    return rms_norm_with_residual.rms_norm_with_residual_(input, residual, weight), residual


# Rows.

ROWS = {"one": (1, 1), "odd": (3, 37), "power of two": (2, 128), "long": (2, 201), "empty": (0, 37)}
LARGE_ROWS = {"odd": (1823, 781), "long": (17, 2001), "power of two": (512, 2048)}


def build_cross_entropy(make: Maker, rows: int, classes: int) -> tuple[Any, ...]:
    return make(rows, classes), integers(make, classes, rows)


# The parameters are (lengths, size).
JAGGED = {"one": ((1,), 1), "odd": ((3, 0, 17, 5), 37), "all empty": ((0, 0), 5)}
LARGE_JAGGED = {"odd": ((3, 0, 700, 517), 391), "many": (tuple(range(0, 256, 3)), 128)}


def build_jagged(make: Maker, lengths: tuple[int, ...], size: int) -> tuple[Any, ...]:
    offsets = torch.tensor((0, *lengths), device=make.device).cumsum(0)
    return make(sum(lengths), size), offsets


def softmax_of_jagged(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    nested = torch.nested.nested_tensor_from_jagged(values, offsets)
    return jagged_softmax.jagged_softmax(nested).values()


# Products and attention.

PRODUCTS = {"one": (1, 1, 1), "odd": (33, 17, 35), "empty": (0, 5, 7), "no sum": (3, 0, 5)}
LARGE_PRODUCTS = {"odd": (1001, 777, 515), "square": (1024, 1024, 1024)}


def build_mm(make: Maker, m: int, k: int, n: int) -> tuple[Any, ...]:
    return make(m, k), make(k, n)


def build_rounded_mm(make: Maker, m: int, k: int, n: int) -> tuple[Any, ...]:
    """Factors that eight bits hold, so that no precision changes them."""
    return tuple(factor.copy_(factor.bfloat16()) for factor in build_mm(make, m, k, n))


# The parameters are (batch, heads, new positions, positions in the cache, size of a head).
CACHES = {
    "first": (1, 1, 1, 0, 16),
    "odd": (2, 2, 19, 21, 16),
    "one more": (1, 2, 1, 37, 24),
    "empty": (0, 2, 5, 5, 16),
}
LARGE_CACHES = {"one more": (4, 32, 1, 1023, 128), "odd": (2, 6, 333, 517, 72)}


def build_caches(make: Maker, b: int, h: int, new: int, position: int, d: int) -> tuple[Any, ...]:
    caches = (make(b, h, position + new + 3, d) for _ in range(2))
    return *(make(b, h, new, d) for _ in range(3)), *caches, position


def attend_with_caches(*arguments: Any) -> tuple[torch.Tensor, ...]:
    """With copies of the caches, which the kernel writes to."""
    *new, key_cache, value_cache, position = arguments
    caches = key_cache.clone(), value_cache.clone()
    return attention_with_cache.attention_with_cache(*new, *caches, position), *caches


# The parameters are (batch, query heads, key heads, queries, keys, size of a head).
MASKED_ATTENTIONS = {
    "one": (1, 1, 1, 1, 1, 16),
    "odd": (2, 2, 2, 33, 37, 16),
    "grouped": (1, 4, 2, 19, 40, 24),
    "empty": (0, 2, 2, 5, 5, 16),
}
LARGE_MASKED_ATTENTIONS = {"grouped": (2, 32, 8, 512, 512, 128), "odd": (2, 6, 3, 333, 517, 72)}


def build_masked_attention(
    make: Maker, b: int, h: int, h_keys: int, m: int, n: int, d: int
) -> tuple[Any, ...]:
    is_seen = integers(make, 2, b, 1, m, n).bool()
    is_seen[..., 0] = True  # Each query sees something.
    return make(b, h, m, d), make(b, h_keys, n, d), make(b, h_keys, n, d), is_seen


# Indices.

# The parameters are (rows of the table, columns, how many).
LOOKUPS = {"one": (1, 1, 1), "odd": (7, 37, 5), "many": (3, 8, 40), "empty": (5, 6, 0)}
LARGE_LOOKUPS = {"model": (32_000, 512, 1000), "odd": (1001, 777, 515)}


def build_embedding(make: Maker, rows: int, size: int, count: int) -> tuple[Any, ...]:
    return integers(make, rows, count), make(rows, size)


def build_scatter(make: Maker, rows: int, size: int, count: int) -> tuple[Any, ...]:
    """Small integers, whose sums are exact in all element types and orders."""
    input = make(count, size)
    return make(rows, size).round_(), integers(make, rows, count), input.clamp_(-2, 2).round_()


def scattered(output: torch.Tensor, index: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    """To a copy of the output, which the kernel writes to."""
    return scatter_add.scatter_add_(output.clone(), index, input)


# The parameters are (how many, bins).
HISTOGRAMS = {"one": (1, 1), "odd": (301, 37), "rare": (3, 300), "empty": (0, 5)}
LARGE_HISTOGRAMS = {"odd": (100_001, 37), "many": (1_000_000, 1000)}


def build_histogram(make: Maker, count: int, bins: int) -> tuple[Any, ...]:
    """Some of the numbers are in no bin."""
    return integers(make, bins + 2, count) - 1, bins


# Elements.

SHAPES = {"one": (1, 1), "odd": (5, 37), "several blocks": (3, 7, 33), "empty": (0, 5)}
LARGE_SHAPES = {"odd": (1823, 781), "several blocks": (7, 333, 517)}


def build_addcmul(make: Maker, *shape: int) -> tuple[Any, ...]:
    """A divisor that is not small."""
    second = make(*shape)
    return make(*shape), make(*shape), second.add_(second.sign().add_(0.5))
