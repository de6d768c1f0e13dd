"""A Llama whose every operator is a kernel of ours: prefill, decoding a token at a time, generating.

A `Session` holds requests that are decoded together, and all memory that a step needs. On CUDA a step is
recorded once as a graph; the tokens, positions and lengths that change are on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import torch

from examples import sdpa
from examples.llama import attention, products, sampling
from examples.llama.cache import Cache, paged_cache, static_cache
from examples.llama.config import Config
from examples.llama.parallel import ALONE, Group
from examples.llama.weights import Layer, Weights
from examples.more.indices import embedding

#: A program attends to so many keys at once. The keys of a head are shared by so many programs at most, and
#: there are about so many in all: the best that `benchmarks.llama.decode_attention` found on an H200.
KEYS, SPLITS, PROGRAMS = 64, 128, 2048


class Session:
    """Requests that are decoded together.

    Args:
        requests: how many.
        length: the positions that each has room for.
        page_size: keys and values are in pages of so many positions by a table; None: they are not.
        temperature: 0 takes the likeliest token.
        top_p: tokens are drawn from the nucleus of this probability.
        group: the processes that share the weights.

    Attributes:
        tokens: int32 (requests,), what the next step reads, at `positions`.
        history: int32 (requests, length + 1), the tokens by position.
        logits: float32 (requests, vocabulary), what the last step computed.
    """

    def __init__(
        self,
        config: Config,
        weights: Weights,
        requests: int,
        length: int,
        page_size: int | None = None,
        temperature: float = 0.0,
        top_p: float = 1.0,
        seed: int = 0,
        group: Group = ALONE,
    ) -> None:
        self.config, self.weights, self.group = config, weights, group
        self.temperature, self.top_p = temperature, top_p
        self.heads = config.num_attention_heads // group.size
        self.key_heads = config.num_key_value_heads // group.size
        dtype, device = weights.table.dtype, weights.table.device
        room = (config, requests, length, dtype, device, self.key_heads)
        self.cache = static_cache(*room) if page_size is None else paged_cache(*room, page_size)
        self.sin, self.cos = config.tables(self.cache.length, device)
        self._scale = 1 / math.sqrt(config.head_dim)
        blocks = 1 << (-(-self.cache.length // KEYS) - 1).bit_length()
        self._splits = max(1, min(blocks, SPLITS, PROGRAMS // (requests * self.key_heads)))

        def empty(*shape: int, of: torch.dtype = dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=of, device=device)

        self.tokens, self.positions, self._seeds = (
            torch.zeros(requests, dtype=torch.int32, device=device) for _ in range(3)
        )
        self._seeds += seed + 1_000_003 * torch.arange(requests, dtype=torch.int32, device=device)
        self.history = torch.zeros(
            (requests, self.cache.length + 1), dtype=torch.int32, device=device
        )
        # What stands where the kernels look for a table and there is none.
        table = self.cache.table
        self._table = self.positions[None] if table is None else table
        heads, size, splits = self.heads, config.head_dim, self._splits
        self._x = empty(requests, config.hidden_size)
        self._part = group.shared(requests, config.hidden_size, dtype=dtype, device=device)
        self._sin, self._cos = (empty(requests, size // 2, of=torch.float32) for _ in range(2))
        self._qkv = empty(requests, heads + 2 * self.key_heads, size)
        self._partial = empty(requests, heads, splits, size, of=torch.float32)
        self._maximum, self._total = (
            empty(requests, heads, splits, of=torch.float32) for _ in range(2)
        )
        self._attended = empty(requests, heads, size)
        self._gated = empty(requests, config.intermediate_size // group.size)
        self._logits = empty(requests, weights.head.shape[0], of=torch.float32)
        self.logits = self._logits
        blocks = -(-config.vocab_size // sampling.BLOCK_SIZE)
        self._values = empty(requests, blocks, of=torch.float32)
        self._indices = empty(requests, blocks, of=torch.int32)
        self._least = torch.full((requests,), -torch.inf, device=device)
        self._graph: Any = None

    def prefill(self, tokens: torch.Tensor) -> None:
        """Read tokens (requests, n) at the positions that come next, and choose those that follow."""
        requests, count = tokens.shape
        device = self.tokens.device
        places = self.positions[:, None] + torch.arange(count, device=device)
        self.history.scatter_(1, places.long(), tokens.to(device, torch.int32))
        x = embedding.embedding(tokens.to(device), self.weights.table).flatten(0, 1)
        is_first = not bool(self.positions.any())

        for index, layer in enumerate(self.weights.layers):
            attended = self._look_back(x, index, layer, requests, is_first)
            self._add(x, attended, layer.out)
            gated = products.swiglu(x, layer.gate_up, layer.product_norm, self.config.rms_norm_eps)
            self._add(x, gated, layer.down)

        self._x.copy_(x.view(requests, count, -1)[:, -1])
        self.positions += count - 1
        self._finish(*self._state)

    def _look_back(
        self, x: torch.Tensor, index: int, layer: Layer, requests: int, is_first: bool
    ) -> torch.Tensor:
        """What the new positions' queries find in the cache and among themselves."""
        eps = self.config.rms_norm_eps
        qkv = products.linear(x, layer.qkv, layer.attention_norm, eps, bias=layer.qkv_bias)
        qkv = qkv.view(requests, -1, self.heads + 2 * self.key_heads, self.config.head_dim)
        query, key, value = qkv.split([self.heads, self.key_heads, self.key_heads], 2)
        keys, values = self.cache.keys[index], self.cache.values[index]
        is_paged = self.cache.is_paged
        attention.write_kernel(
            *(query, key, value, self.positions, self.sin, self.cos),
            *(keys, values, self._table, is_paged),
        )
        output = x.new_empty(query.shape)
        query, key, value, by_head = (
            tensor.transpose(1, 2) for tensor in (query, key, value, output)
        )

        if is_first:
            sdpa.kernel(query, key, value, self._scale, True, by_head)
        else:
            attention.prefill_kernel(
                *(query, keys, values, self.positions, self._table),
                *(self._scale, is_paged, by_head),
            )

        return output.view(x.shape[0], -1)

    def _add(self, x: torch.Tensor, input: torch.Tensor, weight: torch.Tensor) -> None:
        """Add a product to the stream; where processes share the weight, the sum of theirs."""
        if self.group.size == 1:
            products.add_linear(x, input, weight)
            return
        is_shared = x is self._x
        part = self._part if is_shared else torch.empty_like(x)
        # One of them has the stream itself among what is summed.
        if self.group.rank:
            products.linear(input, weight, output=part)
        else:
            products.add_linear(x, input, weight, part)
        self.group.sum(part, x, is_shared)

    def step(self) -> None:
        """Read `tokens` at `positions`, and choose those that follow; a graph does it on CUDA."""
        if self._graph is not None:
            self._graph.replay()
        elif self.tokens.is_cuda:
            self._record()
        else:
            self._decode()

    def _record(self) -> None:
        """Do one step as it is, and record the next ones as a graph."""
        if self.group.size == 1:
            self._compile()
        self._decode()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._decode()
        self._graph = graph

    def _compile(self) -> None:
        """Launch every kernel of a step once, each in a thread, which compile side by side.

        What they compute is nothing yet: the next step begins anew, and writes to the cache again.
        """
        scratch = [tensor.clone() for tensor in self._state]
        calls = [self._begin, *self._layer(0), partial(self._finish, *scratch)]

        def launch(call: Callable[[], Any]) -> None:
            with torch.inference_mode(), torch.cuda.device(self.tokens.device):
                call()

        torch.cuda.synchronize()
        with ThreadPoolExecutor() as compilers:
            list(compilers.map(launch, calls))
        torch.cuda.synchronize()

    def _decode(self) -> None:
        self._begin()
        for index in range(len(self.weights.layers)):
            for call in self._layer(index):
                call()
        self._finish(*self._state)

    @property
    def _state(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What a step changes besides the cache."""
        return self.tokens, self.positions, self.history

    def _begin(self) -> None:
        """The stream of the tokens that are read, and the angles of their positions."""
        embedding.kernel(self.tokens, self.weights.table, self._x)
        embedding.kernel(self.positions, self.sin, self._sin)
        embedding.kernel(self.positions, self.cos, self._cos)

    def _layer(self, index: int) -> list[Callable[[], Any]]:
        """What a layer does to the stream, launch by launch."""
        layer, eps = self.weights.layers[index], self.config.rms_norm_eps
        keys, values = self.cache.keys[index], self.cache.values[index]
        qkv, attended = self._qkv.flatten(1), self._attended.flatten(1)
        split = (self._partial, self._maximum, self._total)

        return [
            partial(
                products.linear,
                *(self._x, layer.qkv, layer.attention_norm, eps, qkv, layer.qkv_bias),
            ),
            partial(
                attention.decode_kernel,
                *self._qkv.split([self.heads, self.key_heads, self.key_heads], 1),
                *(self.positions, self._sin, self._cos),
                *(keys, values, keys, values, self._table, self._scale, self.cache.is_paged),
                *split,
                BLOCK_SIZE=min(KEYS, keys.shape[2]),
            ),
            partial(attention.combine_kernel, *split, self._attended),
            partial(self._add, self._x, attended, layer.out),
            partial(products.swiglu, self._x, layer.gate_up, layer.product_norm, eps, self._gated),
            partial(self._add, self._x, self._gated, layer.down),
        ]

    def _finish(self, tokens: torch.Tensor, positions: torch.Tensor, history: torch.Tensor) -> None:
        """The logits of the stream, and the tokens that are chosen by them."""
        products.linear(
            self._x, self.weights.head, self.weights.norm, self.config.rms_norm_eps, self._logits
        )
        self.logits = self.group.columns(self._logits)
        is_random = self.temperature > 0

        if is_random and self.top_p < 1:
            sampling.nucleus_kernel(self.logits, self.temperature, self.top_p, self._least)

        sampling.best_kernel(
            *(self.logits, self._least, self.temperature, self._seeds, positions),
            *(is_random, self._values, self._indices),
        )
        sampling.choose_kernel(self._values, self._indices, tokens, positions, history)

    def generate(self, prompt: torch.Tensor, count: int) -> torch.Tensor:
        """The tokens (requests, count) that follow a prompt (requests, n).

        Raises:
            ValueError: there is no room for so many positions.
        """
        start, end = self.positions.max().item(), prompt.shape[1] + count
        if start + end > self.cache.length:
            raise ValueError(
                f"{start + end} positions do not fit in a session of {self.cache.length}; make it longer"
            )
        self.prefill(prompt)
        for _ in range(count - 1):
            self.step()
        return self.history[:, start + prompt.shape[1] : start + end]

    def restart(self) -> None:
        """Forget all requests; the memory and the graph stay."""
        self.positions.zero_()


__all__ = ["Cache", "Session"]
