"""Programs by hand whose derived gradients are compared with autograd's of the same in PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from tests.derivatives.operators import blocks, made


@dataclass(frozen=True)
class Program:
    """A program, and what it computes.

    Attributes:
        reference: the same in PyTorch.
        inputs: tensors, by which it is derived, and numbers.
        count: of outputs, each like the first input.
        is_twice: whether second derivatives and forward mode are compared too.
        is_interpreted: whether Triton's interpreter knows what it calls.
    """

    application: Any
    reference: Callable[..., Any]
    inputs: tuple[Any, ...]
    arrangement: Any = blocks
    count: int = 1
    is_twice: bool = True
    is_interpreted: bool = True

    def check(self) -> None:
        """Compares gradients, and those of gradients."""
        given = [each.ndim if isinstance(each, torch.Tensor) else 0 for each in self.inputs]
        ranks = (*given, *(self.inputs[0].ndim for _ in range(self.count)))
        code = self.application.__code__
        names = code.co_varnames[: code.co_argcount]
        outputs = {name: like(names[0]) for name in names[len(given) :]}
        operator = made(self.application, self.arrangement, tuple(map(Tensor, ranks)), outputs)
        ours, theirs = self.gradients(operator), self.gradients(self.reference)
        for one, other in zip(ours, theirs):
            torch.testing.assert_close(one, other, equal_nan=True)

    def gradients(self, function: Callable[..., Any]) -> list[torch.Tensor]:
        """Those of the inputs, theirs, and those of the outputs along a direction."""
        inputs = [
            each.clone().requires_grad_() if isinstance(each, torch.Tensor) else each
            for each in self.inputs
        ]
        tensors = [each for each in inputs if isinstance(each, torch.Tensor)]
        found = function(*inputs)
        outputs = found if isinstance(found, tuple) else (found,)
        weights = [_weights(each, place) for place, each in enumerate(outputs)]
        first = _grad(outputs, tensors, weights, create_graph=self.is_twice)
        if not self.is_twice:
            return first
        weights = [_weights(each, place) for place, each in enumerate(first)]
        second = _grad(first, tensors, weights)

        def of_tensors(*values: torch.Tensor) -> Any:
            left = iter(values)
            return function(*(next(left) if isinstance(e, torch.Tensor) else e for e in inputs))

        points = tuple(each.detach() for each in tensors)
        directions = tuple(_weights(each, place) for place, each in enumerate(points))
        _, along = torch.func.jvp(of_tensors, points, directions)
        return [*first, *second, *(along if isinstance(along, tuple) else (along,))]


def _weights(like: torch.Tensor, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(like.shape, dtype=like.dtype, generator=generator) + 0.5


def _grad(outputs: Any, inputs: Any, weights: Any, **options: Any) -> list[torch.Tensor]:
    pairs = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    if not pairs:
        return [torch.zeros_like(each) for each in inputs]
    outputs, weights = zip(*pairs)
    found = torch.autograd.grad(outputs, inputs, weights, allow_unused=True, **options)
    return [torch.zeros_like(i) if g is None else g for i, g in zip(inputs, found)]


def numbers(*shape: int, seed: int = 1, low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(shape, dtype=torch.float64, generator=generator) * (high - low) + low


def by_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a function gives of blocks of sixteen elements, as `blocks` has them."""

    def whole(*values: Any) -> torch.Tensor:
        parts = zip(*(each.split(16) for each in values))
        return torch.cat([function(*each) for each in parts])

    return whole


def threes_of_four(*tensors: Any) -> tuple[Any, ...]:
    return tuple(tensor.tile((4,)).tile((3,)) for tensor in tensors)


def fours(*tensors: Any) -> tuple[Any, ...]:
    return tuple(tensor.tile((4, 4)) for tensor in tensors)


def whole(*tensors: Any) -> tuple[Any, ...]:
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def squares_of_16(*tensors: Any) -> tuple[Any, ...]:
    return tuple(tensor.tile((16, 16)) for tensor in tensors)


def tiles_of_four(*tensors: Any) -> tuple[Any, ...]:
    return tuple(tensor.tile((4,)).tile((-1,)) for tensor in tensors)


