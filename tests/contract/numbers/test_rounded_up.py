"""`ntl.cdiv` is ``-(-a // b)``, of elements, numbers and sizes, whatever their signs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.application.meanings import DIVISORS, INTEGERS, Case, made
from tests.contract.numbers.test_literals import result

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32]


def up(a, b):
    return -(-a // b)


def of_elements(x, z, y):
    y = ntl.cdiv(x, z) + x.cdiv(div=z) * 100


def by_literals(x, y):
    y = ntl.cdiv(x, 3) + ntl.cdiv(x, -2) * 100 + ntl.cdiv(7, -x) * 10_000


def of_numbers(x, n, y):
    y = ntl.cdiv(n, 2) + ntl.cdiv(7, n) * 100 + ntl.cdiv(n - 4, n + 1) * 10_000 + 0 * x


def of_literals(x, y):
    y = ntl.cdiv(-7, 2) + ntl.cdiv(7, -2) * 100 + ntl.cdiv(-7, -2) * 10_000 + 0 * x


def of_sizes(x, y):
    size = x.source.shape[0]
    y = (
        ntl.cdiv(size - 20, 5)
        + ntl.cdiv(size, -3) * 100
        + ntl.cdiv(size, size - 11) * 10_000
        + 0 * x
    )


def rounds(x, n, y):
    total = 0 * x
    for _ in range(ntl.cdiv(n, -2)):
        total += x
    for k in range(n, 3):
        total += ntl.cdiv(k, 2) * 100
    y = total


def decided(x, n, y):
    if ntl.cdiv(n, 2) == -1:
        y = x
    else:
        y = ntl.zeros((ntl.cdiv(-15, -2),), ntl.int32)


CASES = [
    Case(of_elements, (INTEGERS, DIVISORS), lambda x, z: up(x, z) * 101),
    Case(
        by_literals,
        (INTEGERS,),
        lambda x: up(x, 3) + up(x, -2) * 100 + np.where(x == 0, 0, up(7, -x + (x == 0))) * 10_000,
    ),
    Case(of_numbers, (INTEGERS, -3), lambda x, n: x * 0 - 1 - 200 + 40_000),
    Case(of_literals, (INTEGERS,), lambda x: x * 0 - 3 - 300 + 40_000),
    Case(of_sizes, (INTEGERS,), lambda x: x * 0 - 2 - 200 - 20_000),
    Case(rounds, (INTEGERS, -5), lambda x, n: 3 * x + sum(up(k, 2) for k in range(n, 3)) * 100),
    Case(decided, (INTEGERS, -3), lambda x, n: x),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.application.__name__)
def test_it_rounds_up(case):
    kernel, arguments, expected = made(case)
    kernel(*arguments)

    assert arguments[-1].tolist() == expected.tolist()


def by_four(x, z, y):
    y = ntl.cdiv(x, 4)


def by_each(x, z, y):
    y = ntl.cdiv(x, z)


@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.__name__)
def test_it_does_near_the_ends_of_a_type_too(dtype):
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    x = np.array([least, least + 1, least + 2, most - 2, most - 1, most], dtype)
    for application, divisor in ((by_four, 4), (by_each, 3), (by_each, most)):
        expected = np.array([up(int(a), int(divisor)) for a in x], dtype)
        z = torch.tensor(np.full_like(x, divisor))
        found = result(application, torch.tensor(x), z, out=torch.zeros_like(z))

        assert found.tolist() == expected.tolist()


def of_truth_values(b, y):
    y = ntl.cdiv(b, 3) + ntl.cdiv(b, b | True) * 10 + ntl.cdiv(5, b | True) * 100


def test_truth_values_count():
    b = torch.tensor([True, False])
    assert result(of_truth_values, b, out=torch.zeros(2, dtype=torch.int32)).tolist() == [511, 500]


def of_unlike(x, z, y):
    y = ntl.cdiv(x, z)


@pytest.mark.parametrize(
    ("x", "z", "message"),
    [
        (torch.float32, torch.float32, "`ntl.cdiv` takes integers, but got float32"),
        (torch.int32, torch.float16, "`ntl.cdiv` takes integers, but got float16"),
        (torch.int32, torch.uint8, "`ntl.cdiv` needs operands of one signedness"),
    ],
    ids=["floats", "a float", "an unsigned one"],
)
def test_what_it_does_not_take_is_refused(x, z, message):
    one, other = torch.ones(4).to(x), torch.ones(4).to(z)
    with pytest.raises(ApplicationError, match=message) as caught:
        result(of_unlike, one, other, out=torch.zeros(4, dtype=torch.int32))
    assert caught.value.location.line == of_unlike.__code__.co_firstlineno + 1


def test_in_a_function_of_tritons_it_is_tritons():
    triton_functions = pytest.importorskip("tests.contract.application.triton_functions")

    def application(x, y):
        y = triton_functions.divided_up(x, 4)  # noqa: F841

    x = torch.tensor([-9, -8, 0, 8, 9], dtype=torch.int32)
    found = result(application, x, out=torch.zeros_like(x))
    assert found.tolist() == [-101, -101, 0, 202, 303]


def shifted(a, b):
    return a + b + 2


def of_constants_that_lanes_exchange(x, y):
    y = x / ntl.cdiv(ntl.abs(ntl.associative_scan(ntl.full(x.shape, -2, ntl.int32), 0, shifted)), 4)  # noqa: F841


def test_absolute_values_of_constants_that_lanes_exchange():
    def arrangement(*tensors):
        return tuple(tensor.tile((-1,)) for tensor in tensors)

    x, y = torch.tensor([2.0, 2.0, 1.0]), torch.zeros(3)
    ninetoothed.make(arrangement, of_constants_that_lanes_exchange, (Tensor(1), Tensor(1)))(x, y)
    assert y.tolist() == x.tolist()
