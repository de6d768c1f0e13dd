"""Operators with gradients on a device: against PyTorch's in float64."""

from __future__ import annotations

import pytest
import torch

from tests.examples.training_cases import CASES, outcomes

#: What an element may differ by: of sums of products of numbers rounded to this type.
BOUNDS = {torch.float32: 2e-3, torch.float16: 2e-2, torch.bfloat16: 1.5e-1}


@pytest.mark.parametrize("dtype", BOUNDS, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_outputs_and_gradients(name, dtype):
    for got, wanted in zip(*outcomes(name, dtype, "cuda")):
        bound = BOUNDS[dtype] * max(1.0, wanted.abs().max().item())
        assert (got.double() - wanted).abs().max() <= bound


@pytest.mark.parametrize("name", ["rms_norm", "softmax", "attention"])
def test_inductor_and_graphs(name):
    ours, _, shapes, others = CASES[name]
    inputs = [torch.randn(s, device="cuda", requires_grad=True) for s in shapes]
    rest = others("cuda")
    ours(*inputs, *rest)
    compiled = torch.compile(lambda *a: ours(*a) * 2, fullgraph=True, mode="reduce-overhead")

    for _ in range(3):
        output = compiled(*inputs, *rest)
        got = torch.autograd.grad(output.sum(), inputs)
        torch.testing.assert_close(output, ours(*inputs, *rest) * 2)
        wanted = torch.autograd.grad((ours(*inputs, *rest) * 2).sum(), inputs)
        for one, other in zip(got, wanted):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
