"""Element-wise kernels, rows, rotary embedding."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.idiomatic.configs import ELEMENTWISE_CONFIGS, ROW_CONFIGS, configs


@autotune(ELEMENTWISE_CONFIGS, key=["num_elements"])
@triton.jit
def add_kernel(input_ptr, other_ptr, output_ptr, num_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < num_elements
    input = tl.load(input_ptr + offsets, mask=mask)
    other = tl.load(other_ptr + offsets, mask=mask)
    tl.store(output_ptr + offsets, input + other, mask=mask)


def add(input, other):
    """``input + other``, for contiguous tensors of one shape."""
    output = torch.empty_like(input)
    size = output.numel()
    add_kernel[lambda meta: (triton.cdiv(size, meta["BLOCK_SIZE"]),)](input, other, output, size)
    return output


@autotune(ELEMENTWISE_CONFIGS, key=["num_elements"])
@triton.jit
def silu_kernel(input_ptr, output_ptr, num_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < num_elements
    input = tl.load(input_ptr + offsets, mask=mask).to(tl.float32)
    tl.store(output_ptr + offsets, input * tl.sigmoid(input), mask=mask)


def silu(input):
    """``input * sigmoid(input)``."""
    output = torch.empty_like(input)
    size = output.numel()
    silu_kernel[lambda meta: (triton.cdiv(size, meta["BLOCK_SIZE"]),)](input, output, size)
    return output


@autotune(ROW_CONFIGS, key=["num_columns"])
@triton.jit
def softmax_kernel(
    input_ptr, output_ptr, input_stride, output_stride, num_columns, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < num_columns
    input = tl.load(input_ptr + row * input_stride + columns, mask=mask, other=-float("inf"))
    input = input.to(tl.float32)
    numerator = tl.exp(input - tl.max(input, axis=0))
    output = numerator / tl.sum(numerator, axis=0)
    tl.store(output_ptr + row * output_stride + columns, output, mask=mask)


def softmax(input):
    """Softmax along the last dimension of (rows, columns)."""
    output = torch.empty_like(input)
    rows, columns = input.shape
    softmax_kernel[(rows,)](
        input,
        output,
        input.stride(0),
        output.stride(0),
        columns,
        BLOCK_SIZE=triton.next_power_of_2(columns),
    )
    return output


@autotune(ROW_CONFIGS, key=["num_columns"])
@triton.jit
def rms_norm_kernel(
    input_ptr, output_ptr, input_stride, output_stride, num_columns, eps, BLOCK_SIZE: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK_SIZE)
    mask = columns < num_columns
    input = tl.load(input_ptr + row * input_stride + columns, mask=mask, other=0.0).to(tl.float32)
    mean_square = tl.sum(input * input, axis=0) / num_columns
    output = input * tl.rsqrt(mean_square + eps)
    tl.store(output_ptr + row * output_stride + columns, output, mask=mask)


def rms_norm(input, eps=1e-6):
    """RMS normalisation along the last dimension of (rows, columns)."""
    output = torch.empty_like(input)
    rows, columns = input.shape
    rms_norm_kernel[(rows,)](
        input,
        output,
        input.stride(0),
        output.stride(0),
        columns,
        eps,
        BLOCK_SIZE=triton.next_power_of_2(columns),
    )
    return output


@autotune(
    configs(
        ("BLOCK_SIZE_H",), *((heads, warps, 1) for heads in (1, 2, 4, 8, 16) for warps in (1, 4))
    ),
    key=["num_heads", "HALF"],
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
    num_heads,
    HALF: tl.constexpr,
    INTERLEAVED: tl.constexpr,
    BLOCK_SIZE_H: tl.constexpr,
    BLOCK_SIZE_D: tl.constexpr,
):
    batch, position = tl.program_id(0), tl.program_id(1)
    heads = tl.program_id(2) * BLOCK_SIZE_H + tl.arange(0, BLOCK_SIZE_H)
    pairs = tl.arange(0, BLOCK_SIZE_D)
    mask = (heads < num_heads)[:, None] & (pairs < HALF)[None, :]

    if INTERLEAVED:
        first, second = 2 * pairs, 2 * pairs + 1
    else:
        first, second = pairs, pairs + HALF

    table = position * stride_table + pairs
    sin = tl.load(sin_ptr + table, mask=pairs < HALF).to(tl.float32)[None, :]
    cos = tl.load(cos_ptr + table, mask=pairs < HALF).to(tl.float32)[None, :]
    input_ptrs = input_ptr + batch * stride_ib + position * stride_ip + heads[:, None] * stride_ih
    x = tl.load(input_ptrs + first[None, :], mask=mask).to(tl.float32)
    y = tl.load(input_ptrs + second[None, :], mask=mask).to(tl.float32)
    output_ptrs = output_ptr + batch * stride_ob + position * stride_op + heads[:, None] * stride_oh
    tl.store(output_ptrs + first[None, :], x * cos - y * sin, mask=mask)
    tl.store(output_ptrs + second[None, :], x * sin + y * cos, mask=mask)


def _rope(input, sin, cos, output, interleaved):
    batch, length, heads, size = input.shape
    rope_kernel[lambda meta: (batch, length, triton.cdiv(heads, meta["BLOCK_SIZE_H"]))](
        input,
        sin,
        cos,
        output,
        *input.stride()[:3],
        sin.stride(0),
        *output.stride()[:3],
        heads,
        HALF=size // 2,
        INTERLEAVED=interleaved,
        BLOCK_SIZE_D=triton.next_power_of_2(size // 2),
    )
    return output


def rope(input, sin, cos, interleaved=True):
    """Rotary embedding of (batch, sequence, heads, size); the tables are (sequence, size / 2)."""
    return _rope(input, sin, cos, torch.empty_like(input), interleaved)


def rope_(tensor, sin, cos, interleaved=True):
    """As `rope`, in place: the output is the input."""
    return _rope(tensor, sin, cos, tensor, interleaved)
