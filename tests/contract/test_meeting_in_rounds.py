"""LANGUAGE.md, "The rule of meeting": what meets in those rounds of a loop alone that a condition asks for."""

from __future__ import annotations

import pytest
import torch

from ninetoothed import Tensor, make
from ninetoothed.errors import ArgumentError
from tests.contract.test_meeting_in_flow import called, rows


def kept_from_the_first(x, w, y):
    value = x[0] * 0.0
    for k in range(x.shape[0]):
        value = w[0] if k == 0 else value
        y[k] = x[k] + value


def kept_from_the_first_by_its_truth(x, w, y):
    value = x[0] * 0.0
    for k in range(x.shape[0]):
        value = value if k else w[0]
        y[k] = x[k] + value


def kept_from_the_second(x, w, y):
    value = x[0] * 0.0
    for k in range(x.shape[0]):
        if not (k != 1):
            value = w[0]
        y[k] = x[k] + value


def kept_counting_down(x, w, y):
    value = x[0] * 0.0
    for k in range(x.shape[0] - 1, -1, -1):
        if k == x.shape[0] - 1:
            value = w[0]
        y[k] = x[k] + value


def kept_in_two_loops(x, w, y):
    value = x[0] * 0.0
    for j in range(3):
        value = w[0] if j == 1 else value
        for k in range(x.shape[0]):
            y[k] = x[k] + value


def in_the_first_rounds(x, w, y):
    for k in range(x.shape[0]):
        if 2 > k:
            y[k] = x[k] + w[k]
        else:
            y[k] = x[k]


def from_the_third_on(x, w, y):
    for k in range(x.shape[0]):
        y[k] = x[k] + w[k] if k >= 2 else x[k]


def between_two(x, w, y):
    for k in range(x.shape[0]):
        if k > 0 and k < x.shape[0] - 1:
            y[k] = x[k] + w[k]
        else:
            y[k] = x[k]


def in_one_of_every_second(x, w, y):
    for k in range(1, x.shape[0], 2):
        y[k] = x[k] + w[k] if k == 3 else x[k]


#: Each with how many rows of `x` there must be, two in a round, so that a tile of `x` meets one of `w`.
APPLICATIONS = {
    kept_from_the_first: 1,
    kept_from_the_first_by_its_truth: 1,
    kept_from_the_second: 3,
    kept_counting_down: 1,
    kept_in_two_loops: 1,
    in_the_first_rounds: 1,
    from_the_third_on: 5,
    between_two: 5,
    in_one_of_every_second: 7,
}


@pytest.mark.parametrize("application, rows_needed", APPLICATIONS.items())
def test_what_meets_in_some_rounds_is_compared_where_there_is_one(application, rows_needed):
    with pytest.raises(
        ArgumentError, match="9 in dimension 1 of `x` and 10 in dimension 1 of `w`"
    ) as caught:
        called(application, rows, (rows_needed, 9), (rows_needed, 10), (rows_needed, 9))
    assert caught.value.location.file == __file__
    called(application, rows, (rows_needed, 9), (rows_needed, 9), (rows_needed, 9))
    # Without such a round nothing meets.
    fewer = rows_needed - 1
    *_, y = called(application, rows, (fewer, 9), (rows_needed, 10), (fewer, 9))
    assert y.tolist() == [[2.0] * 9] * fewer


def blocks_that_one_has(x, w, y):
    for k in range(3):
        y[k] = x[k] + w[k] if k < 2 else x[k]


def in_blocks_of_four(*tensors):
    return tuple(t.tile((4,)).tile((-1,)) for t in tensors)


def test_rounds_that_a_condition_leaves_out_compare_nothing():
    """Of `w` there are two blocks, of the others three."""
    *_, y = called(blocks_that_one_has, in_blocks_of_four, (12,), (8,), (12,))
    assert y.tolist() == [4.0] * 8 + [2.0] * 4
    with pytest.raises(ArgumentError, match="12 in dimension 0 of `x` and 7 in dimension 0 of `w`"):
        called(blocks_that_one_has, in_blocks_of_four, (12,), (7,), (12,))


def as_often_as_there_is_a_round(x, w, y):
    for k in range(2, x.shape[0]):
        y[k] = x[0] + w[0]


def test_a_range_that_ends_before_it_begins_has_no_round():
    called(as_often_as_there_is_a_round, rows, (1, 9), (1, 10), (1, 9))
    with pytest.raises(ArgumentError, match="10 in dimension 1 of `w`"):
        called(as_often_as_there_is_a_round, rows, (5, 9), (5, 10), (5, 9))


def each_of_four(x, y):
    for k in range(4):
        y[k] = x[k]


def test_tiles_that_are_too_few_are_counted():
    windows = lambda x, y: (  # noqa: E731
        x.tile((2,), strides=(1,)).tile((4,), strides=(-1,)),
        y.tile((2,)).tile((4,)),
    )
    kernel = make(windows, each_of_four, (Tensor(shape=(4,)), Tensor(1)))
    with pytest.raises(ArgumentError, match="3 tiles of `x` and 4 in dimension 0 of `y`"):
        kernel(torch.ones(4), torch.zeros(8))
