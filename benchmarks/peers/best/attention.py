"""Attention."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.common.search import autotune, fastest_of
from benchmarks.peers.best.device import need

# Attention.


def set_attention_blocks(arguments):
    if isinstance(arguments["key"], TensorDescriptor):
        size = arguments["D"]
        arguments["key"].block_shape = [arguments["BLOCK_SIZE_N"], size]
        arguments["value"].block_shape = [arguments["BLOCK_SIZE_N"], size]


@triton.jit
def keys_at(
    source,
    head,
    start,
    length,
    DESCRIBED: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    D: tl.constexpr,
):
    """A block of keys or values, through a descriptor or a pointer, of heads one below the other."""
    if DESCRIBED:
        return source.load([head * length + start, 0])
    else:
        rows = head * length + start + tl.arange(0, BLOCK_SIZE_N)
        return tl.load(source + rows[:, None] * D + tl.arange(0, D)[None, :])


@triton.jit
def attend(
    state,
    query,
    key,
    value,
    head,
    num_keys,
    rows,
    first,
    last,
    scale,
    MASKED: tl.constexpr,
    DESCRIBED: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    D: tl.constexpr,
):
    """Takes the keys and values of some blocks into the running maximum, total and accumulator."""
    maximum, total, accumulator = state

    for start in range(first, last, BLOCK_SIZE_N):
        scores = tl.dot(query, keys_at(key, head, start, num_keys, DESCRIBED, BLOCK_SIZE_N, D).T)

        if MASKED:
            columns = start + tl.arange(0, BLOCK_SIZE_N)
            scores = tl.where(columns[None, :] <= rows[:, None], scores, float("-inf"))

        new_maximum = tl.maximum(maximum, tl.max(scores, axis=1))
        # The scale goes into the exponent's multiply-add.
        weights = tl.exp2(scores * scale - (new_maximum * scale)[:, None])
        correction = tl.exp2((maximum - new_maximum) * scale)
        total = total * correction + tl.sum(weights, axis=1)
        values = keys_at(value, head, start, num_keys, DESCRIBED, BLOCK_SIZE_N, D)
        accumulator = accumulator * correction[:, None]
        accumulator = tl.dot(weights.to(values.dtype), values, accumulator)
        maximum = new_maximum

    return maximum, total, accumulator


@autotune(
    [
        triton.Config(
            {"BLOCK_SIZE_M": m, "BLOCK_SIZE_N": n},
            num_warps=warps,
            num_stages=stages,
            maxnreg=registers,
            pre_hook=set_attention_blocks,
        )
        for m, n, warps in (
            (64, 32, 4), (64, 64, 4), (64, 128, 4), (128, 32, 4), (128, 64, 4), (128, 64, 8),
            (128, 128, 8), (256, 64, 8), (256, 64, 16),
        )
        for stages in (2, 3, 4)
        # 168 registers a thread let three blocks of 128 threads share a multiprocessor.
        for registers in ((None, 168) if m * n == 64 * 128 and warps == 4 else (None,))
    ],
    key=["num_queries", "num_keys", "D", "IS_CAUSAL", "DESCRIBED"],
)  # fmt: skip
@triton.jit
def sdpa_kernel(
    query,
    key,
    value,
    output,
    scale,
    num_queries,
    num_keys,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
    DESCRIBED: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    block, head = tl.program_id(0), tl.program_id(1)
    if IS_CAUSAL:
        # The longest first, so that none is left alone at the end.
        block = tl.num_programs(0) - 1 - block
    rows = block * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offsets = (head * num_queries + rows)[:, None] * D + tl.arange(0, D)[None, :]
    queries = tl.load(query + offsets)
    scale *= 1.4426950408889634
    state = (
        tl.full((BLOCK_SIZE_M,), float("-inf"), dtype=tl.float32),
        tl.zeros((BLOCK_SIZE_M,), dtype=tl.float32),
        tl.zeros((BLOCK_SIZE_M, D), dtype=tl.float32),
    )
    head //= GROUP
    if IS_CAUSAL:
        # Blocks that are seen in full need no mask.
        whole = block * BLOCK_SIZE_M // BLOCK_SIZE_N * BLOCK_SIZE_N
        end = min(num_keys, (block + 1) * BLOCK_SIZE_M)
        state = attend(
            state, queries, key, value, head, num_keys, rows, 0, whole, scale, False,
            DESCRIBED, BLOCK_SIZE_N, D,
        )  # fmt: skip
        state = attend(
            state, queries, key, value, head, num_keys, rows, whole, end, scale, True,
            DESCRIBED, BLOCK_SIZE_N, D,
        )  # fmt: skip
    else:
        state = attend(
            state, queries, key, value, head, num_keys, rows, 0, num_keys, scale, False,
            DESCRIBED, BLOCK_SIZE_N, D,
        )  # fmt: skip
    _, total, accumulator = state
    result = accumulator * (1.0 / total)[:, None]
    tl.store(output + offsets, result.to(output.dtype.element_ty))


def _sdpa(query, key, value, is_causal, scale, described):
    batch, heads, queries, size = query.shape
    keys = key.shape[2]
    need(queries % 256 == 0 and keys % 128 == 0, "sizes that the blocks divide")
    need(size in (64, 128), "heads of 64 or 128")
    need(all(t.is_contiguous() for t in (query, key, value)), "contiguous tensors")
    need(not is_causal or queries <= keys, "no more queries than keys")
    output = torch.empty_like(query)
    sources = (key, value)
    if described:
        sources = (
            TensorDescriptor.from_tensor(tensor.view(-1, size), [64, size]) for tensor in sources
        )
    sdpa_kernel[lambda meta: (queries // meta["BLOCK_SIZE_M"], batch * heads)](
        query,
        *sources,
        output,
        size**-0.5 if scale is None else scale,
        queries,
        keys,
        # The heads of all batches lie one below the other, in the keys too.
        GROUP=heads // key.shape[1],
        D=size,
        IS_CAUSAL=is_causal,
        DESCRIBED=described,
    )
    return output


def attention_with_descriptors(query, key, value, is_causal=False, scale=None):
    """Keys and values through descriptors."""
    return _sdpa(query, key, value, is_causal, scale, True)


def attention_with_pointers(query, key, value, is_causal=False, scale=None):
    """Keys and values through pointers."""
    return _sdpa(query, key, value, is_causal, scale, False)


sdpa = fastest_of("sdpa", attention_with_descriptors, attention_with_pointers)
