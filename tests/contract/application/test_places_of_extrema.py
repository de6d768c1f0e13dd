"""LANGUAGE.md, "Padding": the place of a greatest or a least element is that of one that exists.

What stands in the padding is no greater than any element, and may be as great: then the element is told.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError

#: Of each type the least number and the greatest.
LIMITS = [
    (torch.bool, 0, 1),
    (torch.uint8, 0, 255),
    (torch.int8, -128, 127),
    (torch.int32, -(2**31), 2**31 - 1),
    (torch.int64, -(2**63), 2**63 - 1),
    (torch.float16, float("-inf"), float("inf")),
    (torch.bfloat16, float("-inf"), float("inf")),
    (torch.float32, float("-inf"), float("inf")),
]


def filled(count, value, dtype):
    return torch.full((count,), value, dtype=dtype)


@pytest.mark.parametrize(("dtype", "least", "greatest"), LIMITS)
def test_an_element_like_the_identity_is_told_before_the_padding(dtype, least, greatest):
    def application(x, z, y):
        first = x[ntl.arange(0, 8) - 3]
        second = z[ntl.arange(0, 8) - 3]
        y[0] = ntl.argmax(first, axis=0)
        y[1] = ntl.argmin(second, axis=0)
        y[2] = ntl.max(first, axis=0, return_indices=True)[1]
        y[3] = ntl.min(second, 0, return_indices=True)[1]
        y[4] = second.argmax(0)
        y[5] = first.argmin(0)

    def arrangement(x, z, y):
        return x.tile((5,)), z.tile((5,)), y.tile((6,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    y = torch.full((6,), float("nan"))
    kernel(filled(2, least, dtype), filled(2, greatest, dtype), y)
    assert y.tolist() == [3] * 6


def test_of_several_the_first_is_told():
    def application(x, y):
        value, place = ntl.max(x[ntl.arange(0, 8) - 2], axis=0, return_indices=True)
        y[0] = value
        y[1] = place
        y[2] = ntl.argmin(x[5 - ntl.arange(0, 8)], axis=0)

    def arrangement(x, y):
        return x.tile((5,)), y.tile((3,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((3,), float("nan"))
    kernel(torch.tensor([1, 7, 7, 1], dtype=torch.int32), y)
    assert y.tolist() == [7, 3, 2]


@pytest.mark.parametrize("keep_dims", [False, True])
def test_along_one_of_two_dimensions(keep_dims):
    def application(x, y):
        part = x[ntl.arange(0, 4)[:, None] - 1, ntl.arange(0, 8)[None, :] - 2]
        rows = ntl.argmax(part, axis=1, keep_dims=keep_dims)
        columns = ntl.argmax(part, axis=0, keep_dims=keep_dims)
        y[0] = ntl.max(rows)
        y[1] = ntl.sum(columns)

    def arrangement(x, y):
        return x.tile((3, 5)), y.tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(2, 3, dtype=torch.uint8), y)
    # Three columns exist, the first element of each in the second row.
    assert y.tolist() == [2, 3]


def test_of_a_tile_whose_arrangement_reverses_it():
    """Its elements are the last ones."""

    def arrangement(x, y):
        x = x.tile((5,))
        x.dtype = x.dtype[::-1]
        return x, y.tile((1,))

    def application(x, y):
        y = ntl.argmax(x, axis=0)  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(7, dtype=torch.uint8), y)
    assert y.tolist() == [0, 3]


def test_in_a_loops_condition():
    def application(x, y):
        count = 0
        while ntl.argmax(x[ntl.arange(0, 8) - 3], axis=0) + count < 5:
            count += 1
        y[0] = count

    def arrangement(x, y):
        return x.tile((5,)), y.tile((1,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((1,), float("nan"))
    kernel(torch.zeros(2, dtype=torch.uint8), y)
    assert y.tolist() == [2]


def greater_real(a, b):
    return a * 0 + b * 0 + 7


def test_a_function_of_the_users_is_not_taken_for_the_one_that_finds_places():
    def application(x, y):
        y[0] = ntl.reduce(x, 0, greater_real)
        y[1] = ntl.argmax(x[ntl.arange(0, 8) - 3], axis=0)

    def arrangement(x, y):
        return x.tile((5,)), y.tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    y = torch.full((2,), float("nan"))
    kernel(torch.zeros(2, dtype=torch.uint8), y)
    assert y.tolist() == [7, 3]


def test_what_was_joined_is_sorted_between_both():
    def application(x, z, y):
        beside = ntl.join(x, z)
        beside -= ntl.sort(beside, descending=False)
        y = ntl.sum(ntl.abs(beside), axis=1)  # noqa: F841

    def arrangement(x, z, y):
        return x.tile((5,)), z.tile((5,)), y.tile((5,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    y = torch.full((3,), float("nan"))
    kernel(torch.tensor([1.0, 5, 2]), torch.tensor([4.0, 3, 2]), y)
    assert y.tolist() == [0, 4, 0]


@pytest.mark.parametrize(
    "place", [lambda x: ntl.argmin(x), lambda x: ntl.max(x, return_indices=True)[1]]
)
def test_of_all_elements_no_dimension_is_named(place):
    """Said where it stands, whatever runs it."""

    def application(x, y):
        y = place(x)  # noqa: F841

    def arrangement(x, y):
        return x.tile((2, -1)), y.tile((1,))

    with pytest.raises(ApplicationError, match="gives positions along one dimension: name it"):
        ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("extremum", [ntl.max, ntl.min])
def test_the_greatest_and_the_least_of_negated_integers(extremum, dtype):
    """One thread has several of them, as an assembler may put together (`compiler/negations.py`)."""

    def application(x, y):
        y = extremum(extremum(-x, axis=0), axis=0)  # noqa: F841

    def arrangement(x, y):
        return x.tile((-1, -1)), y.tile((1, 1))

    x, y = torch.randint(1, 100, (6, 11)).to(dtype), torch.zeros(1, 1)
    tensors = Tensor(2), Tensor(2)
    ninetoothed.make(arrangement, application, tensors, num_warps=1)(x, y)
    assert y.item() == ((-x).max() if extremum is ntl.max else (-x).min())
