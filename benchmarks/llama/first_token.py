"""The first token of a fresh process, its weights loaded: with empty caches, and with those of the one before.

python -m benchmarks.llama.first_token [--prompt 512] [--config JSON] [--output FOLDER]

The first process compiles; what the second one takes is importing, planning and loading binaries.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.common.fresh import figures
from benchmarks.common.report import RESULTS, describe, table, write

_PROCESS = """
import json, os, sys, time
start = time.perf_counter()
sizes, count, folder = json.loads(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
os.environ["NINETOOTHED_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
import torch
from benchmarks.llama.__main__ import environment, prompt, synchronize
from examples.llama.config import Config
from examples.llama.model import Session
from examples.llama.weights import assembled, random_tensors
device = "cuda" if torch.cuda.is_available() else "cpu"
config = Config(**sizes)
with torch.inference_mode():
    weights = assembled(config, random_tensors(config, torch.bfloat16, device))
    session, text = Session(config, weights, 1, count + 8), prompt(config, 1, count, device)
    synchronize()
    times = [time.perf_counter()]
    for act in (lambda: session.prefill(text), session.step, session.step):
        act()
        synchronize()
        times.append(time.perf_counter())
taken = [after - before for before, after in zip([start, *times], times)]
print(json.dumps([environment(), taken]))
"""


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser("python -m benchmarks.llama.first_token", description=__doc__)
    parser.add_argument("--prompt", type=int, default=512)
    parser.add_argument("--config", default="{}", help="other sizes, as JSON")
    parser.add_argument("--output", type=Path, default=RESULTS / "models")
    options = parser.parse_args()
    data, rows = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("empty caches", "warm caches"):
            here, data[name] = figures(_PROCESS, options.config, str(options.prompt), folder)
            rows.append((name, *(f"{seconds:.2f}" for seconds in data[name])))
            print(*rows[-1], flush=True)
    header = ("a process with", "loading", "first token", "second", "third, of the graph")
    text = "\n".join(
        (
            f"# Seconds to the first tokens, after a prompt of {options.prompt}",
            "",
            describe(here),
            "",
            table(header, rows),
        )
    )
    print(text)
    write("first-token", here, text, data, options.output)


if __name__ == "__main__":
    main()
