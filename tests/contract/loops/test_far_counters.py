"""Loops that count to numbers next to which no int32 is, or beyond: what is counted does not wrap around."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

MOST = 2**31 - 1


def in_steps(x, step, y):
    total = ntl.cast(0, ntl.int64)
    last = 0
    for i in range(0, x.source.shape[0], 2**30 - 1):
        last = i
        total = total * 2 + i % 1000
    y = total * 1000 + last % 7  # noqa: F841


def in_steps_to_a_number(x, step, y):
    total = ntl.cast(0, ntl.int64)
    for i in range(0, 2**31 - 1, 2**30 - 1):
        total = total * 2 + i % 1000
    y = total  # noqa: F841


def in_steps_that_the_kernel_is_given(x, step, y):
    total = ntl.cast(0, ntl.int64)
    for i in range(0, x.source.shape[0], step):
        total = total * 2 + i % 1000
    y = total  # noqa: F841


def downwards(x, step, y):
    total = ntl.cast(0, ntl.int64)
    for i in range(x.source.shape[0], 0, -(2**30)):
        total = total * 2 + i % 1000
    y = total  # noqa: F841


def to_a_multiple(x, step, y):
    total = ntl.cast(0, ntl.int64)
    for i in range(x.source.shape[0] * 2 - 2, x.source.shape[0] * 2):
        total = total + i * 4
    y = total  # noqa: F841


def to_a_number_that_no_int32_holds(x, step, y):
    total = ntl.cast(0, ntl.int64)
    for i in range(2**31 - 2, 2**31 + 2):
        total = total + i * 4
    y = total  # noqa: F841


def _folded(numbers):
    total = 0
    for number in numbers:
        total = total * 2 + number % 1000
    return total


_STEP = 2**30 - 1
_STEPS = range(0, MOST, _STEP)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (in_steps, _folded(_STEPS) * 1000 + _STEPS[-1] % 7),
        (in_steps_to_a_number, _folded(_STEPS)),
        (in_steps_that_the_kernel_is_given, _folded(_STEPS)),
        (downwards, _folded(range(MOST, 0, -(2**30)))),
        (to_a_multiple, sum(i * 4 for i in range(MOST * 2 - 2, MOST * 2))),
        (to_a_number_that_no_int32_holds, sum(i * 4 for i in range(2**31 - 2, 2**31 + 2))),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_what_a_loop_counts_does_not_wrap_around(application, expected):
    kernel = ninetoothed.make(
        lambda x, step, y: (x, step, y.tile((1,))), application, (Tensor(1), Tensor(0), Tensor(1))
    )
    y = torch.empty(1, dtype=torch.int64)
    kernel(torch.ones(1).expand(MOST), _STEP, y)
    assert y.tolist() == [expected]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint32, torch.uint64])
def test_a_loop_up_to_an_unsigned_integer(dtype):
    def application(x, y):
        total = ntl.cast(0, ntl.int64)
        for i in range(x.source[0]):
            total += i - 2
        y = total  # noqa: F841

    kernel = ninetoothed.make(lambda x, y: (x, y.tile((1,))), application, (Tensor(1), Tensor(1)))
    y = torch.empty(1, dtype=torch.int64)
    kernel(torch.tensor([3]).to(dtype), y)
    assert y.tolist() == [-3]
