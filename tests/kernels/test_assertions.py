"""What is asserted of sizes, of a family of calls that are planned once, and in C sources."""

from __future__ import annotations

import os

import ninetoothed
from ninetoothed import Tensor
from ninetoothed.backends.triton.planning.binding import Family
from ninetoothed.kernels.assertions import assertions
from tests.kernels.test_equal_sizes import evaluated


def application(x, y):
    assert x.source.shape[0] % 3 == 0, "by three"
    y = x


def test_sizes_of_a_planned_class_are_asked_too():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    ).definition
    call, *_ = evaluated(kernel, {"x": (6,), "y": (6,)})
    fits = Family(kernel, call, None)._check({})
    assert [fits([size, 1, size, 1]) for size in (6, 7, 9)] == [True, False, True]


def test_a_requirement_says_what_and_where():
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    ).definition
    (found,) = assertions(kernel)
    assert "by three" in found.requirement.text
    assert f"({os.path.basename(__file__)}:" in found.requirement.text
