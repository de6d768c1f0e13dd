"""What each option of the Triton backend gains: the best with it against the best without it.

    python -m benchmarks.option_trials [--options trial] [--tasks add,mm] [--rounds 7]
        [--without tuned,same] [--launches graph] [--seconds 480] [--caches FOLDER]
        [--output FOLDER]

Three settings that a user meets: cold and timed by ``triton.testing.do_bench``; calls in a row, each
with arguments and a result of its own, all of them alive; and a chain, where each call reads what the
last one wrote (`benchmarks.option_trials.tasks`). A ratio is *without* over *with*, round by round, there and
back in each: above 1 the option gains. *Without* is either ``tuned`` anew, with the option fixed off
and all else free, or has the ``same`` configuration but for the option and what needs it.

An option is tried where the tuner, left alone, takes it; a step of emission that is no option where
it changes what is emitted. An option stays if it gains at least 1% in the geometric mean over the
three settings, and loses over 1% in no setting of any task. ``--options`` takes names of options and
steps, and of groups of them: ``trial``, ``others``, ``steps``. Results are written after each task.
With ``--caches`` a later run finds what was tuned and compiled.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, describe, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.option_trials.contenders import Watch, Workshop, same_values
from benchmarks.option_trials.tables import as_tables, configs_in_words
from benchmarks.option_trials.tasks import BY_NAME, TASKS, Data, Task
from benchmarks.option_trials.timing import timed
from benchmarks.option_trials.trials import GROUPS, TRIALS, WAYS, Trial
from tests.examples.maker import Maker


def run(
    task: Task, trials: Sequence[Trial], options: argparse.Namespace, root: Path, watch: Watch
) -> dict[str, Any]:
    """Tunes and times one task's contenders; gives its raw figures."""
    start = time.perf_counter()
    data = Data(task, Maker(torch.float16, "cuda"))
    workshop = Workshop(task, data, root, watch)
    wrong: list[str] = []
    pairs: list[tuple[Trial, str, str, str]] = []
    workshop.baseline()
    taken = [trial for trial in trials if workshop.is_taken(trial)]
    for trial in taken:
        for way in options.without:
            try:
                pair = _pair(workshop, trial, way)
            except Exception as error:  # One contender's failure does not hide the others.
                wrong.append(f"{trial.name}, {way}: {type(error).__name__}: {error}")
            else:
                pairs += [(trial, way, *pair)] if pair else []
    made = {label: workshop.made[label] for pair in pairs for label in pair[2:]}
    tuned, planned = time.perf_counter(), len(watch.plans)
    times = timed(made, options.rounds, options.launches) if made else {}
    if len(watch.plans) > planned:
        wrong.append("a kernel was planned anew while it was timed: its options were not fixed")
    if not data.is_finite():
        wrong.append("the chain ended with what is not finite")
    return {
        "task": task.name,
        "size": task.size,
        "configs": {label: each.configs() for label, each in workshop.made.items()},
        "not taken": [trial.name for trial in trials if trial not in taken],
        "milliseconds": times,
        "trials": [
            {
                "trial": trial.name,
                "without": way,
                "ratios": {
                    setting: asdict(ratios(found, without, with_))
                    for setting, found in times.items()
                },
            }
            for trial, way, with_, without in pairs
        ],
        "wrong": wrong,
        "seconds": {"tuning": tuned - start, "timing": time.perf_counter() - tuned},
    }


def _pair(workshop: Workshop, trial: Trial, way: str) -> tuple[str, str] | None:
    """The labels of *with* and *without*; None where there is no *without*."""
    with_, without = workshop.baseline(), workshop.without(trial, way)
    if without is None:
        return None
    if not same_values(without, with_):
        raise AssertionError(f"{without.label} and {with_.label} do not compute the same")
    return with_.label, without.label


