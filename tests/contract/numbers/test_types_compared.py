"""Element types of what an application computes, compared with others: they choose as constants do."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor


def of_a_value(x, y):
    v = x + 1
    if v.dtype == ntl.int32:
        y = 1
    elif v.dtype != x.dtype:
        y = 2
    else:
        y = 3


def of_a_parameter(x, y):
    y = 3 if x.dtype == ntl.uint8 and x.dtype != ntl.float32 else 1  # noqa: F841


def of_names(x, y):
    v = x * 2
    kind, other = v.dtype, (v + x).dtype
    y = 3 if kind == other and kind in (ntl.int8, ntl.uint8) else 1  # noqa: F841


def to_a_helper(x, y):
    def is_same(value, kind):
        return value.dtype == kind

    y = 3 if is_same(x + 1, x.dtype) else 1  # noqa: F841


def as_a_number(x, y):
    y = (ntl.zeros(x.shape, x.dtype).dtype == x.dtype) + 2  # noqa: F841


APPLICATIONS = (of_a_value, of_a_parameter, of_names, to_a_helper, as_a_number)


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("size", [4, 5])
def test_types_of_unsigned_integers_are_compared(application, size):
    x, y = torch.ones(size, dtype=torch.uint8), torch.zeros(size, dtype=torch.int32)
    ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )(x, y)
    assert y.cpu().tolist() == [3] * size
