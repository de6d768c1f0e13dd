"""Sizes that a call alone tells: what is repeated then has no gradient, and says so."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError
from tests.derivatives.operators import made


def whole(*tensors):
    return tuple(tensor.tile((-1,)) for tensor in tensors)


def shared_by_rows(x, scale, output):
    x, output = x.tile((1, -1)), output.tile((1, -1))
    return x, scale.unsqueeze(0).tile((1, -1)).expand((output.shape[0], -1)), output


def to_one(x, scale, output):
    return x.tile((-1,)), scale.tile((-1,)), output.tile((1,))


def scaled(x, scale, output):
    output = x * scale  # noqa: F841


def summed(x, scale, output):
    output = ntl.sum(x + scale)  # noqa: F841


def repeated(x, scale, output):
    output = scale * 2.0  # noqa: F841


def added_up(x, scale, output):
    total = x * 0.0
    for _ in range(3):
        total += scale
    output = total  # noqa: F841


def numbers(*shape):
    return torch.linspace(-1, 2, torch.Size(shape).numel(), dtype=torch.float64).reshape(shape)


def operator_of(application, rank=1, arrangement=whole, **options):
    tensors = Tensor(rank), Tensor(1), Tensor(rank)
    return made(application, arrangement, tensors, **options)


def one_element(application):
    first = Tensor(1)
    tensors = first, Tensor(1), Tensor(1)
    return made(application, to_one, tensors, {"output": ((1,), first.dtype)})


REPEATED = {
    "a product": (lambda: operator_of(scaled), (5,)),
    "that of one input": (lambda: operator_of(scaled, wrt=("scale",)), (5,)),
    "a sum of all": (lambda: one_element(summed), (5,)),
    "a store": (lambda: operator_of(repeated), (5,)),
    "a sum of rounds": (lambda: operator_of(added_up), (5,)),
    "what rows share": (lambda: operator_of(scaled, 2, shared_by_rows), (2, 5)),
    "added atomically": (lambda: operator_of(scaled, 2, shared_by_rows, atomic=True), (2, 5)),
}


@pytest.mark.parametrize("case", REPEATED)
def test_what_is_repeated_in_a_call_has_no_gradient(case):
    making, shape = REPEATED[case]
    operator, scale = making(), numbers(1).requires_grad_()
    result = operator(numbers(*shape), scale)

    with pytest.raises(
        ArgumentError, match=r"`scale` has size 1 where `x` has 5.*\(1,\)"
    ) as caught:
        result.sum().backward()
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("size", [5, 1])
@pytest.mark.parametrize("case", REPEATED)
def test_what_is_as_large_has_a_gradient(case, size):
    making, shape = REPEATED[case]
    operator, x = making(), numbers(*shape[:-1], size)

    assert gradcheck(lambda scale: operator(x, scale), (numbers(size).requires_grad_(),))


@pytest.mark.parametrize(("rank", "arrangement"), [(1, whole), (2, shared_by_rows)])
def test_what_another_is_repeated_beside_has_its_gradient(rank, arrangement):
    operator = operator_of(scaled, rank, arrangement)
    x, scale = numbers(*(2, 5)[-rank:]).requires_grad_(), numbers(1)

    for _ in range(2):
        assert gradcheck(lambda x: operator(x, scale), (x,))
    assert gradgradcheck(lambda x: operator(x, scale).square(), (x,))


@pytest.mark.parametrize("entry", ["shape", "tile"])
def test_what_is_said_to_be_one_is_summed(entry):
    def arrangement(x, scale, output):
        tiled = scale.tile((-1,)) if entry == "shape" else scale.tile((1,))
        return x.tile((-1,)), tiled, output.tile((-1,))

    scale = Tensor(shape=(1,)) if entry == "shape" else Tensor(1)
    tensors = (Tensor(1), scale, Tensor(1))
    operator = made(scaled, arrangement, tensors, {"output": like("x")})

    assert gradcheck(operator, (numbers(5).requires_grad_(), numbers(1).requires_grad_()))
