"""``/`` of integers is of these as floats, where one has a sign and the other has none too."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.numbers.test_literals import result

SIGNED = torch.tensor([-7, -1, 1, 2, 7], dtype=torch.int8)
UNSIGNED = torch.tensor([200, 100, 255, 1, 3], dtype=torch.uint8)
A, B = SIGNED.double(), UNSIGNED.double()


def quotient(a, b, y):
    y = a / b


def quotient_that_stays(a, b, y):
    v = a / b
    v /= b
    y = v


def by_a_size(x, y):
    y = x / x.source.shape[0] + x.source.shape[0] / x


def by_a_stride(x, y):
    y = x / (x.stride(0) + 1)


def by_a_position(x, y):
    y = x / (x.offsets(0) - 7)


def of_truth_values(x, y):
    y = (x > 100) / x


CASES = {
    "tiles": (quotient, (SIGNED, UNSIGNED), A / B),
    "tiles, the other way": (quotient, (UNSIGNED, SIGNED), B / A),
    "of more bits": (quotient, (UNSIGNED, SIGNED.long()), B / A),
    "a tile and a number": (quotient, (UNSIGNED, -3), B / -3),
    "a number and a tile": (quotient, (300, UNSIGNED), 300 / B),
    "in place": (quotient_that_stays, (UNSIGNED, -7), B / 49),
    "a size": (by_a_size, (UNSIGNED,), B / 5 + 5 / B),
    "a stride": (by_a_stride, (UNSIGNED,), B / 2),
    "a position": (by_a_position, (UNSIGNED,), B / torch.arange(-7.0, -2)),
    "truth values": (of_truth_values, (UNSIGNED,), (B > 100) / B),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", CASES)
def test_it_is_what_python_makes_of_them(name, dtype):
    application, arguments, expected = CASES[name]
    found = result(application, *arguments, out=torch.zeros(5, dtype=dtype))

    assert found.tolist() == pytest.approx(
        expected.tolist(), rel=1e-6 if dtype is torch.float32 else 1e-14
    )


def test_neither_wraps_around_before():
    large, n = torch.tensor([2**64 - 1, 2**63, 3], dtype=torch.uint64), torch.tensor([-2, -1, 3])
    found = result(quotient, large, n, out=torch.zeros(3))

    assert found.tolist() == [-(2.0**63), -(2.0**63), 1.0]


def of_a_size_where_a_branch_is(x, z, n, y):
    value = x
    if n != 1:
        value = x.source.shape[0] / 7 + z * 0
    y = value


@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_a_size_it_is_as_wide_as_the_widest_element_of_the_call(n, dtype):
    kernel = ninetoothed.make(
        lambda x, z, n, y: (x.tile((4,)), z.tile((4,)), n, y.tile((4,))),
        of_a_size_where_a_branch_is,
        (Tensor(1), Tensor(1), Tensor(0), Tensor(1)),
    )
    x, z, y = torch.ones(5, dtype=dtype), torch.ones(5), torch.zeros(5, dtype=dtype)
    kernel(x, z, n, y)
    expected = 1 if n == 1 else 5 / 7
    assert y.tolist() == pytest.approx(
        [expected] * 5, rel=1e-6 if dtype is torch.float32 else 1e-15
    )


def quotient_beside_float64(x, y):
    whole = ntl.sum(ntl.join(ntl.full((4,), 3.0, ntl.float64), ntl.full((4,), 1, ntl.int32) / 2))
    y = x + whole


def greatest_beside_float64(x, y):
    whole = ntl.sum(
        ntl.join(ntl.full((4,), 3.0, ntl.float64), ntl.maximum(ntl.full((4,), 1, ntl.int32), 2.5))
    )
    y = x + whole


@pytest.mark.parametrize(
    ("application", "expected"), [(quotient_beside_float64, 15.0), (greatest_beside_float64, 23.0)]
)
def test_beside_a_literal_it_is_float64_in_a_call_that_has_such_elements(application, expected):
    x = torch.ones(4, dtype=torch.float64)
    assert result(application, x, out=torch.zeros(4, dtype=torch.float64))[0] == expected
    with pytest.raises(ApplicationError, match="needs tiles of one type, but got float64"):
        result(application, x.float(), out=torch.zeros(4))
