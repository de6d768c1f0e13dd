"""Calls of operators in which PyTorch gives what only it makes: tangents within levels, negated views, batches of
nothing, tensors without elements, stand-ins of `torch.fx`."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch.autograd import forward_ad

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError, CompilationError

NUMBERS = itertools.count()


def tiled(*tensors):
    return tuple(tensor.tile((4, 8)) for tensor in tensors)


def with_a_row(x, y, z):
    return x.tile((4, 8)), y.tile((1, 8)).expand((z.tile((4, 8)).shape[0], -1)), z.tile((4, 8))


def made(arrangement, application, tensors, backward="derive", **options):
    kernel = ninetoothed.make(arrangement, application, tensors)
    name = f"called::{application.__name__}_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, {"z": like("x")}, backward=backward, **options)


@pytest.fixture(scope="module")
def cube():
    def cubed(x, z):
        z = x * x * x  # noqa: F841

    return made(tiled, cubed, (Tensor(2), Tensor(2)))


@pytest.fixture(scope="module")
def scaled():
    def multiplied(x, y, z):
        z = x * y  # noqa: F841

    return made(with_a_row, multiplied, (Tensor(2), Tensor(2, shape=(1, None)), Tensor(2)))


X = torch.arange(30.0, dtype=torch.float64).reshape(3, 10) / 10


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_of_dual_numbers_has_their_tangent(cube, scaled, create_graph):
    def moved(function, *arguments):
        with forward_ad.dual_level():
            given = [forward_ad.make_dual(a.clone().requires_grad_(), 2 * a) for a in arguments]
            value = function(*given).square().sum()
            found = torch.autograd.grad(value, given, create_graph=create_graph)
            return [forward_ad.unpack_dual(each).tangent for each in found]

    torch.testing.assert_close(moved(cube, X), moved(lambda x: x * x * x, X))
    torch.testing.assert_close(moved(scaled, X, X[:1]), moved(lambda x, y: x * y, X, X[:1]))


def test_a_negated_gradient_that_autograd_makes_is_taken(cube):
    def gradient(function):
        x = X.clone().requires_grad_()
        (torch.complex(torch.zeros_like(x), function(x)).conj() * 1j).real.sum().backward()
        return x.grad

    torch.testing.assert_close(gradient(cube), gradient(lambda x: x * x * x))


def test_a_batch_of_nothing_has_results_of_nothing():
    def looked_up(i, x, z):
        z = x.source[i[:, None], z.offsets(1)[None, :]]  # noqa: F841

    i, x = Tensor(1), Tensor(2)
    kernel = ninetoothed.make(
        lambda i, x, z: (i.tile((4,)), x, z.tile((4, -1)).squeeze(1)), looked_up, (i, x, Tensor(2))
    )
    outputs = {"z": ((i.shape[0], x.shape[1]), "x")}
    embedding = ninetoothed.op(f"called::looked_up_{next(NUMBERS)}", kernel, outputs)
    table = torch.randn(4, 6)
    for shape in ((0, 3), (2, 0, 3)):
        indices = torch.zeros(shape, dtype=torch.int64)
        function, plain = embedding, torch.nn.functional.embedding
        for _ in shape[1:]:
            function, plain = torch.vmap(function, (0, None)), torch.vmap(plain, (0, None))
        found, wanted = function(indices, table), plain(indices, table)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)


def test_a_tensor_without_elements_gives_one(cube):
    found = cube(torch.empty(3, 5, device="meta", requires_grad=True))
    assert (found.device.type, found.shape, found.requires_grad) == ("meta", (3, 5), True)


def test_fx_traces_a_call(cube):
    module = torch.fx.symbolic_trace(lambda x: cube(x) + 1)
    (call, _) = [node for node in module.graph.nodes if node.op == "call_function"]
    assert str(call.target) == f"{cube.definition.name.replace('::', '.')}.default"
    torch.testing.assert_close(module(X), X**3 + 1)


@pytest.mark.parametrize("value", [2.0, 3, True])
def test_a_constant_with_a_default_stands_before_the_gradient(value):
    def powers(x, z, s):
        z = x * x * s  # noqa: F841

    tensors = Tensor(2), Tensor(2), Tensor(0, constexpr=True, value=value)
    operator = made(lambda x, z, s: (*tiled(x, z), s), powers, tensors)
    x = X.clone().requires_grad_()
    for arguments, by in (((), value), ((type(value)(0),), type(value)(0))):
        assert torch.autograd.gradcheck(lambda x: operator(x, *arguments), x)  # noqa: B023
        assert torch.autograd.gradgradcheck(lambda x: operator(x, *arguments), x)  # noqa: B023
        torch.testing.assert_close(operator(x, *arguments), x * x * by)


def test_names_that_are_not_in_ascii_are_refused():
    def doubled(größe, z):
        z = größe * 2  # noqa: F841

    kernel = ninetoothed.make(tiled, doubled, (Tensor(2), Tensor(2)))
    with pytest.raises(ArgumentError, match="in ASCII; give `größe` such a name"):
        ninetoothed.op("called::doubled", kernel, {"z": like("größe")}, backward="derive")


def test_an_error_of_an_application_is_not_blamed_on_none_where_no_tensor_is_read():
    def scaled(x, y, has, z):
        z = ntl.exp(x) * y if has else ntl.exp(x)  # noqa: F841

    tensors = Tensor(2), Tensor(2), Tensor(0, constexpr=True), Tensor(2)
    arrangement = lambda x, y, has, z: (*tiled(x, y), has, *tiled(z))  # noqa: E731
    operator = made(arrangement, scaled, tensors, constants={"has": False})

    torch.testing.assert_close(operator(X, None), X.exp())
    with pytest.raises(CompilationError, match=r"ntl\.exp takes float32"):
        operator(X.bfloat16(), None)
