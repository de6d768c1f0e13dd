"""The configurations that are searched, as Triton's tutorials have them."""

from __future__ import annotations

import itertools

import triton


def configs(names, *rows):
    """Tuning configurations from rows of block sizes, warps and stages."""
    return [
        triton.Config(dict(zip(names, sizes, strict=True)), num_warps=warps, num_stages=stages)
        for *sizes, warps, stages in rows
    ]


def product_configs():
    """Every shape of a tile that fits the shared memory and the registers, with 2 to 5 stages."""
    sizes, depths = (32, 64, 128, 256), (32, 64, 128)
    rows = []
    for m, n, k, stages in itertools.product(sizes, sizes, depths, (2, 3, 4, 5)):
        if 2 * (m + n) * k * stages > SHARED_MEMORY:
            continue
        # Elements of the accumulator for each thread, which has 255 registers.
        rows += [(m, n, k, 8, w, stages) for w in (4, 8) if 16 <= m * n / (32 * w) <= 128]
    names = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M")
    return configs(names, *rows)


#: Bytes that one block of threads can have on the cards with the most, such as the H200.
SHARED_MEMORY = 227 * 1024

ELEMENTWISE_CONFIGS = configs(
    ("BLOCK_SIZE",), *((size, warps, 1) for size in (512, 1024, 2048, 4096) for warps in (4, 8))
)
ROW_CONFIGS = [triton.Config({}, num_warps=warps) for warps in (2, 4, 8, 16)]
PRODUCT_CONFIGS = product_configs()
ATTENTION_CONFIGS = configs(
    ("BLOCK_SIZE_M", "BLOCK_SIZE_N"),
    *(
        (m, n, warps, stages)
        for m, n in itertools.product((32, 64, 128, 256), (32, 64, 128))
        for warps, stages in itertools.product((4, 8), (1, 2, 3, 4, 5))
        # Of the scores and of the accumulator, for each thread.
        if m * (n + 64) / (32 * warps) <= 192
    ),
)
