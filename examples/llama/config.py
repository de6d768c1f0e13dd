"""What a decoder's shape is, as `transformers` says it in the `config.json` of a Llama, Qwen2 or Mistral."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


@dataclass(frozen=True)
class Config:
    """Names are those of `transformers`; the defaults are an 8B Llama's.

    Attributes:
        rope: how positions are turned, with at least "rope_theta"; "rope_type" is "default", "linear" or
            "llama3", with what these take.
        qkv_bias: whether the projections of queries, keys and values add one, as Qwen2's do.
    """

    vocab_size: int = 128256
    hidden_size: int = 4096
    intermediate_size: int = 14336
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int = 8
    head_dim: int = 128
    rms_norm_eps: float = 1e-5
    tie_word_embeddings: bool = False
    rope: dict[str, Any] = dataclasses.field(default_factory=lambda: {"rope_theta": 500000.0})
    qkv_bias: bool = False

    @classmethod
    def from_json(cls, path: Path) -> Config:
        """Read a `config.json`.

        Raises:
            ValueError: the model has what this decoder does not.
        """
        given = json.loads(path.read_text())

        kind = given.get("model_type", "llama")
        known = {
            "model_type": ("llama", "qwen2", "mistral"),
            "attention_bias": (False,),
            "mlp_bias": (False,),
            "hidden_act": ("silu",),
            "use_sliding_window": (False,),
        }
        if kind == "mistral":
            known["sliding_window"] = (None,)

        for name, values in known.items():
            if name in given and given[name] not in values:
                wanted = " or ".join(map(repr, values))
                raise ValueError(f"{path} has {name}={given[name]!r}; this decoder has {wanted}")

        given["qkv_bias"] = kind == "qwen2"
        heads = given["num_attention_heads"]
        given["num_key_value_heads"] = given.get("num_key_value_heads") or heads
        given["head_dim"] = given.get("head_dim") or given["hidden_size"] // heads
        scaling = given.get("rope_parameters") or given.get("rope_scaling") or {}
        given["rope"] = {"rope_theta": given.get("rope_theta", 10000.0), **scaling}
        names = {field.name for field in dataclasses.fields(cls)}

        return cls(**{name: value for name, value in given.items() if name in names})

    def frequencies(self) -> torch.Tensor:
        """The angle by which each pair of a head's elements is turned from one position to the next.

        Raises:
            ValueError: the frequencies are scaled in a way that is not known here.
        """
        rope = self.rope
        powers = torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim
        plain = rope["rope_theta"] ** -powers
        kind = rope.get("rope_type", rope.get("type", "default"))

        if kind == "default":
            return plain
        if kind == "linear":
            return plain / rope["factor"]
        if kind != "llama3":
            raise ValueError(f"rope_type {kind!r} is none of 'default', 'linear' and 'llama3'")

        # Long waves are stretched, short ones kept, those between mixed.
        turns = rope["original_max_position_embeddings"] * plain / (2 * math.pi)
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        kept = ((turns - low) / (high - low)).clamp(0, 1)

        return plain * (kept + (1 - kept) / rope["factor"])

    def tables(self, length: int, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """The sines and cosines of positions 0 to length, each (length, head_dim / 2) in float32."""
        angles = torch.arange(length, dtype=torch.float64)[:, None] * self.frequencies()

        return angles.sin().float().to(device), angles.cos().float().to(device)
