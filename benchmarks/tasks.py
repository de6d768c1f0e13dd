"""The ten tasks of the paper: ours, two sets of hand-written Triton and PyTorch, in turns.

    python -m benchmarks.tasks [--tasks mm,sdpa] [--rounds 7] [--dtype float16]
        [--flush none] [--results kept] [--effort none] [--configs RESULTS.json] [--marked]
        [--output FOLDER]

Every contender's result is compared with float64 before anything is timed. A ratio is taken round
by round, for the clocks move; its median is printed, and its least and greatest beside it.
`--flush none` times calls that follow one another, as in a program, instead of each by itself;
`--flush do_bench` has `triton.testing.do_bench` time them, one contender after the other.
A function's result is dropped, and the next call is given the same memory for its own, as with
`triton.testing.do_bench`; with `--results kept` as many are alive as there are sets of arguments,
and with `--results chained` each call's first argument is what the last one gave: for tasks whose
result is as that argument is.
`--configs` takes the hand-written kernels' configurations from an earlier run's results; with
`--marked` best Triton may also mark results to stay in the second-level cache.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import functools
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from benchmarks import published
from benchmarks.common import search
from benchmarks.common.measure import DoBench, Timer, environment, first_call, num_turns
from benchmarks.common.report import RESULTS, describe, figure, table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.peers import best
from benchmarks.peers.contenders import BY_NAME, NAMES, OURS, PUBLISHED, TASKS, TORCH, Task
from tests.examples.compare import assert_matches
from tests.examples.maker import Maker

#: The tasks whose result may be their first argument.
CHAINED = {"add", "silu", "softmax", "rms_norm", "rope"}

#: How calls are timed, by the name of the flush before each.
CACHES = {
    "write": "the cache cold after a write",
    "read": "the cache cold after a read",
    "none": "calls in a row",
    "do_bench": "timed by triton.testing.do_bench",
}

#: What becomes of results, by name.
RESULTS_ARE = {
    "reused": "",
    "kept": ", results in turns",
    "chained": ", each call on the last one's result",
}


def verify(task: Task, maker: Maker) -> tuple[dict[str, float], dict[str, str]]:
    """Compare every contender with float64: the seconds of each one's first call, and what is wrong."""
    arguments = task.build(maker)
    expected = task.reference(*(argument.double() for argument in arguments))
    seconds: dict[str, float] = {}
    wrong: dict[str, str] = {}

    for name, function in task.contenders.items():
        fresh = tuple(argument.clone() for argument in arguments)
        try:
            # The first call of a contender that works in place may run it several times, to tune it.
            seconds[name] = first_call(functools.partial(function, *fresh))
            fresh = tuple(argument.clone() for argument in arguments)
            assert_matches(
                function(*fresh),
                expected,
                task.reduction,
                # PyTorch composes some tasks from several kernels, and rounds in between.
                task.rounds_intermediates or name == TORCH,
            )
        except Exception as error:  # One contender's failure does not hide the others.
            wrong[name] = f"{task.name}, {name}: {type(error).__name__}: {error}"

    return seconds, wrong


def run(
    task: Task, dtype: torch.dtype, rounds: int, flush: str, results: str = "reused"
) -> tuple[dict[str, Any], list[str]]:
    """Verify and time one task; gives its raw figures and what was wrong."""
    maker = Maker(dtype, "cuda")
    seconds, wrong = verify(task, maker)
    arguments = task.build(maker)
    # In a chain a call is to find what the last one wrote where it is.
    num_bytes = sum(argument.nbytes for argument in arguments)
    count = 1 if results == "chained" else num_turns(num_bytes)
    turns = [arguments, *(task.build(maker) for _ in range(count - 1))]
    prepare = {"reused": functools.partial, "kept": keeping, "chained": chaining}[results]
    functions = {
        name: [prepare(function, *arguments) for arguments in turns]
        for name, function in task.contenders.items()
        if name not in wrong
    }
    timer = DoBench() if flush == "do_bench" else Timer(flush)
    times = timer.rounds(functions, rounds)
    peers = [name for name in functions if name != OURS] if OURS in functions else []

    return {
        "task": task.name,
        "size": task.size,
        "dtype": str(dtype),
        "first_call_seconds": seconds,
        "milliseconds": times,
        "ratios": {peer: asdict(ratios(times, OURS, peer)) for peer in peers},
    }, list(wrong.values())


