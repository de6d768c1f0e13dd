"""The ten tasks of the paper: ours, hand-written Triton and PyTorch, in one process, in turns.

    python -m benchmarks.tasks [--tasks mm,sdpa] [--rounds 7] [--dtype float16] [--output FOLDER]

Every contender's result is compared with float64 before anything is timed. A ratio is taken round
by round, for the clocks move; its median is printed, and its least and greatest beside it.
"""

from __future__ import annotations

import argparse
import functools
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks.contenders import BY_NAME, OURS, TASKS, TORCH, TRITON, Task
from benchmarks.measure import Timer, environment, first_call
from benchmarks.report import RESULTS, describe, table, write
from benchmarks.spread import Spread, ratios
from tests.examples.cases import Maker
from tests.examples.compare import assert_matches


def verify(task: Task, maker: Maker) -> dict[str, float]:
    """Compare every contender with float64; give the seconds that each one's first call took."""
    arguments = task.build(maker)
    expected = task.reference(*(argument.double() for argument in arguments))
    seconds = {}

    for name, function in task.contenders.items():
        fresh = tuple(argument.clone() for argument in arguments)
        # The first call of a contender that works in place may run it several times, to tune it.
        seconds[name] = first_call(functools.partial(function, *fresh))
        fresh = tuple(argument.clone() for argument in arguments)
        try:
            assert_matches(
                function(*fresh),
                expected,
                task.reduction,
                # PyTorch composes some tasks from several kernels, and rounds in between.
                task.rounds_intermediates or name == TORCH,
            )
        except AssertionError as error:
            raise AssertionError(f"{task.name}: the result of {name} is wrong: {error}") from None

    return seconds


def run(task: Task, dtype: torch.dtype, rounds: int) -> dict[str, Any]:
    """Verify and time one task; gives its raw figures."""
    maker = Maker(dtype, "cuda")
    seconds = verify(task, maker)
    arguments = task.build(maker)
    functions = {
        name: functools.partial(function, *arguments) for name, function in task.contenders.items()
    }
    times = Timer().rounds(functions, rounds)

    return {
        "task": task.name,
        "size": task.size,
        "dtype": str(dtype),
        "first_call_seconds": seconds,
        "milliseconds": times,
        "ratios": {peer: asdict(ratios(times, OURS, peer)) for peer in (TRITON, TORCH)},
    }


def as_table(results: list[dict[str, Any]]) -> str:
    """The table of the tasks that ran."""
    header = ("task", OURS, TRITON, TORCH, "ours / Triton", "ours / PyTorch", "first call", "size")
    rows = []

    for result in results:
        times = {name: Spread.of(values) for name, values in result["milliseconds"].items()}
        spreads = (Spread(**result["ratios"][peer]) for peer in (TRITON, TORCH))
        rows.append(
            (
                result["task"],
                *(f"{times[name].median:.4f}" for name in (OURS, TRITON, TORCH)),
                *(f"{s.median:.3f} ({s.least:.3f}–{s.greatest:.3f})" for s in spreads),
                f"{result['first_call_seconds'][OURS]:.1f} s",
                result["size"],
            )
        )

    return table(header, rows)


def main(arguments: list[str] | None = None) -> int:
    """The command line; gives the exit status."""
    parser = argparse.ArgumentParser("python -m benchmarks.tasks", description=__doc__)
    parser.add_argument("--tasks", default=",".join(BY_NAME), help="names, separated by commas")
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each contender")
    parser.add_argument("--dtype", default="float16", choices=("float16", "bfloat16", "float32"))
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder of the results")
    options = parser.parse_args(arguments)
    names = options.tasks.split(",")

    if unknown := [name for name in names if name not in BY_NAME]:
        parser.error(f"no task is called {', '.join(unknown)}; there are {', '.join(BY_NAME)}")

    if not torch.cuda.is_available():
        print("The tasks are timed on a CUDA device, and PyTorch finds none here.")
        return 1

    here = environment()
    print(describe(here), flush=True)
    results, wrong = [], []

    for task in TASKS:
        if task.name not in names:
            continue
        start = time.perf_counter()
        print(f"{task.name} … ", end="", flush=True)
        try:
            results.append(run(task, getattr(torch, options.dtype), options.rounds))
        except Exception as error:  # One task's failure is reported and does not hide the others.
            wrong.append(f"{task.name}: {type(error).__name__}: {error}")
            print(f"FAILED: {error}", flush=True)
        else:
            ratio = results[-1]["ratios"][TRITON]["median"]
            print(f"{time.perf_counter() - start:.0f} s, {ratio:.3f} of Triton's time", flush=True)

    lines = (
        f"# Ten tasks, {options.dtype}",
        "",
        describe(here),
        "",
        f"Medians of {options.rounds} rounds, in milliseconds; ratios with their least and greatest. "
        "The first call is ours: it compiles and tunes.",
        "",
        as_table(results) if results else "No task ran.",
        *(f"\nFAILED: {line}" for line in wrong),
    )
    text = "\n".join(lines)
    print("\n" + text)
    for path in write("tasks", here, text, {"results": results, "failed": wrong}, options.output):
        print(f"written: {path}")

    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
