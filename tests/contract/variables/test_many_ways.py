"""Many branches in a row: each way through them gives a variable elements of other tiles."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError
from tests.contract.kernels import arange, empty, tiles


def stepped(value, other, n):
    if n > 0:
        value = value + other
    else:
        value = ntl.zeros((4,), dtype=ntl.float32)
    if ntl.sum(value) > 40:
        value = value * 0.5
    if n > 2:
        value = value - other * 2
    return value


def application(x, other, y, n):
    value = x
    value = stepped(value, other, n)
    value = stepped(value, other, n - 1)
    value = stepped(value, other, n - 2)
    value = stepped(value, other, n - 3)
    value = stepped(value, other, n + 1)
    value = stepped(value, other, n - 4)
    y = ntl.sum(value) + value  # noqa: F841


def test_each_way_through_many_branches_has_its_own_elements():
    floats = tuple(Tensor(1, dtype="float32") for _ in range(3))
    kernel = ninetoothed.make(tiles, application, (*floats, Tensor(0, dtype="int32")))
    x, other, y = arange(6), arange(6) - 3, empty(6)

    for n in (0, 1, 2, 3, 5):
        kernel(x, other, y, n, B=4)

        blocks = zip(x.split(4), other.split(4), strict=True)
        torch.testing.assert_close(y, torch.cat([_expected(a, b, n) for a, b in blocks]))


def _expected(x, other, n):
    value = x
    for times in (n, n - 1, n - 2, n - 3, n + 1, n - 4):
        value = value + other if times > 0 else torch.zeros(len(x))
        value = value * 0.5 if value.sum() > 40 else value
        value = value - other * 2 if times > 2 else value
    return value.sum() + value


def swapped(x, other, y, n):
    one = x
    two = other
    if n > 0:
        one, two = two, one
    if n > 1:
        one, two = two, one
    if n > 2:
        one, two = two, one
    if n > 3:
        one, two = two, one
    if n > 4:
        one, two = two, one
    if n > 5:
        one, two = two, one
    if n > 6:
        one, two = two, one
    if n > 7:
        one, two = two, one
    y = one  # noqa: F841


@pytest.mark.parametrize("n", range(9))
def test_what_came_in_more_ways_than_are_followed_is_asked_all_the_same(n):
    """There are 128 ways to either tile. Where sizes differ, which one it was is not asked any more."""
    kernel = ninetoothed.make(tiles, swapped, (*(Tensor(1) for _ in range(3)), Tensor(0)))
    x, other, y = arange(6), arange(6) - 3, empty(6)

    kernel(x, other, y, n, B=4)
    assert y.tolist() == (other if n % 2 else x).tolist()

    with pytest.raises(
        ArgumentError, match=r"`other` of shape \(5,\) is stored to `y` of shape \(6,\)"
    ):
        kernel(x, other[:5], y, n, B=4)
