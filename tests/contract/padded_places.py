"""Cases of LANGUAGE.md, "Padding": of one name several tiles, of several tiles one value; see `test_validity`."""

from __future__ import annotations

import numpy as np

import ninetoothed.language as ntl
from tests.contract.padded_loops import CASES as CASES
from tests.contract.padded_loops import FIVE, MATRIX, blocks_of, case, whole

SIX = 1 + np.arange(6, dtype=np.float32)
TWENTY = 1 + np.arange(20, dtype=np.float32) / 16
SUMS = TWENTY[:, None] + TWENTY + 1
SOME = np.array([0, 9, 2, 9, 1])
ROWS = np.zeros(5, np.float32)

# Indices that are assigned.


@case(blocks_of(4), SIX, 1, expected=[6 + 7])
def sum_of_a_tile_whose_index_was_an_argument_and_is_assigned(x, k, y):
    v = x[k]
    k = k + 5
    y = ntl.sum(v + 1)


@case(blocks_of(4), SIX, 1, expected=[6 + 7])
def sum_of_a_tile_whose_index_a_branch_assigns(x, k, y):
    v = x[k]
    if k > 0:
        k = k - 1
    y = ntl.sum(v + 1) + 0 * k


@case(blocks_of(4), SIX, 0, expected=[6 + 7])
def sum_of_two_tiles_of_one_index(x, k, y):
    v = x[k]
    k = k + 1
    y = ntl.sum(v * 0 + x[k] + 1)


@case(blocks_of(4), SIX, 0, expected=[6 + 7])
def sum_where_positions_are_those_of_an_earlier_tile(x, k, y):
    places = x[k].offsets(0)
    k = k + 1
    y = ntl.sum(ntl.where(places < x.source.shape[0], x[k] + 1, 0.0))


@case(blocks_of(4), SIX, 0, expected=[6 + 7])
def sum_of_two_tiles_of_an_index_that_a_branch_assigns(x, k, y):
    v = x[k]
    if k < 1:
        k = k + 1
    y = ntl.sum(v * 0 + x[k] + 1)


@case(whole, FIVE, expected=12 * [8] + 2 * [sum(FIVE) + 10 + 3])
def sums_of_what_moves_through_a_dozen_variables(x, y):
    # Each takes what the next one had a round before.
    a = b = c = d = e = f = g = h = i = j = m = n = ntl.zeros((8,), ntl.float32)
    for k in range(14):
        y.source[k] = ntl.sum(a + 1)
        a, b, c, d, e, f = b, c, d, e, f, g
        g, h, i, j, m, n = h, i, j, m, n, x + 1


# A tile that meets itself.


@case(whole, TWENTY, expected=[np.sum(SUMS @ SUMS)])
def sum_of_a_product_of_a_vector_with_itself(x, y):
    sums = x[:, None] + x[None, :] + 1
    y = ntl.sum(ntl.dot(sums, sums))


# Minus infinity where nothing is.


@case(whole, FIVE, expected=[5])
def greatest_of_the_negated(x, y):
    y = ntl.max(-ntl.where(x.offsets(0) < x.source.shape[0], x, float("-inf")))


@case(whole, FIVE, expected=[10])
def greatest_by_a_negative_number(x, y):
    y = ntl.max(ntl.where(x.offsets(0) < x.source.shape[0], x, float("-inf")) * -2.0)


@case(whole, FIVE, expected=[5])
def sum_of_powers_of_differences(x, y):
    v = ntl.where(x.offsets(0) < x.source.shape[0], x, float("-inf"))
    y = ntl.sum(ntl.exp(v - v))


@case(whole, 0 * FIVE, expected=[0])
def whether_any_is_true(x, y):
    v = ntl.where(x.offsets(0) < x.source.shape[0], x, float("-inf")).to(ntl.int1)
    y = ntl.max(v.to(ntl.int32))


@case(whole, FIVE, expected=[sum(FIVE) + 5])
def sum_where_negated_positions_are_below_the_size(x, y):
    y = ntl.sum(ntl.where(-x.offsets(0) < x.source.shape[0], x + 1, 0.0))


@case(whole, np.ones(130, np.float32), expected=[2 * 130])
def sum_where_positions_in_8_bits_are_below_the_size(x, y):
    y = ntl.sum(ntl.where(x.offsets(0).to(ntl.int8) < x.source.shape[0], x + 1, 0.0))


