"""Operators under `torch.vmap`, in forward mode, and where autocast chooses the element types."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode

import ninetoothed
import ninetoothed.language as ntl
from examples import mm, rope, softmax
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError, ArrangementError
from tests.derivatives.test_shared_inputs import scaled, with_vectors

NUMBERS = itertools.count()
MATRICES = {"output": ((mm.tensors[0].shape[0], mm.tensors[1].shape[1]), "input")}
LIKE = {"output": like("input")}


def made(kernel, outputs, **options):
    name = f"transformed::{kernel.name}_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, outputs, **{"backward": "derive", **options})


def elementwise(*tensors):
    return tuple(tensor.tile((16,)) if tensor.ndim else tensor for tensor in tensors)


def cubed(input, output):
    output = input * input * input  # noqa: F841


@pytest.fixture(scope="module")
def product():
    return made(mm.kernel, MATRICES)


@pytest.fixture(scope="module")
def normal():
    arrangement, tensors = with_vectors(2)
    return made(ninetoothed.make(arrangement, scaled, tensors), LIKE)


@pytest.fixture(scope="module")
def cube():
    return made(ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1))), LIKE)


def random(*shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype)


def single(*shape):
    """What products take: they sum in float32."""
    return random(*shape, dtype=torch.float32)


class Calls(TorchDispatchMode):
    """The names of the operators of this page that are called."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.namespace == "transformed":
            self.names.append(str(function))
        return function(*arguments, **(keywords or {}))


# vmap.


@pytest.mark.parametrize("in_dims", [(0, None), (None, 0), (0, 0), (1, 2)])
def test_a_batch_of_products_is_one_kernel(product, in_dims):
    shapes = ((5, 7), (7, 3))
    given = [
        single(*shape[:dim], 4, *shape[dim:]) if dim is not None else single(*shape)
        for dim, shape in zip(in_dims, shapes)
    ]
    with Calls() as calls:
        found = torch.vmap(product, in_dims)(*given)

    torch.testing.assert_close(found, torch.vmap(torch.mm, in_dims)(*given))
    assert len(calls.names) == 1 and "_over_" in calls.names[0]


def test_a_batch_within_a_batch(normal):
    x, weight, bias = random(2, 3, 5, 9), random(3, 9), random(9)
    function = torch.vmap(torch.vmap(normal, (0, 0, None)), (0, None, None))

    wanted = torch.nn.functional.layer_norm(x, (9,)) * weight[:, None] + bias
    torch.testing.assert_close(function(x, weight, bias), wanted)


def test_gradients_of_a_batch(normal):
    x, weight, bias = (t.requires_grad_() for t in (random(4, 5, 9), random(9), random(4, 9)))

    def loss(function):
        return torch.vmap(function, (0, None, 0))(x, weight, bias).sin().sum()

    found = torch.autograd.grad(loss(normal), (x, weight, bias))

    reference = loss(lambda x, w, b: torch.nn.functional.layer_norm(x, (9,)) * w + b)
    for one, wanted in zip(found, torch.autograd.grad(reference, (x, weight, bias))):
        torch.testing.assert_close(one, wanted)


def test_a_batch_of_gradients(product):
    x, y = single(4, 5, 7), single(7, 3)
    gradient = torch.func.grad(lambda x, y: product(x, y).sin().sum(), argnums=(0, 1))
    reference = torch.func.grad(lambda x, y: (x @ y).sin().sum(), argnums=(0, 1))

    found = torch.vmap(gradient, (0, None))(x, y)

    for one, wanted in zip(found, torch.vmap(reference, (0, None))(x, y)):
        torch.testing.assert_close(one, wanted)


def test_an_empty_batch(product):
    assert torch.vmap(product, (0, None))(single(0, 5, 7), single(7, 3)).shape == (0, 5, 3)


