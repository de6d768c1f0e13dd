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


def test_a_gradient_of_another_shape_is_named():
    operator = made(cubed, {"output": like("input")}, backward=lambda gradient: gradient[:2])
    x = paddle.randn([5])
    x.stop_gradient = False

    with pytest.raises(
        OSError, match=r"gave a gradient of shape \(2,\) for `input`, whose shape is \(5,\)"
    ):
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


def weighted(x, s, y, z):
    z = x * x * s + 2 * y  # noqa: F841


def by_value(application, outputs, numbers, **options):
    """An operator whose parameters of these names are passed by value."""
    names = application.__code__.co_varnames[: application.__code__.co_argcount]
    kernel = ninetoothed.make(
        lambda *given: tuple(each.tile((16,)) if each.ndim else each for each in given),
        application,
        tuple(Tensor(0 if name in numbers else 1) for name in names),
    )
    return ninetoothed.op(f"tests::paddle_{next(NUMBERS)}", kernel, outputs, **options)


def leaf(*values, stopped=False):
    made_of = paddle.to_tensor(values if len(values) > 1 else values[0], dtype="float32")
    made_of.stop_gradient = stopped
    return made_of


@pytest.mark.parametrize(
    "call",
    [
        lambda o, x, y: o(x, 3.0, y),
        lambda o, x, y: o(y=y, s=3.0, x=x),
        lambda o, x, y: o(x, y=y, s=3.0),
        lambda o, x, y: o(y=y, x=x, s=paddle.to_tensor(3.0)),
        lambda o, x, y: o(x, paddle.to_tensor(3.0), y),
    ],
)
@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_gradients_are_of_what_they_are_named_for(call, wanted):
    operator = by_value(weighted, {"z": like("x")}, {"s"}, backward="derive")
    x, y = leaf(1.0, 2.0, stopped=not wanted[0]), leaf(3.0, 4.0, stopped=not wanted[1])
    call(operator, x, y).sum().backward()

    for tensor, is_wanted, expected in ((x, wanted[0], [6.0, 12.0]), (y, wanted[1], [2.0, 2.0])):
        assert (None if tensor.grad is None else tensor.grad.tolist()) == (
            expected if is_wanted else None
        )


def test_a_number_that_asks_for_a_gradient_is_refused():
    operator = by_value(weighted, {"z": like("x")}, {"s"}, backward="derive")
    output = operator(leaf(1.0, 2.0), leaf(3.0), leaf(1.0, 1.0, stopped=True))

    with pytest.raises(OSError, match="`s` is a number of the kernel's, passed by value"):
        output.sum().backward()


def chosen(x, w, z, has):
    if has:
        z = x * w
    else:
        z = x * 3  # noqa: F841


def test_an_input_that_is_left_out_has_no_gradient():
    kernel = ninetoothed.make(
        lambda *given: (*elementwise(*given[:3]), given[3]),
        chosen,
        (*(Tensor(1) for _ in range(3)), Tensor(0, constexpr=True, value=False)),
    )
    operator = ninetoothed.op(
        f"tests::paddle_{next(NUMBERS)}",
        kernel,
        {"z": like("x")},
        backward="derive",
        constants={"has": False},
    )
    x = leaf(1.0, 2.0)
    operator(x, None).sum().backward()

    assert x.grad.tolist() == [3.0, 3.0]


def doubled_and_taken(x, t, z):
    z = t * 2
    t = x  # noqa: F841


def test_what_an_operator_with_outputs_changes_has_no_gradient_of_before():
    operator = made(doubled_and_taken, {"z": like("x")})
    five = paddle.full([2], 5.0)
    changed = leaf(1.0, 1.0) * 2
    operator(five, changed)
    with pytest.raises(OSError, match="a tensor that a kernel has stored to"):
        (changed * changed).sum().backward()
    with pytest.raises(ArgumentError, match="is a leaf that requires grad"):
        operator(five, leaf(1.0, 1.0))
    with pytest.raises(ArgumentError, match="is a view of another that requires grad"):
        operator(five, (leaf(1.0, 1.0, 1.0) * 2)[:2])
    with pytest.warns(UserWarning, match="cut off from it"):
        operator(leaf(1.0, 1.0), paddle.zeros([2]))


def test_arguments_that_are_not_the_operators():
    multiply = made(multiplied, {"output": like("input")}, backward="derive")
    x = leaf(1.0, 2.0)

    for arguments, keywords in (
        ((x,), {}),
        ((x, x, x), {}),
        ((x,), {"input": x}),
        ((x, x), {"z": 1}),
    ):
        with pytest.raises(ArgumentError, match="operator 'tests::paddle"):
            multiply(*arguments, **keywords)
