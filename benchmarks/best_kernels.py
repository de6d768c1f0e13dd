"""The ten tasks in the best hand-written Triton we know: what our generated code is to stand beside.

No masks (every launcher takes sizes that its blocks divide, and raises `NotImplementedError` for
others), tensor descriptors, persistent grids, a split reduction for the convolution, several heads
a program for the rotary embedding, hints to the caches. Where several ways exist, the quickest is
taken for the arguments at hand.
"""

from __future__ import annotations

import functools
import itertools

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.search import autotune, fastest_of


def _need(condition, what):
    if not condition:
        raise NotImplementedError(f"this kernel needs {what}")


@functools.cache
def _num_processors():
    return torch.cuda.get_device_properties("cuda").multi_processor_count


# Element-wise.

#: How loads and stores treat the caches: what loads say of eviction, and the stores' modifier. With
#: ``kept`` the first 10 MiB of the results are to stay while the kernel runs; ``kept_first`` also has
#: what is loaded after them leave first.
HINTS = (
    ("", ""),
    ("evict_first", ""),
    ("evict_first", ".cs"),
    ("evict_last", ""),
    ("evict_last", ".wt"),
    ("kept", ""),
    ("kept_first", ""),
)
_KEPT_BYTES = tl.constexpr(10 * 2**20)
_LINE = tl.constexpr(128)


@triton.jit
def _load(pointers, is_kept, KEEP: tl.constexpr):
    if KEEP == "kept" or (KEEP == "kept_first" and is_kept):
        value = tl.load(pointers)
    elif KEEP == "kept_first":
        value = tl.load(pointers, eviction_policy="evict_first")
    else:
        value = tl.load(pointers, eviction_policy=KEEP)
    return value


@triton.jit
def _store(pointers, value, is_kept, KEEP: tl.constexpr, MODIFIER: tl.constexpr):
    if KEEP != "kept" and KEEP != "kept_first":
        tl.store(pointers, value, cache_modifier=MODIFIER)
    elif is_kept:
        tl.store(pointers, value, eviction_policy="evict_last")
    else:
        tl.store(pointers, value)


@triton.jit
def _bytes(output_ptr, ELEMENTS: tl.constexpr):
    """The bytes that a program stores."""
    return ELEMENTS * output_ptr.dtype.element_ty.primitive_bitwidth // 8


@triton.jit
def _is_kept(output_ptr, number, ELEMENTS: tl.constexpr):
    """Whether a program is among the first, that have results to keep; each has so many elements."""
    return number < _KEPT_BYTES // _bytes(output_ptr, ELEMENTS)


