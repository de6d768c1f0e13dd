"""Operators with gradients: against PyTorch's in float64, and by PyTorch's own checks."""

from __future__ import annotations

import pytest
import torch

from examples import training
from examples.training import llama
from tests.examples.training_cases import CASES, outcomes

#: Those that compute in float64 where the tensors are, for finite differences.
EXACT = {
    "rms_norm": (training.rms_norm, [(5, 7), (7,)]),
    "layer_norm": (training.layer_norm, [(5, 7), (7,), (7,)]),
    "softmax": (training.softmax, [(5, 7)]),
    "swiglu": (training.swiglu, [(5, 7), (5, 7)]),
    "embedding": (lambda t: training.embedding(torch.tensor([1, 0, 1]), t), [(3, 7)]),
    "dropout": (lambda x: training.dropout(x, 0.4, 123), [(50,)]),
}


@pytest.mark.parametrize("layout", ["contiguous", "strided"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name, layout):
    for got, wanted in zip(*outcomes(name, torch.float32, layout=layout)):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_finite_differences(name):
    function, shapes = EXACT[name]
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("name", ["rms_norm", "softmax", "swiglu"])
def test_no_rows(name):
    ours, _, shapes, _ = CASES[name]
    inputs = [torch.randn((0, *s[1:]) if len(s) > 1 else s, requires_grad=True) for s in shapes]
    output = ours(*inputs)
    gradients = torch.autograd.grad(output, inputs, torch.ones_like(output))

    assert output.numel() == 0
    assert all((gradient == 0).all() for gradient in gradients)


@pytest.mark.parametrize("name", ["rms_norm", "cross_entropy", "attention"])
def test_they_compile_whole(name):
    ours, _, shapes, others = CASES[name]
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    rest = others("cpu")
    compiled = torch.compile(lambda *a: (ours(*a) * 2).sum(), fullgraph=True, backend="aot_eager")

    got = torch.autograd.grad(compiled(*inputs, *rest), inputs)
    wanted = torch.autograd.grad((ours(*inputs, *rest) * 2).sum(), inputs)

    for one, other in zip(got, wanted):
        torch.testing.assert_close(one, other)


def test_dropout_keeps_what_it_should():
    x = torch.randn(10000, requires_grad=True)
    y = training.dropout(x, 0.3, 5)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    kept = y != 0

    assert 0.68 < kept.double().mean() < 0.72
    torch.testing.assert_close(y[kept], x[kept] / 0.7)
    assert torch.equal(gradient != 0, kept)


def test_a_model_learns_as_with_operators_of_pytorch():
    losses = {}
    for operators in (llama.Ours, llama.PyTorch):
        torch.manual_seed(0)
        model = llama.Llama(operators, layers=1, width=32, heads=2, length=16)
        losses[operators] = list(llama.train(model, llama.batches(4, 2, 16)))

    assert losses[llama.Ours] == pytest.approx(losses[llama.PyTorch], rel=1e-4)
