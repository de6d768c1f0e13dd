"""What the examples compute, in PyTorch's own operations: on float64 tensors, the references."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.examples.philox import uniform


def rms_norm_reference(input: torch.Tensor, eps: float = 1e-6) -> torch.Tensor:
    return input / torch.sqrt((input**2).mean(-1, keepdim=True) + eps)


def fused_add_rms_norm_reference(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    return rms_norm_reference(input + residual) * weight, input + residual


def layer_norm_reference(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return F.layer_norm(input, input.shape[-1:], weight, bias, eps=1e-5)


def addmm_reference(
    input: torch.Tensor,
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    beta: float = 1.0,
    alpha: float = 1.0,
) -> torch.Tensor:
    return beta * input + alpha * (mat1 @ mat2)


def max_pool2d_reference(
    input: torch.Tensor, window: Any, stride: Any, ceil_mode: bool = False
) -> torch.Tensor:
    # PyTorch's own kernel wants a batch that is not empty.
    if input.shape[0] == 0:
        one = input.new_empty(1, *input.shape[1:])
        return max_pool2d_reference(one, window, stride, ceil_mode)[:0]
    return F.max_pool2d(input, window, stride, ceil_mode=ceil_mode)


def sdpa_reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    is_causal: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    group = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(group, dim=1) for tensor in (key, value))
    scale = query.shape[-1] ** -0.5 if scale is None else scale
    scores = query @ key.transpose(-1, -2) * scale
    if is_causal:
        is_hidden = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(is_hidden, float("-inf"))
    return torch.softmax(scores, -1) @ value


def rope_reference(
    input: torch.Tensor, sin_table: torch.Tensor, cos_table: torch.Tensor, interleaved: bool = True
) -> torch.Tensor:
    half, length = input.shape[-1] // 2, input.shape[1]
    sin, cos = (table[:length, None, :] for table in (sin_table, cos_table))
    pairs = input.unflatten(-1, (half, 2) if interleaved else (2, half))
    first, second = pairs.unbind(-1 if interleaved else -2)
    turned = (first * cos - second * sin, first * sin + second * cos)
    return torch.stack(turned, -1 if interleaved else -2).flatten(-2)


def dropout_reference(input: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    randoms = uniform(seed, torch.arange(input.numel(), device=input.device))
    is_kept = (randoms >= torch.tensor(p, dtype=torch.float32)).reshape(input.shape)
    return torch.where(is_kept, input / (1 - p), 0.0)


def jagged_reference(
    values: torch.Tensor, offsets: torch.Tensor, padding_value: float
) -> torch.Tensor:
    starts, ends = offsets[:-1].tolist(), offsets[1:].tolist()
    longest = max(end - start for start, end in zip(starts, ends, strict=True))
    output = values.new_full((len(starts), longest, values.shape[-1]), padding_value)
    for row, start, end in zip(output, starts, ends, strict=True):
        row[: end - start] = values[start:end]
    return output
