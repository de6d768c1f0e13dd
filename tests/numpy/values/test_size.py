"""What is made of sizes in a program on CPUs has the members that a compiled program's numbers have."""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def root_of_a_comparison(x, y):
    y = ((x.source.shape[0] > 1) + 1.0).sqrt()  # noqa: F841


def cast_of_a_number_compared_with_a_size(x, y):
    y = ((6 == x.source.shape[0]) - 0.5).to(ntl.float16)  # noqa: F841


def choice_by_sizes(x, y):
    y = 1.0 if 1 < x.source.shape[0] <= 6 else 2.0  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (root_of_a_comparison, math.sqrt(2)),
        (cast_of_a_number_compared_with_a_size, 0.5),
        (choice_by_sizes, 1.0),
    ],
)
def test_what_is_compared_is_a_number_of_the_program(application, expected):
    def arrangement(x, y):
        return x.tile((4,)), y.tile((1,))

    x, y = torch.zeros(6), torch.full((2,), float("nan"))
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(x, y)
    torch.testing.assert_close(y, torch.full((2,), expected))