# What a function of the user's combines.


def added_and_multiplied(a, b, c, d):
    return a + c, b * d


@case(whole, MATRIX, expected=[3 * 2**5])
def sum_of_products_beside_padded_sums(x, y):
    sums, products = ntl.reduce((x, ntl.full((4, 8), 2.0, ntl.float32)), 1, added_and_multiplied)
    y = ntl.sum(products) + 0 * ntl.sum(sums)


def twice(a, b):
    return ntl.maximum(a, b) + 1 - 1


def twice_real(a, b):
    return a + b * 2 - b


@case(whole, FIVE, expected=[max(FIVE) + sum(FIVE)])
def two_functions_one_of_which_is_called_as_what_is_made_of_the_other(x, y):
    y = ntl.reduce(x, 0, twice_real) + ntl.reduce(x, 0, twice)


# What a loop's condition is made of.


@case(whole, -FIVE, expected=[4])
def rounds_while_moved_elements_are_positive(x, y):
    count, v = 0.0, x
    while ntl.sum(ntl.interleave(v, v + 1)) > 0:
        v = v - 1
        count += 1
    y = 0 * x.source[0] + count


# Sorted where elements do not come first.


@case(whole, -FIVE, SOME, expected=[1, 3, 4, 77, 77])
def sorted_and_stored(x, places, y):
    y = ntl.sort(x[places])


@case(whole, -FIVE, SOME, expected=[4 + 3 + 1 + 3])
def sum_of_the_sorted(x, places, y):
    y = ntl.sum(ntl.sort(x[places], descending=True) + 1)


def before(x, y):
    return x.pad(((2, 0),)).tile((-1,)), y.tile((-1,))


@case(before, FIVE, expected=[*sorted(FIVE), 77, 77])
def sorted_after_what_is_padded(x, y):
    y = ntl.sort(x)


@case(whole, -FIVE, SOME, expected=[1, 77, 4, 77, 3])
def reversed_where_they_are(x, places, y):
    y = ntl.flip(x[places])


@case(whole, -FIVE, SOME, expected=[1 + 5 + 8 + 3])
def sum_of_sums_of_the_reversed(x, places, y):
    y = ntl.sum(ntl.cumsum(ntl.flip(x[places])) + 1)


@case(whole, MATRIX, np.array([3, 2, 7, 0]), expected=[[77] * 5, MATRIX[0], [77] * 5, MATRIX[2]])
def rows_reversed_where_they_are(x, rows, y):
    y = ntl.flip(x[rows, :], 0)


def in_blocks(x, y):
    x, y = x.tile((3, 3)), y.tile((3, 3))
    x.dtype, y.dtype = x.dtype.flatten(), y.dtype.flatten()
    return x, y


@case(
    in_blocks,
    MATRIX[:2],
    expected=[[*MATRIX[1, 2::-1], *MATRIX[1, :2:-1]], [*MATRIX[0, 2::-1], *MATRIX[0, :2:-1]]],
)
def reversed_blocks(x, y):
    y = ntl.flip(x)


@case(
    in_blocks,
    np.arange(9, 0, -1, dtype=np.float32).reshape(1, 9)[:, :5],
    expected=[[7, 8, 9, 5, 6]],
)
def sorted_blocks(x, y):
    y = ntl.sort(x)


# Operands that are given by name.


@case(whole, FIVE, expected=[2 * sum(FIVE) + 5])
def sum_of_turns(x, y):
    y = ntl.sum(ntl.interleave(x, b=x + 1))


@case(whole, FIVE, expected=[5])
def sum_of_the_greater(x, y):
    y = ntl.sum(ntl.maximum(ntl.full((8,), 1.0, ntl.float32), y=x - 9))


@case(whole, FIVE, expected=[sum(FIVE) + 5])
def sum_of_the_chosen(x, y):
    y = ntl.sum(ntl.where(condition=ntl.arange(0, 8) < 9, x=x + 1, y=x))


@case(whole, TWENTY, expected=[np.sum(SUMS @ SUMS)])
def sum_of_a_product(x, y):
    sums = x[:, None] + x[None, :] + 1
    y = ntl.sum(ntl.dot(input=sums, other=sums))
