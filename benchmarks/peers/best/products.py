"""Products. One kernel for a batch of them, with or without a matrix that is added."""

from __future__ import annotations

import itertools

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from benchmarks.common.search import autotune, fastest_of
from benchmarks.peers.best.device import need, num_processors

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
    need(m % 256 == 0 and n % 256 == 0 and k % 128 == 0, "sizes that the blocks divide")
    need(a.is_contiguous() and b.is_contiguous(), "contiguous matrices")


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
    return lambda meta: (min(num_processors(), *_one_each(elements)(meta)),)


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
