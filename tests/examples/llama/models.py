"""Small models of `examples.llama`, beside the same in PyTorch's modules in float64."""

from __future__ import annotations

from dataclasses import replace

import torch

from examples.llama import in_pytorch
from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.weights import assembled, random_tensors

CONFIG = Config(
    vocab_size=301,
    hidden_size=96,
    intermediate_size=136,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=32,
    rope={"rope_theta": 10000.0},
)

WITH_BIASES = replace(CONFIG, qkv_bias=True)


def weights(dtype, device="cpu", config=CONFIG):
    """Random weights, and the same in float64."""
    tensor = random_tensors(config, dtype, device)
    return assembled(config, tensor), assembled(config, lambda name: tensor(name).double())


def logits_apart(dtype, device, requests, page_size, steps, config=CONFIG):
    """How far logits are from float64's at most, after a prompt, after a further one, and after steps."""
    own, exact = weights(dtype, device, config)
    session = Session(config, own, requests, 40, page_size)
    reference, cache = in_pytorch.Llama(config, exact), in_pytorch.DynamicCache()
    generator = torch.Generator().manual_seed(1)
    apart, end = [], 0

    def compare(tokens):
        nonlocal end
        positions = torch.arange(end, end + tokens.shape[1], device=device)
        end += tokens.shape[1]
        is_seen = torch.arange(end, device=device) <= positions[:, None]
        wanted = reference(tokens.long(), positions, cache, is_seen[None, None])
        apart.append((session.logits.double() - wanted).abs().max().item())

    for count in (5, 3):
        tokens = torch.randint(CONFIG.vocab_size, (requests, count), generator=generator)
        tokens = tokens.to(device)
        session.prefill(tokens)
        compare(tokens)
    for _ in range(steps):
        tokens = session.tokens.clone()[:, None]
        session.step()
        compare(tokens)

    return max(apart)


def generated(device, requests=1, count=6, **options):
    """The tokens that follow a prompt."""
    own, _ = weights(torch.float32, device)
    session = Session(CONFIG, own, requests, 20, **options)
    return session.generate(torch.arange(4).expand(requests, -1), count).cpu()
