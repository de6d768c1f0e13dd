"""Derived backwards of programs that reduce, move and broadcast elements of a tile."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from tests.derivatives.operators import MATRIX, made, matrices, rows


def softmax(input, output):
    numerator = ntl.exp(input - ntl.max(input))
    output = numerator / ntl.sum(numerator)  # noqa: F841


def log_softmax(input, output):
    shifted = input - ntl.max(input, axis=1, keep_dims=True)
    output = shifted - ntl.log(ntl.sum(ntl.exp(shifted), axis=1))[:, None]  # noqa: F841


def rms_norm(input, output):
    mean = ntl.sum(input * input) / input.shape[-1]
    output = input * ntl.rsqrt(mean + 1e-6)  # noqa: F841


def standardized(input, output):
    centered = input - ntl.sum(input) / input.shape[-1]
    variance = ntl.sum(centered * centered) / input.shape[-1]
    output = centered * ntl.rsqrt(variance + 1e-5)  # noqa: F841


def scanned(input, output):
    output = ntl.cumsum(input, axis=1) * input + ntl.sum(input, axis=-1)[:, None]  # noqa: F841


def scanned_backwards(input, output):
    output = ntl.cumsum(input * input, axis=1, reverse=True)  # noqa: F841


def moved(input, output):
    turned = ntl.trans(input) * 2
    flat = ntl.reshape(turned, input.shape)
    output = input * flat + ntl.expand_dims(ntl.sum(turned, axis=1), 0)  # noqa: F841


def spread(input, output):
    first = ntl.sum(input, axis=1, keep_dims=True)
    # The gradient of the sum is the same everywhere, also where no element is.
    output = ntl.broadcast_to(first + ntl.min(input * input), (1, input.shape[1]))  # noqa: F841


def added_up(input, output):
    # What is summed is broadcast: its gradient counts the elements that exist.
    column = ntl.sum(input, axis=1)[:, None]
    output = input * ntl.sum(ntl.where(input > 100.0, 0.0, column))  # noqa: F841


APPLICATIONS = [
    softmax,
    log_softmax,
    rms_norm,
    standardized,
    scanned,
    scanned_backwards,
    spread,
    added_up,
]


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("shape", [(3, 5), (2, 8), (1, 1)])
def test_against_differences_twice(application, shape):
    operator = made(application, rows, matrices(2))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    assert gradcheck(operator, (x,))
    assert gradgradcheck(operator, (x,), fast_mode=True)


def test_elements_moved_within_a_tile():
    operator = made(moved, rows, matrices(2))
    x = torch.randn(3, 8, dtype=torch.float64, requires_grad=True)

    assert gradcheck(operator, (x,))


def test_several_rows_a_program_with_a_rest():
    def arrangement(input, output):
        return input.tile((4, -1)), output.tile((4, -1))

    def application(input, output):
        total = ntl.sum(input, axis=0)
        output = input * total[None, :] + ntl.sum(input, axis=1)[:, None]  # noqa: F841

    operator = made(application, arrangement, matrices(2))
    x = torch.randn(6, 5, dtype=torch.float64, requires_grad=True)

    assert gradcheck(operator, (x,))


def test_equal_maxima_share_a_gradient_as_amax_does():
    def application(input, output):
        output = input * 0 + ntl.max(input, axis=1)[:, None]  # noqa: F841

    x = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], requires_grad=True)
    made(application, rows, matrices(2))(x).sum().backward()
    y = x.detach().clone().requires_grad_()
    (y.amax(1, keepdim=True).expand_as(y)).sum().backward()

    torch.testing.assert_close(x.grad, y.grad)


def test_several_outputs_and_numbers():
    def application(input, eps, output, inverse):
        root = ntl.rsqrt(ntl.sum(input * input) / input.shape[-1] + eps)
        inverse = root  # noqa: F841
        output = input * root  # noqa: F841

    input, eps, output = Tensor(2, **MATRIX), Tensor(0), Tensor(2, **MATRIX)

    def arrangement(input, eps, output, inverse):
        return *rows(input, eps, output), inverse.tile((1,)).unsqueeze(1)

    operator = made(
        application,
        arrangement,
        (input, eps, output, Tensor(1)),
        {"output": like("input"), "inverse": ((input.shape[0],), "input")},
    )
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    assert gradcheck(lambda x: operator(x, 1e-3), (x,))
    assert gradgradcheck(lambda x: operator(x, 1e-3), (x,))
    _, inverse = operator(x, 1e-3)
    assert torch.autograd.grad(inverse.sum(), x)[0].isfinite().all()


def arrange_row_of_blocks(*tensors):
    """All blocks of a row a program."""

    def arranged(tensor):
        blocks = tensor.tile((1, 4)).tile((1, -1))
        blocks.dtype = blocks.dtype.squeeze(0)
        return blocks

    return tuple(map(arranged, tensors))


def normalized_by_blocks(input, output):
    total = ntl.full((1, 1), 1.0, dtype=ntl.float64)
    for k in range(input.shape[0]):
        total += ntl.sum(input[k] * input[k])
    scale = ntl.rsqrt(total)
    for k in range(input.shape[0]):
        output[k] = input[k] * scale


def summed_twice(input, output):
    total = ntl.zeros((1, 4), dtype=ntl.float64)
    for k in range(input.shape[0]):
        row = input[k]
        for j in range(2):
            total += row * input[k]
        total -= row
    for k in range(input.shape[0]):
        output[k] = input[k] + ntl.sum(total)


def begun_with_a_sum(input, output):
    first = ntl.zeros((1, 4), dtype=ntl.float64)
    for k in range(input.shape[0]):
        first += input[k]
    second = first * 2
    for k in range(input.shape[0]):
        second = input[k] * input[k] + second
    for k in range(input.shape[0]):
        output[k] = input[k] * second * first


@pytest.mark.parametrize("application", [normalized_by_blocks, summed_twice])
@pytest.mark.parametrize("shape", [(2, 11), (1, 4), (3, 1)])
def test_sums_over_blocks_of_a_row_and_the_blocks_again(application, shape):
    operator = made(application, arrange_row_of_blocks, (Tensor(2), Tensor(2)))
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)

    assert gradcheck(operator, (x,))


def test_a_sum_that_begins_with_another():
    operator = made(begun_with_a_sum, arrange_row_of_blocks, (Tensor(2), Tensor(2)))
    x = torch.randn(2, 8, dtype=torch.float64, requires_grad=True)

    assert gradcheck(operator, (x,))


def test_a_class_chosen_from_a_row():
    def arrangement(logits, target, loss):
        rows = logits.tile((1, -1))
        rows.dtype = rows.dtype.squeeze(0)
        return rows, target.tile((1,)), loss.tile((1,))

    def application(logits, target, loss):
        shifted = logits - ntl.max(logits)
        total = ntl.log(ntl.sum(ntl.exp(shifted)))
        loss = total - (logits[target] - ntl.max(logits))  # noqa: F841

    logits, target, loss = Tensor(2, **MATRIX), Tensor(1), Tensor(1)
    outputs = {"loss": ((logits.shape[0],), "logits")}
    operator = made(application, arrangement, (logits, target, loss), outputs)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    target = torch.tensor([0, 6, 3, 3, 1])

    assert gradcheck(lambda x: operator(x, target), (x,))
    torch.nn.functional.cross_entropy(x, target, reduction="sum").backward()
    found = torch.autograd.grad(operator(x, target).sum(), x)[0]
    torch.testing.assert_close(found, x.grad)


@pytest.mark.parametrize("dtype", [ninetoothed.float32, ninetoothed.float64, ninetoothed.float16])
def test_sums_beside_outputs_of_other_element_types(dtype):
    """They are made in float64 where anything that the rounds load is float64."""

    def application(input, total, output):
        total_ = 0.0
        for k in range(input.shape[0]):
            total_ += ntl.sum(input[k] * input[k])
        total = total_  # noqa: F841
        for k in range(input.shape[0]):
            output[k] = input[k] * total_

    def arrangement(input, total, output):
        return input.tile((4,)).tile((-1,)), total.tile((1,)), output.tile((4,)).tile((-1,))

    outputs = {"total": ((1,), dtype), "output": like("input")}
    tensors = tuple(Tensor(1) for _ in range(3))
    operator = made(application, arrangement, tensors, outputs, hidden=("total",))
    x = torch.randn(13, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(operator(x).sin().sum(), x)
    (wanted,) = torch.autograd.grad((x * (x * x).sum()).sin().sum(), x)

    torch.testing.assert_close(found, wanted)


def test_sums_over_programs_beside_an_output_of_another_element_type():
    def application(input, weight, narrow, output):
        narrow = input * weight  # noqa: F841
        output = input * weight  # noqa: F841

    def arrangement(input, weight, narrow, output):
        row = input.tile((1, -1))
        shared = weight.tile((-1,)).unsqueeze(0).expand((row.shape[0], -1))
        return row, shared, narrow.tile((1, -1)), output.tile((1, -1))

    first, weight, *others = (Tensor(2, **MATRIX), Tensor(1), *matrices(2))
    outputs = {"narrow": (first.shape, ninetoothed.float32), "output": like("input")}
    operator = made(application, arrangement, (first, weight, *others), outputs)
    x = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    w = torch.randn(7, dtype=torch.float64, requires_grad=True)
    found = torch.autograd.grad(operator(x, w)[1].sin().sum(), (x, w))

    torch.testing.assert_close(found, torch.autograd.grad((x * w).sin().sum(), (x, w)))


def summed_in_chains(input, output):
    one = ntl.full((1, 4), 0.0, dtype=ntl.float64)
    other = ntl.full((1, 4), 0.0, dtype=ntl.float64)
    third = ntl.full((1, 4), 0.0, dtype=ntl.float64)
    for k in range(input.shape[0]):
        one = one + input[k] * input[k] + input[k]
        other = other - input[k] * 2 + input[k] * input[k]
        third = input[k] + third - ntl.exp(input[k]) - 1
        third = third - input[k] - ntl.sin(input[k])
    for k in range(input.shape[0]):
        output[k] = input[k] * one * other + third


def test_what_a_chain_adds_to_a_variable_is_a_sum():
    operator = made(summed_in_chains, arrange_row_of_blocks, (Tensor(2), Tensor(2)))
    x = torch.linspace(-1, 1, 16, dtype=torch.float64).reshape(2, 8).requires_grad_()

    one, other, third = (
        sum(found(part) for part in x.detach().split(4, dim=1))
        for found in (
            lambda v: v * v + v,
            lambda v: v * v - v * 2,
            lambda v: -v.exp() - 1 - v.sin(),
        )
    )
    wanted = x.detach() * (one * other).repeat(1, 2) + third.repeat(1, 2)
    torch.testing.assert_close(operator(x).detach(), wanted)
    assert gradcheck(operator, (x,))
    assert gradgradcheck(operator, (x,))
