"""Rotary embedding."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.best.device import need
from benchmarks.peers.best.hints import HINTS, keeps_results, load, release, store

# Rotary embedding.


@autotune(
    [
        triton.Config(
            {"POSITIONS": positions, "HEADS": heads, "KEEP": keep, "MODIFIER": modifier},
            num_warps=warps,
        )
        for positions, heads in ((1, 8), (1, 16), (2, 8), (2, 16), (4, 4), (4, 16), (8, 4), (16, 1))
        for warps in (1, 2, 4, 8)
        for keep, modifier in HINTS
        if 2 <= positions * heads * 64 // (32 * warps) <= 64
    ],
    key=["HALF", "INTERLEAVED"],
)
@triton.jit
def rope_kernel(
    input_ptr,
    sin_ptr,
    cos_ptr,
    output_ptr,
    stride_ib,
    stride_ip,
    stride_ih,
    stride_table,
    stride_ob,
    stride_op,
    stride_oh,
    HALF: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    POSITIONS: tl.constexpr,
    HEADS: tl.constexpr,
    KEEP: tl.constexpr,
    MODIFIER: tl.constexpr,
):
    positions = (tl.program_id(1) * POSITIONS + tl.arange(0, POSITIONS))[:, None, None]
    heads = (tl.program_id(0) * HEADS + tl.arange(0, HEADS))[None, :, None]
    table = positions * stride_table + tl.arange(0, HALF)[None, None, :]
    sin = tl.load(sin_ptr + table).to(tl.float32)
    cos = tl.load(cos_ptr + table).to(tl.float32)
    number = tl.program_id(2) * tl.num_programs(1) + tl.program_id(1)
    number = number * tl.num_programs(0) + tl.program_id(0)
    num_programs = tl.num_programs(0) * tl.num_programs(1) * tl.num_programs(2)
    is_kept = keeps_results(output_ptr, number, POSITIONS * HEADS * 2 * HALF)
    inputs = input_ptr + tl.program_id(2) * stride_ib + positions * stride_ip + heads * stride_ih
    outputs = output_ptr + tl.program_id(2) * stride_ob + positions * stride_op + heads * stride_oh

    if INTERLEAVED:
        # Neighbours are loaded together, as wide as a thread can, and parted in registers.
        columns = tl.arange(0, 2 * HALF)[None, None, :]
        pairs = load(inputs + columns, is_kept, KEEP).to(tl.float32)
        first, second = tl.split(tl.reshape(pairs, (POSITIONS, HEADS, HALF, 2)))
        turned = tl.join(first * cos - second * sin, first * sin + second * cos)
        turned = tl.reshape(turned, (POSITIONS, HEADS, 2 * HALF))
        store(outputs + columns, turned, is_kept, KEEP, MODIFIER)
    else:
        columns = tl.arange(0, HALF)[None, None, :]
        first = load(inputs + columns, is_kept, KEEP).to(tl.float32)
        second = load(inputs + columns + HALF, is_kept, KEEP).to(tl.float32)
        store(outputs + columns, first * cos - second * sin, is_kept, KEEP, MODIFIER)
        store(outputs + columns + HALF, first * sin + second * cos, is_kept, KEEP, MODIFIER)
    release(output_ptr, number, num_programs, POSITIONS * HEADS * 2 * HALF, KEEP)


def _rope(input, sin, cos, output, interleaved):
    batch, length, heads, size = input.shape
    need(length % 16 == 0 and heads % 16 == 0, "multiples of 16 positions and heads")
    need(size == triton.next_power_of_2(size), "a power of two for a head")
    rope_kernel[lambda meta: (heads // meta["HEADS"], length // meta["POSITIONS"], batch)](
        input,
        sin,
        cos,
        output,
        *input.stride()[:3],
        sin.stride(0),
        *output.stride()[:3],
        HALF=size // 2,
        INTERLEAVED=interleaved,
    )
    return output


def rope(input, sin, cos, interleaved=True):
    """Rotary embedding of (batch, sequence, heads, size); the tables are (sequence, size / 2)."""
    return _rope(input, sin, cos, torch.empty_like(input), interleaved)


def rope_(tensor, sin, cos, interleaved=True):
    """As `rope`, in place: the output is the input."""
    return _rope(tensor, sin, cos, tensor, interleaved)
