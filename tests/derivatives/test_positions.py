"""Elements of a tile at constant positions, and products that are added to a sum as they are made."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Tensor
from tests.derivatives.operators import made, rows

SIZES = {"shape_options": {"constexpr": True}}


def whole(*tensors):
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def at_a_position(x, y):
    y = x * x[2]  # noqa: F841


def at_the_end(x, y):
    y = x * x[-1]  # noqa: F841


def two_positions(x, y):
    y = x * x[0, 3]  # noqa: F841


def a_row(x, y):
    y = x * x[1]  # noqa: F841


def a_column(x, y):
    y = x * x[:, 2][:, None]  # noqa: F841


def by_round(x, y):
    total = x * 0
    for k in range(3):
        total += x * x[0, k]
    y = total  # noqa: F841


CASES = [
    (whole, at_a_position, (5,), lambda x: x * x[2]),
    (whole, at_the_end, (5,), lambda x: x * x[-1]),
    (whole, two_positions, (6, 5), lambda x: x * x[0, 3]),
    (whole, a_row, (6, 5), lambda x: x * x[1]),
    (whole, a_column, (6, 5), lambda x: x * x[:, 2:3]),
    (whole, by_round, (6, 5), lambda x: x * x[0, :3].sum()),
    (rows, two_positions, (6, 5), lambda x: x * x[:, 3:4]),
]


@pytest.mark.parametrize(
    ("arrangement", "application", "shape", "reference"),
    CASES,
    ids=[f"{case[1].__name__}, {case[0].__name__}" for case in CASES],
)
def test_an_element_at_a_position(arrangement, application, shape, reference):
    rank = len(shape)
    tensors = (Tensor(rank, **SIZES), Tensor(rank, **SIZES))
    operator = made(application, arrangement, tensors)
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    torch.testing.assert_close(operator(x), reference(x))
    assert gradcheck(operator, (x,))
    found = torch.autograd.grad(operator(x).sin().sum(), x)[0]
    torch.testing.assert_close(found, torch.autograd.grad(reference(x).sin().sum(), x)[0])


def added_to(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total = ntl.dot(input[k], other[k], total)
    output = total  # noqa: F841


def added_to_by_name(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total = ntl.dot(input[k], other[k], acc=total, input_precision="ieee")
    output = total  # noqa: F841


def added_to_by_place(input, other, output):
    total = ntl.zeros(output.shape, dtype=ntl.float32)
    for k in range(input.shape[0]):
        total = ntl.dot(input[k], other[k], total, "ieee")
    output = total  # noqa: F841


@pytest.mark.parametrize("application", [added_to, added_to_by_name, added_to_by_place])
def test_a_product_that_a_sum_is_given_to(application):
    outputs = {"output": ((mm.tensors[0].shape[0], mm.tensors[1].shape[1]), "input")}
    operator = made(application, mm.arrangement, mm.tensors, outputs)
    a, b = torch.randn(40, 50, requires_grad=True), torch.randn(50, 33, requires_grad=True)

    torch.testing.assert_close(operator(a, b), a @ b)
    found = torch.autograd.grad(operator(a, b).sin().sum(), (a, b))
    for one, wanted in zip(found, torch.autograd.grad((a @ b).sin().sum(), (a, b))):
        torch.testing.assert_close(one, wanted, rtol=1e-4, atol=1e-4)


def times_strides(x, y):
    n = y.source.stride(0)
    y = x * (n + x.stride(0))  # noqa: F841


def test_strides_are_those_of_the_tensor_that_they_are_said_of():
    times = made(times_strides)
    x = torch.randn(8, 3)[:, 0].requires_grad_()
    rows = torch.randn(2, 8, 3)[..., 0]

    torch.testing.assert_close(torch.autograd.grad(times(x).sum(), x)[0], torch.full((8,), 4.0))
    torch.testing.assert_close(torch.vmap(times)(rows), rows * 4)
