"""Every example called once in one process: with empty caches, and with those of the process before.

    python -m benchmarks.tuner.first_calls [--dtype float16] [--output FOLDER]

Nothing is set but the folder of the caches: what a call takes is what a user waits for.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.common.fresh import figures
from benchmarks.common.report import RESULTS, describe, table, write

_PROCESS = """
import json, os, sys, time
os.environ["NINETOOTHED_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = sys.argv[1]
os.environ.pop("NINETOOTHED_TUNE", None)
import torch
from benchmarks.common.measure import environment, first_call
from tests.examples.cases import EXAMPLES
from tests.examples.maker import Maker
from tests.examples.more_cases import MORE
maker = Maker(getattr(torch, sys.argv[2]), "cuda")
torch.ones(1, device="cuda")
seconds = {}
for example in (*EXAMPLES, *MORE):
    arguments = example.arguments(maker, next(iter(example.large.values())))
    torch.cuda.synchronize()
    seconds[example.name] = first_call(lambda: example.actual(arguments))
print(json.dumps([environment(), seconds]))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.tuner.first_calls",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--dtype", default="float16", choices=("float16", "bfloat16", "float32"))
    parser.add_argument("--output", type=Path, default=RESULTS / "tuning")
    options = parser.parse_args(arguments)
    if not torch.cuda.is_available():
        print("First calls are timed on a CUDA device, and PyTorch finds none here.")
        return 1

    with tempfile.TemporaryDirectory() as folder:
        here, cold = figures(_PROCESS, folder, options.dtype)
        _, warm = figures(_PROCESS, folder, options.dtype)
    rows = [(name, f"{cold[name]:.2f}", f"{warm[name]:.3f}") for name in sorted(cold, key=cold.get)]
    for name, of in (("longest", max), ("all", sum)):
        rows.append((name, f"{of(cold.values()):.2f}", f"{of(warm.values()):.3f}"))
    lines = (
        f"# First calls of {len(cold)} examples in one process, {options.dtype}",
        "",
        describe(here),
        "",
        "Seconds, in the order of the first column.",
        "",
        table(("example", "empty caches", "warm caches"), rows),
    )
    text = "\n".join(lines)
    print(text)
    write("first-calls", here, text, {"cold": cold, "warm": warm}, options.output)

    return 0


if __name__ == "__main__":
    sys.exit(main())
