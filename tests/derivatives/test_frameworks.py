"""Derived backwards under PyTorch's compilers, checks and transformations, and in PaddlePaddle."""

from __future__ import annotations

import itertools

import numpy
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, like
from tests.derivatives.operators import blocks, made
from tests.derivatives.test_shared_inputs import scaled, with_vectors

NUMBERS = itertools.count()


def silu(input, output):
    output = input * ntl.sigmoid(input)  # noqa: F841


def registered(operator):
    """What PyTorch has registered under an operator's name."""
    namespace, _, name = operator.definition.name.partition("::")
    return getattr(getattr(torch.ops, namespace), name).default


@pytest.fixture(scope="module")
def normal():
    return made(scaled, *with_vectors(2))


def inputs():
    shapes = (9, 7), (7,), (7,)
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


def test_opcheck(normal):
    assert set(torch.library.opcheck(registered(made(silu)), (inputs()[1],)).values()) == {
        "SUCCESS"
    }
    assert set(torch.library.opcheck(registered(normal), inputs()).values()) == {"SUCCESS"}


def test_a_compiled_function_is_one_graph(normal):
    def loss(*given):
        return normal(*given).sin().sum()

    given = inputs()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(*given), given)

    for one, other in zip(found, torch.autograd.grad(loss(*given), given)):
        torch.testing.assert_close(one, other)


def test_func_grad(normal):
    given = tuple(each.detach() for each in inputs())

    found = torch.func.grad(lambda *given: normal(*given).sin().sum(), argnums=(0, 1, 2))(*given)

    again = tuple(each.requires_grad_() for each in given)
    wanted = torch.autograd.grad(normal(*again).sin().sum(), again)
    for one, other in zip(found, wanted):
        torch.testing.assert_close(one, other)


def test_what_needs_no_gradient_is_not_computed(normal):
    called = []

    class Noted(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
            called.append(str(function))
            return function(*arguments, **(keywords or {}))

    x, weight, bias = inputs()
    with Noted():
        normal(x, weight.detach(), bias.detach()).sum().backward()

    assert any("backward_input" in each for each in called)
    assert not any("backward_weight" in each for each in called)


def test_gradients_in_paddle():
    paddle = pytest.importorskip("paddle", reason="needs PaddlePaddle")
    arrangement, tensors = with_vectors(2)
    kernel = ninetoothed.make(arrangement, scaled, tensors)
    name = f"derived_paddle::scaled_{next(NUMBERS)}"
    operator = ninetoothed.op(name, kernel, {"output": like("input")}, backward="derive")
    ours = [paddle.to_tensor(each.detach().float().numpy()) for each in inputs()]
    for each in ours:
        each.stop_gradient = False
    operator(*ours).sin().sum().backward()
    theirs = [torch.tensor(each.numpy(), requires_grad=True) for each in ours]
    torch.nn.functional.layer_norm(theirs[0], (7,), *theirs[1:]).sin().sum().backward()

    for one, other in zip(ours, theirs):
        numpy.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-4, atol=1e-5)


def test_the_gradient_of_a_factor_compiles_to_a_product_of_tensor_cores():
    pytest.importorskip("triton", reason="needs Triton")
    from examples import mm

    backward = mm.kernel.backward(wrt=("input",))
    matrix = torch.empty(256, 256, dtype=torch.float16)
    sizes = dict.fromkeys(("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K"), 64)
    compiled = backward.compile(
        matrix, matrix, matrix, target=("cuda", 90), configuration=sizes, num_warps=4
    )

    assert "wgmma" in compiled.asm["ptx"]
    # Gradients are widened for sums, and a factor is as it was loaded.
    assert "cvt.f32.f16" not in compiled.asm["ptx"]


def test_the_gradient_of_a_reshaped_tile_compiles():
    pytest.importorskip("triton", reason="needs Triton")

    def application(input, output):
        pairs = ntl.reshape(ntl.exp(input), (8, 2))
        output = ntl.reshape(pairs / ntl.sum(pairs, axis=1, keep_dims=True), (16,))  # noqa: F841

    backward = ninetoothed.make(blocks, application, (Tensor(1), Tensor(1))).backward()
    x = torch.empty(37)

    assert backward.compile(x, x, x, target=("cuda", 90)).asm["cubin"]


def test_a_backward_kernel_is_shown_and_emitted():
    kernel = ninetoothed.make(blocks, silu, (Tensor(1), Tensor(1)), kernel_name="silu")
    backward = kernel.backward()

    assert "tl.sigmoid" in backward.source and "def silu_backward" in backward.source
    page = backward.visualize((40,), (40,), (40,))
    assert "input_gradient" in str(getattr(page, "text", page.__dict__))
