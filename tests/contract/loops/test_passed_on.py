"""What a round takes of the round before: where that has no element yet, what is computed of it has none."""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

TILE = 4


def maximum_from_the_last(x, y):
    n = x.shape[0]
    best = ntl.full((4,), float("-inf"), ntl.float32)
    current = x[n - 1]
    for i in range(n - 1):
        best = ntl.maximum(best, current)
        current = x[n - 2 - i]
    y = ntl.maximum(best, current)  # noqa: F841


def maximum_by_steps_down(x, y):
    n = x.shape[0]
    best = ntl.full((4,), float("-inf"), ntl.float32)
    current = x[n - 1]
    for i in range(n - 2, -1, -1):
        best = ntl.maximum(best, current)
        current = x[i]
    y = ntl.maximum(best, current)  # noqa: F841


def maximum_while(x, y):
    i = x.shape[0] - 1
    best = ntl.full((4,), float("-inf"), ntl.float32)
    current = x[i]
    while i > 0:
        best = ntl.maximum(best, current)
        i -= 1
        current = x[i]
    y = ntl.maximum(best, current)  # noqa: F841


def maximum_in_a_branch(x, y):
    n = x.shape[0]
    best = ntl.full((4,), float("-inf"), ntl.float32)
    current = x[n - 1]
    for i in range(n - 2, -1, -1):
        if i > -1:
            best = ntl.maximum(best, current)
        current = x[i]
    y = ntl.maximum(best, current)  # noqa: F841


def product(x, y):
    n = x.shape[0]
    total = ntl.full((4,), 1.0, ntl.float32)
    current = x[n - 1] * 2
    for i in range(n - 1):
        total = total * current
        current = x[n - 2 - i] * 2
    y = total * current  # noqa: F841


def sum_of_exponentials(x, y):
    n = x.shape[0]
    total = ntl.zeros((4,), ntl.float32)
    current = x[n - 1]
    for i in range(n - 2, -1, -1):
        total += ntl.exp(current)
        current = x[i]
    y = total + ntl.exp(current)  # noqa: F841


def register(x, y):
    n = x.shape[0]
    first = x[0]
    second = x[n - 1]
    for i in range(n - 2, -1, -1):
        first = second
        second = x[i]
    y = first  # noqa: F841


def last_but_one(values):
    """What `register` leaves of the elements of one lane, from the last tile on."""
    first, second = values[-1], values[0]
    for value in values[1:]:
        first, second = second, value
    return first


def greatest(values):
    return max(values)


@pytest.mark.parametrize("count", [5, 6, 8, 9, 11])
@pytest.mark.parametrize(
    "application, reference",
    [
        (maximum_from_the_last, greatest),
        (maximum_by_steps_down, greatest),
        (maximum_while, greatest),
        (maximum_in_a_branch, greatest),
        (product, lambda values: math.prod(2 * value for value in values)),
        (sum_of_exponentials, lambda values: sum(map(math.exp, values))),
    ],
)
def test_a_round_takes_no_element_that_the_round_before_does_not_have(
    application, reference, count
):
    x = -torch.arange(1.0, count + 1)
    torch.testing.assert_close(result(application, x), expected(reference, x))


@pytest.mark.parametrize("count", [9, 11, 12])
def test_a_variable_keeps_what_it_had_where_it_is_given_nothing(count):
    """Three rounds, so that each lane of the last tile's padding is given something in the end."""
    x = -torch.arange(1.0, count + 1)
    rows = [x[at : at + TILE].tolist() for at in range(0, count, TILE)]
    lanes = [[row[lane] for row in reversed(rows) if lane < len(row)] for lane in range(TILE)]
    assert result(register, x).tolist() == [last_but_one(lane) for lane in lanes]


def result(application, x):
    y = torch.full((TILE,), torch.nan)
    arrangement = lambda x, y: (x.tile((TILE,)).tile((-1,)), y.tile((TILE,)))  # noqa: E731
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(x, y)
    return y


def expected(reference, x):
    lanes = [[v for at, v in enumerate(x.tolist()) if at % TILE == lane] for lane in range(TILE)]
    return torch.tensor([reference(lane) for lane in lanes])
