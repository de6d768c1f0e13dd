"""Element-wise kernels."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.best.device import need
from benchmarks.peers.best.hints import HINTS, keeps_results, load, release, store

ELEMENTWISE_CONFIGS = [
    triton.Config({"BLOCK_SIZE": size, "KEEP": keep, "MODIFIER": modifier}, num_warps=warps)
    for size, warps in (
        (512, 1), (512, 2), (1024, 2), (1024, 4), (2048, 4), (2048, 8), (4096, 8), (8192, 16)
    )
    for keep, modifier in HINTS
]  # fmt: skip


@autotune(ELEMENTWISE_CONFIGS, key=["num_elements"])
@triton.jit
def add_kernel(
    input_ptr,
    other_ptr,
    output_ptr,
    num_elements,
    BLOCK_SIZE: tl.constexpr,
    KEEP: tl.constexpr,
    MODIFIER: tl.constexpr,
):
    number, num_programs = tl.program_id(0), tl.num_programs(0)
    offsets = number * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    is_kept = keeps_results(output_ptr, number, BLOCK_SIZE)
    input = load(input_ptr + offsets, is_kept, KEEP)
    other = load(other_ptr + offsets, is_kept, KEEP)
    store(output_ptr + offsets, input + other, is_kept, KEEP, MODIFIER)
    release(output_ptr, number, num_programs, BLOCK_SIZE, KEEP)


def add(input, other):
    """``input + other``, for contiguous tensors of one shape."""
    output = torch.empty_like(input)
    size = output.numel()
    need(size % 8192 == 0, "a multiple of 8192 elements")
    add_kernel[lambda meta: (size // meta["BLOCK_SIZE"],)](input, other, output, size)
    return output


@autotune(ELEMENTWISE_CONFIGS, key=["num_elements"])
@triton.jit
def silu_kernel(
    input_ptr,
    output_ptr,
    num_elements,
    BLOCK_SIZE: tl.constexpr,
    KEEP: tl.constexpr,
    MODIFIER: tl.constexpr,
):
    number, num_programs = tl.program_id(0), tl.num_programs(0)
    offsets = number * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    is_kept = keeps_results(output_ptr, number, BLOCK_SIZE)
    input = load(input_ptr + offsets, is_kept, KEEP).to(tl.float32)
    store(output_ptr + offsets, input * tl.sigmoid(input), is_kept, KEEP, MODIFIER)
    release(output_ptr, number, num_programs, BLOCK_SIZE, KEEP)


def silu(input):
    """``input * sigmoid(input)``."""
    output = torch.empty_like(input)
    size = output.numel()
    need(size % 8192 == 0, "a multiple of 8192 elements")
    silu_kernel[lambda meta: (size // meta["BLOCK_SIZE"],)](input, output, size)
    return output
