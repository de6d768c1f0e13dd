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
    try:
        WAYS[way](FUNCTIONS[function](reference))(X, Y)
    except Exception as error:
        # PyTorch 2.11 does not capture jacobians, of its own operators either.
        pytest.skip(f"PyTorch {torch.__version__} alone does not do it: {type(error).__name__}")
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


def made(application, outputs, arrangement=elementwise, **options):
    count = application.__code__.co_argcount
    dims = [0 if name == "factor" else 1 for name in application.__code__.co_varnames[:count]]
    kernel = ninetoothed.make(arrangement, application, tuple(map(Tensor, dims)))
    return ninetoothed.op(f"dispatched::made_{next(NUMBERS)}", kernel, outputs, **options)


@pytest.fixture(scope="module")
def scaled():
    """A product with a number that is passed by value."""

    def arrangement(x, factor, y):
        return x.tile((16,)), factor, y.tile((16,))

    def scaled(x, factor, y):
        y = x * factor  # noqa: F841

    return made(scaled, {"y": like("x")}, arrangement, backward="derive")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", [way for way in WAYS if way != "make_fx"])
def test_a_number_may_be_a_tensor_everywhere(scaled, way):
    torch.compiler.reset()
    two = torch.tensor(2.0)
    ways = {**WAYS, "subclass": lambda f: lambda x, factor: f(x.as_subclass(Derived), factor)}

    assert ways[way](scaled)(torch.ones(3), two).tolist() == [2] * 3
    gradient = grad(lambda x: scaled(x, two).sum())
    assert WAYS[way if way != "subclass" else "eager"](gradient)(torch.ones(3)).tolist() == [2] * 3


@pytest.mark.parametrize(
    "ask",
    [
        lambda f, x: f(x, torch.tensor(2.0, requires_grad=True)),
        lambda f, x: grad(lambda n: f(x, n).sum())(torch.tensor(2.0)),
        lambda f, x: jvp(lambda n: f(x, n), (torch.tensor(2.0),), (torch.tensor(1.0),)),
        lambda f, x: torch.vmap(lambda n: f(x, n))(torch.tensor([2.0, 3.0])),
    ],
    ids=["backward", "grad", "jvp", "vmap"],
)
@pytest.mark.parametrize("way", ["mode", "compiled"])
def test_the_gradient_of_a_number_is_not_lost_there(scaled, ask, way):
    torch.compiler.reset()
    ways = {"mode": counted, "compiled": lambda f: torch.compile(f, backend="eager")}
    with pytest.raises(Exception, match=r"`factor` is a number of the kernel's|item\(\)"):
        ways[way](lambda x: ask(scaled, x))(torch.ones(3))


def test_a_second_derivative_does_not_lose_what_is_hidden_when_compiled():
    def squared(x, square, twice):
        square = x * x  # noqa: F841
        twice = x * 2  # noqa: F841

    operator = made(
        squared,
        {"square": like("x"), "twice": like("x")},
        backward=lambda gradient, twice: gradient * twice,
        saved=("twice",),
        hidden=("twice",),
    )
    second = grad(lambda x: grad(lambda x: operator(x).sum())(x).sum())
    with pytest.raises(Exception, match="not given the gradients of what is hidden"):
        torch.compile(second, backend="aot_eager", fullgraph=True)(torch.ones(3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((X.numpy(), Y), "`x` must be a tensor, not ndarray"),
        ((X.numpy(), Y.clone().requires_grad_()), "`x` must be a tensor, not ndarray"),
        ((None, Y), "`x` must be a tensor, not NoneType"),
        ((X.clone().requires_grad_(),), "missing a required argument: 'y'"),
        (
            (torch.nested.nested_tensor([X, Y], layout=torch.jagged), Y),
            "takes no nested tensors.*Call its kernel",
        ),
    ],
)
def test_what_no_operator_takes_is_named(operator, arguments, words):
    with pytest.raises(ArgumentError, match=f"operator 'dispatched::multiplied_.*{words}"):
        operator(*arguments)


def test_an_argument_that_is_given_twice_is_named(operator):
    with pytest.raises(ArgumentError, match="multiple values for argument 'x'"):
        operator(X, x=X)


@pytest.mark.filterwarnings("ignore")
def test_batches_of_gradients(operator):
    """Those of `is_grads_batched`, which are another kind of stand-in than `torch.vmap`'s."""
    given = X.clone().requires_grad_(), Y.clone().requires_grad_()

    assert torch.autograd.gradcheck(
        operator,
        given,
        check_forward_ad=True,
        check_batched_grad=True,
        check_batched_forward_grad=True,
    )
    assert torch.autograd.gradgradcheck(
        operator, given, check_fwd_over_rev=True, check_batched_grad=True
    )
    for strategy in ("reverse-mode", "forward-mode"):
        found = torch.autograd.functional.jacobian(
            operator, (X, Y), vectorize=True, strategy=strategy
        )
        torch.testing.assert_close(found, (torch.diag(2 * X * Y), torch.diag(X * X)))


def test_shapes_alone(operator):
    with FakeTensorMode():
        x, y = torch.ones(3), torch.ones(3)
        assert grad(lambda x: operator(x, y).sum())(x).shape == (3,)
        assert jvp(operator, (x, y), (x, y))[1].shape == (3,)
