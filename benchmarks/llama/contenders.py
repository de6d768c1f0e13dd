"""Who contends in `benchmarks.llama`: each decodes requests of one length, a token at a time.

A contender is made for some requests and reads a prompt; a step appends a token to each request. PyTorch's
contenders and those whose modules are replaced share one model, on the same memory of the weights.
"""

from __future__ import annotations

import copy
import types
from collections.abc import Callable
from typing import Any

import torch
import triton
from torch import nn

from benchmarks.peers import idiomatic
from benchmarks.peers.idiomatic.attention import sdpa_kernel
from examples.llama import in_pytorch
from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.replace import replace
from examples.llama.weights import Weights

OURS, REPLACED, TRITON = "ours", "ours, modules replaced", "Triton, modules replaced"
EAGER, COMPILED = "PyTorch", "PyTorch, compiled, graph"

#: A contender: what reads a prompt (requests, n) from the start, and what then makes one step.
Contender = tuple[Callable[[torch.Tensor], None], Callable[[], None], Callable[[], torch.Tensor]]


def ours(config: Config, weights: Weights, requests: int, length: int) -> Contender:
    """The model of kernels of ours."""
    session = Session(config, weights, requests, length)

    def read(prompt: torch.Tensor) -> None:
        session.restart()
        session.prefill(prompt)

    return read, session.step, lambda: session.logits


def by_module(model: nn.Module, weights: Weights) -> Contender:
    """Modules run one after the other, with a cache that grows."""
    state: dict[str, Any] = {}

    def read(prompt: torch.Tensor) -> None:
        state["cache"] = in_pytorch.DynamicCache()
        advance(prompt, torch.arange(prompt.shape[1], device=prompt.device))

    def advance(tokens: torch.Tensor, positions: torch.Tensor) -> None:
        state["logits"] = model(tokens, positions, state["cache"])
        state["tokens"] = state["logits"].argmax(-1, keepdim=True)
        state["positions"] = positions[-1:] + 1

    def step() -> None:
        advance(state["tokens"], state["positions"])

    return read, step, lambda: state["logits"]


def compiled(
    model: nn.Module, config: Config, weights: Weights, requests: int, length: int
) -> Contender:
    """`torch.compile` of a whole step over a cache of fixed length, recorded as a CUDA graph."""
    device = weights.table.device
    cache = in_pytorch.StaticCache(config, requests, length, weights.table)
    positions, tokens = cache.positions, torch.zeros(requests, 1, dtype=torch.int64, device=device)
    places = torch.arange(length, device=device)
    state: dict[str, Any] = {}

    @torch.compile(fullgraph=True)
    def advance(tokens: torch.Tensor, positions: torch.Tensor) -> Any:
        mask = (places <= positions[:, None])[None, None]
        logits = model(tokens, positions, cache, mask)
        return logits, logits.argmax(-1, keepdim=True)

    def one() -> None:
        state["logits"], following = advance(tokens, positions)
        tokens.copy_(following)
        positions.add_(1)

    def read(prompt: torch.Tensor) -> None:
        cache.positions = torch.arange(prompt.shape[1], device=device)
        mask = (places <= cache.positions[:, None])[None, None]
        logits = model(prompt, cache.positions, cache, mask)
        cache.positions = positions.fill_(prompt.shape[1])
        tokens.copy_(logits.argmax(-1, keepdim=True))

    def step() -> None:
        if "graph" in state:
            state["graph"].replay()
            return
        one()
        if device.type == "cuda":
            torch.cuda.synchronize()
            state["graph"] = torch.cuda.CUDAGraph()
            with torch.cuda.graph(state["graph"]):
                one()

    return read, step, lambda: state["logits"]


def with_triton(model: nn.Module) -> nn.Module:
    """A copy of a model whose modules run the kernels of `benchmarks.peers.idiomatic`."""
    forwards = {
        "Linear": _linear,
        "LlamaRMSNorm": _rms_norm,
        "SiLU": lambda self, x: idiomatic.silu(x.flatten()).view(x.shape),
        "LlamaAttention": _attend,
    }
    model = shared_copy(model)
    for module in model.modules():
        forward = forwards.get(type(module).__name__)
        if forward is not None:
            module.forward = types.MethodType(forward, module)
    return model


def shared_copy(model: nn.Module) -> nn.Module:
    """A copy of the modules on the same memory of their weights."""
    tensors = (*model.parameters(), *model.buffers())
    return copy.deepcopy(model, {id(tensor): tensor for tensor in tensors})


def replaced(model: nn.Module) -> nn.Module:
    """A copy of a model whose modules run kernels of ours."""
    model = shared_copy(model)
    replace(model)
    return model


def _linear(self: Any, input: torch.Tensor) -> torch.Tensor:
    rows = input.reshape(-1, input.shape[-1])
    return idiomatic.mm(rows, self.weight.T).view(*input.shape[:-1], -1)


def _rms_norm(self: Any, input: torch.Tensor) -> torch.Tensor:
    rows = input.reshape(-1, input.shape[-1])
    return idiomatic.rms_norm(rows, self.variance_epsilon).view(input.shape) * self.weight


def _attend(
    self: Any,
    hidden_states: torch.Tensor,
    position_embeddings: Any,
    attention_mask: Any = None,
    past_key_values: Any = None,
) -> tuple[torch.Tensor, None]:
    shape = (*hidden_states.shape[:-1], -1, self.head_dim)
    query, key, value = (
        project(hidden_states).view(shape) for project in (self.q_proj, self.k_proj, self.v_proj)
    )
    cos, sin = (table[0, :, : self.head_dim // 2] for table in position_embeddings)
    query, key = (idiomatic.rope(x, sin, cos, interleaved=False) for x in (query, key))
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    key, value = past_key_values.update(key, value, self.layer_idx)
    attended = _triton_sdpa(query, key, value, query.shape[2] > 1, self.scaling)
    return self.o_proj(attended.transpose(1, 2).flatten(2)), None


def _triton_sdpa(query: Any, key: Any, value: Any, is_causal: bool, scale: float) -> torch.Tensor:
    """Its tuning goes by the number of keys, which is another one every step: tiles are fixed here."""
    (batch, heads, queries, size), rows = query.shape, 64 if query.shape[2] > 16 else 16
    output = torch.empty_like(query)
    grid = (triton.cdiv(queries, rows), batch * heads)
    sdpa_kernel.kernel[grid](
        *(query, key, value, output, scale),
        *(n for x in (query, key, value, output) for n in x.stride()[:3]),
        *(heads, queries, key.shape[2]),
        GROUP=heads // key.shape[1],
        D=size,
        IS_CAUSAL=is_causal,
        BLOCK_SIZE_D=triton.next_power_of_2(size),
        BLOCK_SIZE_M=rows,
        BLOCK_SIZE_N=64,
        num_warps=4,
    )
    return output
