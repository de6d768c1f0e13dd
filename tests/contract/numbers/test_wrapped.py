"""LANGUAGE.md, "Numbers": integers wrap around, and what is computed of that is the same on every backend.

Positions, programs and counts are not negative, but what is multiplied or added may be.
"""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402
from tests.contract.kernels import arange, empty  # noqa: E402

COUNT = 40


def whole(x, y):
    return x.tile((-1,)), y.tile((-1,))


def fours(x, y):
    return x.tile((4,)), y.tile((4,))


def hashed(x, y):
    y = (x.offsets(0) * 73856093) % 64


def hashed_by_a_call(x, y):
    y = ntl.add(ntl.mul(x.offsets(0), 1103515245), 12345) % 100


def shifted(x, y):
    y = (x.offsets(0) << 28) // 7


def raised(x, y):
    y = (x.offsets(0) + 46340) ** 2 % 10


def of_a_range(x, y):
    y = (ntl.arange(0, 40) * 1103515245 + 12345) % 100


def added(x, y):
    y = (x.offsets(0) + 2147483640) // 7


def rounded_up(x, y):
    y = ntl.cdiv(x.offsets(0) * 600000000, 7)


def summed(x, y):
    y = ntl.cumsum(x.offsets(0) * 100000000, 0) // 7


def multiplied_in_a_loop(x, y):
    s = x.offsets(0)
    for i in range(9):
        s = s * 31 + i
    y = s % 1000


def truth_values_count(x, y):
    y = ((x > 3) + 1) * 2000000000 % 7


def wrapped(values):
    return values.astype(np.int64).astype(np.int32)


def _looped(p):
    for i in range(9):
        p = wrapped(p.astype(np.int64) * 31 + i)
    return p % 1000


@pytest.mark.parametrize("arrangement", [whole, fours])
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (hashed, lambda p: wrapped(p * 73856093) % 64),
        (hashed_by_a_call, lambda p: wrapped(p * 1103515245 + 12345) % 100),
        (shifted, lambda p: wrapped(p << 28) // 7),
        (raised, lambda p: wrapped((p + 46340) ** 2) % 10),
        (added, lambda p: wrapped(p + 2147483640) // 7),
        (rounded_up, lambda p: -(-wrapped(p * 600000000).astype(np.int64) // 7)),
        (multiplied_in_a_loop, _looped),
        (truth_values_count, lambda p: wrapped(((p > 2) + 1) * 2000000000) % 7),
    ],
)
def test_what_wraps_around_may_be_negative(application, expected, arrangement):
    y = empty(COUNT, dtype=torch.int32)
    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    kernel(arange(COUNT), y)
    wanted = expected(np.arange(COUNT, dtype=np.int64))
    assert y.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (of_a_range, lambda p: wrapped(p * 1103515245 + 12345) % 100),
        (summed, lambda p: wrapped(np.cumsum(wrapped(p * 100000000).astype(np.int64))) // 7),
    ],
)
def test_what_a_whole_tile_is_made_of_wraps_around(application, expected):
    y = empty(COUNT, dtype=torch.int32)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))(arange(COUNT), y)
    assert y.tolist() == expected(np.arange(COUNT, dtype=np.int64)).tolist()


def absolute(x, y):
    y = abs(x) % 3


def absolute_by_a_call(x, y):
    y = ntl.abs(x) // 3


@pytest.mark.parametrize(
    ("application", "expected"), [(absolute, [1, 1, 1]), (absolute_by_a_call, [-43, 2, 2])]
)
def test_the_absolute_value_of_the_least_integer_is_itself(application, expected):
    x, y = torch.tensor([-128, -7, 7], dtype=torch.int8), torch.zeros(3, dtype=torch.int8)
    ninetoothed.make(whole, application, (Tensor(1), Tensor(1)))(x, y)
    assert y.tolist() == expected


def after(x, y):
    y = x.offsets(0) + 2147483640 > x.offsets(0)


def test_positions_that_wrap_around_are_compared_as_they_are():
    y = empty(12, dtype=torch.bool)
    ninetoothed.make(fours, after, (Tensor(1), Tensor(1)))(arange(12), y)
    assert y.tolist() == [True] * 8 + [False] * 4


def of_a_number_or_a_counter(x, n, y):
    k = n
    for round_ in range(0, x.shape[0], 2):
        k = round_
    y = (k & 255) * 1103515245 % 64


@pytest.mark.parametrize("dtype", [torch.int32, torch.float64])
def test_a_number_of_the_kernel_wraps_around_whichever_it_is(dtype):
    y = torch.full((1,), -9, dtype=dtype)
    kernel = ninetoothed.make(
        lambda x, n, y: (x.tile((4,)).tile((-1,)), n, y.tile((1,))),
        of_a_number_or_a_counter,
        (Tensor(1), Tensor(0), Tensor(1)),
    )
    kernel(torch.zeros(10), 4, y)
    assert y.tolist() == [wrapped(np.array(2 * 1103515245)) % 64]
