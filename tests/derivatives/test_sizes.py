"""Sizes that a call alone tells: what is repeated then has no gradient, and says so."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from ninetoothed.derivatives.derive import derive
from ninetoothed.errors import ArgumentError, ArrangementError
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


def in_eights(*tensors):
    return tuple(tensor.tile((8,)) for tensor in tensors)


def exponential(x, output):
    output = ntl.exp(x)  # noqa: F841


def shares(x, output):
    value = ntl.exp(x)
    output = value / ntl.sum(value)  # noqa: F841


@pytest.mark.parametrize("application", [exponential, shares])
@pytest.mark.parametrize("size", [5, 11])
@pytest.mark.parametrize("is_number", [True, False])
def test_what_an_output_ends_before_has_a_gradient_of_zero(application, size, is_number):
    first = Tensor(1)
    left = 3 if is_number else first.shape[0] - 2
    # What is left has as many tiles as there were.
    left = left + 8 * (size // 8) if is_number else left
    operator = made(application, in_eights, (first, Tensor(1)), {"output": ((left,), first.dtype)})
    x = numbers(size).requires_grad_()

    assert gradcheck(operator, (x,))
    assert gradgradcheck(operator, (x,))
    if application is exponential:
        (gradient,) = torch.autograd.grad(operator(x).sum(), x)
        assert gradient.count_nonzero() == (left if is_number else size - 2)


@pytest.mark.parametrize("is_shorter", [True, False])
def test_zeros_are_read_beyond_an_end_of_its_own_alone(is_shorter):
    definition = made(exponential, in_eights, (Tensor(1), Tensor(1))).definition.kernel
    (x,), (own,) = (each.source.shape for each in definition.tensor_parameters)

    derived = derive(definition, ("x",), equal={own: x - 2 if is_shorter else x})
    found = derived.specializations.declaration.tensor_parameters

    others = {each.name: each.source.other for each in found}
    assert others["output_gradient"] == (0 if is_shorter else None)


# Sizes that are declared by those of a tensor which the backward kernel does not take.


def affine(x, scale, bias, output):
    output = x * scale + bias  # noqa: F841


def shared_twice(x, scale, bias, output):
    def of_rows(tensor):
        return tensor.unsqueeze(0).tile((1, -1)).expand((x.shape[0], -1))

    return x.tile((1, -1)), of_rows(scale), of_rows(bias), output.tile((1, -1))


def in_rows(*tensors):
    return tuple(tensor.tile((1, -1)) for tensor in tensors)


def in_pairs(x, scale, output):
    return x.tile((4,)), scale.tile((8,)), output.tile((4,))


def beside_the_sum(x, scale, output):
    output = x * ntl.sum(scale)  # noqa: F841


def of_first(like_it):
    return like_it, Tensor(shape=like_it.shape), Tensor(1)


@pytest.mark.parametrize("wrt", [("x",), ("scale",), ("x", "scale")])
def test_a_size_that_is_said_to_be_an_inputs(wrt):
    operator = made(scaled, in_eights, of_first(Tensor(1)), {"output": like("x")}, wrt=wrt)
    x, scale = (numbers(11).requires_grad_(name in wrt) for name in ("x", "scale"))

    assert gradcheck(operator, (x, scale))
    assert gradgradcheck(operator, (x, scale))


def test_a_size_that_is_twice_an_inputs():
    x = Tensor(1)
    tensors = x, Tensor(shape=(x.shape[0] * 2,)), Tensor(shape=x.shape)
    operator = made(beside_the_sum, in_pairs, tensors, {"output": like("x")})

    assert gradcheck(operator, (numbers(6).requires_grad_(), numbers(12).requires_grad_()))


@pytest.mark.parametrize("options", [{}, {"constexpr": True}])
def test_sizes_that_are_said_to_be_those_of_rows(options):
    x = Tensor(2, shape_options=(None, options))
    tensors = x, Tensor(shape=(x.shape[1],)), Tensor(shape=(x.shape[1],)), Tensor(shape=x.shape)
    operator = made(affine, shared_twice, tensors, {"output": like("x")})
    given = [numbers(*shape).requires_grad_() for shape in ((3, 7), (7,), (7,))]

    assert gradcheck(operator, given)
    assert gradgradcheck(operator, given)


def test_an_output_that_is_loaded_and_said_to_be_as_large():
    x = Tensor(2)
    operator = made(shares, in_rows, (x, Tensor(shape=x.shape)), {"output": like("x")})

    assert gradcheck(operator, (numbers(3, 7).requires_grad_(),))
    assert gradgradcheck(operator, (numbers(3, 7).requires_grad_(),))


def test_more_tiles_than_the_loop_reads_are_an_error_at_the_application():
    def arrangement(x, w, output):
        x = x.tile((1, 8)).tile((1, -1)).squeeze(1)
        x.dtype = x.dtype.squeeze(0)
        x.dtype.dtype = x.dtype.dtype.squeeze(0)
        return x, w.tile((8,)).tile((-1,)).expand((x.shape[0],)), output.tile((1,))

    def application(x, w, output):
        total = ntl.zeros((8,), dtype=ntl.float64)
        for i in range(x.shape[0]):
            total += x[i] * w[i]
        output = ntl.sum(total)  # noqa: F841

    x = Tensor(2)
    outputs = {"output": ((x.shape[0],), ninetoothed.float64)}
    operator = made(application, arrangement, (x, Tensor(1), Tensor(1)), outputs)
    result = operator(numbers(3, 24), numbers(32).requires_grad_())

    with pytest.raises(ArrangementError, match=r"in a loop over another's.* `wrt`") as caught:
        result.sum().backward()
    assert "def application(x, w, output):" in str(caught.value)
