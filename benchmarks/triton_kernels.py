"""The ten tasks in hand-written Triton, as its tutorials would have them: the peers of our kernels.

Masked pointers, a grouped order of the products' tiles, and a search over as many configurations
as a patient user would give `triton.autotune`. Each launcher takes contiguous tensors and returns a new one.
"""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

from benchmarks.search import autotune


def _configs(names, *rows):
    """Tuning configurations from rows of block sizes, warps and stages."""
    return [
        triton.Config(dict(zip(names, sizes, strict=True)), num_warps=warps, num_stages=stages)
        for *sizes, warps, stages in rows
    ]


def _product_configs():
    """Every shape of a tile that fits the shared memory and the registers, with 2 to 5 stages."""
    sizes, depths = (32, 64, 128, 256), (32, 64, 128)
    rows = []
    for m, n, k, stages in itertools.product(sizes, sizes, depths, (2, 3, 4, 5)):
        if 2 * (m + n) * k * stages > SHARED_MEMORY:
            continue
        # Elements of the accumulator for each thread, which has 255 registers.
        rows += [(m, n, k, 8, w, stages) for w in (4, 8) if 16 <= m * n / (32 * w) <= 128]
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M")
    return _configs(names, *rows)


#: Bytes that one block of threads can have on the cards with the most, such as the H200.
SHARED_MEMORY = 227 * 1024

ELEMENTWISE_CONFIGS = _configs(
    ("BLOCK_SIZE",), *((size, warps, 1) for size in (512, 1024, 2048, 4096) for warps in (4, 8))
)
ROW_CONFIGS = [triton.Config({}, num_warps=warps) for warps in (2, 4, 8, 16)]
PRODUCT_CONFIGS = _product_configs()
ATTENTION_CONFIGS = _configs(
    ("BLOCK_SIZE_M", "BLOCK_SIZE_N"),
    *(
        (m, n, warps, stages)
        for m, n in itertools.product((32, 64, 128, 256), (32, 64, 128))
        for warps, stages in itertools.product((4, 8), (1, 2, 3, 4, 5))
        # Of the scores and of the accumulator, for each thread.
        if m * (n + 64) / (32 * warps) <= 192
    ),
)


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
    _configs(
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
