"""Kernels of one or several rows a program."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.best.device import need
from benchmarks.peers.best.hints import HINTS, keeps_results, load, release, store

# One or several rows a program.

ROW_CONFIGS = [
    triton.Config({"ROWS": rows, "KEEP": keep, "MODIFIER": modifier}, num_warps=warps)
    for rows, warps in (
        (1, 1), (1, 2), (1, 4), (1, 8), (1, 16), (2, 4), (2, 8), (2, 16), (4, 8), (4, 16)
    )
    for keep, modifier in HINTS
]  # fmt: skip


@triton.jit
def rows_and_offsets(stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The offsets of this program's rows."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    return rows[:, None] * stride + tl.arange(0, COLUMNS)[None, :]


@autotune(ROW_CONFIGS, key=["COLUMNS"])
@triton.jit
def softmax_kernel(
    input_ptr,
    output_ptr,
    input_stride,
    output_stride,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    KEEP: tl.constexpr,
    MODIFIER: tl.constexpr,
):
    input_ptrs = input_ptr + rows_and_offsets(input_stride, ROWS, COLUMNS)
    number, num_programs = tl.program_id(0), tl.num_programs(0)
    is_kept = keeps_results(output_ptr, number, ROWS * COLUMNS)
    input = load(input_ptrs, is_kept, KEEP).to(tl.float32) * 1.4426950408889634
    numerator = tl.exp2(input - tl.max(input, axis=1)[:, None])
    output = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    output_ptrs = output_ptr + rows_and_offsets(output_stride, ROWS, COLUMNS)
    store(output_ptrs, output, is_kept, KEEP, MODIFIER)
    release(output_ptr, number, num_programs, ROWS * COLUMNS, KEEP)


def _launch_rows(kernel, input, *scalars):
    output = torch.empty_like(input)
    rows, columns = input.shape
    need(rows % 4 == 0 and columns == triton.next_power_of_2(columns), "a power of two of columns")
    kernel[lambda meta: (rows // meta["ROWS"],)](
        input, output, input.stride(0), output.stride(0), *scalars, COLUMNS=columns
    )
    return output


def softmax(input):
    """Softmax along the last dimension of (rows, columns)."""
    return _launch_rows(softmax_kernel, input)


@autotune(ROW_CONFIGS, key=["COLUMNS"])
@triton.jit
def rms_norm_kernel(
    input_ptr,
    output_ptr,
    input_stride,
    output_stride,
    eps,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    KEEP: tl.constexpr,
    MODIFIER: tl.constexpr,
):
    input_ptrs = input_ptr + rows_and_offsets(input_stride, ROWS, COLUMNS)
    number, num_programs = tl.program_id(0), tl.num_programs(0)
    is_kept = keeps_results(output_ptr, number, ROWS * COLUMNS)
    input = load(input_ptrs, is_kept, KEEP).to(tl.float32)
    scale = tl.rsqrt(tl.sum(input * input, axis=1) * (1.0 / COLUMNS) + eps)
    output_ptrs = output_ptr + rows_and_offsets(output_stride, ROWS, COLUMNS)
    store(output_ptrs, input * scale[:, None], is_kept, KEEP, MODIFIER)
    release(output_ptr, number, num_programs, ROWS * COLUMNS, KEEP)


def rms_norm(input, eps=1e-6):
    """RMS normalisation along the last dimension of (rows, columns)."""
    return _launch_rows(rms_norm_kernel, input, eps)
