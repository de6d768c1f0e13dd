"""Attention."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.idiomatic.configs import ATTENTION_CONFIGS


@autotune(ATTENTION_CONFIGS, key=["num_queries", "num_keys", "D", "IS_CAUSAL"])
@triton.jit
def sdpa_kernel(
    query_ptr,
    key_ptr,
    value_ptr,
    output_ptr,
    scale,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_ob,
    stride_oh,
    stride_om,
    num_heads,
    num_queries,
    num_keys,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    IS_CAUSAL: tl.constexpr,
    BLOCK_SIZE_D: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
):
    batch, head = tl.program_id(1) // num_heads, tl.program_id(1) % num_heads
    rows = tl.program_id(0) * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    features = tl.arange(0, BLOCK_SIZE_D)
    row_mask = (rows < num_queries)[:, None] & (features < D)[None, :]
    query_ptr += batch * stride_qb + head * stride_qh
    key_ptr += batch * stride_kb + head // GROUP * stride_kh
    value_ptr += batch * stride_vb + head // GROUP * stride_vh
    output_ptr += batch * stride_ob + head * stride_oh
    query_ptrs = query_ptr + rows[:, None] * stride_qm + features[None, :]
    query = tl.load(query_ptrs, mask=row_mask, other=0.0)

    exponent_scale = scale * 1.4426950408889634
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_D), dtype=tl.float32)
    maximum = tl.full((BLOCK_SIZE_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_SIZE_M,), dtype=tl.float32)
    end = num_keys

    if IS_CAUSAL:
        end = min(num_keys, (tl.program_id(0) + 1) * BLOCK_SIZE_M)

    for start in range(0, end, BLOCK_SIZE_N):
        columns = start + tl.arange(0, BLOCK_SIZE_N)
        column_mask = (columns < num_keys)[:, None] & (features < D)[None, :]
        key_ptrs = key_ptr + columns[:, None] * stride_kn + features[None, :]
        key = tl.load(key_ptrs, mask=column_mask, other=0.0)
        scores = tl.dot(query, key.T, input_precision="ieee")
        is_seen = (columns < num_keys)[None, :]

        if IS_CAUSAL:
            is_seen = is_seen & (columns[None, :] <= rows[:, None])

        scores = tl.where(is_seen, scores, float("-inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, axis=1))
        weights = tl.exp2(scores * exponent_scale - (new_maximum * exponent_scale)[:, None])
        correction = tl.exp2((maximum - new_maximum) * exponent_scale)
        total = total * correction + tl.sum(weights, axis=1)
        value_ptrs = value_ptr + columns[:, None] * stride_vn + features[None, :]
        value = tl.load(value_ptrs, mask=column_mask, other=0.0)
        accumulator = accumulator * correction[:, None]
        accumulator = tl.dot(weights.to(value.dtype), value, accumulator, input_precision="ieee")
        maximum = new_maximum

    output_ptrs = output_ptr + rows[:, None] * stride_om + features[None, :]
    output = accumulator / total[:, None]
    tl.store(output_ptrs, output.to(output_ptr.dtype.element_ty), mask=row_mask)


def sdpa(query, key, value, is_causal=False, scale=None):
    """Attention of (b, h, m, d) over (b, h / group, n, d), contiguous in the last dimension."""
    batch, heads, queries, size = query.shape
    scale = size**-0.5 if scale is None else scale
    output = torch.empty_like(query)
    sdpa_kernel[lambda meta: (triton.cdiv(queries, meta["BLOCK_SIZE_M"]), batch * heads)](
        query,
        key,
        value,
        output,
        scale,
        *query.stride()[:3],
        *key.stride()[:3],
        *value.stride()[:3],
        *output.stride()[:3],
        heads,
        queries,
        key.shape[2],
        GROUP=heads // key.shape[1],
        D=size,
        IS_CAUSAL=is_causal,
        BLOCK_SIZE_D=triton.next_power_of_2(size),
    )
    return output
