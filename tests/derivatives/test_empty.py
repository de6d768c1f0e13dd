"""Derived backwards of tensors without elements: gradients have the inputs' shapes, and are 0 where they have elements."""

from __future__ import annotations

import pytest
import torch

import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Tensor, like, op
from tests.derivatives.operators import made, rows

LIKE = {"output": like("x")}
NONE = ((0, 5), (3, 0), (0, 0))


def softmax(x, output):
    value = ntl.exp(x - ntl.max(x))
    output = value / ntl.sum(value)  # noqa: F841


def scaled(x, weight, output):
    output = x * ntl.rsqrt(ntl.sum(x * x) + 1.0) * weight  # noqa: F841


def shared_weight(x, weight, output):
    row = (1, -1)
    return x.tile(row), weight.tile(row).expand((x.shape[0], -1)), output.tile(row)


def shared_vector(x, weight, output):
    whole = weight.unsqueeze(0).tile((1, -1)).expand((x.shape[0], -1))
    return x.tile((1, -1)), whole, output.tile((1, -1))


def of_scaled(x, weight):
    return x * torch.rsqrt((x * x).sum(1, keepdim=True) + 1) * weight


def sum_of_rows(x, output):
    output = ntl.sum(x * x, axis=1, keep_dims=True)  # noqa: F841


def a_sum_each(x, output):
    return x.tile((1, -1)), output.tile((1, 1))


def over_squares(x, factor, output):
    output = x * factor / ntl.sum(x * x)  # noqa: F841


def over_a_factor(x, factor, output):
    output = x / ntl.sum(factor)  # noqa: F841


def a_factor_each(x, factor, output):
    return x.tile((1, -1)), factor.tile((1, 1)), output.tile((1, -1))


_ROWS = Tensor(2)
_A, _B, _ = mm.kernel.specializations.shown.tensor_parameters
_SIZES = _A.source.shape[0], _B.source.shape[1]

CASES = {
    "softmax": (made(softmax, rows, (Tensor(2), Tensor(2))), lambda x: x.softmax(1), ()),
    "scaled": (
        made(scaled, shared_weight, (Tensor(2), Tensor(2), Tensor(2)), LIKE),
        of_scaled,
        ((1,),),
    ),
    "scaled by a vector": (
        made(scaled, shared_vector, (Tensor(2), Tensor(1), Tensor(2)), LIKE),
        of_scaled,
        ((),),
    ),
    "sums": (
        made(sum_of_rows, a_sum_each, (_ROWS, Tensor(2)), {"output": ((_ROWS.shape[0], 1), "x")}),
        lambda x: (x * x).sum(1, keepdim=True),
        (),
    ),
}


@pytest.mark.parametrize("shape", NONE)
@pytest.mark.parametrize("name", CASES)
def test_gradients_of_all_orders(name, shape):
    operator, reference, others = CASES[name]
    tensors = [torch.ones(shape), *(torch.ones((*leading, shape[1])) for leading in others)]

    for one, other in zip(gradients(operator, tensors), gradients(reference, tensors)):
        torch.testing.assert_close(one, other)
    along = torch.func.jvp(operator, tuple(tensors), tuple(tensors))[1]
    torch.testing.assert_close(along, torch.zeros_like(reference(*tensors)))


@pytest.mark.parametrize(
    ("application", "reference"),
    [
        (over_squares, lambda x, factor: x * factor / (x * x).sum(1, keepdim=True)),
        (over_a_factor, lambda x, factor: x / factor),
    ],
)
@pytest.mark.parametrize("shape", [(2, 0), (2, 3)])
def test_a_sum_of_no_quotients_is_0(application, reference, shape):
    """Also where it is divided once it is summed, and that is by 0."""
    operator = made(application, a_factor_each, (Tensor(2), Tensor(2), Tensor(2)), LIKE)
    tensors = [torch.ones(shape), torch.zeros(2, 1)]

    for one, other in zip(gradients(operator, tensors), gradients(reference, tensors)):
        torch.testing.assert_close(one, other, equal_nan=True)


@pytest.mark.parametrize("sizes", [(0, 4, 5), (4, 0, 5), (4, 5, 0), (0, 0, 0)])
def test_products(sizes):
    m, k, n = sizes
    operator = op(f"empty::mm_{m}_{k}_{n}", mm.kernel, {"output": (_SIZES, "input")}, "derive")
    tensors = [torch.ones(m, k), torch.ones(k, n)]

    for one, other in zip(gradients(operator, tensors), gradients(torch.matmul, tensors)):
        torch.testing.assert_close(one, other)


def gradients(function, tensors):
    """First derivatives, and those of their squares."""
    given = [each.clone().requires_grad_() for each in tensors]
    first = torch.autograd.grad(function(*given).sum(), given, create_graph=True)
    total = sum(each.square().sum() for each in (*first, *given))
    second = torch.autograd.grad(total, given, allow_unused=True, materialize_grads=True)
    return [*first, *second]
