"""Attention of one new position for each request, by how many programs share a request's keys.

Caches of 256 MiB and more, of 1 to 32 requests, and 32 requests of different lengths that have as many keys
in all; the bandwidth is that of the keys and values that are read, beside a copy's, which counts what it
reads and what it writes. Both kernels are timed, the one that puts the parts together too.

python -m benchmarks.llama.decode_attention [--splits 4 8 16] [--output FOLDER]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.llama.few_rows import copy, milliseconds
from examples.llama import attention

_HEADS, _KEY_HEADS, _SIZE, _BLOCK = 32, 8, 128, 64

#: The lengths of requests, by name; of each there are 65,536 or 262,144 keys of eight heads in all.
LENGTHS = {
    "1 of 65,536": [65536],
    "1 of 131,072": [131072],
    "4 of 16,384": [16384] * 4,
    "32 of 2,048": [2048] * 32,
    "32 of 8,192": [8192] * 32,
    "32 of 128 to 3,968": [128 * (1 + 2 * (index * 11 % 16)) for index in range(32)],
}


def step(lengths: list[int], splits: int) -> Callable[[], None]:
    """Both kernels of a layer, for requests of these lengths."""
    requests, room = len(lengths), max(lengths) + _BLOCK

    def random(*shape: int, dtype: torch.dtype = torch.bfloat16) -> torch.Tensor:
        return torch.randn(shape, device="cuda", dtype=dtype)

    query, key, value = random(requests, _HEADS + 2 * _KEY_HEADS, _SIZE).split(
        [_HEADS, _KEY_HEADS, _KEY_HEADS], 1
    )
    sin, cos = random(2, requests, _SIZE // 2, dtype=torch.float32)
    keys, values = random(2, requests, _KEY_HEADS, room, _SIZE)
    positions = torch.tensor(lengths, dtype=torch.int32, device="cuda")
    partial = torch.empty(requests, _HEADS, splits, _SIZE, device="cuda")
    maximum, total = torch.empty(2, requests, _HEADS, splits, device="cuda")
    output = torch.empty_like(query)

    def run() -> None:
        attention.decode_kernel(
            *(query, key, value, positions, sin, cos, keys, values, keys, values),
            *(positions[None], _SIZE**-0.5, False, partial, maximum, total),
            BLOCK_SIZE=_BLOCK,
        )
        attention.combine_kernel(partial, maximum, total, output)

    return run


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.llama.decode_attention")
    parser.add_argument("--splits", nargs="+", type=int, default=[2, 4, 8, 16, 32, 64, 128])
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args()
    os.environ["NINETOOTHED_TUNE"] = "none"
    data: dict[str, Any] = {"copy": copy()}
    lines = []
    for name, lengths in LENGTHS.items():
        size = 2 * 2 * _KEY_HEADS * _SIZE * sum(lengths)
        data[name] = {}
        for splits in options.splits:
            if 64 <= splits * len(lengths) <= 512:
                data[name][splits] = milliseconds([step(lengths, splits)])
        rates = {splits: size / time * 1e3 for splits, time in data[name].items()}
        cells = [f"{rate / 1e12:.2f}" if (rate := rates.get(n)) else "" for n in options.splits]
        most = max(rates.values(), default=0.0)
        lines.append((name, f"{size >> 20}", *cells, f"{most / data['copy']:.3f}"))
        print(*lines[-1], sep="  ", flush=True)
    here = environment()
    header = ("requests", "MiB", *(f"{n} parts" for n in options.splits), "best of copy")
    text = "\n".join(
        [
            "# Attention of new positions, terabytes of keys and values a second",
            "",
            describe(here),
            "",
            f"A copy: {data['copy'] / 1e12:.2f}.",
            "",
            table(header, lines),
        ]
    )
    print(text)
    write("decode-attention", here, text, data, options.output)


if __name__ == "__main__":
    main()
