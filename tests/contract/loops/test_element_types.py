"""What changes a variable's element type in a loop is one error with its place, on every backend."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def bits(x, n, y):
    count = x - x
    for i in range(8):
        count += (x >> i) & 1
    y = count


def rounds(x, n, y):
    total = x
    for i in range(3):
        total = total + i
    y = total


def greatest(x, n, y):
    most = x
    for i in range(n):
        most = ntl.maximum(most, i * 2)
    y = most


def chosen(x, n, y):
    total = x
    for i in range(3):
        total = ntl.where(x > i, total, i)
    y = total


def in_a_branch(x, n, y):
    total = x
    for i in range(3):
        if i > 1:
            total = total + i
    y = total


def numbers(x, n, y):
    total = x
    for _ in range(3):
        total = total + n
    y = total


def sizes(x, n, y):
    total = x
    for _ in range(3):
        total = total + x.source.shape[0]
    y = total


def divided(x, n, y):
    total = x
    for _ in range(3):
        total = total / 2
    y = total


def remainders(x, n, y):
    total = x
    for i in range(3):
        total = total % (i + 3)
    y = total


def an_element_or_a_number(x, n, y):
    last = 100
    for i in range(3):
        last = x[i] if n < 3 else 100
    y = last


def _kernel(application):
    return ninetoothed.make(
        lambda x, n, y: (x.tile((4,)), n, y.tile((4,))), application, tuple(map(Tensor, (1, 0, 1)))
    )


@pytest.mark.parametrize(
    ("application", "dtype"),
    [
        *(
            (application, dtype)
            for application in (
                bits,
                rounds,
                greatest,
                chosen,
                in_a_branch,
                numbers,
                sizes,
                divided,
                an_element_or_a_number,
            )
            for dtype in (torch.int8, torch.uint8, torch.int16)
        ),
        (divided, torch.int32),
        (numbers, torch.bool),
        (remainders, torch.float16),
        (remainders, torch.bfloat16),
        (rounds, torch.bfloat16),
    ],
)
def test_it_is_refused_before_anything_runs(application, dtype):
    x, y = torch.ones(5, dtype=dtype), torch.zeros(5, dtype=dtype)
    with pytest.raises(ApplicationError, match="different element types") as raised:
        _kernel(application)(x, 2, y)
    assert raised.value.location.file == __file__


def in_its_own_type(x, n, y):
    count = x - x
    for i in range(8):
        count += ((x >> i) & 1).to(x.dtype)
    y = count


def of_constants(x, n, y):
    count = x - x
    for i in ntl.static_range(7):
        count += (x >> i) & 1
    y = count


def in_32_bits(x, n, y):
    count = ntl.cast(x - x, ntl.int32)
    for i in range(8):
        count += (x >> i) & 1
    y = count


@pytest.mark.parametrize("application", [in_its_own_type, of_constants, in_32_bits])
def test_what_keeps_its_type_counts(application):
    x, y = torch.tensor([0, 1, 7, 85, 127], dtype=torch.int8), torch.zeros(5, dtype=torch.int32)
    _kernel(application)(x, 2, y)
    assert y.tolist() == [0, 1, 3, 4, 7]


def quotient(x, n, y):
    y = x // n


def test_a_quotient_of_mixed_signs_is_one_error_at_its_place():
    x, y = torch.ones(5, dtype=torch.uint8), torch.zeros(5, dtype=torch.uint8)
    with pytest.raises(ApplicationError, match="signedness") as raised:
        _kernel(quotient)(x, -2, y)
    assert raised.value.location.file == __file__
