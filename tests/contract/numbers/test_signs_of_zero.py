"""0.0 and -0.0 are Python's: of literals, of what is negated, and of `//` and `%`."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
import triton
import triton.language as tl  # noqa: F401  # What its interpreter looks for.

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.numbers.test_literals import result

INFINITE, NAN = float("inf"), float("nan")
N = torch.tensor([0.0, -0.0, 1, -1, INFINITE, -INFINITE, NAN, 0.25], dtype=torch.float64)
TYPES = [torch.float16, torch.float32, torch.float64]


def negated(x, y):
    y = -x  # noqa: F841


def negated_twice(x, y):
    y = -(-x * 1)  # noqa: F841


def divided_by_what_is_negated(x, y):
    y = 1 / -x  # noqa: F841


def subtracted(x, y):
    y = 0.0 - x  # noqa: F841


def multiplied(x, y):
    y = x * -0.0  # noqa: F841


def added(x, y):
    y = -0.0 + x  # noqa: F841


def subtracted_from_it(x, y):
    y = -0.0 - x  # noqa: F841


def stored(x, y):
    y = -0.0  # noqa: F841


def chosen(x, y):
    y = ntl.where(x > 0, -0.0, x)  # noqa: F841


def filled(x, y):
    y = ntl.full((8,), -0.0, ntl.float64) + x * -0.0  # noqa: F841


def in_a_variable(x, y):
    number = -0.0
    for _ in range(2):
        number = number * 1.0
    y = number * ntl.abs(x)  # noqa: F841


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (negated, -N),
        (negated_twice, N),
        (divided_by_what_is_negated, 1 / -N),
        (subtracted, 0.0 - N),
        (multiplied, N * -0.0),
        (added, -0.0 + N),
        (subtracted_from_it, -0.0 - N),
        (stored, torch.full_like(N, -0.0)),
        (chosen, torch.where(N > 0, -0.0, N)),
        (filled, -0.0 + N * -0.0),
        (in_a_variable, -0.0 * N.abs()),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_zero_has_its_sign(application, expected, dtype):
    x = N.to(dtype)
    assert_same(result(application, x, out=torch.full_like(x, 7)), expected)


def assert_same(found, expected):
    expected = np.asarray(expected)
    assert np.array_equal(found, expected, equal_nan=True)
    is_number = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[is_number].all()


@triton.jit
def minus(x):
    return -x


def by_tritons(x, y):
    y = minus(x)  # noqa: F841


def test_in_a_function_of_tritons_a_sign_is_tritons():
    assert_same(result(by_tritons, N, out=torch.ones_like(N)), 0.0 - N)


def test_what_is_negated_counts_where_it_is_whole():
    for dtype in (torch.int8, torch.int64, torch.uint8, torch.uint32):
        x = torch.tensor([0, 1, 100, 127]).to(dtype)
        assert result(negated, x, out=x.clone()).tolist() == (-x.cpu().numpy()).tolist()
    truth = torch.tensor([True, False])
    assert result(negated, truth, out=torch.zeros(2)).tolist() == [-1.0, 0.0]


def by_a_constant(x, c, y):
    y = x * c  # noqa: F841


def test_a_constant_that_a_call_gives_has_its_sign():
    kernel = ninetoothed.make(
        lambda x, c, y: (x.tile((8,)), c, y.tile((8,))),
        by_a_constant,
        (Tensor(1), Tensor(0, constexpr=True), Tensor(1)),
    )
    x, y = torch.ones(8), torch.ones(8)
    for c in (0.0, -0.0, 0.0):
        kernel(x, c, y)
        assert_same(y.cpu().numpy(), np.full(8, c))


def test_what_stands_beyond_a_tensor_has_its_sign():
    def application(x, y):
        y = x  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, y: (x.pad(((1, 1),)).tile((4,)), y.tile((4,))),
        application,
        (Tensor(1, other=-0.0), Tensor(1)),
    )
    y = torch.ones(4)
    kernel(torch.ones(2), y)
    assert_same(y.cpu().numpy(), [-0.0, 1, 1, -0.0])


Z = -0.0


def either(x, y):
    y = x or -0.0  # noqa: F841


def both(x, y):
    y = x and -0.0  # noqa: F841


def neither(x, y):
    y = not (x and -0.0)  # noqa: F841


def chosen_by_it(x, y):
    y = ntl.where(-0.0, x, 5)  # noqa: F841


def compared_with_it(x, y):
    y = (-0.0 == x) + 2 * (x != -0.0)  # noqa: F841


def behind_a_condition(x, y):
    if ntl.sum(x) > 0 and -0.0:
        y = x + 10  # noqa: F841
    else:
        y = x  # noqa: F841


def behind_a_choice(x, y):
    y = x + 10 if ntl.sum(x) > 0 and Z else x  # noqa: F841


def behind_a_number(x, y):
    y = x + 10 if ntl.sum(x) < 0 or 0.5 else x  # noqa: F841


def by_either(x, c, y):
    y = (x or c) + (1 if ntl.sum(x) > 0 and c else 2)  # noqa: F841


ONES = np.array([3.0, 0.0, -0.0, -1.0])


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (either, ONES != 0),
        (both, np.zeros(4)),
        (neither, np.ones(4)),
        (chosen_by_it, np.full(4, 5.0)),
        (compared_with_it, (ONES == 0) + 2.0 * (ONES != 0)),
        (behind_a_condition, ONES),
        (behind_a_choice, ONES),
        (behind_a_number, ONES + 10),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_it_is_not_true_and_equals_0(application, expected):
    x = torch.tensor(ONES, dtype=torch.float32)
    assert result(application, x, out=torch.full_like(x, 7)).tolist() == expected.tolist()


def test_a_constant_that_a_call_gives_is_not_true_where_it_is_0():
    kernel = ninetoothed.make(
        lambda x, c, y: (x.tile((4,)), c, y.tile((4,))),
        by_either,
        (Tensor(1), Tensor(0, constexpr=True), Tensor(1)),
    )
    x, y = torch.tensor(ONES, dtype=torch.float32), torch.ones(4)
    for c in (0.0, -0.0, 0.5):
        kernel(x, c, y)
        assert y.tolist() == [bool(each or c) + (1 if c else 2) for each in ONES]


VALUES = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.5, -3.0, INFINITE, -INFINITE, NAN)
PAIRS = list(itertools.product(VALUES, VALUES))


def quotient(x, y, z):
    z = x // y  # noqa: F841


def remainder(x, y, z):
    z = x % y  # noqa: F841


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(
    ("application", "function"), [(quotient, lambda a, b: a // b), (remainder, lambda a, b: a % b)]
)
def test_what_is_rounded_down_is_pythons(application, function, dtype):
    expected = [function(a, b) if b else NAN for a, b in PAIRS]
    x, y = (torch.tensor(column, dtype=dtype) for column in zip(*PAIRS))
    found = torch.full((len(PAIRS),), 7, dtype=dtype)
    ninetoothed.make(
        lambda *tensors: tuple(each.tile((128,)) for each in tensors),
        application,
        (Tensor(1), Tensor(1), Tensor(1)),
    )(x, y, found)
    assert_same(found.cpu().numpy(), expected)
