"""Cases of LANGUAGE.md, "Padding": what they are, and those of loops; see `test_validity`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import ninetoothed.language as ntl


@dataclass(frozen=True)
class Case:
    application: Callable[..., Any]
    arrangement: Callable[..., Any]
    arguments: tuple[Any, ...]
    expected: Any


CASES: dict[str, Case] = {}


def case(arrangement, *arguments, expected):
    def register(application):
        CASES[application.__name__] = Case(application, arrangement, arguments, expected)
        return application

    return register


def whole(*tensors):
    """Each tensor as one tile; scalars as they are."""
    tiled = (t.tile((-1,) * t.ndim) if t.ndim else t for t in tensors)
    return tuple(t.squeeze(0) if t.ndim == 2 else t for t in tiled)


def blocks_of(size):
    """The first vector as a row of blocks in one program; the rest whole."""

    def arrangement(x, *rest):
        return (x.tile((size,)).tile((-1,)), *whole(*rest))

    return arrangement


ONE = np.zeros(1, np.float32)
FIVE = np.array([-3, -1, -4, -1.5, -5], np.float32)
SEVEN = np.linspace(-9, -6, 7, dtype=np.float32)
NINE = np.linspace(-2, -1, 9, dtype=np.float32)
SIXTEEN = np.linspace(-3, -0.5, 16, dtype=np.float32)
MATRIX = -1 - np.arange(15, dtype=np.float32).reshape(3, 5) / 7


# Loops.


@case(blocks_of(4), FIVE, expected=[-7 + 1 - 2 + 0.5])
def sum_of_what_a_round_doubled_before_it_added(x, y):
    total = ntl.full((4,), 1.0, ntl.float32)
    for k in range(x.shape[0]):
        total = total * 2
        total += x[k]
    y = ntl.sum(total)


@case(blocks_of(4), FIVE, expected=[-7 + 1 - 2 + 0.5])
def sum_of_what_a_branch_of_a_round_doubled(x, y):
    total = ntl.full((4,), 1.0, ntl.float32)
    for k in range(x.shape[0]):
        if ntl.sum(x[k]) < 0:
            total *= 2
        total = x[k] + total
    y = ntl.sum(total)


@case(blocks_of(4), FIVE, expected=[-5 - 1 - 4 - 1.5])
def sum_of_what_moved_by_an_index_that_a_round_raises(x, y):
    last = ntl.zeros((4,), ntl.float32)
    k = 0
    while k < x.shape[0]:
        last = ntl.ravel(x[k][:, None])
        k += 1
    y = ntl.sum(last)


@case(blocks_of(4), SIXTEEN, FIVE, expected=[2 + 2 + 2 + 2])
def places_of_what_met_a_tile_by_an_index_that_a_round_raises(x, z, y):
    total = 0
    k = 0
    while k < x.shape[0]:
        total += ntl.argmax(z[ntl.arange(0, 4) - 1] + x[k], axis=0)
        k += 1
    y = total


def _before_the_first(x, y):
    return x.pad(((2, 4),)).tile((7,)), y.tile((1,))


@case(_before_the_first, ONE, expected=[2])
def least_of_what_an_element_that_is_not_there_was_added_to(x, y):
    total = ntl.full((7,), 2.0, ntl.float32)
    for _ in range(6):
        total = total + ntl.exp(x[..., 0])
    y = ntl.min(total, axis=-1, keep_dims=True)


@case(_before_the_first, ONE, expected=[2])
def least_of_what_an_element_that_is_not_there_was_added_to_in_a_branch(x, y):
    total = ntl.full((7,), 2.0, ntl.float32)
    for k in range(6):
        if ntl.max(total, axis=0) > k - 9:
            total = total + ntl.exp(x[..., 0])
    y = ntl.min(total, axis=-1, keep_dims=True)


@case(_before_the_first, ONE, expected=[2 + 3])
def greatest_of_what_an_element_that_is_there_was_added_to(x, y):
    total = ntl.full((7,), 2.0, ntl.float32)
    for k in range(4):
        total = total + ntl.exp(x[..., k]) * (k + 1)
    y = ntl.max(total, axis=-1, keep_dims=True)


@case(blocks_of(4), FIVE, expected=[-3 + 2 - 1 + 1.5])
def sum_of_what_a_loop_in_a_round_raised(x, y):
    total = ntl.full((4,), 1.0, ntl.float32)
    for k in range(x.shape[0]):
        for _ in range(x.shape[0]):
            total += 1
        total += x[k]
    y = ntl.sum(total)


def both_in_pairs_of_blocks(x, y):
    return x.tile((4,)).tile((2,)), y.tile((4,)).tile((2,))


@case(both_in_pairs_of_blocks, FIVE, expected=[1 - 12, 1, 1, 1, 1 - 12])
def rounds_add_one_block_and_others_are_stored(x, y):
    total = ntl.full((4,), 1.0, ntl.float32)
    for _ in range(3):
        total += x[1] + 1
    for k in range(y.shape[0]):
        y[k] = total


@case(blocks_of(7), np.full(14, -5, np.float32), expected=[-5])
def maximum_of_blocks_of_seven(x, y):
    best = ntl.full((7,), float("-inf"), ntl.float32)
    for k in range(x.shape[0]):
        best = ntl.maximum(best, x[k])
    y = ntl.max(best)


@case(blocks_of(4), NINE, expected=[np.exp(NINE).sum()])
def sum_of_exponentials(x, y):
    total = ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        total += ntl.exp(x[k])
    y = ntl.sum(total)


@case(
    blocks_of(4),
    NINE,
    expected=np.exp(NINE)[[8, 1, 2, 3]]
    + [0, 0, 0, 0]
    + np.array([np.exp(NINE)[[0, 4]].sum(), np.exp(NINE)[5], np.exp(NINE)[6], np.exp(NINE)[7]]),
)
def sums_of_exponentials_stored(x, y):
    total = ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        total += ntl.exp(x[k])
    y = total


@case(blocks_of(4), NINE, expected=[NINE[8], NINE[5], NINE[6], NINE[7]])
def the_last_of_each_lane(x, y):
    last = ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        last = x[k]
    y = last


@case(blocks_of(4), NINE, expected=[NINE.min()])
def least_in_a_while(x, y):
    least, k = ntl.full((4,), 100.0, ntl.float32), 0
    while k < x.shape[0]:
        least = ntl.minimum(least, x[k])
        k += 1
    y = ntl.min(least)


@case(blocks_of(4), NINE, 3, expected=[(3 * np.exp(NINE)).sum()])
def sum_in_two_loops(x, n, y):
    total = ntl.zeros((4,), ntl.float32)
    for _ in range(n):
        for k in range(x.shape[0]):
            total += ntl.exp(x[k])
    y = ntl.sum(total)


@case(blocks_of(4), NINE, expected=[np.exp(NINE).sum() / 9])
def several_accumulators(x, y):
    total, count = ntl.zeros((4,), ntl.float32), ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        total, count = total + ntl.exp(x[k]), count + (x[k] * 0 + 1)
    y = ntl.sum(total) / ntl.sum(count)


@case(blocks_of(4), NINE, expected=[np.exp(NINE)[NINE < -1.2].sum()])
def accumulated_under_a_condition(x, y):
    total = ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        value = ntl.exp(x[k])
        total = ntl.where(x[k] < -1.2, total + value, total)
    y = ntl.sum(total)


@case(whole, FIVE, 3, expected=[(FIVE + 3 * np.arange(5)).sum()])
def positions_added_in_a_loop(x, n, y):
    v = x
    for _ in range(n):
        v = v + ntl.arange(0, v.shape[0])
    y = ntl.sum(v)


@case(whole, MATRIX, MATRIX[0], 2, expected=[(MATRIX * MATRIX[0] ** 2 + 2).sum()])
def scaled_in_a_loop(x, w, n, y):
    v = x
    for _ in range(n):
        v = v * w[None, :]
    y = ntl.sum(v + 2)


@case(blocks_of(4), NINE, 1, expected=[np.exp(NINE).sum()])
def accumulated_in_a_branch(x, n, y):
    total = ntl.zeros((4,), ntl.float32)
    for k in range(x.shape[0]):
        if n > 0:
            total += ntl.exp(x[k])
    y = ntl.sum(total)


@case(whole, FIVE, SEVEN, 2, expected=[SEVEN.max()])
def replaced_in_a_loop(x, z, n, y):
    v = x
    for _ in range(n):
        v = z
    y = ntl.max(v)


@case(whole, FIVE, SEVEN, 0, expected=[FIVE.max(), np.exp(FIVE).sum()])
def replaced_in_a_loop_without_a_round(x, z, n, y):
    v, w = x, ntl.exp(x)
    for _ in range(n):
        v, w = z, z - 1
    y = ntl.where(ntl.arange(0, 2) == 0, ntl.max(v), ntl.sum(w))


@case(whole, SEVEN, FIVE, 1, expected=[-3 + -1 + -4 + -1.5 + -5 + SEVEN[5:].sum()])
def replaced_by_fewer_in_a_loop(x, z, n, y):
    v = x
    for _ in range(n):
        v = z - 0
    y = ntl.sum(v)


@case(whole, FIVE, SEVEN, 1, expected=[FIVE.max() + SEVEN.max()])
def replaced_in_a_branch_of_a_loop(x, z, n, y):
    v, greatest = x, ntl.full((1,), 0.0, ntl.float32)
    for k in range(n + 1):
        if k == n:
            v = z
        greatest += ntl.max(v)
    y = greatest


@case(whole, FIVE, SEVEN, 3, expected=[SEVEN.max()])
def replaced_in_a_while_in_a_loop(x, z, n, y):
    v, k = x, 0
    for _ in range(n):
        while k < n:
            v = z
            k += 1
    y = ntl.max(v)


def both_in_blocks(x, y):
    return tuple(tensor.tile((4,)).tile((-1,)) for tensor in (x, y))


@case(both_in_blocks, FIVE, expected=[-27, 1, 1, 1, -27])
def stored_to_every_block_what_one_has_not(x, y):
    v = ntl.full((4,), 1.0, ntl.float32)
    for _ in range(3):
        v = v * 2
        v += x[1]
    for k in range(y.shape[0]):
        y[k] = v
