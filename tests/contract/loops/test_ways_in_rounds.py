"""LANGUAGE.md, "Padding": a lane for which a round has no element keeps what it had before that round.

So it does whatever the round assigned before the way that it took. Run in Triton's interpreter too, and on a device.
"""

from __future__ import annotations

import itertools

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

#: What an element is before anything is stored.
OLD = -9.0

# `w[1]` has two elements, which come first, `w[2]` none, `x` three, which come last, and `z` four.


def of_a_choice_after_another_value(w, x, z, n, y):
    found = ntl.sort(w[1])
    for _ in range(2):
        found = ntl.split(ntl.join(z, found))[0]
        found = ntl.sort(x if n > 0 else w[1])
    y = found


def of_a_branch_after_another_value(w, x, z, n, y):
    found = ntl.sort(w[1])
    for _ in range(2):
        found = ntl.split(ntl.join(z, found))[0]
        if n > 0:
            found = ntl.sort(x)
    y = found


def of_a_choice_under_another_name(w, x, z, n, y):
    found = ntl.sort(w[1])
    for _ in range(n + 1):
        found = ntl.split(ntl.join(w[2], found))[0]
        found = ntl.sort(x if n > 0 else w[1])
    last = found
    y = last


def of_a_variable_of_the_round(w, x, z, n, y):
    found = ntl.sort(w[1])
    for _ in range(2):
        own = ntl.sort(x)
        if n > 0:
            own = ntl.sort(z)
        found = own + 0
    y = found


def the_sum_of_what_exists(w, x, z, n, y):
    found = ntl.sort(w[1])
    for _ in range(2):
        found = ntl.split(ntl.join(z, found))[1]
        if n > 0:
            found = ntl.sort(x) + 1
    y = ntl.sum(found) + ntl.max(found) + 0 * z  # noqa: F841


CASES = {
    of_a_choice_after_another_value: ([3, 5, OLD, OLD], [-4, -3, -2, OLD]),
    of_a_branch_after_another_value: ([7, 8, 6, 9], [-4, -3, -2, OLD]),
    of_a_choice_under_another_name: ([3, 5, OLD, OLD], [-4, -3, -2, OLD]),
    of_a_variable_of_the_round: ([-4, -3, -2, OLD], [6, 7, 8, 9]),
    the_sum_of_what_exists: ([13] * 4, [-7] * 4),
}


@pytest.mark.parametrize("dtype", [None, ninetoothed.float32])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("application", CASES, ids=lambda application: application.__name__)
def test_a_way_keeps_what_there_was_before_the_round(application, number, dtype):
    def arrangement(w, x, z, n, y):
        return w.tile((4,)).tile((-1,)), x.pad(((1, 0),)).tile((4,)), z.tile((4,)), n, y.tile((4,))

    w, x, z = (
        torch.tensor([0.0, 0, 0, 0, 5, 3]),
        torch.tensor([-3.0, -2, -4]),
        torch.tensor([7.0, 8, 6, 9]),
    )
    y = torch.full((4,), OLD)
    floats = (Tensor(1, dtype=dtype) for _ in range(4))
    tensors = (*itertools.islice(floats, 3), Tensor(0), *floats)
    ninetoothed.make(arrangement, application, tensors)(w, x, z, number, y)
    assert y.tolist() == CASES[application][number]


def of_one_way_that_is_written(w, n, z):
    ones = ntl.full(z.shape, 1.0, ntl.float32)
    found = ntl.full(z.shape, -2.0, ntl.float32)
    for k in range(3):
        found += w[k] + found
        if n > 0:
            found = ones
    z = found


def of_the_other_way(w, n, z):
    ones = ntl.full(z.shape, 1.0, ntl.float32)
    found = ntl.full(z.shape, -2.0, ntl.float32)
    for k in range(3):
        found += w[k] + found
        if n > 0:
            pass
        else:
            found = ones
    z = found


@pytest.mark.parametrize(
    "application, expected", [(of_one_way_that_is_written, (-6, 1)), (of_the_other_way, (1, -6))]
)
def test_a_way_without_a_statement_keeps_it_too(application, expected):
    # Of the three tiles of one element `w` has one: 2 * -2 + w, and then nothing.
    tensors = Tensor(1), Tensor(0), Tensor(1)
    kernel = ninetoothed.make(
        lambda w, n, z: (w.tile((1,)).tile((3,)), n, z.tile((3,))), application, tensors
    )
    for number, value in enumerate(expected):
        w, z = torch.tensor([-2.0]), torch.full((3,), OLD)
        kernel(w, number, z)
        assert z.tolist() == [value] * 3
