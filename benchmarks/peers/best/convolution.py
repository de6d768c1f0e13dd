"""Convolution, its reduction split among programs, for there are few tiles."""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from benchmarks.common.search import autotune
from benchmarks.peers.best.device import need, num_processors

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
    need(
        found * size < 2**31 and all(i * found >> 16 == i // divisor for i in range(size)),
        "a shorter reduction",
    )
    return found


def conv2d(input, filter):
    """The convolution of contiguous (n, c, h, w) with (k, c, r, s), without padding."""
    (n, c, h, w), (k, _, r, s) = input.shape, filter.shape
    p, q = h - r + 1, w - s + 1
    need(input.is_contiguous() and filter.is_contiguous(), "contiguous tensors")
    need(n * p * q % 64 == 0 and k % 256 == 0 and c * r * s % 128 == 0, "sizes blocks divide")
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
        MULTIPROCESSORS=num_processors(),
    )
    return output
