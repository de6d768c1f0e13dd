"""The mathematics of the kernels of examples/more, on float64 tensors."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from examples.more.addcmul import Mode


def causal_conv1d_reference(input: Any, weight: Any, bias: Any) -> torch.Tensor:
    padded = F.pad(input, (weight.shape[1] - 1, 0))
    return F.conv1d(padded, weight.unsqueeze(1), bias, groups=weight.shape[0])


def instance_norm_reference(input: Any, weight: Any, bias: Any) -> tuple[torch.Tensor, ...]:
    mean = input.mean((2, 3), keepdim=True)
    deviation = ((input - mean).square().mean((2, 3), keepdim=True) + 1e-5).sqrt()
    normalised = (input - mean) / deviation * weight[:, None, None] + bias[:, None, None]
    return normalised, mean[..., 0, 0], deviation[..., 0, 0]


def residual_reference(input: Any, residual: Any, weight: Any) -> tuple[torch.Tensor, ...]:
    residual = residual + input
    return F.rms_norm(residual, weight.shape, weight, 1e-6), residual


def first_argmax(input: torch.Tensor) -> torch.Tensor:
    """As `torch.argmax`, and of several the first, which PyTorch leaves open."""
    places = torch.arange(input.shape[-1], device=input.device)
    is_largest = input == input.amax(-1, keepdim=True)
    return torch.where(is_largest, places, input.shape[-1]).amin(-1)


def quantile_reference(input: torch.Tensor) -> torch.Tensor:
    return torch.quantile(input, 0.3, -1) if len(input) else input.new_empty(0)


def top1_reference(scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    return values.gather(1, first_argmax(scores)[:, None])[:, 0]


def cross_entropy_reference(logits: Any, target: Any) -> tuple[torch.Tensor, ...]:
    gradient = torch.softmax(logits, 1) - F.one_hot(target, logits.shape[1])
    return F.cross_entropy(logits, target, reduction="none"), gradient


def jagged_softmax_reference(values: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return torch.cat([torch.softmax(part, 0) for part in values.tensor_split(offsets.cpu()[1:-1])])


def attention_with_cache_reference(*arguments: Any) -> tuple[torch.Tensor, ...]:
    query, key, value, key_cache, value_cache, position = arguments
    key_cache, value_cache = key_cache.clone(), value_cache.clone()
    end = position + key.shape[2]
    key_cache[:, :, position:end], value_cache[:, :, position:end] = key, value
    is_seen = torch.ones(key.shape[2], end, dtype=torch.bool, device=key.device).tril(position)
    attended = F.scaled_dot_product_attention(
        query, key_cache[:, :, :end], value_cache[:, :, :end], is_seen
    )
    return attended, key_cache, value_cache


def masked_attention_reference(query: Any, key: Any, value: Any, mask: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(query, key, value, mask, enable_gqa=True)


def histogram_reference(input: torch.Tensor, bins: int) -> torch.Tensor:
    return torch.bincount(input[(input >= 0) & (input < bins)], minlength=bins)


def clamp_reference(input: Any, low: Any, high: Any, replacement: Any = None) -> torch.Tensor:
    if replacement is None:
        return input.clamp(low, high)
    return torch.where((input < low) | (input > high), replacement, input)


def addcmul_reference(input: Any, first: Any, second: Any, value: float, mode: Any) -> torch.Tensor:
    return input + value * (first * second if mode is Mode.MULTIPLY else first / second)