def keeping(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """The function of these arguments, its last result kept until its next one is there.

    Each set of arguments has a function of its own: so many results are alive at a time.
    """
    held: collections.deque[Any] = collections.deque(maxlen=1)
    return lambda: held.append(function(*arguments))


def chaining(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    """The function, its first argument what its last call gave: a kernel reads what one just wrote."""
    first, *others = arguments
    held = collections.deque((first,), maxlen=1)
    return lambda: held.append(function(held[0], *others))


def as_table(results: list[dict[str, Any]]) -> str:
    """The table of the tasks that ran, and the geometric means of the ratios over the ten."""
    names = [
        name for name in (*NAMES, PUBLISHED) if any(name in r["milliseconds"] for r in results)
    ]
    peers = [peer for peer in (*NAMES, PUBLISHED) if any(peer in r["ratios"] for r in results)]
    header = ("task", *names, *(f"ours / {peer}" for peer in peers), "first call", "size")
    rows = []

    for result in results:
        times = {
            name: f"{1000 * Spread.of(values).median:.2f}"
            for name, values in result["milliseconds"].items()
        }
        spreads = {peer: Spread(**spread) for peer, spread in result["ratios"].items()}
        first = result["first_call_seconds"].get(OURS)
        rows.append(
            (
                result["task"],
                *(times.get(name, "–") for name in names),
                *(str(spreads[peer]) if peer in spreads else "–" for peer in peers),
                "–" if first is None else f"{first:.1f} s",
                result["size"],
            )
        )

    means = geometric_means(results)
    rows.append(
        (
            "geometric mean",
            *("" for _ in names),
            *(f"{means[peer]:.3f}" if peer in means else "–" for peer in peers),
            "",
            f"of {sum(is_of_the_ten(result) for result in results)} tasks",
        )
    )

    return table(header, rows)


def is_of_the_ten(result: dict[str, Any]) -> bool:
    """Whether a task is the paper's; rope in place is shown beside it."""
    return bool(result["task"] != "rope_")


def geometric_means(results: list[dict[str, Any]]) -> dict[str, float]:
    """The geometric mean over the paper's tasks of ours over each peer."""
    found: dict[str, list[float]] = {}
    for result in filter(is_of_the_ten, results):
        for peer, spread in result["ratios"].items():
            found.setdefault(peer, []).append(spread["median"])
    return {peer: statistics.geometric_mean(values) for peer, values in found.items()}


def found(most: int = 10) -> dict[str, dict[str, Any]]:
    """What our tuner chose, and the milliseconds of the fastest that it measured."""
    from ninetoothed.tuning import results as tuned

    return {
        f"{entry.subject.kernel}: {entry.subject.arguments}": {
            "chosen": str(entry.best()),
            "milliseconds": {
                str(config): round(entry.times[config], 5)
                for config in sorted(entry.times, key=entry.times.__getitem__)[:most]
            },
        }
        for entry in tuned.entries().values()
    }


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "python -m benchmarks.tasks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--tasks", default=",".join(BY_NAME), help="names, separated by commas")
    made.add_argument("--contenders", default=",".join(NAMES), help="names, separated by commas")
    made.add_argument(
        "--published", type=Path, help="the folder where the published package is installed"
    )
    made.add_argument("--rounds", type=int, default=7, help="rounds of each contender")
    made.add_argument("--effort", default="quick", help="of our tuner; none: the first choice")
    made.add_argument("--dtype", default="float16", choices=("float16", "bfloat16", "float32"))
    made.add_argument("--flush", default="write", choices=tuple(CACHES), help="of the L2 cache")
    made.add_argument(
        "--results", default="reused", choices=tuple(RESULTS_ARE), help="what becomes of them"
    )
    made.add_argument("--configs", type=Path, help="results whose configurations are used again")
    made.add_argument("--processes", type=int, default=os.cpu_count(), help="that compile")
    made.add_argument("--figure", action="store_true", help="draw the ratios too (matplotlib)")
    made.add_argument(
        "--marked", action="store_true", help="best Triton may mark results to stay in the cache"
    )
    made.add_argument(
        "--output", type=Path, default=RESULTS / "tasks", help="the folder of the results"
    )
    return made


def chosen_tasks(options: argparse.Namespace, fail: Any) -> list[Task]:
    """The tasks of `--tasks` with the contenders of `--contenders`."""
    names, contenders = options.tasks.split(","), options.contenders.split(",")
    known_contenders = (*NAMES, PUBLISHED)
    for given, known, what in (
        (names, BY_NAME, "task"),
        (contenders, known_contenders, "contender"),
    ):
        if unknown := [name for name in given if name not in known]:
            fail(f"no {what} is called {', '.join(unknown)}; there are {', '.join(known)}")
    return [
        dataclasses.replace(
            task,
            contenders={
                name: function for name, function in task.contenders.items() if name in contenders
            },
        )
        for task in TASKS
        if task.name in names
    ]


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    commands = parser()
    options = commands.parse_args(arguments)
    tasks = chosen_tasks(options, commands.error)
    if options.results == "chained" and not {task.name for task in tasks} <= CHAINED:
        commands.error(f"--results chained is for --tasks {','.join(sorted(CHAINED))}")
    if options.flush == "do_bench" and options.results != "reused":
        commands.error("--flush do_bench has one set of arguments, so that no results take turns")
    if options.configs is not None:
        search.recall(json.loads(options.configs.read_text())["tasks"]["configurations"])
    if options.marked:
        best.mark_results()
    search.start_compilers(options.processes)
    # Hand-written Triton is searched for before it is timed, and so is ours.
    os.environ["NINETOOTHED_TUNE"] = options.effort

    try:
        return _run(tasks, options)
    finally:
        search.stop_compilers()


def _run(tasks: list[Task], options: argparse.Namespace) -> int:
    if not torch.cuda.is_available():
        print("The tasks are timed on a CUDA device, and PyTorch finds none here.")
        return 1

    here = environment()
    print(describe(here), flush=True)
    results, wrong = [], []

    for task in tasks:
        start = time.perf_counter()
        print(f"{task.name} … ", end="", flush=True)
        try:
            result, failures = run(
                task, getattr(torch, options.dtype), options.rounds, options.flush, options.results
            )
        except Exception as error:  # One task's failure is reported and does not hide the others.
            wrong.append(f"{task.name}: {type(error).__name__}: {error}")
            print(f"FAILED: {error}", flush=True)
        else:
            results.append(result)
            wrong += failures
            shown = ", ".join(f"{s['median']:.3f} of {p}" for p, s in result["ratios"].items())
            seconds = ", ".join(f"{s:.1f}" for s in result["first_call_seconds"].values())
            print(f"{time.perf_counter() - start:.0f} s ({seconds}): {shown}", flush=True)
        torch.cuda.empty_cache()

    configurations = {name: asdict(choice) for name, choice in sorted(search.CHOICES.items())}
    data = {"results": results, "failed": wrong, "configurations": configurations}
    if any(OURS in task.contenders for task in tasks):
        # Else this may be the published package's process, which has another package of our name.
        data["ours"] = found()
    if options.published is not None:
        print("the published package … ", end="", flush=True)
        start = time.perf_counter()
        try:
            data["published"] = published.measure(
                options.published,
                (
                    *("--tasks", options.tasks, "--dtype", options.dtype, "--flush", options.flush),
                    *("--rounds", str(options.rounds), "--processes", str(options.processes)),
                    *("--results", options.results),
                ),
            )
        except RuntimeError as error:
            wrong.append(str(error))
        else:
            published.merge(results, data["published"]["results"])
            wrong += data["published"]["failed"]
        print(f"{time.perf_counter() - start:.0f} s", flush=True)

    lines = (
        f"# Ten tasks, {options.dtype}, {CACHES[options.flush]}{RESULTS_ARE[options.results]}",
        "",
        describe(here),
        "",
        f"Medians of {options.rounds} rounds, in microseconds; ratios with their least and "
        f"greatest. The first call is ours, with effort {options.effort}.",
        "",
        as_table(results) if results else "No task ran.",
        *(f"\nFAILED: {line}" for line in wrong),
    )
    text = "\n".join(lines)
    print("\n" + text)
    # What is not the paper's setting does not go by the same name.
    unusual = (
        (options.dtype != "float16", options.dtype),
        (options.flush != "write", options.flush),
        (options.results != "reused", f"results-{options.results}"),
        (options.effort == "none", "untuned"),
        (options.marked, "marked"),
    )
    label = "-".join(("tasks", *(name for is_unusual, name in unusual if is_unusual)))
    written = write("tasks", here, text, data, options.output, label=label)
    if options.figure and results:
        written.append(figure(written[0].with_suffix(".svg"), results))
    for path in written:
        print(f"written: {path}")

    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
