"""Operators with gradients: against PyTorch's in float64, and by PyTorch's own checks."""

from __future__ import annotations

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

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


@pytest.mark.parametrize("layout", ["contiguous", "strided", "permuted", "broadcast"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name, layout):
    for got, wanted in zip(*outcomes(name, torch.float32, layout=layout)):
        torch.testing.assert_close(got.double(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", EXACT)
def test_finite_differences(name):
    function, shapes = EXACT[name]
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]

    assert torch.autograd.gradcheck(function, inputs)


@pytest.mark.parametrize("name", ["rms_norm", "layer_norm", "rope"])
def test_finite_differences_of_gradients(name):
    """Of those whose backward is derived: it has a derivative itself."""
    ours, _, shapes, others = CASES[name]
    inputs = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    rest = [each.double() for each in others("cpu")]

    assert torch.autograd.gradgradcheck(lambda *x: ours(*x, *rest), inputs, fast_mode=True)


class _Recording(TorchDispatchMode):
    """Notes what the operators of the examples are called with."""

    def __init__(self):
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, function, types, arguments=(), keywords=None):
        if function.namespace == "ninetoothed_examples":
            self.calls[function] = arguments
        return function(*arguments, **keywords or {})


@pytest.mark.parametrize("name", [*CASES, "dropout"])
def test_opcheck(name):
    """Of the forward operator and of those that its gradients are made of."""
    ours, _, shapes, others = CASES.get(
        name, (lambda x: training.dropout(x, 0.4, 7), None, [(50,)], lambda device: ())
    )
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    with _Recording() as recording:
        ours(*inputs, *others("cpu")).sum().backward()

    assert recording.calls
    for function, arguments in recording.calls.items():
        differs = "backward" not in function.name()
        fresh = [
            each.detach().clone().requires_grad_(differs and each.is_floating_point())
            if torch.is_tensor(each)
            else each
            for each in arguments
        ]
        assert set(torch.library.opcheck(function, fresh).values()) == {"SUCCESS"}, function


@pytest.mark.parametrize("name", [name for name in CASES if name != "cross_entropy"])
def test_nothing_at_all(name):
    """No rows, no tokens; of a mean of nothing there is none."""
    ours, _, shapes, others = CASES[name]
    rest = [each[:0] if name == "embedding" else each for each in others("cpu")]
    inputs = [
        torch.randn((0, *shape[1:]) if _has_rows(name, place) else shape, requires_grad=True)
        for place, shape in enumerate(shapes)
    ]
    output = ours(*inputs, *rest)
    gradients = torch.autograd.grad(output, inputs, torch.ones_like(output))

    assert output.numel() == 0
    assert all((gradient == 0).all() for gradient in gradients)


def _has_rows(name, place):
    """Whether an input has rows of its own: weights and tables are there without any."""
    return name != "embedding" and (
        place == 0 or name in ("swiglu", "attention", "causal attention")
    )


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