def test_what_a_call_counts_elements_by_is_run_one_by_one():
    def numbered(input, output):
        output = input + output.offsets()  # noqa: F841

    operator = made(
        ninetoothed.make(elementwise, numbered, (Tensor(1), Tensor(1))), LIKE, backward=None
    )
    x = random(3, 20)
    with Calls() as calls:
        found = torch.vmap(operator)(x)

    torch.testing.assert_close(found, x + torch.arange(20))
    assert len(calls.names) == 3


def test_what_a_program_is_numbered_is_run_one_by_one():
    def numbered(input, output):
        output = input + ntl.program_id(0) * 10 + ntl.num_programs(0)  # noqa: F841

    operator = made(
        ninetoothed.make(elementwise, numbered, (Tensor(1), Tensor(1))), LIKE, backward=None
    )
    x = random(3, 20)
    each = torch.stack([operator(row) for row in x])

    torch.testing.assert_close(torch.vmap(operator)(x), each)


def test_a_batch_of_numbers_is_run_one_by_one():
    def scaled(input, factor, output):
        output = input * factor  # noqa: F841

    operator = made(
        ninetoothed.make(elementwise, scaled, (Tensor(1), Tensor(0), Tensor(1))),
        LIKE,
        backward=None,
    )

    found = torch.vmap(operator, (None, 0))(torch.ones(3), torch.tensor([2.0, 3.0]))

    assert found.tolist() == [[2, 2, 2], [3, 3, 3]]


def test_what_is_changed_in_place_has_no_rule_and_says_so():
    def added(x, y):
        y += x  # noqa: F841

    operator = made(ninetoothed.make(elementwise, added, (Tensor(1), Tensor(1))), {}, backward=None)

    def function(x, y):
        y = y.clone()
        operator(x, y)
        return y.sum()

    x, y = single(2, 3), torch.zeros(3)
    for ask in (
        lambda: torch.vmap(function, (0, None))(x, y),
        lambda: torch.func.grad(function)(x[0], y),
        lambda: torch.vmap(torch.func.grad(function), (0, None))(x, y),
        lambda: torch.func.jvp(lambda x: function(x, y), (x[0],), (x[1],)),
    ):
        with pytest.raises(ArgumentError, match="changes tensors in place, and .* under `outputs`"):
            ask()
    # What no transformation asks about is changed as ever.
    given = torch.zeros(3)
    torch.func.grad(lambda x: (operator(y + 1, given), x.sum())[1])(x[0])
    assert torch.equal(given, y + 1)


def test_tables_that_all_of_a_batch_share():
    operator = made(rope.kernel, LIKE, wrt=("input",))
    x, sin, cos = random(3, 2, 5, 4, 8), random(5, 4), random(5, 4)

    found = torch.vmap(operator, (0, None, None))(x, sin, cos)

    for one, wanted in zip(found, (operator(each, sin, cos) for each in x)):
        torch.testing.assert_close(one, wanted)


# Forward mode.


def test_jvp(product, normal):
    x, y, dx, dy = single(5, 7), single(7, 3), single(5, 7), single(7, 3)
    found = torch.func.jvp(product, (x, y), (dx, dy))
    for one, wanted in zip(found, torch.func.jvp(torch.mm, (x, y), (dx, dy))):
        torch.testing.assert_close(one, wanted)

    given, tangents = (x, single(7), single(7)), (dx, single(7), single(7))
    found = torch.func.jvp(normal, given, tangents)
    reference = lambda x, w, b: torch.nn.functional.layer_norm(x, (7,), w, b)  # noqa: E731
    for one, wanted in zip(found, torch.func.jvp(reference, given, tangents)):
        torch.testing.assert_close(one, wanted)


def test_jvp_by_some_of_the_inputs(product):
    x, y, dx = single(5, 7), single(7, 3), single(5, 7)

    _, found = torch.func.jvp(lambda x: product(x, y), (x,), (dx,))

    torch.testing.assert_close(found, dx @ y)


