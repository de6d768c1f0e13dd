"""Products of one to four rows at an 8B Llama's shapes: tiles to choose from, cuBLAS, and a copy.

Each is recorded as a graph of calls on different weights, so that none is found in the L2 cache, as in a
model's step. The bandwidth is that of the weights alone; a copy's counts what it reads and what it writes.

python -m benchmarks.llama.few_rows [--rows 1 2] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.measure import Timer, environment
from benchmarks.common.report import RESULTS, describe, table, write
from examples.llama import products

#: The application, and the weight's shape: (parts, n, k).
SHAPES = {
    "qkv": (products.plain, (1, 6144, 4096)),
    "out": (products.added, (1, 4096, 4096)),
    "gate, up": (products.gated, (2, 14336, 4096)),
    "down": (products.added, (1, 4096, 14336)),
    "head": (products.plain, (1, 128256, 4096)),
}

#: So many bytes of weights are used in turns, and so many calls make a graph.
_BYTES, _CALLS = 1 << 30, 16

#: Rows, columns and warps of the tiles to choose from.
TILES = (
    *((rows, 256, 1) for rows in (2, 4, 8, 16)),
    *((rows, 512, 2) for rows in (2, 4, 8, 16)),
    *((rows, 1024, 2) for rows in (2, 4)),
    *((rows, 1024, 4) for rows in (2, 4, 8)),
    *((8, 256, 2), (16, 256, 2), (16, 512, 4), (4, 2048, 4)),
)


def milliseconds(functions: list[Callable[[], object]], replays: int = 12) -> float:
    """The time of one call, of a graph of calls of these functions in turns."""
    for function in functions[:1]:
        function()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for function in itertools.islice(itertools.cycle(functions), _CALLS):
            function()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / replays / _CALLS


def measured(name: str, rows: int) -> dict[str, Any]:
    """Milliseconds of each tile, and of cuBLAS."""
    application, shape = SHAPES[name]
    count = max(1, _BYTES // (2 * torch.Size(shape).numel()))
    weights = [torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(count)]
    x = torch.randn(rows, shape[2], device="cuda", dtype=torch.bfloat16)
    output = torch.zeros(rows, shape[1], device="cuda", dtype=torch.bfloat16)
    scale = None if application is products.added else torch.ones_like(x[0])
    found: dict[str, Any] = {
        "cuBLAS": milliseconds([lambda w=w: x @ w.flatten(0, 1).T for w in weights])
    }

    def call(tile: tuple[int, int, int], weight: torch.Tensor = weights[0]) -> None:
        products.few(application, x, scale, weight, 1e-5, output, output, tile)

    with ThreadPoolExecutor() as compilers:
        list(compilers.map(call, TILES))
    for tile in TILES:
        functions = [lambda w=w, tile=tile: call(tile, w) for w in weights]
        found["{} × {}, {} warps".format(*tile)] = milliseconds(functions)
    return found


def copy() -> float:
    """Bytes a second of a copy of 512 MiB, which is slower in a graph."""
    source = torch.randn(1 << 28, dtype=torch.bfloat16, device="cuda")
    target = torch.empty_like(source)
    each = Timer("none").milliseconds([lambda: target.copy_(source)], 20)
    return 2 * 2 * source.numel() / each * 1e3


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.llama.few_rows", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args()
    # Tiles are chosen here; of the rest the first choice is taken.
    os.environ["NINETOOTHED_TUNE"] = "none"
    data: dict[str, Any] = {"copy": copy()}
    lines = []
    for rows, name in itertools.product(options.rows, SHAPES):
        data[f"{name}, rows {rows}"] = found = measured(name, rows)
        size = 2 * torch.Size(SHAPES[name][1]).numel()
        order = sorted((time, tile) for tile, time in found.items() if tile != "cuBLAS")
        cells = [f"{size / found['cuBLAS'] / 1e9:.2f}"]
        cells += [f"{size / time / 1e9:.2f} ({tile})" for time, tile in order[:4]]
        lines.append((f"{name}, {rows}", *cells))
        print(*lines[-1], sep="  ", flush=True)
    here = environment()
    header = ("product, rows", "cuBLAS", "best tile", "second", "third", "fourth")
    text = "\n".join(
        [
            "# Products of few rows, terabytes of weights a second",
            "",
            describe(here),
            "",
            f"A copy: {data['copy'] / 1e12:.2f}.",
            "",
            table(header, lines),
        ]
    )
    print(text)
    write("few-rows", here, text, data, options.output)


if __name__ == "__main__":
    main()
