"""Kernels put into other models' modules: stand-ins named as those of `transformers`."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
import torch
from torch import nn

from examples.llama import in_pytorch
from examples.llama.replace import replace
from tests.examples.llama.models import CONFIG, WITH_BIASES, weights


class Qwen3Attention(in_pytorch.LlamaAttention):
    """Attention that normalises each head of queries and keys."""

    def __init__(self, config, layer, layer_idx):
        super().__init__(config, layer, layer_idx)
        scales = 0.5 + torch.arange(2 * self.head_dim).view(2, -1).to(layer.qkv) / self.head_dim
        self.q_norm, self.k_norm = (in_pytorch.LlamaRMSNorm(scale, 1e-6) for scale in scales)
        self.q_proj.register_forward_hook(lambda *given: self._normal(self.q_norm, given[-1]))
        self.k_proj.register_forward_hook(lambda *given: self._normal(self.k_norm, given[-1]))

    def _normal(self, norm, projected):
        return norm(projected.unflatten(-1, (-1, self.head_dim))).flatten(-2)


def pair(config):
    """A model in float32, and the same in float64."""
    own, exact = weights(torch.float32, config=config)
    return in_pytorch.Llama(config, own), in_pytorch.Llama(config, exact)


def logits(model, counts, mask=None):
    """The logits after each of several prompts that follow each other."""
    generator, cache = torch.Generator().manual_seed(2), in_pytorch.DynamicCache()
    found, end = [], 0
    for count in counts:
        tokens = torch.randint(CONFIG.vocab_size, (2, count), generator=generator)
        positions = torch.arange(end, end + count)
        end += count
        is_seen = torch.arange(end) <= positions[:, None]
        found.append(model(tokens, positions, cache, mask and mask(is_seen)))
    return torch.stack(found)


def as_numbers(is_seen):
    """What is not seen is the least there is, as `transformers` has it."""
    return torch.where(is_seen, 0.0, torch.finfo(torch.float32).min)[None, None]


@pytest.mark.parametrize("config", [CONFIG, WITH_BIASES], ids=["Llama", "Qwen2"])
@pytest.mark.parametrize("mask", [None, as_numbers], ids=["causal", "masked"])
def test_logits_stay_what_they_are(config, mask):
    model, exact = pair(config)
    # A reference without a mask has queries before keys that are further on.
    wanted = logits(exact, (5, 1, 3), lambda is_seen: is_seen[None, None])
    counts = replace(model)

    assert counts == Counter({"Linear": 15, "LlamaRMSNorm": 5, "LlamaMLP": 2, "LlamaAttention": 2})
    assert (logits(model, (5, 1, 3), mask) - wanted).abs().max() < 1e-4


def test_heads_are_normalised_where_a_model_does():
    model, exact = pair(CONFIG)
    for each, own in zip((model, exact), weights(torch.float32), strict=True):
        for index, layer in enumerate(own.layers):
            each.layers[index].self_attn = Qwen3Attention(CONFIG, layer, index)
    wanted = logits(exact, (5, 1, 3), lambda is_seen: is_seen[None, None])
    plain = pair(CONFIG)[1]

    assert replace(model)["Qwen3Attention"] == 2
    assert (logits(model, (5, 1, 3)) - wanted).abs().max() < 1e-4
    assert (logits(plain, (5, 1, 3), lambda i: i[None, None]) - wanted).abs().max() > 1e-2


def test_weights_are_moved_together_and_stay_the_modules_own():
    model, _ = pair(CONFIG)
    before = copy.deepcopy(model.state_dict())
    replace(model)
    after = model.state_dict()
    attention = model.layers[0].self_attn
    first, second = attention.q_proj.weight, attention.k_proj.weight

    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert second.data_ptr() == first.data_ptr() + first.nbytes


def test_what_is_not_known_stays():
    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.act = nn.LayerNorm(8), nn.ReLU()

        def forward(self, x):
            return self.act(self.norm(x))

    model, x = Other(), torch.randn(3, 8)
    wanted = model(x)

    assert not replace(model)
    assert torch.equal(model(x), wanted)
