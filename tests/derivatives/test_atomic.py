"""Derived backwards that add up by atomic operations what several programs have, on request."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

import ninetoothed
import ninetoothed.language as ntl
from examples import mm
from ninetoothed import Tensor
from ninetoothed.derivatives.derive import derive
from ninetoothed.errors import ApplicationError, ArgumentError
from tests.derivatives.operators import NUMBERS, made
from tests.derivatives.test_shared_inputs import double, scaled, with_vectors


def windows(input, output):
    return input.tile((4,), strides=(2,), floor_mode=True), output.tile((1,))


def squares(input, output):
    output = ntl.sum(input * input)  # noqa: F841


def over_windows(**options):
    tensors = Tensor(1), Tensor(1)
    outputs = {"output": (((tensors[0].shape[0] - 4) // 2 + 1,), "input")}
    return made(squares, windows, tensors, outputs, **options)


@pytest.mark.parametrize("shape", [(3, 5), (1, 4), (70, 3)])
def test_weights_of_rows(shape):
    operator = made(scaled, *with_vectors(2), atomic=True)

    assert gradcheck(operator, (double(*shape), double(shape[1]), double(shape[1])))


def test_one_kernel_computes_all_gradients_and_adds_to_what_is_shared():
    arrangement, tensors = with_vectors(2)
    kernel = ninetoothed.make(arrangement, scaled, tensors).definition
    wrt = ("input", "weight", "bias")
    found = derive(kernel, wrt, atomic=True)
    text = str(found.specializations.shown.program)

    assert found.atomic == {"weight", "bias"} and not found.parts
    assert "ntl.atomic_add(weight_gradient" in text and "ntl.atomic_add(bias_gradient" in text
    assert "store input_gradient" in text and "for " not in text.partition("\n\n")[2]


def test_sums_of_narrow_floats_are_float32():
    operator = made(scaled, *with_vectors(2), atomic=True)
    # So many ones are not added up in halves: 2048 + 1 is 2048.
    x, weight, bias = torch.zeros(3000, 2).half(), torch.ones(2).half(), torch.zeros(2).half()
    bias.requires_grad_()
    (found,) = torch.autograd.grad(operator(x, weight, bias).sum(), bias)

    assert found.dtype == torch.float16 and found.tolist() == [3000.0, 3000.0]


def test_factors_of_a_product():
    tensors = mm.tensors
    outputs = {"output": ((tensors[0].shape[0], tensors[1].shape[1]), "input")}
    name = f"derived::atomic_mm_{next(NUMBERS)}"
    operator = ninetoothed.op(name, mm.kernel, outputs, backward="derive", atomic=True)
    left, right = torch.randn(50, 33, requires_grad=True), torch.randn(33, 40, requires_grad=True)
    given = torch.randn(50, 40)

    found = torch.autograd.grad(operator(left, right), (left, right), given)
    for one, other in zip(found, torch.autograd.grad(left @ right, (left, right), given)):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_windows_that_overlap():
    with pytest.raises(ApplicationError, match="its windows overlap"):
        over_windows()

    assert gradcheck(over_windows(atomic=True), (double(17),))


def test_inputs_without_elements():
    inputs = double(0, 5), double(5), double(5)
    made(scaled, *with_vectors(2), atomic=True)(*inputs).sum().backward()

    assert inputs[1].grad.tolist() == inputs[2].grad.tolist() == [0.0] * 5


def test_opcheck():
    operator = made(scaled, *with_vectors(2), atomic=True)
    namespace, _, name = operator.definition.name.partition("::")
    registered = getattr(getattr(torch.ops, namespace), name).default
    inputs = double(9, 7), double(7), double(7)

    assert set(torch.library.opcheck(registered, inputs).values()) == {"SUCCESS"}


def test_there_is_no_gradient_of_the_gradient():
    operator = made(scaled, *with_vectors(2), atomic=True)
    inputs = double(3, 5), double(5), double(5)
    found = torch.autograd.grad(operator(*inputs).sin().sum(), inputs, create_graph=True)

    with pytest.raises(ApplicationError, match="an atomic operation changes memory"):
        found[0].sum().backward()


def test_it_goes_with_a_derived_backward():
    kernel = ninetoothed.make(windows, squares, (Tensor(1), Tensor(1)))

    with pytest.raises(ArgumentError, match='`atomic` go with "derive"'):
        ninetoothed.op("derived::never", kernel, {"output": ((1,), "input")}, atomic=True)


def test_rows_of_a_matrix_are_added_to_on_a_device():
    """A tile of one row has two dimensions, of which the first is in no address."""
    pytest.importorskip("triton", reason="needs Triton")

    def rows(input, output):
        whole = output.unsqueeze(0).expand((input.shape[0], -1))
        return input.tile((1, -1)), whole.tile((1, -1))

    def sums(input, output):
        ntl.atomic_add(output, ntl.cast(input, ntl.float32))

    kernel = ninetoothed.make(rows, sums, (Tensor(2), Tensor(1)))
    input, output = torch.empty(5, 256).half(), torch.empty(256)
    ptx = kernel.compile(input, output, target=("cuda", 90)).asm["ptx"]

    assert "red.global" in ptx or "atom.global" in ptx