X, Y, POSITIVE = numbers(21), numbers(21, seed=2), numbers(21, seed=3, low=0.2)
#: Zeros where `X` has none, and a few more.
X_0, Y_0, POSITIVE_0 = X.clone(), Y.clone(), POSITIVE.clone()
X_0[:4] = Y_0[2:6] = POSITIVE_0[:5] = 0
EXPONENTS = torch.tensor([0.0, 1.0, 2.0, 0.5, 3.0] + [1.5] * 16, dtype=torch.float64)
MATRIX, SQUARE = numbers(5, 7), numbers(4, 4)
SOME, TOKENS = numbers(5, 7, seed=4), numbers(12, 9)


# Methods, and what chooses.


def methods(x, output):
    output = x.sum() * x.sigmoid() + x.to(ntl.float64).flip()  # noqa: F841


def methods_of_math(x, output):
    output = x.exp() * x.abs()  # noqa: F841


def the_sum_as_a_number(x, output):
    output = ntl.sum(x).item() * x  # noqa: F841


def one_of_numbers(x, y, output):
    output = (ntl.sum(x * 0) or ntl.max(y) and ntl.sum(x)) * y  # noqa: F841


def truth_of_tiles(x, y, output):
    output = (x > 0 or y > 0) * x + (x and y) * y  # noqa: F841


def of_truth(x, y):
    return ((x > 0) | (y > 0)) * x + ((x != 0) & (y != 0)) * y


def way_not_taken(x, factor, output):
    output = ntl.sqrt(x) if factor > 0 else x * factor  # noqa: F841


# Rules of one element.


def clamped(x, low, high, output):
    output = ntl.clamp(x, low, high)  # noqa: F841


def clamped_by_sums(x, output):
    output = ntl.clamp(x, ntl.min(x) + 0.5, max=ntl.max(x) / 2)  # noqa: F841


def power(x, y, output):
    output = ntl.libdevice.pow(x, y)  # noqa: F841


def power_of_zero(y, output):
    output = ntl.libdevice.pow(0.0, y)  # noqa: F841


def angle(x, y, output):
    output = ntl.libdevice.atan2(x, y)  # noqa: F841


# Infinities.


LOWEST = -math.inf


def softmax_of_some(x, y, output):
    kept = ntl.where(y > 0, x, float("-inf"))
    value = ntl.exp(kept - ntl.max(kept, axis=1)[:, None])
    output = value / ntl.sum(value, axis=1)[:, None]  # noqa: F841


def of_softmax_of_some(x, y):
    return x.masked_fill(y <= 0, LOWEST).softmax(1) + y * 0


def causal_attention(q, k, v, output):
    scores = ntl.dot(q, ntl.trans(k))
    rows, columns = q.offsets(0), k.offsets(0)
    scores = ntl.where(columns[None, :] <= rows[:, None], scores, LOWEST)
    value = ntl.exp(scores - ntl.max(scores, axis=1)[:, None])
    output = ntl.dot(value / ntl.sum(value, axis=1)[:, None], v)  # noqa: F841


def of_causal_attention(q, k, v):
    above = torch.ones(len(q), len(k), dtype=torch.bool).triu(1)
    return (q @ k.T).masked_fill(above, LOWEST).softmax(1) @ v


def clamped_on_one_side(x, output):
    output = ntl.clamp(x, LOWEST, 1.0) * ntl.clamp(x, -1.0, math.inf)  # noqa: F841


def the_largest_yet(x, output):
    most = ntl.full((4,), LOWEST, dtype=ntl.float64)
    most = ntl.maximum(most, ntl.max(x, axis=1))
    output = ntl.exp(x - most[:, None]) * x  # noqa: F841


# What reverses.


def reversed_twice(x, output):
    output = ntl.flip(x) * 2.0  # noqa: F841


def reversed_product(x, output):
    output = ntl.flip(x, 0) * x  # noqa: F841


def reversed_columns(x, output):
    output = ntl.flip(x, 1) * x + ntl.flip(x, dim=0)  # noqa: F841


# Maxima that are taken away, of rows, from what is summed along columns.


