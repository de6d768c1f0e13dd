"""Gradients where tiles have positions that are no elements: `other`, `pad`, and what is never stored."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.derivatives.operators import made


def numbers(size=5):
    return torch.linspace(-1, 2, size, dtype=torch.float64).requires_grad_()


def around(x, *others):
    return (
        x.pad(((1, 2),)).tile((-1,)),
        *(t.tile((1,)) for t in others[:-1]),
        others[-1].tile((-1,)),
    )


def squared(x, output):
    output = x * x  # noqa: F841


def scaled(x, scale, output):
    output = ntl.exp(x) * scale  # noqa: F841


def normalized(x, scale, output):
    output = ntl.exp(x) * scale / ntl.sum(ntl.exp(x))  # noqa: F841


def turned(x, output):
    output = ntl.reshape(x, (2, 4)) * 2.0  # noqa: F841


def padded(application, count, **options):
    first = Tensor(1, **options)
    tensors = (first, *(Tensor(1) for _ in range(count)))
    outputs = {"output": ((first.shape[0] + 3,), first.dtype)}
    return made(application, around, tensors, outputs)


def test_what_a_tensor_reads_as_beyond_its_end_is_no_gradient():
    operator = padded(squared, 1, other=2.0)
    x, ones = numbers(), torch.ones(5, dtype=torch.float64)

    assert gradcheck(operator, (x,))
    assert gradgradcheck(operator, (x,))
    _, tangent = torch.func.jvp(operator, (x.detach(),), (ones,))
    torch.testing.assert_close(tangent[1:-2], 2 * x.detach())
    assert not tangent[[0, -2, -1]].any()


def test_what_an_output_reads_as_beyond_its_end_is_no_gradient():
    def arrangement(x, scale, output):
        return x.tile((-1,)), scale.tile((1,)), output.tile((-1,))

    tensors = Tensor(1, other=1.0), Tensor(1), Tensor(1, other=3.0)
    operator = made(scaled, arrangement, tensors)

    assert gradcheck(operator, (numbers(), numbers(1)))
    assert gradgradcheck(operator, (numbers(), numbers(1)))


def test_what_is_stored_of_positions_that_pad_adds_has_its_gradient():
    operator = padded(scaled, 2)

    assert gradcheck(operator, (numbers(), numbers(1)))
    assert gradgradcheck(operator, (numbers(), numbers(1)))


def test_positions_that_are_left_out_and_stored_are_refused():
    with pytest.raises(ApplicationError, match="`x` has no element in some places") as caught:
        padded(normalized, 2)
    assert "ntl.sum(ntl.exp(x))" in str(caught.value)

    assert gradcheck(padded(normalized, 2, other=0.0), (numbers(), numbers(1)))


@pytest.mark.parametrize("other", [None, 3.0])
def test_what_is_moved_to_where_nothing_is_stored_has_a_gradient_of_zero(other):
    def arrangement(x, output):
        return x.tile((8,)), output.tile((2, 4))

    x = Tensor(1)
    outputs = {"output": ((x.shape[0] // 4, 3), x.dtype)}
    operator = made(turned, arrangement, (x, Tensor(2, other=other)), outputs)
    backward = operator.kernel.backward(wrt=("x",))
    found = torch.full((8,), float("nan"), dtype=torch.float64)

    given = {"x": numbers(8).detach(), "output_gradient": torch.ones(2, 3, dtype=torch.float64)}
    given["x_gradient"] = found
    backward(*(given[name] for name in backward.declaration.call_names))

    assert found.tolist() == [2, 2, 2, 0, 2, 2, 2, 0]


def row(*tensors):
    return tuple(tensor.tile((8,) if place != 1 else (1,)) for place, tensor in enumerate(tensors))


def exponentials(x, scale, output, total):
    value = ntl.exp(x)
    output = value  # noqa: F841
    total = ntl.sum(value) * scale + 0 * value  # noqa: F841


def soft(x, scale, output, total):
    value = ntl.exp(x) / ntl.sum(ntl.exp(x))
    output = value  # noqa: F841
    total = value * scale  # noqa: F841


@pytest.mark.parametrize("application", [exponentials, soft])
@pytest.mark.parametrize("fewer", [0, 2])
def test_a_value_of_elements_that_no_output_has_is_computed_again(application, fewer):
    x, scale = numbers(6), torch.full((1,), 3.0, dtype=torch.float64, requires_grad=True)
    first = Tensor(1, other=0.5)
    shape = ((first.shape[0] - fewer,), first.dtype)
    operator = made(
        application, row, (first, *(Tensor(1) for _ in range(3))), {"output": shape, "total": shape}
    )
    assert gradcheck(operator, (x, scale))
