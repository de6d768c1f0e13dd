"""The same decoder in PyTorch's own modules, named as `transformers` names them.

It is what ours is compared with, in float64 by tests, and what modules are replaced in (`replace`).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from examples.llama.config import Config
from examples.llama.weights import Layer, Weights


class LlamaRMSNorm(nn.Module):
    """Rows over their root mean square, times a weight."""

    def __init__(self, weight: torch.Tensor, eps: float) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(weight, False), eps

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        wide = hidden_states if hidden_states.dtype == torch.float64 else hidden_states.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(hidden_states.dtype)


def linear(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """A module of a weight that lies somewhere already."""
    module = nn.Linear(weight.shape[1], weight.shape[0], bias=False, device="meta")
    module.weight = nn.Parameter(weight, False)
    if bias is not None:
        module.bias = nn.Parameter(bias, False)
    return module


def rotate_half(x: torch.Tensor) -> torch.Tensor:
    """The halves of the last dimension change places, the second with its sign changed."""
    first, second = x.chunk(2, -1)
    return torch.cat((-second, first), -1)


class LlamaAttention(nn.Module):
    """Causal attention, where groups of heads share keys and values."""

    def __init__(self, config: Config, layer: Layer, layer_idx: int) -> None:
        super().__init__()
        size = config.head_dim
        heads, key_heads = config.num_attention_heads, config.num_key_value_heads
        sizes = [heads * size, key_heads * size, key_heads * size]
        parts = layer.qkv.split(sizes)
        biases = [None] * 3 if layer.qkv_bias is None else layer.qkv_bias.split(sizes)
        self.q_proj, self.k_proj, self.v_proj = map(linear, parts, biases)
        self.o_proj = linear(layer.out)
        self.head_dim, self.layer_idx, self.scaling = size, layer_idx, size**-0.5
        self.num_key_value_groups = heads // key_heads

    def forward(
        self,
        hidden_states: torch.Tensor,
        position_embeddings: tuple[torch.Tensor, torch.Tensor],
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
    ) -> tuple[torch.Tensor, None]:
        shape = (*hidden_states.shape[:-1], -1, self.head_dim)
        query, key, value = (
            project(hidden_states).view(shape).transpose(1, 2)
            for project in (self.q_proj, self.k_proj, self.v_proj)
        )
        cos, sin = (table.unsqueeze(1) for table in position_embeddings)
        query = query * cos + rotate_half(query) * sin
        key = key * cos + rotate_half(key) * sin
        if past_key_values is not None:
            key, value = past_key_values.update(key, value, self.layer_idx)
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attention_mask,
            is_causal=attention_mask is None and query.shape[2] > 1,
            scale=self.scaling,
            enable_gqa=self.num_key_value_groups > 1,
        )
        return self.o_proj(attended.transpose(1, 2).flatten(2)), None


class LlamaMLP(nn.Module):
    """A gated product."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = map(linear, layer.gate_up)
        self.down_proj = linear(layer.down)
        self.act_fn = nn.SiLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class LlamaDecoderLayer(nn.Module):
    """Attention and a gated product, each after a normalisation and added to what came in."""

    def __init__(self, config: Config, layer: Layer, layer_idx: int) -> None:
        super().__init__()
        self.self_attn, self.mlp = LlamaAttention(config, layer, layer_idx), LlamaMLP(layer)
        self.input_layernorm = LlamaRMSNorm(layer.attention_norm, config.rms_norm_eps)
        self.post_attention_layernorm = LlamaRMSNorm(layer.product_norm, config.rms_norm_eps)

    def forward(self, hidden_states: torch.Tensor, **others: Any) -> torch.Tensor:
        attended, _ = self.self_attn(hidden_states=self.input_layernorm(hidden_states), **others)
        hidden_states = hidden_states + attended
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class Llama(nn.Module):
    """The whole decoder, on the memory of the weights that it is given."""

    def __init__(self, config: Config, weights: Weights) -> None:
        super().__init__()
        table = weights.table
        self.embed_tokens = nn.Embedding.from_pretrained(table)
        self.layers = nn.ModuleList(
            LlamaDecoderLayer(config, layer, index) for index, layer in enumerate(weights.layers)
        )
        self.norm = LlamaRMSNorm(weights.norm, config.rms_norm_eps)
        self.lm_head = linear(weights.head)
        frequencies = config.frequencies().to(table.device)
        exact = table.dtype == torch.float64
        self.frequencies = nn.Buffer(frequencies if exact else frequencies.float())

    def forward(
        self,
        tokens: torch.Tensor,
        positions: torch.Tensor,
        cache: Any = None,
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """The logits (requests, vocabulary) of the last of tokens (requests, n) at positions (n,)."""
        hidden_states = self.embed_tokens(tokens)
        angles = (positions[:, None] * self.frequencies).repeat(1, 2)[None]
        turns = tuple(table.to(hidden_states.dtype) for table in (angles.cos(), angles.sin()))
        for layer in self.layers:
            hidden_states = layer(
                hidden_states, position_embeddings=turns, attention_mask=mask, past_key_values=cache
            )
        return self.lm_head(self.norm(hidden_states)[:, -1:])[:, 0]


class DynamicCache:
    """Keys and values that grow by concatenation."""

    def __init__(self) -> None:
        self._layers: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def update(self, key: torch.Tensor, value: torch.Tensor, layer_idx: int) -> Any:
        """All keys and values of a layer, the new ones last."""
        if layer_idx in self._layers:
            keys, values = self._layers[layer_idx]
            key, value = torch.cat((keys, key), 2), torch.cat((values, value), 2)
        self._layers[layer_idx] = key, value
        return key, value


class StaticCache:
    """Keys and values of all positions, of which those at `positions` are written."""

    def __init__(self, config: Config, requests: int, length: int, like: torch.Tensor) -> None:
        shape = (requests, config.num_key_value_heads, length, config.head_dim)
        self._layers = [
            (like.new_zeros(shape), like.new_zeros(shape)) for _ in range(config.num_hidden_layers)
        ]
        self.positions = torch.zeros(1, dtype=torch.int64, device=like.device)

    def update(self, key: torch.Tensor, value: torch.Tensor, layer_idx: int) -> Any:
        """All keys and values of a layer, whatever the positions."""
        for new, kept in zip((key, value), self._layers[layer_idx], strict=True):
            kept.index_copy_(2, self.positions, new)
        return self._layers[layer_idx]
