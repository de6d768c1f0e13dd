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
    found = derive(kernel.definition, ("input",), saved=dict.fromkeys(saved, "input"), equal=equal)
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


def kept_where(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = ntl.where(e > 1.0, e, 0.0)  # noqa: F841


def largest(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = e * 0.0 + ntl.max(e)  # noqa: F841


def at_most(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = ntl.minimum(e, 1.0)  # noqa: F841


def clipped(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = ntl.clamp(e, 1.001, 8.0)  # noqa: F841


def stepped(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = x * ntl.cast(ntl.cast(e * 1000.0, ntl.int32), ntl.float32)  # noqa: F841


def logarithm(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = ntl.log(e)  # noqa: F841


def inverse(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = x / e  # noqa: F841


def root(x, v, p):
    e = ntl.exp(ntl.cast(x, ntl.float32))
    v = e  # noqa: F841
    p = ntl.sqrt(e)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "reference", "numbers"),
    [
        (kept_where, lambda e, x: torch.where(e > 1, e, 0), [0.001, 0.002, 0.5]),
        (largest, lambda e, x: e * 0 + e.max(), [0.001, 0.002, -1.0]),
        (at_most, lambda e, x: e.clamp(max=1), [0.001, -0.001, 0.5]),
        (clipped, lambda e, x: e.clamp(1.001, 8), [0.0005, 0.002, 0.5]),
        (stepped, lambda e, x: x * (e * 1000).detach().trunc(), [0.001, 0.002, 0.5]),
        (logarithm, lambda e, x: e.log(), [-20.0, 1.0, 10.0]),
        (inverse, lambda e, x: x / e, [-8.0, 1.0, 12.0]),
        (root, lambda e, x: e.sqrt(), [-20.0, 1.0, 12.0]),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_what_was_rounded_on_its_way_decides_nothing_and_is_not_magnified(
    application, reference, numbers, dtype
):
    operator = made(application, outputs={"v": like("x"), "p": like("x")})
    x = torch.tensor(numbers, dtype=dtype, requires_grad=True)
    y = x.detach().double().requires_grad_()
    (found,) = torch.autograd.grad(operator(x)[1].sum(), x)
    (wanted,) = torch.autograd.grad(reference(y.exp(), y).sum(), y)

    assert operator.definition.saved == ("x",)
    torch.testing.assert_close(found.double(), wanted, rtol=torch.finfo(dtype).eps, atol=1e-6)


def test_what_was_rounded_to_a_narrower_type_than_an_input_has_is_not_loaded():
    def application(x, w, v, p):
        e = ntl.exp(x)
        v = e  # noqa: F841
        p = e * e + w  # noqa: F841

    operator = made(application, outputs={"v": like("w"), "p": like("x")})
    x = torch.linspace(-2, 2, 11, requires_grad=True)
    w = torch.ones(11, dtype=torch.bfloat16, requires_grad=True)
    (found,) = torch.autograd.grad(operator(x, w)[1].sum(), x)

    torch.testing.assert_close(found, 2 * (2 * x.detach()).exp(), rtol=1e-5, atol=1e-5)


def test_a_value_in_the_element_type_of_its_output_is_loaded_whatever_it_decides():
    def application(x, v, p):
        e = ntl.cast(ntl.cast(x, ntl.float32) + 1.0, v.dtype)
        v = e
        p = ntl.where(e > 1.0, e * e, 0.0)  # noqa: F841

    operator = made(application, outputs={"v": like("x"), "p": like("x")})
    x = torch.tensor([0.001, 0.002, 0.5], dtype=torch.bfloat16, requires_grad=True)
    (found,) = torch.autograd.grad(operator(x)[1].sum(), x)

    assert operator.definition.saved == ("v",)
    torch.testing.assert_close(found, torch.tensor([0.0, 0.0, 3.0]).bfloat16())


def test_what_a_norm_is_of_is_loaded():
    """Its squares are summed, and a number is added before the root is taken."""
    outputs = {"output": like("input"), "total": like("input")}
    name = f"derived::residual_{next(NUMBERS)}"
    operator = ninetoothed.op(name, fused_rms_norm.residual_kernel, outputs, backward="derive")

    assert "total" in operator.definition.saved


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
