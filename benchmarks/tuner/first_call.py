"""What the first call costs and how well it chooses, against an exhaustive search of the same space.

    python -m benchmarks.tuner.first_call [--tasks mm] [--efforts none,quick,full] [--rounds 9]
        [--processes 3] [--output FOLDER]

Each effort of the tuner (``NINETOOTHED_TUNE``) starts with empty caches in a fresh process, which is
the cold first call, and again in fresh processes with the caches it left, which is the warm one. Then
one process takes what every effort chose from those caches and times the kernels in turns; ``full``
is the exhaustive search. Its first call may take minutes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.common.fresh import figures
from benchmarks.common.inputs import BUILDERS
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import ratios

EFFORTS = ("none", "quick", "full")

_CALL = """
import json, os, sys, time
start = time.perf_counter()
name, os.environ["NINETOOTHED_TUNE"], folder = sys.argv[1:]
os.environ["NINETOOTHED_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
import torch
from benchmarks.common.inputs import arguments_of
arguments = arguments_of(name)
torch.cuda.synchronize()
ready = time.perf_counter()
import importlib
module = importlib.import_module("examples." + name)
made = time.perf_counter()
getattr(module, name)(*arguments)
torch.cuda.synchronize()
called = time.perf_counter()
getattr(module, name)(*arguments)
torch.cuda.synchronize()
again = time.perf_counter()
print(json.dumps([ready - start, made - ready, called - made, again - called]))
"""

_COMPARE = """
import importlib.util, json, os, sys
name, rounds, folders = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
import torch
from benchmarks.common.inputs import arguments_of
from benchmarks.common.measure import Timer, environment
home = importlib.util.find_spec("examples." + name)
turns = [arguments_of(name) for _ in range(4)]
functions = {}
for effort, folder in folders.items():
    os.environ["NINETOOTHED_TUNE"] = effort
    os.environ["NINETOOTHED_CACHE_DIR"] = os.environ["TRITON_CACHE_DIR"] = folder
    module = importlib.util.module_from_spec(home)  # A kernel of its own for each effort.
    home.loader.exec_module(module)
    function = getattr(module, name)
    function(*turns[0])
    functions[effort] = [lambda f=function, a=arguments: f(*a) for arguments in turns]
times = Timer().rounds(functions, rounds)
print(json.dumps([environment(), times]))
"""


def measure(name: str, effort: str, folder: str, processes: int) -> dict[str, list[list[float]]]:
    """Seconds of (start, make, first call, second call) in one process with an empty folder of
    caches, and in several that find it filled."""
    return {
        "cold": [figures(_CALL, name, effort, folder)],
        "warm": [figures(_CALL, name, effort, folder) for _ in range(processes)],
    }


def as_tables(tasks: dict[str, Any]) -> str:
    """A table of the first calls and one of the choices."""
    calls, choices = [], []
    for name, found in tasks.items():
        for effort, runs in found["seconds"].items():
            warm = [run[2] for run in runs["warm"]]
            calls.append(
                (
                    f"{name}, {effort}",
                    f"{runs['cold'][0][2]:.2f}",
                    f"{statistics.median(warm):.3f}",
                    f"{min(warm):.3f}",
                )
            )
        times = found["milliseconds"]
        best = list(times)[-1]
        choices += [
            (
                f"{name}, {effort}",
                f"{1000 * statistics.median(values):.1f}",
                str(ratios(times, effort, best)),
            )
            for effort, values in times.items()
        ]
    return "\n".join(
        (
            "Seconds of the first call, the kernel's module imported.",
            "",
            table(("task, effort", "cold", "warm", "least warm"), calls),
            "",
            "Microseconds of what each effort chose, in turns.",
            "",
            table(("task, effort", "median", "over the last effort's choice"), choices),
        )
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.tuner.first_call",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tasks", default="mm", help="names, separated by commas")
    parser.add_argument("--efforts", default=",".join(EFFORTS), help="the last one is the measure")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--processes", type=int, default=3, help="with warm caches")
    parser.add_argument("--output", type=Path, default=RESULTS / "tuning")
    options = parser.parse_args(arguments)
    names, efforts = options.tasks.split(","), options.efforts.split(",")
    for given, known in ((names, list(BUILDERS)), (efforts, EFFORTS)):
        if unknown := [name for name in given if name not in known]:
            parser.error(f"{', '.join(unknown)} is none of {', '.join(known)}")

    if not torch.cuda.is_available():
        print("First calls are timed on a CUDA device, and PyTorch finds none here.")
        return 1

    tasks: dict[str, Any] = {}
    for name in names:
        with tempfile.TemporaryDirectory() as root:
            folders = {effort: str(Path(root, effort)) for effort in efforts}
            seconds = {}
            for effort, folder in folders.items():
                print(f"{name}, {effort} … ", end="", flush=True)
                seconds[effort] = measure(name, effort, folder, options.processes)
                cold, *warm = (run[2] for runs in seconds[effort].values() for run in runs)
                told = ", ".join(f"{each:.3f}" for each in warm)
                print(f"cold {cold:.2f} s, warm {told} s", flush=True)
            here, times = figures(_COMPARE, name, str(options.rounds), json.dumps(folders))
        tasks[name] = {"seconds": seconds, "milliseconds": times}

    text = "\n".join(
        ("# First calls, and what they choose", "", describe(here), "", as_tables(tasks))
    )
    print(text)
    write("first-call", here, text, tasks, options.output)

    return 0


if __name__ == "__main__":
    sys.exit(main())
