"""What a derived backward loads of the outputs, and what it computes again."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from examples import fused_rms_norm, mm
from ninetoothed import Tensor, like
from ninetoothed.derivatives.derive import derive
from ninetoothed.errors import ApplicationError
from tests.derivatives.operators import MATRIX, NUMBERS, made, matrices, rows


def softmax(input, output):
    numerator = ntl.exp(input - ntl.max(input))
    output = numerator / ntl.sum(numerator)  # noqa: F841


def softmax_of_powers(input, output):
    numerator = ntl.exp2((input - ntl.max(input)) * 3.0)
    output = numerator / ntl.sum(numerator)  # noqa: F841


def log_softmax(input, output):
    shifted = input - ntl.max(input)
    output = shifted - ntl.log(ntl.sum(ntl.exp(shifted)))  # noqa: F841


def log_of_sum(input, output):
    most = ntl.max(input)
    output = input * 0.5 + (most + ntl.log(ntl.sum(ntl.exp(input - most))))  # noqa: F841


def masked_softmax(input, output):
    numerator = ntl.where(input < 1.0, ntl.exp(input - ntl.max(input)), 0.0)
    output = numerator / ntl.sum(numerator)  # noqa: F841


def over_the_largest(input, output):
    output = input / ntl.max(input * input)  # noqa: F841


def shifted(input, output):
    output = ntl.exp(input - ntl.max(input))  # noqa: F841


def silu(input, output):
    output = input * ntl.sigmoid(input)  # noqa: F841


def sigmoid(input, output):
    output = ntl.sigmoid(input)  # noqa: F841


def program_of(application, saved=("output",)):
    """The statements of a derived backward."""
    input, output = tensors = matrices(2)
    kernel = ninetoothed.make(rows, application, tensors)
    equal = dict(zip(output.shape, input.shape))
    found = derive(kernel.definition, ("input",), saved=saved, equal=equal)
    return str(found.specializations.shown.program)


@pytest.mark.parametrize(
    ("application", "name"),
    [
        (softmax, "output"),
        (softmax_of_powers, "output"),
        (masked_softmax, "input"),
        (log_softmax, "input"),
        (log_of_sum, "input"),
        (over_the_largest, "input"),
        (shifted, "input"),
        (silu, "input"),
        (sigmoid, "output"),
    ],
)
def test_whichever_moves_less_is_kept(application, name):
    operator = made(application, rows, matrices(2))
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)

    assert operator.definition.saved == (name,)
    assert gradcheck(operator, (x,))
    assert gradgradcheck(operator, (x,), fast_mode=True)


def test_softmax_needs_its_result_alone():
    """As one would write it: the maximum has no gradient, and nothing is divided again."""
    lines = program_of(softmax).splitlines()[5:]

    assert [line.strip() for line in lines if "store" in line or "sum" in line] == [
        "value_2_gradient = ntl.sum(-gradient * value_3)",
        "store input_gradient = value_1_gradient",
    ]
    assert not any(word in line for line in lines for word in ("max", "exp", " / ", "input_tile"))


@pytest.mark.parametrize(
    ("application", "has_gradient"),
    [
        (softmax, False),
        (softmax_of_powers, False),
        (log_softmax, False),
        (log_of_sum, False),
        (masked_softmax, False),
        (over_the_largest, True),
        (shifted, True),
    ],
)
def test_a_maximum_that_changes_nothing_has_no_gradient(application, has_gradient):
    # Each of the largest has its share of the gradient.
    assert ("== value" in program_of(application, ())) == has_gradient


def test_a_kernel_that_is_asked_for_computes_it_again():
    kernel = ninetoothed.make(rows, softmax, matrices(2))

    assert kernel.backward().declaration.call_names == (
        "input",
        "output_gradient",
        "input_gradient",
    )


def test_an_output_of_an_element_type_of_its_own_is_not_loaded():
    def application(input, output):
        output = ntl.exp(input)  # noqa: F841

    tensors = matrices(2)
    kept = made(application, rows, tensors, {"output": like("input")})
    shape = tensors[0].shape
    narrow = made(application, rows, tensors, {"output": (shape, ninetoothed.float16)})

    assert kept.definition.saved == ("output",)
    assert narrow.definition.saved == ("input",)


def test_a_sum_that_is_stored_is_not_summed_again():
    """So the factors of a product have gradients where its own result is needed for them."""

    def arrangement(input, other, product, output):
        tile = (mm.BLOCK_SIZE_M, mm.BLOCK_SIZE_N)
        first, second, _ = mm.arrangement(input, other, output)
        return first, second, product.tile(tile), output.tile(tile)

    def application(input, other, product, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            accumulator += ntl.dot(input[k], other[k])
        product = accumulator  # noqa: F841
        output = accumulator * ntl.sigmoid(accumulator)  # noqa: F841

    tensors = tuple(Tensor(2) for _ in range(4))
    shape = (tensors[0].shape[0], tensors[1].shape[1]), "input"
    kernel = ninetoothed.make(arrangement, application, tensors)
    name = f"derived::silu_of_product_{next(NUMBERS)}"
    outputs = {"product": shape, "output": shape}
    operator = ninetoothed.op(name, kernel, outputs, backward="derive", hidden=("product",))
    left, right = torch.randn(40, 30, requires_grad=True), torch.randn(30, 50, requires_grad=True)

    found = torch.autograd.grad(operator(left, right).square().sum(), (left, right))
    wanted = torch.nn.functional.silu(left @ right).square().sum()

    assert operator.definition.saved == ("input", "other", "product")
    for one, other in zip(found, torch.autograd.grad(wanted, (left, right))):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_an_output_like_an_input_without_a_gradient_is_not_loaded():
    """It may hold integers."""

    def arrangement(input, other, counts, product, output):
        tile = (mm.BLOCK_SIZE_M, mm.BLOCK_SIZE_N)
        first, second, _ = mm.arrangement(input, other, output)
        return first, second, counts.tile(tile), product.tile(tile), output.tile(tile)

    def application(input, other, counts, product, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            accumulator += ntl.dot(input[k], other[k])
        product = accumulator  # noqa: F841
        output = accumulator * accumulator  # noqa: F841

    tensors = tuple(Tensor(2) for _ in range(5))
    outputs = {
        "product": like("counts"),
        "output": ((tensors[0].shape[0], tensors[1].shape[1]), "input"),
    }
    with pytest.raises(ApplicationError, match="element type of an input that has a gradient"):
        made(application, arrangement, tensors, outputs, hidden=("product",))


def test_sums_of_one_loop_that_are_stored_are_not_summed_again():
    """Each alone saves nothing: the loop is run for the other."""

    def arrangement(input, gate, other, gated, product, output):
        tile = (mm.BLOCK_SIZE_M, mm.BLOCK_SIZE_N)
        first, second, _ = mm.arrangement(input, gate, output)
        _, third, _ = mm.arrangement(input, other, output)
        return first, second, third, gated.tile(tile), product.tile(tile), output.tile(tile)

    def application(input, gate, other, gated, product, output):
        one = ntl.zeros(output.shape, dtype=ntl.float32)
        two = ntl.zeros(output.shape, dtype=ntl.float32)
        for k in range(input.shape[0]):
            one += ntl.dot(input[k], gate[k])
            two += ntl.dot(input[k], other[k])
        gated = one  # noqa: F841
        product = two  # noqa: F841
        output = one * ntl.sigmoid(one) * two  # noqa: F841

    tensors = tuple(Tensor(2) for _ in range(6))
    shape = (tensors[0].shape[0], tensors[1].shape[1]), "input"
    outputs = {"gated": shape, "product": shape, "output": shape}
    options = {"hidden": ("gated", "product")}
    operator = made(application, arrangement, tensors, outputs, **options)
    sizes = (40, 30), (30, 50), (30, 50)
    inputs = [torch.randn(size, requires_grad=True) for size in sizes]
    x, gate, other = inputs

    found = torch.autograd.grad(operator(*inputs).square().sum(), inputs)
    wanted = (torch.nn.functional.silu(x @ gate) * (x @ other)).square().sum()

    assert operator.definition.saved == ("input", "gate", "other", "gated", "product")
    for one, two in zip(found, torch.autograd.grad(wanted, inputs)):
        torch.testing.assert_close(one, two, rtol=1e-3, atol=1e-2)


def test_what_all_rows_share_is_loaded_once():
    kernel = fused_rms_norm.kernel.definition
    found = derive(kernel, ("input", "weight"), parts=256).specializations.shown.program
    before, _, loop = str(found).partition("    for ")

    assert "weight_tile = weight\n" in before and "weight_tile = weight" not in loop
    assert "input_tile = input[i]" in loop


def test_halves_lose_no_more_than_the_output_has():
    kernel = ninetoothed.make(rows, softmax, tuple(Tensor(2, **MATRIX) for _ in range(2)))
    name = f"derived::softmax_of_halves_{next(NUMBERS)}"
    operator = ninetoothed.op(name, kernel, {"output": like("input")}, backward="derive")
    x = torch.randn(3, 50, requires_grad=True)
    given = torch.randn(3, 50)
    (exact,) = torch.autograd.grad(x.softmax(-1), x, given)
    half = x.detach().bfloat16().requires_grad_()
    (found,) = torch.autograd.grad(operator(half), half, given.bfloat16())

    torch.testing.assert_close(found.float(), exact, rtol=2e-2, atol=2e-3)
