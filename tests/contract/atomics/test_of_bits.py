"""Atomic operations on floats go by their bits, as devices have them."""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed.language as ntl
from tests.contract.kernels import run

NAN, INFINITE = float("nan"), float("inf")


def floats(*numbers, dtype=torch.float32):
    """Floats, of which NaN has the sign that is given to it."""
    made = torch.tensor(numbers, dtype=dtype)
    signs = torch.tensor([math.copysign(1, number) for number in numbers], dtype=dtype)
    return torch.copysign(made, signs)


def signed(tensor):
    """Each element as its text, which tells signs."""
    signs = ["-" if sign else "" for sign in torch.signbit(tensor).tolist()]
    return [f"{sign}{abs(number)}" for sign, number in zip(signs, tensor.tolist())]


def exchanged(x, z, y):
    ntl.atomic_cas(y, x, z)


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_an_exchange_asks_for_the_same_bits(dtype, size):
    x = floats(0.0, -0.0, NAN, 2.0, dtype=dtype)[:size]
    y = floats(-0.0, -0.0, NAN, 2.0, dtype=dtype)[:size]
    run(exchanged, x, torch.full((size,), 7.0), y)
    assert signed(y) == ["-0.0", "7.0", "7.0", "7.0"][:size]


def greatest(x, y):
    ntl.atomic_max(y, x)


def least(x, y):
    ntl.atomic_min(y, x)


#: From the least to the greatest.
ORDER = [-NAN, -INFINITE, -1.5, -0.0, 0.0, 1.5, INFINITE, NAN]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize(("application", "wanted"), [(greatest, max), (least, min)])
def test_extrema_have_an_order_of_signs_and_of_nan(application, wanted, dtype):
    places = [(one, other) for one in range(8) for other in range(8)]
    x = floats(*(ORDER[one] for one, _ in places), dtype=dtype)
    y = floats(*(ORDER[other] for _, other in places), dtype=dtype)
    run(application, x, y, B=64)
    expected = floats(*(ORDER[wanted(pair)] for pair in places), dtype=dtype)
    assert signed(y) == signed(expected)


def of_one_element(x, y):
    ntl.atomic_max(y.source[0 * x.offsets(0)], x)


def test_extrema_of_lanes_that_meet_have_it_too():
    y = run(of_one_element, floats(-0.0, 0.0, -INFINITE, -NAN), floats(-0.0))
    assert signed(y) == ["0.0"]
