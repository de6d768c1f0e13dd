"""What a loop over a range counts is the running kernel's, however the range is spelled: an int32 beside int8 tiles."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def added(rounds, x):
    total = ntl.zeros((4,), ntl.int32)
    for k in rounds:
        total = total * 2 + (x[0] + k * 100)
    return total


def forwards(x, n, y):
    total = ntl.zeros((4,), ntl.int32)
    for k in range(x.shape[0]):
        total = total * 2 + (x[0] + k * 100)
    y = total


def backwards(x, n, y):
    total = ntl.zeros((4,), ntl.int32)
    for k in reversed(range(x.shape[0])):
        total = total * 2 + (x[0] + k * 100)
    y = total


def by_a_name(x, n, y):
    rounds = range(x.shape[0])
    y = added(rounds, x)


def by_a_name_backwards(x, n, y):
    rounds = range(0, x.shape[0])
    y = added(reversed(rounds), x)


def backwards_from_the_end(x, n, y):
    y = added(reversed(range(x.shape[0] - 1, -1, -1)), x)


def backwards_to_a_number_of_the_kernel(x, n, y):
    y = added(reversed(range(n)), x)


@pytest.mark.parametrize(
    "application",
    [
        *(forwards, backwards, by_a_name, by_a_name_backwards, backwards_from_the_end),
        backwards_to_a_number_of_the_kernel,
    ],
    ids=lambda each: each.__name__,
)
def test_what_is_counted_is_an_int32(application):
    is_backwards = "backwards" in application.__name__
    is_backwards ^= application is backwards_from_the_end
    expected = torch.zeros(4, dtype=torch.int32)
    for k in (3, 2, 1, 0) if is_backwards else range(4):
        expected = expected * 2 + torch.tensor([1, 2, 3, 100]) + k * 100
    assert called(application) == expected.tolist()


def assigned_by_a_name(x, n, y):
    value, rounds = 100, range(x.shape[0])
    for _ in rounds:
        value = 101
    y = x[0] + value


def assigned_backwards(x, n, y):
    value = 100
    for _ in reversed(range(x.shape[0])):
        value = 101
    y = x[0] + value


@pytest.mark.parametrize("application", [assigned_by_a_name, assigned_backwards])
def test_a_number_that_a_round_assigns_is_an_int32(application):
    assert called(application) == [102, 103, 104, 201]


def called(application):
    x = torch.tensor([1, 2, 3, 100] * 4, dtype=torch.int8)
    y = torch.zeros(4, dtype=torch.int32)
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)).tile((-1,)), n, y.tile((4,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    kernel(x, 4, y)
    return y.tolist()
