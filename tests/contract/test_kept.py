"""LANGUAGE.md, "Padding": what a loop's variable keeps, and what is moved and then reduced in parts.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def in_rounds(x, n, y):
    """Blocks of five, which are held in eight, one after the other."""
    return x.tile((5,)).tile((-1,)), n, y.tile((1,))


def assigned_whole(x, n, y):
    kept = ntl.full(x.dtype.shape, 3.0, ntl.float32)
    for k in range(x.shape[0]):
        kept = x[k]
    y = ntl.sum(kept)


def chosen_in_an_expression(x, n, y):
    kept = ntl.full(x.dtype.shape, 3.0, ntl.float32)
    other = ntl.full(x.dtype.shape, -2.0, ntl.float32)
    for k in range(x.shape[0]):
        kept = 1 + (x[k] if n > 1 else other)
    y = ntl.sum(kept)


def chosen_among_tiles(x, n, y):
    kept = ntl.full(x.dtype.shape, 3.0, ntl.float32)
    for k in range(x.shape[0]):
        kept = ntl.where(kept > 0, x[k] if n > 1 else x[k] + 9, kept)
    y = ntl.max(kept)


def multiplied_by_a_choice(x, n, y):
    kept = x[0]
    for k in range(x.shape[0]):
        kept *= x[k] if n > 1 else x[0]
    y = ntl.min(kept)


def one_element(x, n, y):
    kept = ntl.sum(x[0])
    for k in range(x.shape[0]):
        kept = x[k][n] * 2
    y = kept


def a_sum_of_elements(x, n, y):
    total = 0.0
    for k in range(x.shape[0]):
        total += x[k][n] + 1
    y = total


def the_least_of_elements(x, n, y):
    kept = ntl.full((4,), -2.0, ntl.float32)
    for k in range(x.shape[0]):
        places = ntl.arange(0, 4)[:, None] + n * ntl.arange(0, 2)[None, :]
        kept = ntl.min(x[k][places], axis=1)
    y = ntl.sum(kept)


@pytest.mark.parametrize(
    ("application", "n", "expected"),
    [
        (multiplied_by_a_choice, 2, 2 * 7 * 2),
        (multiplied_by_a_choice, 1, 1),
        (one_element, 0, 24),
        (one_element, 3, 18),
        (one_element, 7, 15),
        (a_sum_of_elements, 3, 4 + 9 + 2),
        # Each lane has elements in two rounds, the first in all.
        (the_least_of_elements, 5, 12 + 7 + 8 + 9),
        # Of the third block there is one element, 12.
        (assigned_whole, 2, 12 + 7 + 8 + 9 + 10),
        (chosen_in_an_expression, 2, 13 + 8 + 9 + 10 + 11),
        (chosen_in_an_expression, 1, -5),
        (chosen_among_tiles, 2, 12),
        (chosen_among_tiles, 1, 21),
    ],
)
def test_what_a_round_has_no_element_for_is_kept(application, n, expected):
    x, y = torch.cat([torch.arange(1.0, 11), torch.tensor([12.0])]), torch.full((1,), float("nan"))
    kernel = ninetoothed.make(in_rounds, application, (Tensor(1), Tensor(0), Tensor(1)))
    kernel(x, n, y)
    assert y.item() == expected


def test_half_of_what_was_joined_is_reduced_in_parts():
    def application(x, z, y):
        _, second = ntl.split(ntl.join(x, z))
        y = ntl.min(ntl.sum(second, axis=0))  # noqa: F841

    def arrangement(x, z, y):
        return x.tile((-1, -1)), z.tile((-1, -1)), y.tile((1,))

    x, z, y = torch.ones(3, 5), torch.rand(3, 5) + 1, torch.zeros(1)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2), Tensor(1)))(x, z, y)
    torch.testing.assert_close(y[0], z.sum(0).min())


def gathered_from_beyond(x, n, y):
    kept = x
    for _ in range(n):
        whole = kept
        kept -= ntl.gather(whole, whole.shape[0] - 1 - ntl.arange(0, whole.shape[0]), 0)
    y = kept


def less_a_smaller_one(x, n, y):
    kept = x
    for _ in range(n):
        kept -= ntl.full((5,), 1.0, ntl.float32)
    y = kept


def times_a_smaller_one(x, n, y):
    kept, k = x, 0
    while k < n:
        kept = kept * ntl.full((5,), 2.0, ntl.float32)
        k += 1
    y = kept


def divided_by_one_that_is_not_there(x, n, y):
    kept = ntl.full(x.shape, -2.0, ntl.float32)
    for _ in range(n):
        kept = x % x[n + 6]
    y = kept


def divided_by_one_that_is_there(x, n, y):
    kept = ntl.full(x.shape, -2.0, ntl.float32)
    for _ in range(n):
        kept = x % x[n + 2]
    y = kept


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (divided_by_one_that_is_not_there, [-2] * 7),
        (divided_by_one_that_is_there, [1, 2, 3, 4, 0, 1, 2]),
        # The first of seven would be given the eighth of a tile of eight.
        (gathered_from_beyond, [1, -10, -6, -2, 2, 6, 10]),
        (less_a_smaller_one, [-1, 0, 1, 2, 3, 6, 7]),
        (times_a_smaller_one, [4, 8, 12, 16, 20, 6, 7]),
    ],
)
def test_what_is_stored_after_a_loop_was_kept_where_no_round_had_an_element(application, expected):
    def arrangement(x, n, y):
        return x.tile((-1,)), n, y.tile((-1,))

    x, y = torch.arange(1.0, 8), torch.full((7,), float("nan"))
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))(x, 2, y)
    assert y.tolist() == expected


@pytest.mark.parametrize(("n", "expected"), [(1, 3.0), (2, 16.0)])
def test_what_a_branch_gives_is_moved_with_what_says_which_elements_exist(n, expected):
    def application(x, z, n, y):
        value = x + 1 if n > 1 else z
        y = ntl.sum(ntl.reshape(value, (8,)) + 1)  # noqa: F841

    def arrangement(x, z, n, y):
        return x.tile((2, 3)), z.tile((2, 3)), n, y.tile((1,))

    x, z, y = torch.ones(2, 3) * 2 / 3, torch.full((2, 3), -0.5), torch.zeros(1)
    tensors = (Tensor(2), Tensor(2), Tensor(0), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(x, z, n, y)
    torch.testing.assert_close(y.item(), expected)


def given_by_a_branch_within(x, n, y):
    value = ntl.full(x.shape, 2.0, ntl.float32)
    if n > 1:
        if n > 2:
            value = x
        else:
            value = value + 1
    y = ntl.sum(value + 1)


def chosen_within_a_branch(x, n, y):
    value = ntl.full(x.shape, 2.0, ntl.float32)
    if n > 1:
        value = (x if n > 2 else value) - value
    y = ntl.sum(value)


def given_by_a_branch_in_two(x, n, y):
    value = ntl.full(x.shape, 2.0, ntl.float32)
    if n > 0:
        if n > 1:
            other = value
            if n > 2:
                other = x - 1
            value = other + 1
        value = value * 2
    y = ntl.max(-value) + ntl.sum(value)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (given_by_a_branch_within, [12.0, 16.0, 8.0]),
        (chosen_within_a_branch, [8.0, 0.0, 2.0]),
        (given_by_a_branch_in_two, [12.0, 18.0, 10.0]),
    ],
)
def test_what_a_branch_within_a_branch_gives_has_the_elements_that_it_gave(application, expected):
    """Of four lanes two have an element of ``x``."""

    def arrangement(x, n, y):
        return x.tile((4,)), n, y.tile((1,))

    x, y = torch.tensor([1.0, 5.0]), torch.full((1,), float("nan"))
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    for n, wanted in enumerate(expected, start=1):
        kernel(x, n, y)
        assert y.item() == wanted


def test_after_a_choice_what_a_stored_tile_has_no_element_for_is_kept():
    def application(x, y, n):
        least = ntl.zeros(x.dtype.shape, ntl.float32)
        kept = ntl.zeros(x.dtype.shape, ntl.float32)
        for k in range(x.shape[0]):
            least = ntl.minimum(least, x[k] if n > 1 else kept)
            at = y[k].offsets(0) + 0 * y[k].to(ntl.int32)
            kept = kept - (x[k][at] % y[k][at + 2])
        y[10] = ntl.max(kept)

    def arrangement(x, y, n):
        return x.tile((4,)).tile((-1,)), y.tile((1,)).tile((12,)), n

    x, y = torch.tensor([1.0, 2, 4]), torch.ones(11)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(0)))
    kernel(x, y, 0)
    assert y[10] == 0


def multiplied_by_a_tile_or_a_number(x, n, y):
    kept = ntl.full((4,), 1.0, ntl.float32)
    for k in range(x.shape[0]):
        kept *= x[k] if n > 1 else 2
    y = ntl.sum(kept)


def given_in_a_round_by_a_branch_within(x, n, y):
    kept = x[0]
    for k in range(x.shape[0]):
        if n > 0:
            if n > 1:
                value = x[k] * x[k]
            else:
                value = ntl.full((4,), -1.0, ntl.float32)
        else:
            value = x[k]
        kept = kept * value
    y = ntl.min(kept)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        # Of the second block there are two elements, 5 and 6; a number is there where they are.
        (multiplied_by_a_tile_or_a_number, [4 + 4 + 2 + 2, 12, 5 + 12 + 3 + 4]),
        (given_in_a_round_by_a_branch_within, [5, 1, 25]),
    ],
)
def test_what_a_way_gives_in_a_round_is_kept_where_it_has_no_element(application, expected):
    def arrangement(x, n, y):
        return x.tile((4,)).tile((-1,)), n, y.tile((1,))

    x, y = torch.arange(1.0, 7), torch.full((1,), float("nan"))
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    for n, wanted in enumerate(expected):
        kernel(x, n, y)
        assert y.item() == wanted


def lessened_where_compared_twice(x, n, y):
    kept = n
    for k in range(x.shape[0]):
        kept -= x[k][n] < 9 <= 9
    y[0] = kept


def lessened_where_both_hold(x, n, y):
    kept = n
    for k in range(x.shape[0]):
        kept -= (x[k][n] < 9) and (n < 9)
    y[0] = kept


@pytest.mark.parametrize("application", [lessened_where_compared_twice, lessened_where_both_hold])
def test_of_several_conditions_none_is_there_where_one_has_no_element(application):
    def arrangement(x, n, y):
        return x.tile((3,)).tile((-1,)), n, y.tile((1,)).tile((1,))

    x = torch.arange(1.0, 5)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))
    # Of two tiles of three there are four elements: both first ones, and one of each of the others.
    for n, wanted in ((0, -2), (2, 1), (3, 3)):
        y = torch.full((1,), float("nan"))
        kernel(x, n, y)
        assert y.item() == wanted


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_what_pad_adds_without_a_value_is_kept_where_another_tensor_has_elements(axis):
    """No size says that it is not there, so that no check of a call does."""

    def arrangement(x, y):
        return x.pad(((2, 1), (0, 3))).tile((4, 4)), y.tile((4, 4))

    def application(x, y):
        total = ntl.full(x.shape, 0.0, ntl.float32)
        for _ in range(3):
            if axis is None:
                total -= ntl.exp(x)
            else:
                total -= ntl.min(x, axis=axis)[None, :]
        y = total  # noqa: F841

    y = torch.full((4, 4), torch.nan)
    expected = torch.zeros(4, 4)
    place = {None: (2, 0), 0: (slice(None), 0), 1: (slice(None), 2)}[axis]
    expected[place] = -3.0
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    x = torch.zeros(1, 1) if axis is None else torch.ones(1, 1)
    kernel(x, y)
    assert torch.equal(y, expected)
