"""A decoder's weights: random ones, or those of a folder of safetensors files."""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from examples.llama.config import Config
from examples.llama.parallel import ALONE, Group

#: The element types that a safetensors file names, so far as weights have them.
_TYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


@dataclass
class Layer:
    """The weights of one layer.

    Attributes:
        qkv: the projections of queries, keys and values, one below the other.
        qkv_bias: what they add, if anything.
        gate_up: (2, intermediate, hidden): the gate's, and those of what it gates.
    """

    attention_norm: torch.Tensor
    qkv: torch.Tensor
    out: torch.Tensor
    product_norm: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    qkv_bias: torch.Tensor | None = None


@dataclass
class Weights:
    """All weights; `head` is the table itself where these are tied."""

    table: torch.Tensor
    layers: list[Layer]
    norm: torch.Tensor
    head: torch.Tensor


def names_and_shapes(config: Config) -> dict[str, tuple[int, ...]]:
    """The weights of a checkpoint by the names that `transformers` gives them."""
    hidden, inner, size = config.hidden_size, config.intermediate_size, config.head_dim
    queries, keys = config.num_attention_heads * size, config.num_key_value_heads * size
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config.vocab_size, hidden)}
    for index in range(config.num_hidden_layers):
        layer = {
            "input_layernorm": (hidden,),
            "self_attn.q_proj": (queries, hidden),
            "self_attn.k_proj": (keys, hidden),
            "self_attn.v_proj": (keys, hidden),
            "self_attn.o_proj": (hidden, queries),
            "post_attention_layernorm": (hidden,),
            "mlp.gate_proj": (inner, hidden),
            "mlp.up_proj": (inner, hidden),
            "mlp.down_proj": (hidden, inner),
        }
        shapes |= {f"model.layers.{index}.{name}.weight": shape for name, shape in layer.items()}
        if config.qkv_bias:
            for name, size in zip("qkv", (queries, keys, keys), strict=True):
                shapes[f"model.layers.{index}.self_attn.{name}_proj.bias"] = (size,)
    shapes["model.norm.weight"] = (hidden,)
    if not config.tie_word_embeddings:
        shapes["lm_head.weight"] = (config.vocab_size, hidden)
    return shapes


def random_tensors(config: Config, dtype: torch.dtype, device: Any, seed: int = 0) -> Any:
    """A function of a name that gives that weight: small random numbers, the same for all processes."""
    shapes = names_and_shapes(config)
    places = {name: place for place, name in enumerate(shapes)}

    def tensor(name: str) -> torch.Tensor:
        generator = torch.Generator(device).manual_seed(seed * 10007 + places[name])
        shape = shapes[name]
        if len(shape) == 1 and not name.endswith("bias"):
            scale = torch.rand(shape, generator=generator, device=device) + 0.5
            return scale.to(dtype)
        values = torch.randn(shape, generator=generator, device=device, dtype=dtype)
        return values.mul_(shape[-1] ** -0.5)

    return tensor


def file_tensors(folder: Path, dtype: torch.dtype, device: Any) -> Any:
    """A function of a name that gives that weight, from the safetensors files of a folder."""
    found = {
        name: entry for path in sorted(folder.glob("*.safetensors")) for name, entry in _in(path)
    }

    def tensor(name: str) -> torch.Tensor:
        if name not in found:
            raise KeyError(f"no safetensors file in {folder} has {name!r}")
        content, start, kind, shape = found[name]
        count = torch.Size(shape).numel()
        values = torch.frombuffer(content, dtype=kind, count=count, offset=start)
        return values.reshape(shape).to(device, dtype, copy=True)

    return tensor


def _in(path: Path) -> Iterator[tuple[str, tuple[Any, int, torch.dtype, list[int]]]]:
    """What a safetensors file has: eight bytes say how long the JSON is that says where things are."""
    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    size = int.from_bytes(content[:8], "little")
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name != "__metadata__":
            start = 8 + size + entry["data_offsets"][0]
            yield name, (content, start, _TYPES[entry["dtype"]], entry["shape"])


def assembled(config: Config, tensor: Any, group: Group = ALONE) -> Weights:
    """This process's weights as the kernels take them, from a function that gives those of a name."""

    def layer(index: int) -> Layer:
        def part(name: str, dimension: int | None = None, of: str = "weight") -> torch.Tensor:
            weight = tensor(f"model.layers.{index}.{name}.{of}")
            return weight if dimension is None else group.part(weight, dimension)

        def qkv(of: str) -> torch.Tensor:
            return torch.cat([part(f"self_attn.{name}_proj", 0, of) for name in "qkv"])

        return Layer(
            part("input_layernorm"),
            qkv("weight"),
            part("self_attn.o_proj", 1),
            part("post_attention_layernorm"),
            torch.stack([part(f"mlp.{name}_proj", 0) for name in ("gate", "up")]),
            part("mlp.down_proj", 1),
            qkv("bias") if config.qkv_bias else None,
        )

    table = tensor("model.embed_tokens.weight")
    head = table if config.tie_word_embeddings else tensor("lm_head.weight")

    return Weights(
        table,
        [layer(index) for index in range(config.num_hidden_layers)],
        tensor("model.norm.weight"),
        group.part(head, 0),
    )
