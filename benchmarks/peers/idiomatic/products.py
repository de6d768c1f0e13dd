"""Products and convolution."""

from __future__ import annotations

import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.idiomatic.configs import PRODUCT_CONFIGS


@triton.jit
def grouped_program(m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M):
    """This program's row and column of tiles, in groups of rows, for reuse in the L2 cache."""
    program = tl.program_id(0)
    num_rows = tl.cdiv(m, BLOCK_SIZE_M)
    num_in_group = GROUP_SIZE_M * tl.cdiv(n, BLOCK_SIZE_N)
    first_row = (program // num_in_group) * GROUP_SIZE_M
    group_size = min(num_rows - first_row, GROUP_SIZE_M)
    row = first_row + (program % num_in_group) % group_size
    column = (program % num_in_group) // group_size
    return row, column


@triton.jit
def product(
    a_ptr,
    b_ptr,
    rows,
    columns,
    m,
    n,
    k,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
):
    """The tile of ``a @ b`` at these rows and columns, in float32."""
    terms = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + rows[:, None] * stride_am + terms[None, :] * stride_ak
    b_ptrs = b_ptr + terms[:, None] * stride_bk + columns[None, :] * stride_bn
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    for start in range(0, k, BLOCK_SIZE_K):
        a_mask = (rows < m)[:, None] & (terms < k - start)[None, :]
        b_mask = (terms < k - start)[:, None] & (columns < n)[None, :]
        a = tl.load(a_ptrs, mask=a_mask, other=0.0)
        b = tl.load(b_ptrs, mask=b_mask, other=0.0)
        accumulator = tl.dot(a, b, accumulator, input_precision="ieee")
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk

    return accumulator


@autotune(PRODUCT_CONFIGS, key=["m", "n", "k"])
@triton.jit
def mm_kernel(
    a_ptr,
    b_ptr,
    output_ptr,
    m,
    n,
    k,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    stride_ob,
    stride_om,
    stride_on,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    batch = tl.program_id(1)
    row, column = grouped_program(m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M)
    rows = row * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    columns = column * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    accumulator = product(
        a_ptr + batch * stride_ab,
        b_ptr + batch * stride_bb,
        rows,
        columns,
        m,
        n,
        k,
        stride_am,
        stride_ak,
        stride_bk,
        stride_bn,
        BLOCK_SIZE_M,
        BLOCK_SIZE_N,
        BLOCK_SIZE_K,
    )
    output_ptrs = output_ptr + batch * stride_ob
    output_ptrs += rows[:, None] * stride_om + columns[None, :] * stride_on
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(output_ptrs, accumulator.to(output_ptr.dtype.element_ty), mask=mask)


def _product_grid(m, n, *others):
    return lambda meta: (
        triton.cdiv(m, meta["BLOCK_SIZE_M"]) * triton.cdiv(n, meta["BLOCK_SIZE_N"]),
        *others,
    )


def mm(a, b):
    """The product of (m, k) and (k, n)."""
    return bmm(a[None], b[None])[0]


def bmm(a, b):
    """The products of (batch, m, k) and (batch, k, n)."""
    (batch, m, k), n = a.shape, b.shape[2]
    output = a.new_empty((batch, m, n))
    mm_kernel[_product_grid(m, n, batch)](
        a, b, output, m, n, k, *a.stride(), *b.stride(), *output.stride()
    )
    return output


@autotune(PRODUCT_CONFIGS, key=["m", "n", "k"])
@triton.jit
def addmm_kernel(
    input_ptr,
    a_ptr,
    b_ptr,
    output_ptr,
    m,
    n,
    k,
    beta,
    alpha,
    stride_im,
    stride_in,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_om,
    stride_on,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    row, column = grouped_program(m, n, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M)
    rows = row * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    columns = column * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    accumulator = product(
        a_ptr,
        b_ptr,
        rows,
        columns,
        m,
        n,
        k,
        stride_am,
        stride_ak,
        stride_bk,
        stride_bn,
        BLOCK_SIZE_M,
        BLOCK_SIZE_N,
        BLOCK_SIZE_K,
    )
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    input_ptrs = input_ptr + rows[:, None] * stride_im + columns[None, :] * stride_in
    output = beta * tl.load(input_ptrs, mask=mask).to(tl.float32) + alpha * accumulator
    output_ptrs = output_ptr + rows[:, None] * stride_om + columns[None, :] * stride_on
    tl.store(output_ptrs, output.to(output_ptr.dtype.element_ty), mask=mask)


def addmm(input, a, b, beta=1.0, alpha=1.0):
    """``beta * input + alpha * (a @ b)`` for (m, n), (m, k) and (k, n)."""
    (m, k), n = a.shape, b.shape[1]
    output = a.new_empty((m, n))
    addmm_kernel[_product_grid(m, n)](
        input,
        a,
        b,
        output,
        m,
        n,
        k,
        beta,
        alpha,
        *input.stride(),
        *a.stride(),
        *b.stride(),
        *output.stride(),
    )
    return output


@autotune(PRODUCT_CONFIGS, key=["N", "C", "P", "Q", "K"])
@triton.jit
def conv2d_kernel(
    input_ptr,
    filter_ptr,
    output_ptr,
    stride_in,
    stride_ic,
    stride_ih,
    stride_iw,
    stride_fk,
    stride_on,
    stride_ok,
    stride_op,
    stride_oq,
    N: tl.constexpr,
    C: tl.constexpr,
    P: tl.constexpr,
    Q: tl.constexpr,
    K: tl.constexpr,
    R: tl.constexpr,
    S: tl.constexpr,
    BLOCK_SIZE_M: tl.constexpr,
    BLOCK_SIZE_N: tl.constexpr,
    BLOCK_SIZE_K: tl.constexpr,
    GROUP_SIZE_M: tl.constexpr,
):
    row, column = grouped_program(N * P * Q, K, BLOCK_SIZE_M, BLOCK_SIZE_N, GROUP_SIZE_M)
    rows = row * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    filters = column * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    n, p, q = rows // (P * Q), rows // Q % P, rows % Q
    windows = input_ptr + n * stride_in + p * stride_ih + q * stride_iw
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)

    for start in range(0, C * R * S, BLOCK_SIZE_K):
        terms = start + tl.arange(0, BLOCK_SIZE_K)
        c, r, s = terms // (R * S), terms // S % R, terms % S
        input_ptrs = windows[:, None] + (c * stride_ic + r * stride_ih + s * stride_iw)[None, :]
        filter_ptrs = filter_ptr + filters[None, :] * stride_fk + terms[:, None]
        input_mask = (rows < N * P * Q)[:, None] & (terms < C * R * S)[None, :]
        filter_mask = (terms < C * R * S)[:, None] & (filters < K)[None, :]
        input = tl.load(input_ptrs, mask=input_mask, other=0.0)
        filter = tl.load(filter_ptrs, mask=filter_mask, other=0.0)
        accumulator = tl.dot(input, filter, accumulator, input_precision="ieee")

    output_rows = output_ptr + n * stride_on + p * stride_op + q * stride_oq
    output_ptrs = output_rows[:, None] + filters[None, :] * stride_ok
    mask = (rows < N * P * Q)[:, None] & (filters < K)[None, :]
    tl.store(output_ptrs, accumulator.to(output_ptr.dtype.element_ty), mask=mask)


def conv2d(input, filter):
    """The convolution of (n, c, h, w) with a contiguous (k, c, r, s), without padding."""
    (n, c, h, w), (k, _, r, s) = input.shape, filter.shape
    p, q = h - r + 1, w - s + 1
    output = input.new_empty((n, k, p, q))
    conv2d_kernel[_product_grid(n * p * q, k)](
        input,
        filter,
        output,
        *input.stride(),
        filter.stride(0),
        *output.stride(),
        N=n,
        C=c,
        P=p,
        Q=q,
        K=k,
        R=r,
        S=s,
    )
    return output
