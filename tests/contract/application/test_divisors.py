"""LANGUAGE.md, "Numbers": `//` and `%` of sizes round down, whatever the divisor's sign."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Symbol, Tensor

STEP = Symbol("STEP", constexpr=True)


def by_numbers(x, y):
    n, blocks = x.source.shape[0], x.shape[0]
    y[0] = n % -2
    y[1] = n // -2
    y[2] = blocks % -2
    y[3] = (blocks + 2) // -3
    y[4] = 7 % -n
    y[5] = -7 // -n
    y[6] = -blocks % 5
    for k in range(3):
        y[7 + k] = k % -2


def by_what_a_call_gives(x, y, step):
    n = x.source.shape[0]
    y[0] = n % step
    y[1] = n // step
    y[2] = (n - 12) // step
    y[3] = n // (step - 1)
    y[4] = n // (step * 3)
    y[5] = n // (step * n)
    y[6] = step // (step - 4)
    y[7] = (step - 5) % step
    y[8] = 5 // step + n
    y[9] = n % (step + step)


def by_sizes(x, y):
    n = x.source.shape[0]
    y[0] = n % (n - 12)
    y[1] = n // (n - 12)
    y[2] = 5 % (n - 10)
    y[3] = 20 // (n - 12)
    y[4] = (n - 12) // n
    y[5] = (n - 12) % n
    y[6] = n % (3 - n)
    y[7] = n // (1 - n)
    y[8] = (n - 12) // (n - 11)
    y[9] = (n - 12) % (n - 11)


class Sizes:
    """Those of nine elements in blocks of four, as plain numbers."""

    source = torch.empty(9)
    shape = (3,)


@pytest.mark.parametrize(
    ("application", "steps"),
    [(by_numbers, ()), (by_sizes, ()), *((by_what_a_call_gives, (n,)) for n in (-2, -3, 3, 7))],
)
def test_arithmetic_on_sizes_rounds_down_by_a_negative_divisor_too(application, steps):
    def arrangement(x, y, *given):
        return x.tile((4,)).tile((-1,)), y.tile((10,)), *given

    given = (STEP,) if steps else ()
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), *given))
    y = torch.full((10,), float("nan"))
    kernel(torch.arange(9.0), y, *steps)
    expected = {}
    application(Sizes(), expected, *steps)
    assert y.tolist() == [expected[place] for place in range(10)]


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16])
def test_a_remainder_has_the_type_of_what_is_divided(dtype):
    def application(x, y):
        left = x % 7
        for _ in range(2):
            left = left % 5
        y = left * (left * 16)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    x, y = torch.tensor([-3, 4, 5, -7], dtype=dtype), torch.zeros(4, dtype=torch.int32)
    kernel(x, y)
    left = x % 7 % 5
    assert torch.equal(y, (left * (left * 16)).to(torch.int32))
