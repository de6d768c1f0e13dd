"""LANGUAGE.md, "Padding": whatever a tile goes through, what it does not have takes no part.

A case is an application, its arguments before the last one, and what the last one holds afterwards, by
plain NumPy that knows nothing of tiles. Sizes are none of two's powers. Run in Triton's interpreter
too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.padded_loops import FIVE, MATRIX, case, whole
from tests.contract.padded_places import CASES

# What is made.


@case(whole, FIVE, expected=[4 * 3])
def sum_of_full(x, y):
    y = ntl.sum(ntl.full((3,), 4, ntl.float32)) + 0 * ntl.sum(x)


@case(whole, FIVE, expected=[-2])
def greatest_of_full(x, y):
    y = ntl.max(ntl.full(x.shape, -2.0, ntl.float32))


@case(whole, FIVE, expected=[5])
def sum_of_zeros_and_one(x, y):
    y = ntl.sum(ntl.zeros(x.shape, ntl.float32) + 1)


@case(whole, FIVE, expected=[5])
def count_of_like(x, y):
    y = ntl.sum(ntl.zeros_like(x) + 1)


@case(whole, FIVE, expected=[-2 * 5])
def sum_of_a_number_broadcast(x, y):
    y = ntl.sum(ntl.broadcast_to(ntl.sum(x) * 0 - 2, x.shape))


def one_more(value):
    return value + 1


def one_more_and_less(value, other):
    return value + 1, other - 1


@case(whole, FIVE, expected=[sum(FIVE) + 5])
def sum_of_what_a_function_maps(x, y):
    y = ntl.sum(ntl.map_elementwise(one_more, x))


@case(whole, FIVE, expected=[sum(FIVE) + 5 - 10 * (sum(FIVE) - 5)])
def sums_of_what_a_function_maps(x, y):
    more, less = ntl.map_elementwise(one_more_and_less, x, x)
    y = ntl.sum(more) - 10 * ntl.sum(less)


# Moved.


@case(whole, FIVE, expected=FIVE[::-1])
def flip(x, y):
    y = ntl.flip(x)


@case(whole, MATRIX, expected=MATRIX[::-1])
def flip_of_rows(x, y):
    y = ntl.flip(x, 0)


@case(whole, FIVE, expected=[FIVE.max()])
def greatest_of_flipped(x, y):
    y = ntl.max(ntl.flip(x))


@case(whole, FIVE, expected=np.sort(FIVE))
def sort(x, y):
    y = ntl.sort(x)


@case(whole, FIVE, expected=[FIVE.max(), np.exp(FIVE).sum(), FIVE.min()])
def reductions_of_sorted(x, y):
    ordered = ntl.sort(x)
    downwards = ntl.sort(x, descending=True)
    places = ntl.arange(0, 4)
    sums = ntl.where(places == 1, ntl.sum(ntl.exp(ordered)), ntl.min(downwards))
    y = ntl.where(places == 0, ntl.max(ordered), sums)


@case(whole, FIVE, expected=[np.exp(FIVE[::-1]).sum() + FIVE.max()])
def flip_of_sorted(x, y):
    y = ntl.sum(ntl.exp(ntl.flip(ntl.sort(x)))) + ntl.max(ntl.flip(x))


@case(whole, MATRIX, expected=[MATRIX.max(), np.exp(MATRIX).sum()])
def reshaped(x, y):
    v = x
    v = ntl.reshape(v, (v.shape[0] * v.shape[1],))
    y = ntl.where(ntl.arange(0, 2) == 0, ntl.max(v), ntl.sum(ntl.exp(v)))


@case(whole, MATRIX, expected=[MATRIX.max(), np.exp(MATRIX).sum()])
def raveled(x, y):
    v = ntl.ravel(x)
    y = ntl.where(ntl.arange(0, 2) == 0, ntl.max(v), ntl.sum(ntl.exp(v)))


@case(whole, FIVE, FIVE - 2, expected=[FIVE.max(), np.exp(FIVE).sum() + np.exp(FIVE - 2).sum()])
def joined(x, z, y):
    v = ntl.join(x, z)
    y = ntl.where(ntl.arange(0, 2) == 0, ntl.max(v), ntl.sum(ntl.exp(v)))


@case(whole, FIVE, FIVE - 2, expected=np.stack([FIVE, FIVE - 2], -1).ravel())
def interleaved(x, z, y):
    y = ntl.interleave(x, z)


@case(whole, FIVE, FIVE - 2, expected=[(FIVE - 2).max() + FIVE.max()])
def greatest_of_interleaved(x, z, y):
    y = ntl.max(ntl.interleave(x, z)) + ntl.max(z)


@case(whole, FIVE, FIVE - 2, expected=[np.exp(FIVE).sum() + np.exp(FIVE - 2).sum()])
def concatenated(x, z, y):
    y = ntl.sum(ntl.exp(ntl.cat(x, z, can_reorder=True)))


@case(whole, FIVE, expected=[np.exp(FIVE).sum()])
def gathered(x, y):
    places = 7 - ntl.arange(0, 8)
    y = ntl.sum(ntl.exp(ntl.gather(x, places, 0)))


@case(whole, FIVE, expected=[FIVE.max()])
def greatest_of_gathered(x, y):
    v = x
    places = v.shape[0] - 1 - ntl.arange(0, v.shape[0])
    y = ntl.max(ntl.gather(v, places, 0), axis=0, keep_dims=True)


@case(whole, FIVE, FIVE - 2, expected=[np.exp(FIVE - 2).sum()])
def split_again(x, z, y):
    first, second = ntl.split(ntl.join(x, z))
    y = ntl.sum(ntl.exp(second))


@case(whole, MATRIX, expected=[np.exp(MATRIX).sum(), MATRIX.max()])
def transposed(x, y):
    v = ntl.trans(x)
    y = ntl.where(ntl.arange(0, 2) == 0, ntl.sum(ntl.exp(v)), ntl.max(ntl.permute(v, 1, 0)))


@case(whole, FIVE, MATRIX, expected=[np.exp(MATRIX + FIVE).sum()])
def broadcast_together(x, z, y):
    left, right = ntl.broadcast(x[None, :], z)
    y = ntl.sum(ntl.exp(left + right))


@case(whole, FIVE, expected=[np.where(FIVE < -2, FIVE, -9).max()])
def chosen(x, y):
    y = ntl.max(ntl.where(x < -2, x, -9.0))


# Products.


TALL = np.linspace(-1, 1, 5 * 20, dtype=np.float32).reshape(5, 20)
WIDE = np.linspace(1, -2, 20 * 6, dtype=np.float32).reshape(20, 6)


def softmax_of(x):
    exponentials = np.exp(x - x.max(1, keepdims=True))
    return exponentials / exponentials.sum(1, keepdims=True)


@case(whole, TALL, WIDE, expected=softmax_of(TALL @ WIDE))
def softmax_of_a_product(x, z, y):
    scores = ntl.dot(x, z)
    scores = ntl.exp(scores - ntl.max(scores, axis=1)[:, None])
    y = scores / ntl.sum(scores, axis=1)[:, None]


@case(whole, TALL, WIDE, expected=[(TALL @ WIDE - 50).max()])
def greatest_of_a_product(x, z, y):
    y = ntl.max(ntl.dot(x, z) - 50)


# Branches, helpers.


@case(whole, FIVE, 1, expected=[np.exp(FIVE).sum()])
def chosen_by_an_expression(x, n, y):
    y = ntl.sum(ntl.exp(x) if n > 0 else ntl.zeros(x.shape, ntl.float32))


def exponential_or_nothing(x, n):
    return ntl.exp(x) if n > 0 else ntl.zeros(x.shape, ntl.float32)


@case(whole, FIVE, 1, expected=[np.exp(FIVE).sum()])
def chosen_in_a_helper(x, n, y):
    y = ntl.sum(exponential_or_nothing(x, n))


# Atomics.


@case(whole, FIVE, np.array([1, 0, 1, 2, 1], np.int32), expected=[1, 3, 1, 0])
def atomic_counts(x, where, y):
    ntl.atomic_add(y.data_ptr() + where, 1.0 + 0 * x)


@case(whole, FIVE, expected=[np.exp(FIVE).sum()])
def atomic_sum(x, y):
    v = ntl.exp(x)
    ntl.atomic_add(y.data_ptr() + ntl.arange(0, v.shape[0]) * 0, v)


# What a random hunt found.

ROW = np.arange(1, 17, dtype=np.float32)[None]


@case(lambda *tensors: [t.tile((1, 16)) for t in tensors], ROW, expected=ROW[:, ::-1])
def flip_of_full_rows(x, y):
    y = ntl.flip(x)


@case(whole, FIVE, 1, expected=FIVE)
def flip_of_one_element(x, n, y):
    one = ntl.full((1,), 3.0, ntl.float32)
    for k in range(n):
        one = ntl.flip(one * ntl.sum(x))
    y = x + 0 * one


CUBE = np.array([[[1.75, 2.0]], [[2.1875, 1.25]]], np.float32)


GREATEST = CUBE.max(2, keepdims=True)


@case(lambda x, n, y: (x.tile((4,) * 3), n, y.tile((4, 4, 1))), CUBE, 2, expected=GREATEST)
def least_of_what_only_some_rounds_have(x, n, y):
    other = ntl.full(x.shape, 3.0, ntl.float32)
    least = x
    for k in range(n):
        least = ntl.minimum(least, ntl.cumprod(ntl.min(x, axis=-1), axis=0, reverse=True) + 1)
    y = ntl.max(least if n > 1 else other, axis=2, keep_dims=True)


def three_blocks(x, y):
    return x.tile((8,)).tile((3,)), y.tile((8,)).tile((3,))


@case(three_blocks, FIVE, expected=[-2] * 5)
def logarithm_of_what_is_not_there(x, y):
    beyond = y[2]
    total = ntl.full(x.dtype.shape, -2.0, ntl.float32)
    for k in range(x.shape[0]):
        total -= ntl.log2(beyond)
    for k in range(y.shape[0]):
        y[k] = total


@case(whole, FIVE, 2, expected=(FIVE < 0) | ((1 < FIVE) & (FIVE <= 2)))
def one_of_two_comparisons(x, n, y):
    y = x < 0 or 1 < x + 0 * n <= n


@case(whole, FIVE, 2, expected=np.full(5, 3))
def both_of_two_ranks(x, n, y):
    rows = ntl.broadcast_to(x[None, :], (4, x.shape[0]))
    y = ntl.sum(((x - 1 < x + 0 <= x + n) and rows == x).to(ntl.float32), axis=0) - 1


@case(whole, FIVE, 2, expected=[0] * 5)
def quotient_of_a_bounded_tile(x, n, y):
    y = 1 // ntl.maximum(ntl.full(x.shape, 1.0, ntl.float32), n)


@case(whole, FIVE, expected=2 * FIVE + 1)
def shaped_as_a_value(x, y):
    v = x + 1
    halves = ntl.reshape(2 * v, 2, v.shape[0] // 2)
    y = ntl.reshape(halves - 1, v.shape)


@case(whole, FIVE, expected=FIVE + 1)
def shaped_by_the_last_size(x, y):
    v = x + 1
    y = ntl.reshape(ntl.reshape(v, v.shape[-1] // 2, 2), v.shape)


@case(whole, FIVE, expected=2 * FIVE + 2)
def shaped_by_names(x, y):
    v = x + 1
    shape = v.shape
    half: ntl.constexpr = v.shape[0] // 2
    v = ntl.reshape(v, 2, half)
    rows, columns = v.shape
    v = ntl.reshape(v, columns, rows)
    both = [each.shape[-1] for each in (x, v)]
    v = 2 * ntl.reshape(v, rows * half)
    y = ntl.reshape(v, shape) + ntl.reshape(ntl.zeros((half, both[1]), ntl.float32), shape)


@case(whole, FIVE, expected=4 * (FIVE + 1) + 3 * 8)
def shaped_by_names_in_rounds(x, y):
    v = x + 1
    for _ in range(2):
        count = v.shape[0]
        v = ntl.reshape(ntl.reshape(v, 2, count // 2), count) * 2 + count
    y = v


ZEROED = {"atomic_counts", "atomic_sum"}


def made(name):
    """The kernel of a case, its arguments, and what the last one is to hold."""
    chosen = CASES[name]
    expected = np.asarray(chosen.expected, np.float32)
    output = torch.full(expected.shape, 0.0 if name in ZEROED else 77.0)
    given = [torch.tensor(a) if isinstance(a, np.ndarray) else a for a in chosen.arguments]
    arguments = [*given, output]
    symbolic = tuple(
        Tensor(a.ndim) if isinstance(a, torch.Tensor) else Tensor(0) for a in arguments
    )
    kernel = ninetoothed.make(chosen.arrangement, chosen.application, symbolic)
    return kernel, arguments, expected


@pytest.mark.parametrize("name", CASES)
def test_padding_takes_no_part(name):
    kernel, arguments, expected = made(name)
    kernel(*arguments)
    np.testing.assert_allclose(arguments[-1].cpu().numpy(), expected, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_triton_compiles_it(name):
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")
    kernel, arguments, _ = made(name)
    assert kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]