def test_dual_numbers(cube):
    x, dx = random(20), random(20)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(cube(forward_ad.make_dual(x, dx))).tangent

    torch.testing.assert_close(found, 3 * x**2 * dx)


def test_forward_over_reverse_and_batches_of_it(cube):
    x = random(5)

    hessian = torch.func.hessian(lambda x: cube(x).sum())(x)

    torch.testing.assert_close(hessian, torch.diag(6 * x))
    torch.testing.assert_close(torch.func.jacfwd(cube)(x), torch.diag(3 * x**2))


def _normalised(x, weight, bias):
    centered = x - x.mean(-1, keepdim=True)
    return centered * ((centered**2).mean(-1, keepdim=True) + 1e-5).rsqrt() * weight + bias


def test_forward_mode_within_itself(normal):
    """PyTorch's operations in a backward, and those that add a weight's gradients up, are derived once more too."""
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))
    by_hand = made(kernel, LIKE, backward=lambda g, x: g * 3 * x * x, saved=("input",))

    def forward(function):
        return lambda *given: torch.func.jvp(function, given, tuple(map(torch.ones_like, given)))[1]

    x = random(5)
    torch.testing.assert_close(forward(forward(by_hand))(x), 6 * x)
    torch.testing.assert_close(forward(forward(forward(by_hand)))(x), torch.full_like(x, 6))
    twice = torch.func.jacfwd(torch.func.jacfwd(lambda x: by_hand(x).sin().sum()))(x)
    expected = torch.func.hessian(lambda x: (x**3).sin().sum())(x)
    torch.testing.assert_close(twice, expected)
    rows, weight, bias = random(3, 5), random(5), random(5)
    found = forward(forward(normal))(rows, weight, bias)
    wanted = forward(forward(_normalised))(rows, weight, bias)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("scale", [lambda y: 2 * y, lambda y: y / 2, lambda y: y * torch.arange(3)])
def test_reverse_over_forward_mode_of_what_is_scaled(cube, scale):
    """Autograd passes zeros without memory there."""

    def tangent(function):
        return lambda x: torch.func.jvp(lambda x: scale(function(x)), (x,), (torch.ones(3),))[1]

    x = single(3)
    for of in (
        lambda f: torch.func.grad(lambda x: tangent(f)(x).sum())(x),
        lambda f: torch.func.jacrev(torch.func.jacfwd(lambda x: scale(f(x))))(x),
    ):
        torch.testing.assert_close(of(cube), of(lambda x: x**3))
    leaf = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(cube(leaf), leaf, torch._efficientzerotensor((3,)))
    assert found.tolist() == [0, 0, 0]


def test_gradcheck_in_forward_mode(normal):
    given = tuple(t.requires_grad_() for t in (random(3, 4), random(4), random(4)))

    assert torch.autograd.gradcheck(normal, given, check_forward_ad=True, check_backward_ad=False)


def test_a_backward_without_a_derivative_is_refused_in_forward_mode():
    backward = made(
        ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1))), LIKE, backward=None
    )
    kernel = ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1)))
    operator = made(kernel, LIKE, backward=lambda gradient: backward(gradient))

    with pytest.raises(ArgumentError, match="has no `backward`"):
        torch.func.jvp(operator, (random(5),), (random(5),))


@pytest.mark.parametrize("is_compiled", [False, True])
def test_an_operator_without_backward_is_no_constant(is_compiled):
    operator = made(
        ninetoothed.make(elementwise, cubed, (Tensor(1), Tensor(1))), LIKE, backward=None
    )
    x = random(5).requires_grad_()
    function = lambda x: (operator(x) + x).sum()  # noqa: E731
    if is_compiled:
        function = torch.compile(function, backend="eager")

    with pytest.raises(ArgumentError, match="has no `backward`, and a gradient is asked of it"):
        function(x).backward()
    with pytest.raises(ArgumentError, match="has no `backward`"):
        torch.func.jvp(operator, (random(5),), (random(5),))


# Autocast.