@triton.jit
def _release(output_ptr, number, num_programs, ELEMENTS: tl.constexpr, KEEP: tl.constexpr):
    """Takes back, in the last programs, that the first results of a contiguous tensor are to stay."""
    if KEEP == "kept" or KEEP == "kept_first":
        LINES: tl.constexpr = 256
        turn = number - (num_programs - _KEPT_BYTES // _LINE // LINES)
        if turn >= 0:
            byte = (turn * LINES + tl.arange(0, LINES)) * _LINE
            is_result = byte < num_programs.to(tl.int64) * _bytes(output_ptr, ELEMENTS)
            tl.inline_asm_elementwise(
                """{
                    .reg .pred is_result;
                    setp.ne.s32 is_result, $2, 0;
                    @is_result applypriority.global.L2::evict_normal [$1], 128;
                    mov.u32 $0, 0;
                }""",
                "=r,l,r",
                [output_ptr.to(tl.int64) + byte, is_result.to(tl.int32)],
                dtype=tl.int32,
                is_pure=False,
                pack=1,
            )


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
    is_kept = _is_kept(output_ptr, number, BLOCK_SIZE)
    input = _load(input_ptr + offsets, is_kept, KEEP)
    other = _load(other_ptr + offsets, is_kept, KEEP)
    _store(output_ptr + offsets, input + other, is_kept, KEEP, MODIFIER)
    _release(output_ptr, number, num_programs, BLOCK_SIZE, KEEP)


def add(input, other):
    """``input + other``, for contiguous tensors of one shape."""
    output = torch.empty_like(input)
    size = output.numel()
    _need(size % 8192 == 0, "a multiple of 8192 elements")
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
    is_kept = _is_kept(output_ptr, number, BLOCK_SIZE)
    input = _load(input_ptr + offsets, is_kept, KEEP).to(tl.float32)
    _store(output_ptr + offsets, input * tl.sigmoid(input), is_kept, KEEP, MODIFIER)
    _release(output_ptr, number, num_programs, BLOCK_SIZE, KEEP)


def silu(input):
    """``input * sigmoid(input)``."""
    output = torch.empty_like(input)
    size = output.numel()
    _need(size % 8192 == 0, "a multiple of 8192 elements")
    silu_kernel[lambda meta: (size // meta["BLOCK_SIZE"],)](input, output, size)
    return output


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
    is_kept = _is_kept(output_ptr, number, ROWS * COLUMNS)
    input = _load(input_ptrs, is_kept, KEEP).to(tl.float32) * 1.4426950408889634
    numerator = tl.exp2(input - tl.max(input, axis=1)[:, None])
    output = numerator * (1.0 / tl.sum(numerator, axis=1))[:, None]
    output_ptrs = output_ptr + rows_and_offsets(output_stride, ROWS, COLUMNS)
    _store(output_ptrs, output, is_kept, KEEP, MODIFIER)
    _release(output_ptr, number, num_programs, ROWS * COLUMNS, KEEP)


def _launch_rows(kernel, input, *scalars):
    output = torch.empty_like(input)
    rows, columns = input.shape
    _need(rows % 4 == 0 and columns == triton.next_power_of_2(columns), "a power of two of columns")
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
    is_kept = _is_kept(output_ptr, number, ROWS * COLUMNS)
    input = _load(input_ptrs, is_kept, KEEP).to(tl.float32)
    scale = tl.rsqrt(tl.sum(input * input, axis=1) * (1.0 / COLUMNS) + eps)
    output_ptrs = output_ptr + rows_and_offsets(output_stride, ROWS, COLUMNS)
    _store(output_ptrs, input * scale[:, None], is_kept, KEEP, MODIFIER)
    _release(output_ptr, number, num_programs, ROWS * COLUMNS, KEEP)


def rms_norm(input, eps=1e-6):
    """RMS normalisation along the last dimension of (rows, columns)."""
    return _launch_rows(rms_norm_kernel, input, eps)


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
    is_kept = _is_kept(output_ptr, number, POSITIONS * HEADS * 2 * HALF)
    inputs = input_ptr + tl.program_id(2) * stride_ib + positions * stride_ip + heads * stride_ih
    outputs = output_ptr + tl.program_id(2) * stride_ob + positions * stride_op + heads * stride_oh

    if INTERLEAVED:
        # Neighbours are loaded together, as wide as a thread can, and parted in registers.
        columns = tl.arange(0, 2 * HALF)[None, None, :]
        pairs = _load(inputs + columns, is_kept, KEEP).to(tl.float32)
        first, second = tl.split(tl.reshape(pairs, (POSITIONS, HEADS, HALF, 2)))
        turned = tl.join(first * cos - second * sin, first * sin + second * cos)
        turned = tl.reshape(turned, (POSITIONS, HEADS, 2 * HALF))
        _store(outputs + columns, turned, is_kept, KEEP, MODIFIER)
    else:
        columns = tl.arange(0, HALF)[None, None, :]
        first = _load(inputs + columns, is_kept, KEEP).to(tl.float32)
        second = _load(inputs + columns + HALF, is_kept, KEEP).to(tl.float32)
        _store(outputs + columns, first * cos - second * sin, is_kept, KEEP, MODIFIER)
        _store(outputs + columns + HALF, first * sin + second * cos, is_kept, KEEP, MODIFIER)
    _release(output_ptr, number, num_programs, POSITIONS * HEADS * 2 * HALF, KEEP)


def _rope(input, sin, cos, output, interleaved):
    batch, length, heads, size = input.shape
    _need(length % 16 == 0 and heads % 16 == 0, "multiples of 16 positions and heads")
    _need(size == triton.next_power_of_2(size), "a power of two for a head")
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


# Products. One kernel for a batch of them, with or without a matrix that is added.

_PRODUCT_TILES = (
    (128, 256, 64, 8, 3),
    (128, 256, 64, 8, 4),
    (256, 128, 64, 8, 3),
    (256, 128, 64, 8, 4),
    (128, 256, 32, 8, 5),
    (128, 128, 64, 4, 3),
    (128, 128, 64, 4, 4),
    (128, 128, 64, 8, 4),
    (128, 128, 128, 8, 3),
    (64, 256, 64, 4, 4),
    (64, 128, 64, 4, 4),
    (64, 128, 128, 4, 4),
    (64, 64, 128, 4, 4),
)


def _product_configs(pre_hook=None, **further):
    names, values = list(further), list(itertools.product(*further.values()))
    return [
        triton.Config(
            {
                "BLOCK_SIZE_M": m,
                "BLOCK_SIZE_N": n,
                "BLOCK_SIZE_K": k,
                "GROUP_SIZE_M": group,
                **dict(zip(names, chosen)),
            },
            num_warps=warps,
            num_stages=stages,
            pre_hook=pre_hook,
        )
        for m, n, k, warps, stages in _PRODUCT_TILES
        for group in (8, 16)
        for chosen in values
    ]


def _set_product_blocks(arguments):
    m, n, k = (arguments[f"BLOCK_SIZE_{axis}"] for axis in "MNK")
    blocks = {"a": [m, k], "b": [k, n], "input": [m, n], "output": [m, n]}
    for name, block in blocks.items():
        arguments[name].block_shape = block


@triton.jit
def tile_of(tile, m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M):
    """Batch, row and column of a tile, in groups of rows."""
    num_rows, num_columns = m // BLOCK_SIZE_M, n // BLOCK_SIZE_N
    batch, tile = tile // (num_rows * num_columns), tile % (num_rows * num_columns)
    num_in_group = GROUP_SIZE_M * num_columns
    first_row = tile // num_in_group * GROUP_SIZE_M
    group_size = min(num_rows - first_row, GROUP_SIZE_M)
    row = first_row + tile % num_in_group % group_size
    return batch, row, tile % num_in_group // group_size


@triton.jit
def described_tile(
    tile,
    a,
    b,
    input,
    output,
    m,
    n,
    k,
    beta,
    alpha,
    ADDS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    """Computes and stores one tile of a batch of products, whose matrices lie one below the other."""
    batch, row, column = tile_of(tile, m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M)
    top, left = batch * m + row * BLOCK_SIZE_M, column * BLOCK_SIZE_N
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    for start in range(0, k, BLOCK_SIZE_K):
        accumulator = tl.dot(a.load([top, start]), b.load([batch * k + start, left]), accumulator)

    if ADDS:
        accumulator = beta * input.load([top, left]).to(tl.float32) + alpha * accumulator

    output.store([top, left], accumulator.to(output.dtype))


@autotune(_product_configs(_set_product_blocks), key=["batch", "m", "n", "k", "ADDS"])
@triton.jit
def described_kernel(
    a,
    b,
    input,
    output,
    batch,
    m,
    n,
    k,
    beta,
    alpha,
    ADDS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    described_tile(
        tl.program_id(0),
        a,
        b,
        input,
        output,
        m,
        n,
        k,
        beta,
        alpha,
        ADDS,
        BLOCK_SIZE_M,
        BLOCK_SIZE_N,
        BLOCK_SIZE_K,
        GROUP_SIZE_M,
    )


@autotune(
    _product_configs(_set_product_blocks, FLATTEN=(False, True)),
    key=["batch", "m", "n", "k", "ADDS"],
)
@triton.jit
def persistent_kernel(
    a,
    b,
    input,
    output,
    batch,
    m,
    n,
    k,
    beta,
    alpha,
    ADDS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    num_tiles = batch * (m // BLOCK_SIZE_M) * (n // BLOCK_SIZE_N)

    for tile in tl.range(tl.program_id(0), num_tiles, tl.num_programs(0), flatten=FLATTEN):
        described_tile(
            tile,
            a,
            b,
            input,
            output,
            m,
            n,
            k,
            beta,
            alpha,
            ADDS,
            BLOCK_SIZE_M,
            BLOCK_SIZE_N,
            BLOCK_SIZE_K,
            GROUP_SIZE_M,
        )


def _needs_product(a, b, m, n, k):
    _need(m % 256 == 0 and n % 256 == 0 and k % 128 == 0, "sizes that the blocks divide")
    _need(a.is_contiguous() and b.is_contiguous(), "contiguous matrices")


def _described_product(kernel, grid, a, b, input, beta, alpha):
    batch, (m, k), n = a.shape[0], a.shape[1:], b.shape[2]
    _needs_product(a, b, m, n, k)
    output = a.new_empty((batch, m, n))
    matrices = (a, b, output if input is None else input, output)
    a_, b_, input_, output_ = (
        TensorDescriptor.from_tensor(matrix.view(-1, matrix.shape[-1]), [64, 64])
        for matrix in matrices
    )
    kernel[grid(batch * m * n)](
        a_, b_, input_, output_, batch, m, n, k, beta, alpha, ADDS=input is not None
    )
    return output


def _one_each(elements):
    return lambda meta: (elements // (meta["BLOCK_SIZE_M"] * meta["BLOCK_SIZE_N"]),)


def _persistent(elements):
    return lambda meta: (min(_num_processors(), *_one_each(elements)(meta)),)


def with_descriptors(a, b, input=None, beta=1.0, alpha=1.0):
    """A program for each tile, descriptors made on the host."""
    return _described_product(described_kernel, _one_each, a, b, input, beta, alpha)


def with_persistence(a, b, input=None, beta=1.0, alpha=1.0):
    """The same with as many programs as multiprocessors."""
    return _described_product(persistent_kernel, _persistent, a, b, input, beta, alpha)


@autotune(_product_configs(), key=["batch", "m", "n", "k", "ADDS"])
@triton.jit
def pointers_kernel(
    a_ptr,
    b_ptr,
    input_ptr,
    output_ptr,
    batch,
    m,
    n,
    k,
    beta,
    alpha,
    ADDS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    index, row, column = tile_of(tl.program_id(0), m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M)
    rows = index * m + row * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    columns = column * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    terms = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + rows[:, None] * k + terms[None, :]
    b_ptrs = b_ptr + (index * k + terms)[:, None] * n + columns[None, :]
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    for _ in range(0, k, BLOCK_SIZE_K):
        accumulator = tl.dot(tl.load(a_ptrs), tl.load(b_ptrs), accumulator)
        a_ptrs += BLOCK_SIZE_K
        b_ptrs += BLOCK_SIZE_K * n

    offsets = rows[:, None] * n + columns[None, :]

    if ADDS:
        accumulator = beta * tl.load(input_ptr + offsets).to(tl.float32) + alpha * accumulator

    tl.store(output_ptr + offsets, accumulator.to(output_ptr.dtype.element_ty))


def with_pointers(a, b, input=None, beta=1.0, alpha=1.0):
    """A program for each tile, pointers without masks."""
    batch, (m, k), n = a.shape[0], a.shape[1:], b.shape[2]
    _needs_product(a, b, m, n, k)
    output = a.new_empty((batch, m, n))
    pointers_kernel[_one_each(batch * m * n)](
        a, b, output if input is None else input, output, batch, m, n, k, beta, alpha,
        ADDS=input is not None,
    )  # fmt: skip
    return output


bmm = fastest_of("bmm", with_descriptors, with_persistence, with_pointers)
_addmm = fastest_of("addmm", with_descriptors, with_persistence, with_pointers)


def mm(a, b):
    """The product of (m, k) and (k, n)."""
    return bmm(a[None], b[None])[0]


def addmm(input, a, b, beta=1.0, alpha=1.0):
    """``beta * input + alpha * (a @ b)`` for (m, n), (m, k) and (k, n)."""
    return _addmm(a[None], b[None], input[None], beta, alpha)[0]


# Convolution. Its reduction is split among programs, for there are few tiles. Where all programs run at
# once, those of a tile wait for one another, and each adds what all of them found of some columns; else
# the last one adds all of it.


@triton.jit
def window_starts(rows, P: tl.constexpr, Q: tl.constexpr, C: tl.constexpr, H, W):
    """Where windows begin in the input."""
    return rows // (P * Q) * (C * H * W) + rows // Q % P * W + rows % Q


@triton.jit
def window_offsets(
    terms, skipped: tl.constexpr, RECIPROCAL_S: tl.constexpr, RECIPROCAL_RS: tl.constexpr
):
    """Where terms are in a window: what is skipped after each of its lines and channels."""
    # Quotients by S and by R · S: a product and a shift, without the care for a sign.
    line, channel = (terms * RECIPROCAL_S) >> 16, (terms * RECIPROCAL_RS) >> 16
    return terms + line * skipped[0] + channel * skipped[1]


@triton.jit
def folded_rows(SIZE: tl.constexpr):
    """Rows of windows, in the first and the last of a block's four dimensions.

    The threads of a warp follow 32 neighbours.
    """
    last = tl.arange(0, SIZE // 32)[None, None, None, :]
    return tl.arange(0, 32)[:, None, None, None] + 32 * last


@triton.jit
def load_folded(
    windows,
    step,
    skipped: tl.constexpr,
    RECIPROCAL_S: tl.constexpr,
    RECIPROCAL_RS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
):
    """One step's terms of folded rows: a thread has eight in succession, one offset for all its rows."""
    first = tl.arange(0, BLOCK_SIZE_K // 8)[None, :, None, None] * 8
    terms = step * BLOCK_SIZE_K + first + tl.arange(0, 8)[None, None, :, None]
    offsets = window_offsets(terms, skipped, RECIPROCAL_S, RECIPROCAL_RS)
    block = tl.permute(tl.load(windows + offsets), (3, 0, 1, 2))
    return tl.reshape(block, (BLOCK_SIZE_M, BLOCK_SIZE_K))


@autotune(
    [
        triton.Config(
            {
                "BLOCK_SIZE_M": m,
                "BLOCK_SIZE_N": n,
                "BLOCK_SIZE_K": k,
                "SPLIT": split,
                "AHEAD": ahead,
                "SHARES": shares,
            },
            num_warps=warps,
            num_stages=stages,
        )
        for m, n, k, warps, splits in (
            (64, 128, 64, 4, (3, 6, 7, 9, 11)),
            (64, 128, 64, 8, (3, 6, 7, 9, 11)),
            (64, 128, 128, 8, (3, 7)),
            (64, 128, 32, 4, (7, 11)),
            (64, 64, 64, 4, (3, 4, 8)),
            (64, 64, 128, 4, (3, 4, 8)),
            (32, 128, 64, 4, (3, 4, 8)),
            (32, 64, 128, 4, (1, 3, 4)),
            (64, 256, 64, 8, (7, 11)),
        )
        for split in splits
        for stages in (2, 3, 4)
        for ahead in (False, True)
        for shares in ((False, True) if ahead and m * n >= 64 * 128 and warps == 8 else (False,))
    ],
    key=["N", "C", "H", "W", "K"],
)
@triton.jit
def conv2d_kernel(
    input_ptr,
    filter_ptr,
    output_ptr,
    parts_ptr,
    arrived_ptr,
    N: tl.constexpr,
    C: tl.constexpr,
    H: tl.constexpr,
    W: tl.constexpr,
    K: tl.constexpr,
    R: tl.constexpr,
    S: tl.constexpr,
    RECIPROCAL_S: tl.constexpr,
    RECIPROCAL_RS: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    SPLIT: tl.constexpr,
    AHEAD: tl.constexpr,
    SHARES: tl.constexpr,
    MULTIPROCESSORS: tl.constexpr,
):
    P: tl.constexpr = H - R + 1
    Q: tl.constexpr = W - S + 1
    ROWS: tl.constexpr = N * P * Q // BLOCK_SIZE_M
    TILES: tl.constexpr = ROWS * (K // BLOCK_SIZE_N)
    STEPS: tl.constexpr = C * R * S // BLOCK_SIZE_K
    tile, part = tl.program_id(0) % TILES, tl.program_id(0) // TILES
    rows = tile % ROWS * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    filters = tile // ROWS * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    first, last = STEPS * part // SPLIT, STEPS * (part + 1) // SPLIT
    skipped: tl.constexpr = (W - S, H * W - R * W)

    if AHEAD:
        # Single elements of two bytes cannot be copied to shared memory in the background: the
        # next round's are held in registers meanwhile.
        folded = tile % ROWS * BLOCK_SIZE_M + folded_rows(BLOCK_SIZE_M)
        windows = input_ptr + window_starts(folded, P, Q, C, H, W)
        loaded = load_folded(
            windows, first, skipped, RECIPROCAL_S, RECIPROCAL_RS, BLOCK_SIZE_M, BLOCK_SIZE_K
        )
    else:
        windows = input_ptr + window_starts(rows, P, Q, C, H, W)[:, None]

    for step in range(first, last):
        if AHEAD:
            input = loaded
            following = min(step + 1, last - 1)
            loaded = load_folded(
                windows, following, skipped, RECIPROCAL_S, RECIPROCAL_RS, BLOCK_SIZE_M, BLOCK_SIZE_K
            )
        terms = step * BLOCK_SIZE_K + tl.arange(0, BLOCK_SIZE_K)
        if not AHEAD:
            offsets = window_offsets(terms, skipped, RECIPROCAL_S, RECIPROCAL_RS)
            input = tl.load(windows + offsets[None, :])
        filter = tl.load(filter_ptr + (filters[None, :] * (C * R * S) + terms[:, None]))
        accumulator = tl.dot(input, filter, accumulator)

    n, p, q = rows // (P * Q), rows // Q % P, rows % Q
    output_rows = n * (K * P * Q) + p * Q + q
    output_ptrs = output_ptr + (output_rows[:, None] + filters[None, :] * (P * Q))

    if SPLIT == 1:
        tl.store(output_ptrs, accumulator.to(output_ptr.dtype.element_ty))
    else:
        SIZE: tl.constexpr = BLOCK_SIZE_M * BLOCK_SIZE_N
        parts_ptr += tile * (SPLIT * SIZE)
        inside = tl.arange(0, BLOCK_SIZE_M)[:, None] * BLOCK_SIZE_N
        inside += tl.arange(0, BLOCK_SIZE_N)[None, :]
        tl.store(parts_ptr + part * SIZE + inside, accumulator)
        tl.debug_barrier()  # All threads have stored before one of them says so.

        arrived = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") + 1

        if SHARES and TILES * SPLIT <= MULTIPROCESSORS:
            # None waits for one that does not run yet: each has a multiprocessor of its own.
            while arrived < SPLIT:
                arrived = tl.atomic_add(arrived_ptr + tile, 0, sem="acquire")

            # A power of two of shares: some parts have two.
            COUNT: tl.constexpr = triton.next_power_of_2(SPLIT)
            WIDTH: tl.constexpr = BLOCK_SIZE_N // COUNT
            for share in range(part, COUNT, SPLIT):
                columns = share * WIDTH + tl.arange(0, WIDTH)
                places = tl.arange(0, BLOCK_SIZE_M)[:, None] * BLOCK_SIZE_N + columns[None, :]
                piece = tl.zeros((BLOCK_SIZE_M, WIDTH), dtype=tl.float32)
                for other in tl.static_range(SPLIT):
                    piece += tl.load(parts_ptr + other * SIZE + places, cache_modifier=".cg")
                columns += tile // ROWS * BLOCK_SIZE_N
                piece_ptrs = output_ptr + (output_rows[:, None] + columns[None, :] * (P * Q))
                tl.store(piece_ptrs, piece.to(output_ptr.dtype.element_ty))

            # The last to leave makes the counter zero again.
            if tl.atomic_add(arrived_ptr + tile, 1, sem="relaxed") == 2 * SPLIT - 1:
                tl.store(arrived_ptr + tile, 0)
        elif arrived == SPLIT:
            total = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

            for other in range(SPLIT):
                total += tl.load(parts_ptr + other * SIZE + inside, cache_modifier=".cg")

            tl.store(arrived_ptr + tile, 0)
            tl.store(output_ptrs, total.to(output_ptr.dtype.element_ty))


@functools.cache
def _workspace(elements, device):
    """Room for the parts of a result, and counters that each launch leaves at zero."""
    parts = torch.empty(elements, dtype=torch.float32, device=device)
    return parts, torch.zeros(4096, dtype=torch.int32, device=device)


@functools.cache
def _reciprocal(divisor, size):
    """What a product with it, shifted by 16, divides by, for the numbers below a size."""
    found = -(-(2**16) // divisor)
    _need(
        found * size < 2**31 and all(i * found >> 16 == i // divisor for i in range(size)),
        "a shorter reduction",
    )
    return found


def conv2d(input, filter):
    """The convolution of contiguous (n, c, h, w) with (k, c, r, s), without padding."""
    (n, c, h, w), (k, _, r, s) = input.shape, filter.shape
    p, q = h - r + 1, w - s + 1
    _need(input.is_contiguous() and filter.is_contiguous(), "contiguous tensors")
    _need(n * p * q % 64 == 0 and k % 256 == 0 and c * r * s % 128 == 0, "sizes blocks divide")
    output = input.new_empty((n, k, p, q))
    parts, arrived = _workspace(11 * output.numel(), input.device)
    conv2d_kernel[
        lambda meta: (
            output.numel() // (meta["BLOCK_SIZE_M"] * meta["BLOCK_SIZE_N"]) * meta["SPLIT"],
        )
    ](
        input,
        filter,
        output,
        parts,
        arrived,
        N=n,
        C=c,
        H=h,
        W=w,
        K=k,
        R=r,
        S=s,
        RECIPROCAL_S=_reciprocal(s, c * r * s),
        RECIPROCAL_RS=_reciprocal(r * s, c * r * s),
        MULTIPROCESSORS=_num_processors(),
    )
    return output


# Attention.


def _set_attention_blocks(arguments):
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
            pre_hook=_set_attention_blocks,
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
    _need(queries % 256 == 0 and keys % 128 == 0, "sizes that the blocks divide")
    _need(size in (64, 128), "heads of 64 or 128")
    _need(all(t.is_contiguous() for t in (query, key, value)), "contiguous tensors")
    _need(not is_causal or queries <= keys, "no more queries than keys")
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
