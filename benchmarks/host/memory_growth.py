"""How much memory a process takes that goes on meeting what it has not seen: new calls, new kernels.

    python -m benchmarks.host.memory_growth [--calls 100000] [--makes 20000] [--large 5000]

Each call has a shape of its own, each kernel a tile size of its own. Memory is what the process holds at
that moment (its resident set), after a garbage collection; growth is counted from the 1,000th on.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from ninetoothed import Symbol, Tensor, make

#: Growth is counted from here on: what is loaded late and caches' first thousand are no growth.
FIRST = 1000


def resident_megabytes() -> float:
    """What the process holds in memory."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def add(left, right, out):
    out = left + right


def arrangement(left, right, out, size=64):
    """Tiles of ``size`` elements."""
    return left.tile((size,)), right.tile((size,)), out.tile((size,))


def new_kernel(number: int):
    """A kernel that no other is equal to."""
    size = Symbol(f"SIZE_{number}", constexpr=True)
    return make(
        lambda left, right, out: arrangement(left, right, out, size),
        add,
        (Tensor(1), Tensor(1), Tensor(1)),
    )


def calls() -> Callable[[int], None]:
    """Calls one kernel with a size and a stride that no call before had."""
    kernel = make(arrangement, add, (Tensor(1), Tensor(1), Tensor(1)))
    memory = torch.zeros(1 << 20)

    def call(number: int) -> None:
        size, stride = 1 + number % 600, 1 + number // 600
        vectors = [memory.as_strided((size,), (stride,)) for _ in range(3)]
        kernel(*vectors)

    return call


def calls_with_large_tiles() -> Callable[[int], None]:
    """Calls one kernel whose tile is a whole large tensor, of another size each time."""
    kernel = make(arrangement_whole, add, (Tensor(1), Tensor(1), Tensor(1)))
    memory = torch.zeros(1 << 17)

    def call(number: int) -> None:
        vector = memory[: (1 << 16) + 1 + number]
        kernel(vector, vector, vector)

    return call


def arrangement_whole(left, right, out):
    """One tile, the whole tensor."""
    return left.tile((-1,)), right.tile((-1,)), out.tile((-1,))


def measure(name: str, step: Callable[[int], None], count: int) -> float:
    """Takes the steps; prints what memory was at some of them; gives the growth."""
    marks = {FIRST, *(int(count * part) for part in (0.1, 0.25, 0.5, 0.75)), count}
    begin, at_first, last = time.perf_counter(), None, 0.0
    for number in range(1, count + 1):
        step(number)
        if number in marks and number >= min(FIRST, count):
            last = resident_megabytes()
            at_first = last if at_first is None else at_first
            seconds = time.perf_counter() - begin
            print(
                f"{name:24} {number:>8,} {last:8.1f} MB {last - at_first:+8.1f} {seconds:8.0f} s",
                flush=True,
            )
    return last - (at_first or last)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--makes", type=int, default=20_000)
    parser.add_argument("--large", type=int, default=5_000)
    options = parser.parse_args()
    print(f"NumPy {np.__version__}, PyTorch {torch.__version__}, CPU tensors")
    growth = {
        "calls": measure("calls", calls(), options.calls),
        "calls with large tiles": measure(
            "calls with large tiles", calls_with_large_tiles(), options.large
        ),
        "makes": measure("makes", new_kernel, options.makes),
    }
    print(
        "\n".join(
            f"{name}: {grown:+.1f} MB after the first {FIRST:,}" for name, grown in growth.items()
        )
    )


if __name__ == "__main__":
    main()