def maxima_of_rows(x, output):
    value = ntl.exp(x - ntl.max(x, axis=1)[:, None])
    output = value / ntl.sum(value, axis=0)[None, :]  # noqa: F841


def of_maxima_of_rows(x):
    value = torch.exp(x - x.amax(1)[:, None])
    return value / value.sum(0)


def maxima_of_both(x, output):
    value = x - ntl.max(x, axis=1, keep_dims=True)
    output = value - ntl.max(value, axis=0, keep_dims=True)  # noqa: F841


def of_maxima_of_both(x):
    value = x - x.amax(1, keepdim=True)
    return value - value.amax(0, keepdim=True)


def maxima_turned(x, output):
    value = ntl.exp(x - ntl.max(x, axis=1)[:, None])
    moved = ntl.flip(value, 0) + ntl.trans(value) + ntl.cumsum(value, 0)
    output = value / (moved + ntl.reshape(ntl.reshape(value, (2, 8)), (4, 4)))  # noqa: F841


def of_maxima_turned(x):
    value = torch.exp(x - x.amax(1)[:, None])
    return value / (value.flip(0) + value.T + value.cumsum(0) + value)


def maxima_elsewhere(x, output):
    most = ntl.max(x, axis=1)
    value = ntl.exp(x - most[:, None])
    output = ntl.log(value) + most[None, :] + value / ntl.sum(value, axis=1)[None, :]  # noqa: F841


def of_maxima_elsewhere(x):
    value = torch.exp(x - x.amax(1)[:, None])
    return torch.log(value) + x.amax(1)[None] + value / value.sum(1)[None]


# Loops.


def normalized(x, output):
    mean = ntl.zeros((4,), ntl.float64)
    for k in range(x.shape[0]):
        mean += x[k] / 3
    variance = ntl.zeros((4,), ntl.float64)
    for k in range(x.shape[0]):
        variance += (x[k] - mean) * (x[k] - mean)
    for k in range(x.shape[0]):
        output[k] = (x[k] - mean) / ntl.sqrt(variance + 1.0)


def of_normalized(x):
    centered = x.view(3, 4) - x.view(3, 4).mean(0)
    return (centered / torch.sqrt((centered * centered).sum(0) + 1)).flatten()


def added_to_what_was_stored(x, output):
    for k in range(x.shape[0]):
        output[k] = x[k] * 2
    for j in range(x.shape[0]):
        output[j] += x[j] * x[j]


# Loops that are unrolled, where some rounds have no element.


def summed_of_tiles(x, output):
    total = 0.0
    for k in ntl.static_range(3):
        total += ntl.exp(x[k])
    for k in ntl.static_range(3):
        output[k] = x[k] / total


def of_summed_tiles(x):
    tiles = torch.nn.functional.pad(x, (0, 3)).view(2, 3, 4)
    exists = torch.arange(24).view(2, 3, 4) < len(x)
    return (tiles / (tiles.exp() * exists).sum(1)[:, None]).flatten()[: len(x)]


def two_sums_of_columns(x, output):
    total = x[:, 0]
    squares = ntl.full((4,), 1.0, dtype=ntl.float64)
    for k in ntl.static_range(3):
        value = ntl.exp(x[:, k])
        total += value
        squares = x[:, k] * x[:, k] + squares - value
        total -= x[:, k]
    output = x * total[:, None] / (squares * squares + 1)[:, None]  # noqa: F841


def of_two_sums_of_columns(x):
    total = x[:, :1] + (x.exp() - x).sum(1, keepdim=True)
    squares = 1 + (x * x - x.exp()).sum(1, keepdim=True)
    return x * total / (squares * squares + 1)


def two_outputs(x, y, output, other):
    output = x * y
    other = x * y * x  # noqa: F841


# A last tile that is short, beside one that is not.


def beside_a_shared_tile(x, w, output):
    output = ntl.sum(x + w * w) * x  # noqa: F841


