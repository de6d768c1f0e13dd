"""What sorting rows takes with each number of warps: ``python -m benchmarks.tuner.sort_warps``.

The rows hold 2^24 normally distributed numbers of 32 bits together. Every result is compared with PyTorch's;
times are the medians of Triton's `do_bench`, compiling included in none of them.
"""

from __future__ import annotations

import functools
import time

import torch
import triton

import ninetoothed
import ninetoothed.language as ntl
from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write
from examples import softmax

SIZES = (128, 256, 512, 1024, 2048, 4096)
WARPS = (1, 2, 4, 8, 16, 32)
_MOST_ELEMENTS = 64


def sorting(input, output):
    output = ntl.sort(input)


def main() -> None:
    rows = []
    for size in SIZES:
        values = torch.randn((1 << 24) // size, size, device="cuda")
        expected = values.sort(dim=-1).values
        for warps in WARPS:
            if not 1 <= size / (32 * warps) <= _MOST_ELEMENTS:
                continue
            kernel = ninetoothed.make(
                softmax.arrangement, sorting, softmax.tensors, num_warps=warps
            )
            output = torch.full_like(values, float("nan"))
            start = time.perf_counter()
            kernel(values, output)
            torch.cuda.synchronize()
            seconds = time.perf_counter() - start
            assert torch.equal(output, expected), (size, warps)
            run = functools.partial(kernel, values, output)
            milliseconds = triton.testing.do_bench(run, 10, 40)
            each = size // (32 * warps)
            rows.append([f"{size}", f"{warps}", f"{each}", f"{milliseconds:.3f}", f"{seconds:.1f}"])
            print(*rows[-1], flush=True)
    header = ["row", "warps", "elements a thread", "milliseconds", "first call, seconds"]
    machine = environment()
    text = f"{describe(machine)}\n\n{table(header, rows)}"
    write("sort-warps", machine, text, rows, RESULTS / "tuning")


if __name__ == "__main__":
    main()
