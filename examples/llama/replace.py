"""Our kernels in any Llama, Qwen or Mistral of `transformers`, module by module; `generate` stays as it is.

    model = AutoModelForCausalLM.from_pretrained(...)
    replace(model)
    model.generate(...)

Modules are known by their class's name and by what they have; what is not known stays. The weights of
projections that are one product here are moved together, and the modules' own become views of them.
"""

from __future__ import annotations

import types
from collections import Counter
from typing import Any

import torch
from torch import nn

import ninetoothed
from examples import rope, sdpa
from examples.fused_rms_norm import fused_rms_norm
from examples.llama import attention, products
from examples.more.attention_with_mask import attention_with_mask
from ninetoothed import Tensor

#: The models whose attention, gated product and normalisation are those that stand here.
FAMILIES = ("Llama", "Qwen2", "Qwen3", "Mistral")


def turn_arrangement(heads, sin, cos):
    """Heads (requests, positions, heads, size), and a table (requests, positions, pairs)."""

    def arrange_table(table):
        arranged = table.tile((1, 1, -1)).squeeze(2)
        arranged.dtype = arranged.dtype.squeeze(0)

        return arranged

    return attention.arrange_pairs_of_position(heads), arrange_table(sin), arrange_table(cos)


def turn(heads, sin, cos):
    rope.application(heads, sin, cos, heads)


turn_kernel = ninetoothed.make(
    turn_arrangement,
    turn,
    (
        attention.positions_of_heads(),
        *(Tensor(3, shape_options=attention.options(False, False, True)) for _ in range(2)),
    ),
    kernel_name="turn_heads",
)


def replace(model: nn.Module) -> Counter[str]:
    """Put our kernels into a model's modules; how many of each class there were."""
    found: Counter[str] = Counter()

    for module in list(model.modules()):
        forward = _forward_of(module)
        if forward is not None:
            module.forward = types.MethodType(forward, module)
            found[type(module).__name__] += 1

    return found


def _forward_of(module: nn.Module) -> Any:
    """What a module is to do instead; None where it is not known."""
    name = type(module).__name__
    if type(module) is nn.Linear:
        return linear
    if not name.startswith(FAMILIES):
        return None
    if name.endswith("RMSNorm") and hasattr(module, "variance_epsilon"):
        return rms_norm
    if name.endswith("MLP") and _has_linear(module, "gate_proj", "up_proj"):
        if type(module.act_fn).__name__ in ("SiLU", "SiLUActivation"):
            module.packed = _packed(module.gate_proj, module.up_proj)
            return mlp
    if name.endswith("Attention") and _has_linear(module, "q_proj", "k_proj", "v_proj"):
        module.packed = _packed(module.q_proj, module.k_proj, module.v_proj)
        return attend
    return None


def _has_linear(module: nn.Module, *names: str) -> bool:
    return all(type(getattr(module, name, None)) is nn.Linear for name in names)


def _packed(*modules: nn.Linear) -> nn.Linear:
    """One product that does what several do, of which the weights become views of its own."""
    sizes = [module.out_features for module in modules]
    packed = nn.Linear(modules[0].in_features, sum(sizes), bias=False, device="meta")
    for name in ("weight", "bias"):
        parts = [getattr(module, name) for module in modules]
        if parts[0] is not None:
            together = torch.cat([part.detach() for part in parts])
            setattr(packed, name, nn.Parameter(together, False))
            for part, view in zip(parts, together.split(sizes), strict=True):
                part.data = view
    # A list hides it: its weights are the other modules' already.
    return [packed]


def linear(self: nn.Linear, input: torch.Tensor) -> torch.Tensor:
    """As `nn.Linear` has it."""
    rows = input.reshape(-1, input.shape[-1])
    output = products.linear(rows, self.weight, bias=self.bias)
    return output.view(*input.shape[:-1], -1)


def rms_norm(self: Any, hidden_states: torch.Tensor) -> torch.Tensor:
    """A row over its root mean square, times a weight."""
    return fused_rms_norm(hidden_states, self.weight, self.variance_epsilon)


def mlp(self: Any, x: torch.Tensor) -> torch.Tensor:
    """A gated product: what two of them give is joined before it is written."""
    (packed,) = self.packed
    if packed.bias is None:
        rows = x.reshape(-1, x.shape[-1])
        gated = products.swiglu(rows, packed.weight.view(2, -1, rows.shape[1]))
        return self.down_proj(gated.view(*x.shape[:-1], -1))
    gate, up = linear(packed, x).chunk(2, -1)
    return self.down_proj(self.act_fn(gate) * up)


def attend(
    self: Any,
    hidden_states: torch.Tensor,
    position_embeddings: tuple[torch.Tensor, torch.Tensor],
    attention_mask: torch.Tensor | None = None,
    past_key_values: Any = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """Projections, rope and attention over what `past_key_values` keeps."""
    size = self.head_dim
    heads, key_heads = self.q_proj.out_features // size, self.k_proj.out_features // size
    (packed,) = self.packed
    qkv = linear(packed, hidden_states).unflatten(-1, (-1, size))
    query, key, value = qkv.split([heads, key_heads, key_heads], 2)
    cos, sin = (
        table[..., : size // 2].expand(qkv.shape[0], -1, -1) for table in position_embeddings
    )

    if hasattr(self, "q_norm"):
        query, key = self.q_norm(query), self.k_norm(key)
        turn_kernel(query, sin, cos)
        turn_kernel(key, sin, cos)
    else:
        turn_kernel(qkv[:, :, : heads + key_heads], sin, cos)

    query, key, value = (tensor.transpose(1, 2) for tensor in (query, key, value))
    if past_key_values is not None:
        key, value = past_key_values.update(key, value, self.layer_idx)
    attended = _attention(query, key, value, attention_mask, self.scaling)

    return self.o_proj(attended.transpose(1, 2).flatten(2)), None


def _attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    scale: float,
) -> torch.Tensor:
    """Causal attention, the last query at the last key; or as a mask says."""
    if mask is not None:
        # Of numbers that are added, the least are those of what is not seen.
        is_seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
        return attention_with_mask(query, key, value, is_seen[..., : key.shape[2]], scale)

    count, past = query.shape[2], key.shape[2] - query.shape[2]
    # Laid out as the next product reads it.
    output = query.new_empty((query.shape[0], count, *query.shape[1::2])).transpose(1, 2)

    if past and count > 1:
        start = torch.full((query.shape[0],), past, dtype=torch.int32, device=query.device)
        attention.prefill_kernel(query, key, value, start, start[None], scale, False, output)
    else:
        sdpa.kernel(query, key, value, scale, count > 1, output)

    return output
