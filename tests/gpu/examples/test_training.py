"""Operators with gradients on a device: against PyTorch's in float64."""

from __future__ import annotations

import pytest
import torch

from examples import training
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


@pytest.mark.parametrize("is_causal", [False, True], ids=["", "causal"])
@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize(
    ("queries", "keys"), [(1000, 1000), (100, 700), (700, 100), (64, 64), (1, 65)]
)
def test_attention_of_any_lengths(queries, keys, size, is_causal):
    """Tiles come through rings where the device has them; no query sees the last keys, or some see none."""
    check_attention(queries, keys, size, is_causal, torch.bfloat16, "cuda")


def check_attention(queries, keys, size, is_causal, dtype, device):
    """Gradients against PyTorch's in float64 on the same elements."""
    torch.manual_seed(0)
    shapes = [(2, length, 3, size) for length in (queries, keys, keys)]
    inputs = [torch.randn(s, device=device, dtype=dtype, requires_grad=True) for s in shapes]
    output = training.attention(*inputs, is_causal=is_causal)
    given = torch.randn_like(output)

    exact = [tensor.detach().double().requires_grad_() for tensor in inputs]
    query, key, value = (tensor.transpose(1, 2) for tensor in exact)
    scores = query @ key.mT / size**0.5
    if is_causal:
        position = torch.arange(max(queries, keys), device=device)
        is_seen = position[None, :keys] <= position[:queries, None]
        scores = scores.masked_fill(~is_seen, float("-inf"))
    wanted = (scores.softmax(-1) @ value).transpose(1, 2)

    found = torch.autograd.grad(output, inputs, given)
    for one, other in zip(found, torch.autograd.grad(wanted, exact, given.double())):
        assert (one.double() - other).norm() <= 0.02 * other.norm() + 1e-3
