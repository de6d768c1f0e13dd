"""Python's `float`, `int` and `bool` of tiles and numbers lose nothing that Python's keep."""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError
from tests.contract.numbers.test_literals import X, result

WHOLE = torch.tensor([2**53 - 1, 2**31 + 5, -7, 0, 1, 2**40])
HALF = torch.tensor([60000, 1000, -1, 0, 0.5, 2], dtype=torch.float16)


def of_float64(x, y):
    y = float(x)  # noqa: F841


def in_a_loop(x, y):
    value = float(x)
    for _ in range(3):
        value = value * 1.5
    y = value  # noqa: F841


def of_the_greatest(x, y):
    y = float(ntl.max(x)) + 0 * x  # noqa: F841


def of_a_choice(x, y):
    y = float(x > 0) / 3  # noqa: F841


def of_a_size(x, y):
    y = float(x.shape[0]) / 3 + 0 * x  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (of_float64, X),
        (in_a_loop, X * 1.5 * 1.5 * 1.5),
        (of_the_greatest, torch.full_like(X, 5.0)),
        (of_a_choice, (X > 0).double() / 3),
        (of_a_size, torch.full_like(X, 8 / 3)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_float_of_float64_is_float64(application, expected):
    assert result(application, X).tolist() == expected.tolist()


def beside(n, x, y):
    y = float(n) / 3 + 0 * x  # noqa: F841


@pytest.mark.parametrize("n", [WHOLE, 7, WHOLE.int() % 100], ids=["int64", "number", "int32"])
def test_a_float_of_integers_is_float64_in_a_call_that_has_such_elements(n):
    # A device of PyTorch's multiplies by a third.
    expected = torch.as_tensor(n, device="cpu").double() / 3
    assert result(beside, n, X).tolist() == expected.expand(6).tolist()


def chosen(n, x, y):
    y = (ntl.full(x.shape, 3, ntl.int32) + 1.5) if n > 0 else ntl.full(x.shape, 0.1, ntl.float64)  # noqa: F841


def test_whether_a_float_beside_integers_is_float64_a_call_says():
    assert result(chosen, 1, X).tolist() == [4.5] * 6
    assert result(chosen, 0, X).tolist() == [0.1] * 6
    with pytest.raises(ApplicationError, match="different element types: float32.* float64"):
        result(chosen, 1, X.float(), out=torch.zeros(6))


def test_a_float_of_what_is_narrower_is_float32():
    def application(x, y):
        y = float(x) * float(x.shape[0])  # noqa: F841

    assert result(application, HALF, out=torch.zeros(6)).tolist() == (HALF.float() * 8).tolist()

    def narrow(x, w, y):
        y = float(x) * 0.1 + 0 * w  # noqa: F841

    expected = (HALF.float() * 0.1).double()
    assert result(narrow, HALF, X).tolist() == expected.tolist()


def whole(x, y):
    y = int(x)  # noqa: F841


@pytest.mark.parametrize(
    "dtype", [torch.int64, torch.int32, torch.uint8, torch.float64, torch.float32]
)
def test_an_int_has_64_bits(dtype):
    x = WHOLE.to(dtype)
    found = result(whole, x, out=torch.zeros(6, dtype=torch.int64))
    assert found.tolist() == x.long().tolist()


def test_an_int_of_uint64_is_refused():
    x = torch.tensor([2**63 - 1] * 6).to(torch.uint64)
    with pytest.raises(ApplicationError, match="not every uint64 fits one"):
        result(whole, x, out=torch.zeros(6, dtype=torch.int64))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int8, torch.float64, torch.float16])
def test_a_bool_is_whether_it_is_not_0(dtype):
    def application(x, y):
        y = bool(x)  # noqa: F841

    values = [0.0, -0.0, 0.25, 256, float("nan"), -1] if dtype.is_floating_point else [0, -1, 2**40]
    x = torch.tensor(values).to(dtype)
    found = result(application, x, out=torch.zeros(len(values), dtype=torch.bool))
    assert found.tolist() == (x != 0).tolist()
