"""Derived backwards by inputs that several programs have: their parts are summed in a loop."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from ninetoothed.derivatives.parts import MOST_PARTS
from ninetoothed.errors import ApplicationError, ArgumentError
from tests.derivatives.operators import MATRIX, made, rows


def double(*shape):
    return torch.randn(shape, dtype=torch.float64, requires_grad=True)


def with_vectors(count):
    """A matrix by rows, with so many vectors for all rows, and an output like the matrix."""

    def arrangement(input, *others):
        vectors = (
            v.unsqueeze(0).expand((input.shape[0], -1)).tile((1, -1)) for v in others[:count]
        )
        return rows(input)[0], *vectors, *rows(*others[count:])

    vectors = (Tensor(1, shape_options={"constexpr": True}) for _ in range(count))
    return arrangement, (Tensor(2, **MATRIX), *vectors, Tensor(2, **MATRIX))


def scaled(input, weight, bias, output):
    centered = input - ntl.sum(input) / input.shape[-1]
    variance = ntl.sum(centered * centered) / input.shape[-1]
    output = centered * ntl.rsqrt(variance + 1e-5) * weight + bias  # noqa: F841


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (70, 3)])
def test_weights_of_rows(shape):
    operator = made(scaled, *with_vectors(2))
    inputs = double(*shape), double(shape[1]), double(shape[1])

    assert gradcheck(operator, inputs)
    if shape[0] < 10:
        assert gradgradcheck(operator, inputs, fast_mode=True)


def test_weights_of_no_rows_have_gradients_of_zero():
    inputs = double(0, 5), double(5), double(5)
    made(scaled, *with_vectors(2))(*inputs).sum().backward()

    assert inputs[1].grad.tolist() == inputs[2].grad.tolist() == [0.0] * 5


def as_float64(input, weight, number, output):
    output = ntl.cast(input, ntl.float64) * weight + number  # noqa: F841


def beside_float64(input, weight, number, output):
    zeros = ntl.zeros(input.shape, dtype=ntl.float64)
    output = (input + zeros) * weight + number  # noqa: F841


def by_float64(input, weight, number, output):
    output = input * number * weight + number  # noqa: F841


@pytest.mark.parametrize("application", [as_float64, beside_float64, by_float64])
def test_sums_are_float64_where_the_application_computes_so(application):
    arrangement, (matrix, vector, output) = with_vectors(1)

    def with_number(input, weight, number, output):
        rows_of, weights, output = arrangement(input, weight, output)
        return rows_of, weights, number, output

    number = Tensor(0, dtype=ninetoothed.float64 if application is by_float64 else None)
    operator = made(application, with_number, (matrix, vector, number, output))
    x, weight = (each.detach().float().requires_grad_() for each in (double(6, 5), double(5)))
    operator(x, weight, 1.0).sum().backward()

    torch.testing.assert_close(weight.grad, x.detach().sum(0))
    assert weight.grad.dtype == torch.float32


@pytest.mark.parametrize("rows", [1, 255, 256, 257, 600])
def test_weights_are_summed_in_a_bounded_number_of_parts(rows):
    made_of = []
    operator = made(scaled, *with_vectors(2))
    inputs = double(rows, 7), double(7), double(7)

    class Noted(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            result = function(*arguments, **(keywords or {}))
            if "backward_input_weight_bias" in str(function) and "sum" not in str(function):
                made_of.extend(result[1:])
            return result

    with Noted():
        operator(*inputs).sin().sum().backward()
    x, weight, bias = (each.detach().requires_grad_() for each in inputs)
    torch.nn.functional.layer_norm(x, (7,), weight, bias).sin().sum().backward()

    for one, other in zip(inputs, (x, weight, bias)):
        torch.testing.assert_close(one.grad, other.grad)
    assert len(made_of) == 2 and all(parts.shape[0] <= MOST_PARTS for parts in made_of)
    assert all(parts.shape[1:] == (1, 7) for parts in made_of)


def test_parts_of_narrow_floats_are_float32():
    from torch._subclasses import FakeTensorMode

    operator = made(scaled, *with_vectors(2))
    name = f"{operator.definition.name.partition('::')[2]}_backward_weight_bias"
    with FakeTensorMode() as mode:
        rows, weight = torch.empty(9, 7, dtype=torch.float16), torch.empty(7, dtype=torch.float16)
        parts, _ = getattr(torch.ops.derived, name)(rows, weight, weight, rows)
    assert parts.dtype == torch.float32 and mode is not None


def test_the_sum_is_the_same_in_every_run():
    operator = made(scaled, *with_vectors(2))
    x, weight, bias = (
        t.float().detach().requires_grad_() for t in (double(99, 7), double(7), double(7))
    )
    runs = [torch.autograd.grad(operator(x, weight, bias).sin().sum(), weight)[0] for _ in range(2)]

    assert torch.equal(*runs)


def test_each_way_of_sharing_needs_a_kernel_of_its_own():
    arrangement, tensors = with_vectors(2)
    kernel = ninetoothed.make(arrangement, scaled, tensors)

    with pytest.raises(ArgumentError, match="kernels of their own"):
        kernel.backward(wrt=("input", "weight"))
    assert kernel.backward(wrt=("weight", "bias")).declaration.call_names[-2:] == (
        "weight_gradient",
        "bias_gradient",
    )


def test_a_vector_in_blocks_over_a_batch_of_rows():
    size = ninetoothed.Symbol("SIZE", constexpr=True)

    def arrangement(input, weight, output):
        weight = weight.tile((size,)).unsqueeze(0).unsqueeze(0).expand((*input.shape[:2], -1))

        def blocks(tensor):
            arranged = tensor.tile((1, 1, size))
            arranged.dtype = arranged.dtype.squeeze((0, 1))
            return arranged

        return blocks(input), weight, blocks(output)

    def application(input, weight, output):
        output = input * weight * weight  # noqa: F841

    operator = made(
        application, arrangement, (Tensor(3), Tensor(1), Tensor(3)), constants={"SIZE": 4}
    )
    inputs = double(2, 3, 10), double(10)

    assert gradcheck(operator, inputs)
    assert gradgradcheck(operator, inputs, fast_mode=True)


BLOCK = ninetoothed.Symbol("BLOCK", constexpr=True)


def arrange_product(input, other, output):
    from examples.mm import arrangement

    return arrangement(input, other, output, BLOCK, BLOCK, BLOCK)


def product(input, other, output):
    accumulator = ntl.zeros(output.shape, dtype=ntl.float64)
    for k in range(input.shape[0]):
        accumulator += ntl.dot(input[k], other[k], out_dtype=ntl.float64)
    output = accumulator  # noqa: F841


def product_operator(application=product):
    tensors = input, other, _ = Tensor(2), Tensor(2), Tensor(2)
    outputs = {"output": ((input.shape[0], other.shape[1]), "input")}
    return made(application, arrange_product, tensors, outputs, constants={"BLOCK": 16})


def test_both_factors_of_a_product():
    operator = product_operator()
    inputs = double(5, 37), double(37, 18)

    assert gradcheck(operator, inputs, fast_mode=True)
    assert gradgradcheck(operator, inputs, fast_mode=True)


def test_the_gradient_of_a_factor_is_a_product():
    kernel = ninetoothed.make(arrange_product, product, (Tensor(2), Tensor(2), Tensor(2)))
    text = str(kernel.backward(wrt=("input",)).program)

    assert "ntl.dot(" in text and "ntl.trans(other_tile)" in text
    assert text.count("for ") == 1


def test_a_sum_that_is_needed_again_for_each_round_is_refused():
    def application(input, other, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float64)
        for k in range(input.shape[0]):
            accumulator += ntl.dot(input[k], other[k])
        output = accumulator * accumulator  # noqa: F841

    with pytest.raises(ApplicationError, match="a loop sums is needed again"):
        product_operator(application)


@pytest.mark.parametrize("fewer", [1, 2])
def test_factors_of_which_not_every_tile_is_read(fewer):
    def application(input, other, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float64)
        for k in range(input.shape[0] - fewer):
            accumulator += ntl.dot(input[k], other[k], out_dtype=ntl.float64)
        output = accumulator  # noqa: F841

    with pytest.raises(ApplicationError, match="of `input`, not every tile is known to be read"):
        product_operator(application)


def test_a_product_with_a_bias_and_a_factor():
    def application(input, other, bias, alpha, output):
        accumulator = ntl.zeros(output.shape, dtype=ntl.float64)
        for k in range(input.shape[0]):
            accumulator += ntl.dot(input[k], other[k], out_dtype=ntl.float64)
        output = accumulator * alpha + bias * bias  # noqa: F841

    def arrangement(input, other, bias, alpha, output):
        input, other, output = arrange_product(input, other, output)
        bias = bias.tile((BLOCK,)).unsqueeze(0).expand((output.shape[0], -1))
        return input, other, bias, alpha, output

    tensors = input, other, *_ = Tensor(2), Tensor(2), Tensor(1), Tensor(0), Tensor(2)
    outputs = {"output": ((input.shape[0], other.shape[1]), "input")}
    operator = made(application, arrangement, tensors, outputs, constants={"BLOCK": 16})
    inputs = double(18, 5), double(5, 20), double(20)

    assert gradcheck(lambda *given: operator(*given, 0.5), inputs, fast_mode=True)


def test_a_shared_input_chosen_by_wrt():
    arrangement, tensors = with_vectors(2)
    operator = made(scaled, arrangement, tensors, {"output": like("input")}, wrt=("bias",))
    inputs = double(3, 5), double(5), double(5)
    operator(*inputs).sum().backward()

    assert inputs[0].grad is None and inputs[1].grad is None
    torch.testing.assert_close(inputs[2].grad, torch.full((5,), 3.0, dtype=torch.float64))


def test_a_shared_input_that_is_read_in_a_loop_within_a_loop():
    def application(x, w, output):
        total = 0.0 * x
        for i in range(w.shape[0]):
            for k in range(w.shape[1]):
                total += x * w[i, k]
        output = total  # noqa: F841

    def arrangement(x, w, output):
        x = x.tile((4,))
        w = w.tile((1, 4)).tile((-1, -1)).expand((x.shape[0], -1)).squeeze(1)
        w.dtype.dtype = w.dtype.dtype.squeeze(0)
        return x, w, output.tile((4,))

    with pytest.raises(ApplicationError, match="`w`, its tiles are read in a loop within a loop"):
        made(application, arrangement, (Tensor(1), Tensor(2), Tensor(1)))


def test_a_number_that_all_programs_share_in_a_second_derivative():
    def application(input, w, c, s, output):
        output = (input * w[None, :] + c[:, None] * s[None, :]) * s  # noqa: F841

    def arrangement(input, w, c, s, output):
        input, output = input.tile((3, 5)), output.tile((3, 5))
        n, m = output.shape
        w = w.tile((5,)).unsqueeze(0).expand((n, -1))
        c = c.tile((3,)).unsqueeze(1).expand((-1, m))
        return input, w, c, s.tile((1,)).unsqueeze(1).expand((n, m)), output

    n, m = (input := Tensor(2)).shape
    tensors = input, Tensor(shape=(m,)), Tensor(shape=(n,)), Tensor(1), Tensor(shape=(n, m))
    operator = made(application, arrangement, tensors, {"output": like("input")})
    inputs = double(7, 11), double(11), double(7), double(1)

    assert gradgradcheck(lambda w: operator(inputs[0], w, *inputs[2:]), inputs[1:2])


def test_of_tiles_that_programs_share_one_that_a_number_selects():
    def application(input, w, output):
        output = input * w[0]  # noqa: F841

    def arrangement(input, w, output):
        input = input.tile((4,))
        return input, w.tile((1,)).tile((-1,)).expand((input.shape[0],)), output.tile((4,))

    with pytest.raises(ApplicationError, match="select each by the round of a loop over all"):
        made(application, arrangement, (Tensor(1), Tensor(1), Tensor(1)))