# The command line.


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(
        "python -m benchmarks.option_trials",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--options", default="trial", help="names and groups, with commas")
    made.add_argument("--tasks", default=",".join(BY_NAME), help="names, separated by commas")
    made.add_argument("--rounds", type=int, default=7)
    made.add_argument("--without", default=",".join(WAYS), help="how it is come by")
    made.add_argument("--launches", default="graph", choices=("graph", "stream"))
    made.add_argument("--seconds", type=float, default=480.0, help="no task begins after them")
    made.add_argument("--caches", type=Path, help="a folder to keep them in; else they are dropped")
    made.add_argument("--label", help="of the results; else the options' names")
    made.add_argument(
        "--output", type=Path, default=RESULTS / "options", help="the folder of the results"
    )
    return made


def chosen(given: str, known: Sequence[str], fail: Callable[[str], Any]) -> list[str]:
    """Names, groups taken apart."""
    names = [each for name in given.split(",") for each in GROUPS.get(name, (name,))]
    if unknown := [name for name in names if name not in known]:
        fail(f"{', '.join(unknown)} is none of {', '.join(known)}")
    return list(dict.fromkeys(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write; gives the exit status."""
    commands = parser()
    options = commands.parse_args(arguments)
    options.label = options.label or options.options.replace(",", "-")
    names = chosen(options.options, list(TRIALS), commands.error)
    tasks = chosen(options.tasks, list(BY_NAME), commands.error)
    options.without = chosen(options.without, WAYS, commands.error)
    if not torch.cuda.is_available():
        print("Options are tried on a CUDA device, and PyTorch finds none here.")
        return 1

    with contextlib.ExitStack() as stack:
        root = options.caches or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        # One for all: contenders have most of what is compiled in common.
        variables = {"TRITON_CACHE_DIR": str(root / "triton"), "NINETOOTHED_TUNE_SECONDS": "inf"}
        variables["NINETOOTHED_TUNE"] = "quick"
        stack.enter_context(mock.patch.dict(os.environ, variables))
        watch = stack.enter_context(Watch().begun())
        return _run([task for task in TASKS if task.name in tasks], names, options, root, watch)


def _run(
    tasks: Sequence[Task],
    names: Sequence[str],
    options: argparse.Namespace,
    root: Path,
    watch: Watch,
) -> int:
    here, start = environment(), time.perf_counter()
    print(describe(here), flush=True)
    results: list[dict[str, Any]] = []
    failed: list[str] = []
    for task in tasks:
        if time.perf_counter() - start > options.seconds:
            failed.append(f"{task.name}: no time was left")
            continue
        print(f"{task.name} … ", end="", flush=True)
        try:
            result = run(task, [TRIALS[name] for name in names], options, root, watch)
        except Exception as error:  # One task's failure is reported and does not hide the others.
            failed.append(f"{task.name}: {type(error).__name__}: {error}")
            print(f"FAILED: {failed[-1]}", flush=True)
        else:
            results.append(result)
            failed += [f"{task.name}: {line}" for line in result["wrong"]]
            print(_progress(result), flush=True)
        _write(here, results, failed, names, options)
        torch.cuda.empty_cache()
    print("\n" + _write(here, results, failed, names, options))
    return 1 if failed else 0


def _progress(result: Mapping[str, Any]) -> str:
    """One task in a line or several."""
    seconds = ", ".join(f"{what} {spent:.0f} s" for what, spent in result["seconds"].items())
    lines = [seconds, *(f"FAILED: {line}" for line in result["wrong"])]
    for each in result["trials"]:
        told = (f"{key} {Spread(**spread)}" for key, spread in each["ratios"].items())
        lines.append(f"{each['trial']}, {each['without']}: {', '.join(told)}")
    return "\n  ".join(lines)


def _write(
    here: dict[str, str],
    results: Sequence[dict[str, Any]],
    failed: Sequence[str],
    names: Sequence[str],
    options: argparse.Namespace,
) -> str:
    """Writes what there is so far; gives its text."""
    lines = (
        f"# What options gain, float16, launched by {options.launches}",
        "",
        describe(here),
        "",
        f"Without over with: above 1 the option gains. Medians of {options.rounds} rounds, with the "
        "least and greatest. An option stays if it gains 1% in the mean of the settings and loses "
        "over 1% nowhere.",
        "",
        as_tables(results, names),
        *(f"\nFAILED: {line}" for line in failed),
    )
    text = "\n".join(lines)
    data = {"results": results, "failed": failed, "rounds": options.rounds}
    told = "\n".join((text, "", "What was chosen:", "", *configs_in_words(results)))
    write("option-trials", here, told, data, options.output, f"option-trials-{options.label}")
    return text


if __name__ == "__main__":
    sys.exit(main())