def test_products_are_computed_in_the_lower_precision(product):
    x, y = torch.randn(5, 7), torch.randn(7, 3, requires_grad=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = product(x, y)
        wanted = torch.mm(x, y)
    found.sum().backward()

    assert found.dtype is wanted.dtype is torch.bfloat16
    torch.testing.assert_close(found, wanted)
    assert y.grad.dtype is torch.float32


def test_autocast_leaves_float64_and_what_has_no_product(cube):
    rows = made(softmax.kernel, LIKE, autocast="lower")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert rows(random(5, 7)).dtype is torch.float64
        assert cube(single(5)).dtype is torch.float32


def test_a_rule_that_is_asked_for():
    rows = made(softmax.kernel, LIKE, autocast="float32")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert rows(torch.randn(3, 5).bfloat16()).dtype is torch.float32

    assert rows(torch.randn(3, 5).bfloat16()).dtype is torch.bfloat16
    with pytest.raises(ArgumentError, match="`autocast` is one of 'lower', 'float32' or None"):
        made(softmax.kernel, LIKE, autocast="higher")


def test_a_plain_call_in_a_whole_graph_is_refused_with_what_to_do():
    def function(x):
        out = torch.empty_like(x)
        softmax.kernel(x, out)
        return out

    x = torch.randn(3, 5)
    function(x)
    with pytest.raises(torch._dynamo.exc.Unsupported, match="make an operator of it, as with"):
        torch.compile(function, fullgraph=True, backend="eager")(x)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_autocast_is_compiled(product, backend):
    def function(x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return product(x, y)

    x, y = torch.randn(5, 7), torch.randn(7, 3)
    found = torch.compile(function, fullgraph=True, backend=backend)(x, y)

    assert found.dtype is torch.bfloat16
    torch.testing.assert_close(found, function(x, y))


def compiled(backend):
    return lambda add: torch.compile(lambda x, y: add(x, y), fullgraph=True, backend=backend)


@pytest.mark.parametrize(
    "transformed",
    [
        lambda add: lambda x, y: torch.vmap(add)(x[None], y[None]),
        lambda add: torch.func.grad(lambda x, y: add(x, y).sum()),
        lambda add: functools.partial(torch.utils.checkpoint.checkpoint, add, use_reentrant=False),
        compiled("eager"),
        compiled("aot_eager"),
    ],
    ids=["vmap", "grad", "checkpoint", "eager", "aot_eager"],
)
def test_a_wrong_call_is_placed_where_the_user_calls_not_in_torch(transformed):
    def add(x, y, output):
        output = x + y  # noqa: F841

    vectors = tuple(Tensor(1) for _ in range(3))
    operator = made(ninetoothed.make(elementwise, add, vectors), {"output": like("x")})
    function = transformed(operator)

    with pytest.raises(ArrangementError) as caught:
        function(torch.ones(40), torch.ones(20))
    assert caught.value.location.file == __file__


@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_a_batch_of_a_tensor_that_is_declared_by_anothers_sizes(in_dims):
    def application(x, y, output):
        total = 0.0
        for k in range(x.shape[0]):
            total += ntl.sum(x[k] * y[k])
        for k in range(x.shape[0]):
            output[k] = total * x[k] - y[k]

    x = Tensor(1)
    tensors = x, Tensor(shape=(x.shape[0],)), Tensor(shape=(x.shape[0],))
    kernel = ninetoothed.make(
        lambda *given: tuple(each.tile((4,)).tile((-1,)) for each in given), application, tensors
    )
    operator = made(kernel, {"output": like("x")})

    def gradients(function):
        def summed(x, y):
            return function(x, y).sin().sum()

        return torch.vmap(torch.func.grad(summed, argnums=(0, 1)), in_dims=in_dims)

    given = [random(11) if dim is None else random(3, 11) for dim in in_dims]
    found = gradients(operator)(*given)
    torch.testing.assert_close(found, gradients(lambda x, y: (x * y).sum() * x - y)(*given))
