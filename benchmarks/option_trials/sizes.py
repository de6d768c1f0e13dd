"""What the hint for the second-level cache gains by what a call moves: around the cache's own size.

    python -m benchmarks.option_trials.sizes [--tasks silu,softmax] [--rounds 7]

The same three settings as `benchmarks.option_trials` has, kernels as first called; a ratio is without
the hint over with it, both fixed, so that what the option itself would choose plays no part.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from unittest import mock

import torch

from benchmarks.common.inputs import Builder, normal, rotations
from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.option_trials.contenders import Watch, Workshop, same_values
from benchmarks.option_trials.tasks import ADD, ROPE, SILU, SOFTMAX, Data, Operation, Task, task
from benchmarks.option_trials.timing import timed
from benchmarks.option_trials.trials import SETTINGS, Trial
from tests.examples.maker import Maker

_MIB = 2**20


def _sized(operation: Operation, moved: int, build: Builder) -> Task:
    return task(f"{operation.example}-{moved}", f"{moved} MiB", operation, build)


#: By what each moves, in MiB, of float16.
TASKS = (
    *(_sized(SILU, 4 * n, normal((n * _MIB,))) for n in range(9, 15)),
    *(_sized(SOFTMAX, 4 * n, normal((n * 256, 4096))) for n in (10, 11, 13, 14)),
    *(_sized(ROPE, heads, rotations(4, 1024, heads, 64)) for heads in (40, 44, 48, 52, 56)),
    *(_sized(ADD, 6 * n, normal((n * _MIB,), (n * _MIB,))) for n in (4, 6, 7, 8, 9, 10)),
)


def ratios_of(sized: Task, rounds: int, root: Path, watch: Watch) -> dict[str, Spread]:
    """The time without the hint over that with it, by setting."""
    data = Data(sized, Maker(torch.float16, "cuda"))
    workshop = Workshop(sized, data, root, watch)
    made = {}
    for label, value in (("off", 0), ("on", 1)):
        contender = workshop.without(Trial("", "eviction_policy", value), "tuned")
        assert contender is not None
        made[label] = contender
    if not same_values(made["off"], made["on"]):
        raise AssertionError(f"{sized.name}: the hint changes what is computed")
    times = timed(made, rounds, "stream")
    return {setting: ratios(each, "off", "on") for setting, each in times.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    commands = argparse.ArgumentParser(
        "python -m benchmarks.option_trials.sizes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands.add_argument("--tasks", default="silu,softmax,rope,add", help="names, with commas")
    commands.add_argument("--rounds", type=int, default=7)
    commands.add_argument(
        "--output", type=Path, default=RESULTS / "options", help="the folder of the results"
    )
    options = commands.parse_args(arguments)
    if not torch.cuda.is_available():
        print("Sizes are tried on a CUDA device, and PyTorch finds none here.")
        return 1
    names, cache = options.tasks.split(","), torch.cuda.get_device_properties(0).L2_cache_size
    found: dict[str, dict[str, Spread]] = {}
    with tempfile.TemporaryDirectory() as folder, Watch().begun() as watch:
        variables = {"TRITON_CACHE_DIR": f"{folder}/triton", "NINETOOTHED_TUNE": "none"}
        with mock.patch.dict(os.environ, variables):
            for sized in TASKS:
                name, moved = sized.name.split("-")
                if name in names:
                    share = int(moved) * _MIB / cache
                    label = f"{name}, {moved} MiB, {share:.2f} of the cache"
                    found[label] = ratios_of(sized, options.rounds, Path(folder), watch)
                    torch.cuda.empty_cache()
    here = environment()
    rows = [(label, *(str(each[key]) for key in SETTINGS)) for label, each in found.items()]
    lines = (
        "# What the hint for the cache gains by what is moved, float16",
        "",
        describe(here),
        "",
        f"Without over with: above 1 the hint gains. Medians of {options.rounds} rounds, with the least "
        "and greatest.",
        "",
        table(("task", *SETTINGS.values()), rows),
    )
    text = "\n".join(lines)
    raw = {label: {key: asdict(each) for key, each in by.items()} for label, by in found.items()}
    print("\n".join((text, *map(str, write("eviction-by-size", here, text, raw, options.output)))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
