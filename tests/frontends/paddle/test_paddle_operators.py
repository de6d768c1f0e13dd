"""`ninetoothed.op` on PaddlePaddle's tensors: outputs, gradients."""

from __future__ import annotations

import itertools

import numpy
import pytest

import ninetoothed
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError

paddle = pytest.importorskip("paddle", reason="needs PaddlePaddle")

NUMBERS = itertools.count()


def elementwise(*tensors):
    return tuple(tensor.tile((16,)) for tensor in tensors)


def cubed(input, output):
    output = input * input * input  # noqa: F841


def cubed_backward(input, gradient, output):
    output = 3 * input * input * gradient  # noqa: F841


def both(input, one, two):
    one = input + 1  # noqa: F841
    two = input * 2  # noqa: F841


def made(application, outputs, **options):
    count = application.__code__.co_argcount
    kernel = ninetoothed.make(elementwise, application, tuple(Tensor(1) for _ in range(count)))
    return ninetoothed.op(f"tests::paddle_{next(NUMBERS)}", kernel, outputs, **options)


def test_it_makes_its_outputs():
    one, two = made(both, {"one": like("input"), "two": like("input")})(paddle.ones([5]))

    assert one.numpy().tolist() == two.numpy().tolist() == [2] * 5


def multiplied(input, other, output):
    output = input * other  # noqa: F841


@pytest.mark.parametrize("wanted", [(True, False), (False, True), (True, True)])
def test_gradients_of_some_inputs(wanted):
    multiply = made(multiplied, {"output": like("input")}, backward="derive")
    x, y = paddle.randn([37]), paddle.randn([37])
    x.stop_gradient, y.stop_gradient = (not each for each in wanted)
    multiply(x, y).sum().backward()

    for tensor, other, is_wanted in ((x, y, wanted[0]), (y, x, wanted[1])):
        assert (tensor.grad is not None) is is_wanted
        if is_wanted:
            numpy.testing.assert_allclose(tensor.grad.numpy(), other.numpy())


def test_what_backward_needs_is_not_stored_to_meanwhile():
    multiply = made(multiplied, {"output": like("input")}, backward="derive")
    x, y = paddle.randn([37]), paddle.randn([37])
    x.stop_gradient = y.stop_gradient = False
    between = x * 1
    output = multiply(between, y)
    between.add_(paddle.ones([37]))

    with pytest.raises(OSError, match="backward needs was stored to after the call"):
        output.sum().backward()


def test_gradients():
    backward = made(cubed_backward, {"output": like("input")})
    cube = made(
        cubed,
        {"output": like("input")},
        backward=lambda gradient, x: backward(x, gradient),
        saved=("input",),
    )
    x = paddle.randn([37])
    x.stop_gradient = False
    y = cube(x)
    (y * 2).sum().backward()

    numpy.testing.assert_allclose(y.numpy(), x.numpy() ** 3, rtol=1e-5)
    numpy.testing.assert_allclose(x.grad.numpy(), 6 * x.numpy() ** 2, rtol=1e-5)


def test_a_wrong_number_of_gradients_is_named():
    operator = made(cubed, {"output": like("input")}, backward=lambda g: (g, g))
    x = paddle.randn([5])
    x.stop_gradient = False

    # Paddle makes an error of its own of it, with the text.
    with pytest.raises(OSError, match="gave 2 gradients, and there are 1"):
        operator(x).sum().backward()


def doubled(input):
    input *= 2


def requiring_grad():
    x = paddle.ones([5])
    x.stop_gradient = False
    return x


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("is_operator", [False, True])
def test_no_gradient_passes_what_was_stored_in_place(is_operator):
    operator = made(doubled, {})
    change = operator if is_operator else operator.kernel
    for _ in range(3):
        x = requiring_grad()
        h, other = x * 2, x * 3
        before = h.inplace_version
        change(h)
        assert h.inplace_version == before + 1
        assert h.tolist() == [4] * 5
        with pytest.raises(OSError, match="a kernel has stored to"):
            (h * h).sum().backward()
        other.sum().backward()
        assert x.grad.tolist() == [3] * 5
        with paddle.no_grad():
            change(h)


VIEWS = {
    "slice": lambda x: x[1:3],
    "row": lambda x: x[0],
    "step": lambda x: x[::2],
    "reshape": lambda x: x.reshape([2, 8]),
    "flatten": lambda x: x.flatten(),
    "transpose": lambda x: x.transpose([1, 0]),
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0),
    "strided": lambda x: paddle.as_strided(x, [2, 4], [4, 1]),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("is_operator", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_a_view_of_what_requires_grad_is_not_stored_to(name, is_operator):
    """Its base would have the gradient of what was there before."""
    view = VIEWS[name](paddle.ones([4, 4]))

    def arrangement(input):
        return input.tile((-1,) * input.ndim)

    kernel = ninetoothed.make(arrangement, doubled, (Tensor(view.ndim),))
    change = (
        ninetoothed.op(f"paddle_views::doubled_{next(NUMBERS)}", kernel, {})
        if is_operator
        else kernel
    )
    x = paddle.ones([4, 4])
    x.stop_gradient = False
    h = x * 1
    with pytest.raises(ArgumentError, match="is a view of another that requires grad.*clone"):
        change(VIEWS[name](h))
    copy = VIEWS[name](h).clone()
    change(copy)
    assert copy.numpy().min() == 2
    h.sum().backward()
    assert x.grad.numpy().min() == x.grad.numpy().max() == 1
    with paddle.no_grad():
        change(VIEWS[name](h))


def test_an_operator_without_backward_is_no_constant():
    operator = made(cubed, {"output": like("input")})
    x = requiring_grad()

    assert operator(x).tolist() == operator(x.detach()).tolist() == [1] * 5
    with pytest.raises(OSError, match="has no `backward`, and a gradient is asked of it"):
        (operator(x) + x).sum().backward()