def with_a_shared_tile(x, w, output):
    shared = w.tile((-1,)).expand(((x.shape[0] + 3) // 4,))
    return x.tile((4,)), shared, output.tile((4,))


def of_a_shared_tile(x, w):
    return torch.cat([part * (part + w[: len(part)] ** 2).sum() for part in x.split(4)])


_AT_0: dict[str, Any] = {"is_twice": False, "is_interpreted": False}

PROGRAMS: dict[str, Program] = {
    "methods": Program(methods, by_blocks(lambda x: x.sum() * x.sigmoid() + x.flip(0)), (X,)),
    "methods of math": Program(
        methods_of_math, lambda x: x.exp() * x.abs(), (X,), is_interpreted=False
    ),
    "item": Program(the_sum_as_a_number, by_blocks(lambda x: x.sum() * x), (X,)),
    "or of numbers": Program(one_of_numbers, by_blocks(lambda x, y: x.sum() * y), (X, Y)),
    "or of tiles": Program(truth_of_tiles, of_truth, (X_0, Y_0)),
    "a way not taken": Program(
        way_not_taken, lambda x, n: torch.sqrt(x) if n > 0 else x * n, (X_0, -3.0), is_twice=False
    ),
    "clamp": Program(clamped, torch.clamp, (X, Y - 1, Y + 1)),
    "clamp, crossed": Program(clamped, torch.clamp, (X, Y + 1, Y - 0.5)),
    "clamp by sums": Program(
        clamped_by_sums, by_blocks(lambda x: x.clamp(x.amin() + 0.5, x.amax() / 2)), (X,)
    ),
    "pow": Program(power, torch.pow, (POSITIVE, Y), is_interpreted=False),
    "pow of 0": Program(power, torch.pow, (POSITIVE_0, EXPONENTS), **_AT_0),
    "pow of the number 0": Program(
        power_of_zero, lambda y: torch.pow(torch.zeros_like(y), y), (POSITIVE,), **_AT_0
    ),
    "atan2 of 0": Program(angle, torch.atan2, (X_0, Y_0), **_AT_0),
    "softmax of some": Program(softmax_of_some, of_softmax_of_some, (SOME, MATRIX), whole),
    "causal attention": Program(
        causal_attention, of_causal_attention, (TOKENS, TOKENS + 1, TOKENS - 1), squares_of_16
    ),
    "clamp by infinities": Program(
        clamped_on_one_side, lambda x: x.clamp(max=1) * x.clamp(min=-1), (X,)
    ),
    "a maximum begun by infinity": Program(
        the_largest_yet, lambda x: torch.exp(x - x.amax(1)[:, None]) * x, (SQUARE,), whole
    ),
    "flip": Program(reversed_twice, by_blocks(lambda x: x.flip(0) * 2), (X,)),
    "flip of whole tiles": Program(
        reversed_twice, by_blocks(lambda x: x.flip(0) * 2), (numbers(32),)
    ),
    "flip, and a product": Program(reversed_product, by_blocks(lambda x: x.flip(0) * x), (X,)),
    "flip of a matrix": Program(
        reversed_columns, lambda x: x.flip(1) * x + x.flip(0), (MATRIX,), whole
    ),
    "maxima of rows": Program(maxima_of_rows, of_maxima_of_rows, (MATRIX,), whole),
    "maxima of both": Program(maxima_of_both, of_maxima_of_both, (MATRIX,), whole),
    "maxima turned": Program(maxima_turned, of_maxima_turned, (SQUARE,), whole),
    "maxima elsewhere": Program(maxima_elsewhere, of_maxima_elsewhere, (SQUARE,), whole),
    "three loops": Program(normalized, of_normalized, (numbers(12),), tiles_of_four),
    "a loop adds": Program(
        added_to_what_was_stored, lambda x: x * 2 + x * x, (numbers(12),), tiles_of_four
    ),
    "sums of tiles, unrolled": Program(
        summed_of_tiles, of_summed_tiles, (numbers(21),), threes_of_four
    ),
    "sums of columns, unrolled": Program(
        two_sums_of_columns, of_two_sums_of_columns, (numbers(5, 3),), fours
    ),
    "a last tile beside a shared one": Program(
        beside_a_shared_tile, of_a_shared_tile, (numbers(10), numbers(4)), with_a_shared_tile
    ),
    "two outputs": Program(two_outputs, lambda x, y: (x * y, x * y * x), (X, Y), count=2),
}
