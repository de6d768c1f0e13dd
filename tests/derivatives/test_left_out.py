"""Gradients of an input where another that it is summed with has no element: none."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from tests.derivatives.operators import MATRIX, made


def numbers(*sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(*sizes, dtype=torch.float64, generator=generator).requires_grad_()


def at_once(x, w, output):
    return x.tile((4,)), w.tile((-1,)).expand((-(-x.shape[0] // 4),)), output.tile((1,))


def around(x, w, output):
    return x.pad(((1, 1),)).tile((-1,)), w.tile((-1,)), output.tile((-1,))


def in_rounds(x, w, output):
    return x.tile((4,)).tile((-1,)), w.tile((4,)), output.tile((-1,))


def windows(x, w, output):
    w = w.tile((1, 4)).squeeze(1)
    w.dtype = w.dtype.squeeze(0)
    return x.tile((4,), strides=(3,)), w, output.tile((1,))


def in_padded_windows(x, w, output):
    x = x.pad(((1, 1),)).tile((4,), strides=(1,))
    return x, w.tile((-1,)).expand((x.shape[0],)), output.tile((1,))


def beside(x, w, output):
    return x.tile((4,)), w.tile((4,)), output.tile((1,))


def squares(x, w, output):
    output = ntl.sum(x + w * w)  # noqa: F841


def differences(x, w, output):
    output = ntl.sum((x - w) * (x - w))  # noqa: F841


def exponentials(x, w, output):
    output = ntl.sum(ntl.exp(w - x))  # noqa: F841


def chosen(x, w, output):
    output = ntl.sum(ntl.where(x > 0, 0.0, w * w))  # noqa: F841


def scanned(x, w, output):
    output = ntl.sum(ntl.cumsum(x + w) * w)  # noqa: F841


def flipped(x, w, output):
    output = ntl.sum(ntl.flip(x + w) * w)  # noqa: F841


def products(x, w, output):
    output = ntl.sum(x * w + w * w)  # noqa: F841


def scaled(x, w, output):
    output = ntl.sum(x + w) * w  # noqa: F841


def greatest(x, w, output):
    output = ntl.max(x + w)  # noqa: F841


def moved(x, w, output):
    output = ntl.sum(ntl.reshape(x + w, (2, 4)) * ntl.reshape(w * w, (2, 4)))  # noqa: F841


def lane_by_lane(x, w, output):
    total = ntl.zeros((4,), dtype=ntl.float64)
    for k in range(x.shape[0]):
        total += x[k] + w * w
    output = total  # noqa: F841


def round_by_round(x, w, output):
    total = ntl.zeros((1,), dtype=ntl.float64)
    for k in range(x.shape[0]):
        total += ntl.sum(x[k] + w * w)
    output = total  # noqa: F841


def at_a_position(x, w, output):
    output = ntl.sum(w * w + x[3])  # noqa: F841


def operator(application, arrangement, size, rank=1, **options):
    tensors = Tensor(1), Tensor(rank), Tensor(1)
    outputs = {"output": ((size,), tensors[0].dtype)}
    return made(application, arrangement, tensors, outputs, **options)


#: By name the application, the arrangement, the output's size, and those of the inputs.
CASES = {
    "a last tile beside one that all share": (squares, at_once, 3, (10,), (4,)),
    "a last round, lane by lane": (lane_by_lane, in_rounds, 4, (10,), (4,)),
    "a last round, summed": (round_by_round, in_rounds, 1, (10,), (4,)),
    "an element of a short tile": (at_a_position, beside, 2, (6,), (8,)),
    **{
        f"padding, {application.__name__}": (application, around, size, (3,), (5,))
        for application, size in [
            (differences, 1),
            (exponentials, 1),
            (chosen, 1),
            (scanned, 1),
            (flipped, 1),
            (products, 1),
            (scaled, 5),
        ]
    },
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out_has_no_gradient_of_any_order(name):
    application, arrangement, size, *sizes = CASES[name]
    found = operator(application, arrangement, size)
    inputs = [numbers(*each, seed=seed) for seed, each in enumerate(sizes)]

    assert gradcheck(found, inputs)
    assert gradgradcheck(found, inputs)


def test_a_greatest_sum_is_not_where_one_has_no_element():
    w = torch.tensor([3.0, 1.0, 0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([0.0, 1.0, 2.0], dtype=torch.float64)
    operator(greatest, around, 1)(x, w).sum().backward()

    assert w.grad.tolist() == [0, 0, 0, 1, 0]


def test_what_is_moved_is_left_out_too():
    def arrangement(x, w, output):
        return x.pad(((1, 1),)).tile((8,)), w.tile((8,)), output.tile((1,))

    assert gradcheck(operator(moved, arrangement, 1), (numbers(6), numbers(8, seed=1)))


@pytest.mark.parametrize("options", [{"wrt": ("w",)}, {"atomic": True}], ids=str)
def test_windows_beyond_the_end_are_left_out(options):
    x, w = numbers(9).detach(), numbers(3, 4, seed=1)

    assert gradcheck(lambda w: operator(differences, windows, 3, 2, **options)(x, w), (w,))


def test_windows_of_added_positions_are_left_out():
    found = operator(squares, in_padded_windows, 5, atomic=True)

    assert gradcheck(found, (numbers(6), numbers(4, seed=1)), nondet_tol=1e-9)


def test_columns_that_a_product_leaves_out_have_no_gradient():
    def arrangement(x, u, w, output):
        x = x.pad(((0, 0), (1, 1)))
        return tuple(each.tile((-1, -1)) for each in (x, u, w, output))

    def application(x, u, w, output):
        output = ntl.dot(x + u, ntl.exp(w))  # noqa: F841

    tensors = tuple(Tensor(2, **MATRIX) for _ in range(4))
    found = made(application, arrangement, tensors, {"output": ((16, 16), tensors[0].dtype)})
    x, u, w = numbers(16, 14), numbers(16, 16, seed=1), numbers(16, 16, seed=2)
    found(x, u, w).sum().backward()

    assert not u.grad[:, [0, -1]].any() and not w.grad[[0, -1]].any()
    assert u.grad[:, 1:-1].all() and w.grad[1:-1].all()


def test_a_sequence_leaves_out_what_is_beyond_its_end():
    def arrangement(x, w, output):
        x = x.tile((1, -1)).squeeze(1)
        x.dtype = x.dtype.squeeze(0)
        return x, w.tile((-1,)).expand((x.shape[0],)), output.tile((1,))

    kernel = ninetoothed.make(arrangement, squares, (Tensor(2, jagged_dim=1), Tensor(1), Tensor(1)))
    backward = kernel.backward(wrt=("w",))
    parts = [numbers(length).detach() for length in (3, 5, 2)]
    given = {"x": torch.nested.nested_tensor(parts, layout=torch.jagged)}
    given |= {"w": torch.full((5,), 0.5).double(), "w_gradient": torch.zeros(5).double()}
    given["output_gradient"] = torch.ones(3).double()
    backward(*(given[name] for name in backward.declaration.call_names))

    assert given["w_gradient"].tolist() == [3, 3, 2, 1, 1]


def test_an_input_alone_is_loaded_no_more_than_it_was():
    def application(x, w, output):
        output = ntl.sum(x * 2.0) + 0 * ntl.sum(w)  # noqa: F841

    kernel = ninetoothed.make(around, application, (Tensor(1), Tensor(1), Tensor(1)))
    text = str(kernel.backward(wrt=("x",)).definition.program)

    assert "= x\n" not in text and "range(" not in text


@pytest.mark.parametrize("size", [12, 9])
def test_a_number_is_not_added_where_a_round_has_no_element(size):
    def arrangement(x, w, output):
        return x.tile((4,)).tile((3,)), w.tile((-1,)), output.tile((4,))

    def application(x, w, output):
        total = ntl.zeros((4,), dtype=ntl.float64)
        number = ntl.sum(w)
        for k in range(x.shape[0]):
            total += x[k] + number
        output = total  # noqa: F841

    outputs = {"output": ((4,), ninetoothed.float64)}
    operator = made(application, arrangement, (Tensor(1), Tensor(1), Tensor(1)), outputs)

    assert gradcheck(operator, (numbers(size), numbers(5)))


@pytest.mark.parametrize("size", [12, 9])
def test_a_sum_leaves_no_lane_out_that_one_of_several_stored_tiles_has(size):
    def arrangement(x, w, output):
        return x.tile((4,)).tile((3,)), w.tile((-1,)), output.tile((4,)).tile((3,))

    def application(x, w, output):
        shared = ntl.exp(x[0]) + ntl.sum(w)
        output[0] = x[0] * shared
        output[1] = x[1] * shared
        output[2] = x[2] * shared

    x = Tensor(1, name="x")
    tensors, outputs = (x, Tensor(1), Tensor(1)), {"output": like("x")}
    operator = made(application, arrangement, tensors, outputs)

    assert gradcheck(operator, (numbers(size), numbers(5)))
