"""Derivatives of operators where compilers, tracers, modes and subclasses of tensors see the call."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.flop_counter import FlopCounterMode

import ninetoothed
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError

NUMBERS = itertools.count()


class Derived(torch.Tensor):
    """Shown to the dispatcher by the operators."""


def elementwise(*tensors):
    return tuple(tensor.tile((16,)) for tensor in tensors)


def multiplied(x, y, z):
    z = x * x * y  # noqa: F841


@pytest.fixture(scope="module")
def operator():
    kernel = ninetoothed.make(elementwise, multiplied, tuple(Tensor(1) for _ in range(3)))
    name = f"dispatched::multiplied_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, {"z": like("x")}, backward="derive")


def reference(x, y):
    return x * x * y


X, Y = torch.tensor([1.0, 2.0, 3.0]).double(), torch.tensor([5.0, 7.0, 11.0]).double()
BOTH = (0, 1)

FUNCTIONS = {
    "grad": lambda f: grad(lambda x, y: f(x, y).sin().sum(), BOTH),
    "vjp": lambda f: lambda x, y: vjp(f, x, y)[1](x),
    "jvp": lambda f: lambda x, y: jvp(f, (x, y), (y, x)),
    "jvp by one": lambda f: lambda x, y: jvp(lambda y: f(x, y), (y,), (x,)),
    "jacrev": lambda f: jacrev(f, BOTH),
    "jacfwd": lambda f: jacfwd(f, BOTH),
    "jacrev of jacrev": lambda f: jacrev(jacrev(lambda x, y: f(x, y).sum(), BOTH), BOTH),
    "jacrev of jacfwd": lambda f: jacrev(jacfwd(lambda x, y: f(x, y).sum(), BOTH), BOTH),
    "vmap": lambda f: lambda x, y: torch.vmap(f, (0, None))(torch.stack((x, y)), y),
    "vmap of grad": lambda f: (
        lambda x, y: torch.vmap(grad(lambda x, y: f(x, y).sin().sum(), BOTH), (0, None))(
            torch.stack((x, y)), y
        )
    ),
    "vmap of jvp": lambda f: (
        lambda x, y: torch.vmap(lambda x, y: jvp(f, (x, y), (y, x)), (0, None))(
            torch.stack((x, y)), y
        )
    ),
}


def counted(function):
    def counting(*arguments):
        with FlopCounterMode(display=False):
            return function(*arguments)

    return counting


WAYS = {
    "eager": lambda f: f,
    "compiled": lambda f: torch.compile(f, backend="aot_eager", fullgraph=True),
    "make_fx": lambda f: lambda *arguments: make_fx(f)(*arguments)(*arguments),
    "mode": counted,
    "subclass": lambda f: lambda x, y: f(x.as_subclass(Derived), y.as_subclass(Derived)),
    "functionalize": lambda f: functionalize(f),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_it_is_what_it_is_of_pytorch_alone(operator, function, way):
    torch.compiler.reset()
    found = WAYS[way](FUNCTIONS[function](operator))(X, Y)

    wanted = FUNCTIONS[function](reference)(X, Y)
    for one, other in zip(*map(torch.utils._pytree.tree_leaves, (found, wanted)), strict=True):
        torch.testing.assert_close(one.as_subclass(torch.Tensor), other)


@pytest.mark.parametrize(
    "function",
    [
        lambda f: jacfwd(jacfwd(f)),
        lambda f: hessian(lambda x, y: f(x, y).sum()),
        lambda f: lambda x, y: jvp(torch.vmap(f), (x[None], y[None]), (x[None], y[None])),
    ],
)
def test_what_forward_mode_has_within_is_refused_there_and_computed_elsewhere(operator, function):
    wanted = function(reference)(X, Y)
    torch.testing.assert_close(function(operator)(X, Y), wanted)
    with pytest.raises(ArgumentError, match="within forward mode.*Use reverse mode"):
        WAYS["mode"](function(operator))(X, Y)


@pytest.mark.parametrize("is_registered", [False, True])
def test_gradients_of_what_a_transformation_captured(operator, is_registered):
    name = operator.definition.name.partition("::")[2]
    function = getattr(torch.ops.dispatched, name).default if is_registered else operator
    x, y = X.clone().requires_grad_(), Y.clone().requires_grad_()

    (found,) = torch.autograd.grad(grad(lambda x: function(x, y).sum())(X).sum(), y)
    torch.testing.assert_close(found, 2 * X)
    (found,) = torch.autograd.grad(jvp(function, (x, Y), (Y, X))[1].sum(), x)
    torch.testing.assert_close(found, 2 * Y * Y + 2 * X * X)


def test_tangents_of_subclasses_and_in_modes(operator):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, Y)
        for x in (dual.as_subclass(Derived), dual):
            with FlopCounterMode(display=False):
                found = forward_ad.unpack_dual(operator(x, Y)).tangent
            torch.testing.assert_close(found.as_subclass(torch.Tensor), 2 * X * Y * Y)


def test_shapes_alone(operator):
    with FakeTensorMode():
        x, y = torch.ones(3), torch.ones(3)
        assert grad(lambda x: operator(x, y).sum())(x).shape == (3,)
        assert jvp(operator, (x, y), (x, y))[1].shape == (3,)
