"""What helpers are given is what it was when Python read it.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from tests.contract.variables.cases import table

#: What an application gives is a function of the elements and the number, or of these alone.
CASES, case = table()


def bump(p):
    p = p + 1


def sum_of(a, b, c):
    return a + b * 10 + c * 100


@case(lambda x, n: x + (x + 1) * 110)
def a_variable_before_and_after_it_is_assigned(x, n, y):
    v = x + 0
    y = sum_of(v, (v := v + 1), v)


@case(lambda x, n: x + 10 + (x + 1) * 100)
def a_variable_before_and_after_a_helper_assigns_it(x, n, y):
    v = x + 0
    y = sum_of(v, bump(v) is None, v)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("n", [0, 1])
def test_it_means_what_python_says(name, n):
    application, expected = CASES[name]
    x, y = torch.arange(1.0, 4), torch.full((3,), float("nan"))
    _made(application)(x, n, y)
    torch.testing.assert_close(y, expected(x, n).to(y), rtol=1e-5, atol=1e-5)


def _made(application):
    return ninetoothed.make(
        lambda x, n, y: (x.tile((-1,)), n, y.tile((-1,))),
        application,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
