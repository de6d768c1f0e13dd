"""What each option of the Triton backend gains: the best with it against the best without it.

    python -m benchmarks.option_trials [--options trial] [--tasks add,mm] [--rounds 7]
        [--without tuned,same] [--launches graph] [--seconds 480] [--caches FOLDER]
        [--output FOLDER]

Three settings that a user meets: cold and timed by ``triton.testing.do_bench``; calls in a row, each
with arguments and a result of its own, all of them alive; and a chain, where each call reads what the
last one wrote (`benchmarks.trial_tasks`). A ratio is *without* over *with*, round by round, there and
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
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from benchmarks.measure import DoBench, Timer, environment
from benchmarks.report import RESULTS, describe, table, write
from benchmarks.spread import Spread, ratios
from benchmarks.trial_tasks import BY_NAME, TASKS, Call, Data, Kernels, Operation, Task
from ninetoothed.backends import base
from ninetoothed.backends.triton.analysis import full_tiles, program_order
from ninetoothed.backends.triton.backend import TritonBackend
from ninetoothed.backends.triton.options import folded_gather, interleaved_pairs, tma_pipeline
from ninetoothed.backends.triton.planning.choices import defaults
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.specialization import divisors, magic_division, size_ratios
from ninetoothed.backends.triton.translation import specialize
from ninetoothed.kernels.definition import Definition
from ninetoothed.tuning.space import Config
from tests.examples.maker import Maker

#: The settings, in the order of the tables, and what they are called there.
SETTINGS = {"do_bench": "cold, do_bench", "row": "in a row, kept", "chain": "chain"}

#: How *without* is come by.
WAYS = ("tuned", "same")

#: What an option must gain to stay, and may lose nowhere.
GAIN, LOSS = 1.01, 0.99

#: Steps that are no options: the module and the name of what decides, and what decides otherwise.
STEPS: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "one_loop": (tma_pipeline, "is_one_loop", lambda kernel, environment: False),
    "by_inverses": (program_order, "are_inverses_exact", lambda grid: False),
    "full_tile_versioning": (full_tiles, "conditions", lambda *_: frozenset()),
    "interleaved_pairs": (interleaved_pairs, "run", lambda program, accesses, facts: program),
    "folded_gather": (folded_gather, "folds", lambda *_: frozenset()),
    "magic_division": (magic_division, "bounded", lambda *_: iter(())),
    "size_ratios": (size_ratios, "known", lambda *_: iter(())),
    # What Triton asks of its own accord.
    "divisors": (divisors, "divisor", lambda number: 1 if number % divisors.MOST else 16),
}

#: What cannot be without an option.
_DEPENDENTS = {
    "descriptors": ("persistent", "tma_pipeline"),
    "split_k": ("cooperative_reduction",),
}


@dataclass(frozen=True)
class Trial:
    """Something that is switched off.

    Attributes:
        name: as ``--options`` takes it.
        option: the option that is fixed; none for a step.
        value: what it is fixed at.
        step: the step that is left out.
    """

    name: str
    option: str = ""
    value: int = 0
    step: str = ""

    @property
    def fixed(self) -> str:
        """What *without* has fixed."""
        return f"{self.option}={self.value}" if self.option else ""

    def switched_off(self) -> contextlib.AbstractContextManager[Any]:
        """Within, kernels are emitted without the step."""
        return mock.patch.object(*STEPS[self.step]) if self.step else contextlib.nullcontext()

    def without(self, config: Config) -> Config:
        """The configuration but for the option and what needs it."""
        if not self.option:
            return config
        gone = {self.option, *_DEPENDENTS.get(self.option, ())}
        kept = [(name, value) for name, value in config.options if name not in gone]
        if self.value != defaults()[self.option]:
            kept.append((self.option, self.value))
        return replace(config, options=tuple(kept))


def _trials() -> dict[str, Trial]:
    # All options are off by default but for one.
    off = defaults()
    off["eviction_policy"] = 0
    found = [Trial(name, option=name, value=value) for name, value in off.items()]
    found += [Trial(name, step=name) for name in STEPS]
    return {trial.name: trial for trial in found}


TRIALS = _trials()

#: Names of several trials.
GROUPS: dict[str, tuple[str, ...]] = {
    "trial": ("cooperative_reduction", "one_loop", "by_inverses"),
}
GROUPS["steps"] = tuple(name for name in STEPS if name not in GROUPS["trial"])
GROUPS["others"] = tuple(
    name for name in TRIALS if name not in (*GROUPS["trial"], *GROUPS["steps"])
)


# Contenders.


@dataclass(frozen=True)
class Planned:
    """What one kernel's plan was made of."""

    kernel: Definition
    call: base.Call
    config: Config


class Watch:
    """Every plan that is made, in order."""

    def __init__(self) -> None:
        self.plans: list[Planned] = []

    @contextlib.contextmanager
    def begun(self) -> Iterator[Watch]:
        """Within, plans are noted."""
        original = TritonBackend.plan

        def plan(
            backend: Any, kernel: Definition, call: base.Call, values: Any = None
        ) -> base.Plan:
            made = original(backend, kernel, call, values)
            self.plans.append(Planned(kernel, call, made.details["config"]))
            return made

        with mock.patch.object(TritonBackend, "plan", plan):
            yield self


@dataclass
class Contender:
    """The kernels of a task, tuned with something fixed.

    Attributes:
        label: what is fixed, and how it was come by.
        plans: of each operation the one that serves it.
        calls: what is timed in each setting.
        values: each operation's result.
    """

    label: str
    plans: list[Planned]
    calls: dict[str, list[Call]]
    values: list[torch.Tensor] = field(repr=False, default_factory=list)

    def configs(self) -> dict[str, str]:
        """What was chosen, by kernel."""
        return {
            f"{place}: {plan.kernel.name}": str(plan.config)
            for place, plan in enumerate(self.plans)
        }


class Workshop:
    """Makes a task's contenders.

    Args:
        task, data: what they contend in.
        root: the folder of the caches.
        watch: what has noted all plans.
    """

    def __init__(self, task: Task, data: Data, root: Path, watch: Watch) -> None:
        self._task = task
        self._data = data
        self._root = root
        self._watch = watch
        self._made: dict[str, Contender | None] = {}

    @property
    def made(self) -> dict[str, Contender]:
        """The contenders, by label."""
        return {label: each for label, each in self._made.items() if each is not None}

    def baseline(self) -> Contender:
        """*With*: tuned, and nothing off."""
        found = self._once("with", Trial(""), "")
        assert found is not None
        return found

    def without(self, trial: Trial, way: str) -> Contender | None:
        """*Without*; None where the same configuration cannot be."""
        if way == "tuned":
            return self._once(trial.fixed or f"no {trial.step}", trial, trial.fixed)
        base_ = self.baseline()
        return self._once(f"{trial.name} off, same", trial, trial.fixed, base_.plans)

    def is_taken(self, trial: Trial) -> bool:
        """Whether *with* has what is tried."""
        base_ = self.baseline()
        pairs = zip(self._task.operations, base_.plans, strict=True)
        return any(_is_taken(trial, operation, plan) for operation, plan in pairs)

    def _once(
        self, label: str, trial: Trial, fixed: str, like: Sequence[Planned] | None = None
    ) -> Contender | None:
        if label not in self._made:
            folder = "".join(each if each.isalnum() else "_" for each in label)
            variables = {
                "NINETOOTHED_OPTIONS": fixed,
                "NINETOOTHED_CACHE_DIR": str(self._root / f"{self._task.name}-{folder}"),
            }
            with mock.patch.dict(os.environ, variables), trial.switched_off():
                self._made[label] = self._new(label, trial, like)
        return self._made[label]

    def _new(self, label: str, trial: Trial, like: Sequence[Planned] | None) -> Contender | None:
        in_peace()
        kernels = Kernels()
        if like is not None and not self._foretold(kernels, trial, like):
            return None
        before = len(self._watch.plans)
        values = self._data.values(kernels)
        calls = self._data.calls(kernels)
        for call in {id(call): call for listed in calls.values() for call in listed}.values():
            call()
        torch.cuda.synchronize()
        plans = self._watch.plans[before:]
        served = [
            next(plan for plan in plans if plan.kernel is kernels.of(operation).definition)
            for operation in self._task.operations
        ]
        if len(plans) != len(served):
            raise RuntimeError(f"{len(plans)} plans for {len(served)} kernels")
        return Contender(label, served, calls, values)

    def _foretold(self, kernels: Kernels, trial: Trial, like: Sequence[Planned]) -> bool:
        """Has a search's result be the same configuration but for the trial; whether it can be."""
        for operation, plan in zip(self._task.operations, like, strict=True):
            planner = Planner(kernels.of(operation).definition, plan.call)
            config = trial.without(plan.config)
            if not planner._applies(config):
                return False
            results = planner._results()
            # Of whatever an earlier run has found, this comes first.
            results.times = {config: 1.0}
            results.finished, results.chosen = "full", config
            results.write()
        return True


def _is_taken(trial: Trial, operation: Operation, plan: Planned) -> bool:
    """Whether one kernel has what is tried."""
    if trial.option and trial.option != "eviction_policy":
        return trial.option in dict(plan.config.options)
    fresh, config = Kernels().of(operation), plan.config
    if trial.option:
        config = replace(config, options=(*config.options, (trial.option, trial.value)))
    with trial.switched_off():
        changed = specialize(fresh.definition, plan.call, config).key
    return bool(changed != specialize(plan.kernel, plan.call, plan.config).key)


def same_values(contender: Contender, other: Contender) -> bool:
    """Whether two contenders compute the same, but for rounding."""
    pairs = zip(contender.values, other.values, strict=True)
    return all(_error(one, two) < 2**-8 for one, two in pairs)


def _error(one: torch.Tensor, other: torch.Tensor) -> float:
    difference = (one.float() - other.float()).norm() / other.float().norm()
    # What is not a number is no small one.
    return float(difference.nan_to_num(float("inf")))


# Timing.


class Cold(DoBench):
    """`triton.testing.do_bench`, marks in the cache taken back before another contender's turn.

    Who times one kernel alone finds none of another's.
    """

    forget_kept = staticmethod(Timer.forget_kept)


def timers() -> dict[str, Timer]:
    """What times each setting."""
    in_a_row = Timer("none")
    return {"do_bench": Cold(), "row": in_a_row, "chain": in_a_row}


def captured(calls: Sequence[Call]) -> Call:
    """The calls as a CUDA graph: no host is waited for between them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for call in calls:
            call()
    return graph.replay


def in_peace() -> None:
    """Waits for what still compiles after a search is over."""
    for thread in threading.enumerate():
        if thread.name.startswith("ninetoothed-compile"):
            thread.join(30.0)


def timed(
    contenders: Mapping[str, Contender], rounds: int, launches: str
) -> dict[str, dict[str, list[float]]]:
    """The milliseconds of each contender in each round, by setting."""
    in_peace()
    found = {}
    for setting, timer in timers().items():
        functions: dict[str, Sequence[Call]] = {
            label: contender.calls[setting]
            for label, contender in contenders.items()
            if setting in contender.calls
        }
        if setting != "do_bench" and launches == "graph":
            functions = {label: [captured(calls)] for label, calls in functions.items()}
        if functions:
            found[setting] = timer.rounds(functions, rounds)
    return found


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


# Tables.


@dataclass(frozen=True)
class Summary:
    """What the tasks say of one trial together.

    Attributes:
        tasks: how many.
        settings: the geometric mean over the tasks in each setting.
        mean: the geometric mean over the settings.
        worst: the least ratio, and where it was.
    """

    tasks: int
    settings: dict[str, float]
    mean: float
    worst: tuple[float, str]

    @classmethod
    def of(cls, found: Mapping[str, Mapping[str, float]]) -> Summary:
        """The summary of medians by task and setting, one at least."""
        settings = {}
        for setting in SETTINGS:
            if values := [each[setting] for each in found.values() if setting in each]:
                settings[setting] = statistics.geometric_mean(values)
        worst = min(
            (value, f"{task}, {setting}")
            for task, each in found.items()
            for setting, value in each.items()
        )
        return cls(len(found), settings, statistics.geometric_mean(settings.values()), worst)

    @property
    def verdict(self) -> str:
        """Whether it stays."""
        reasons = []
        if self.mean < GAIN:
            reasons.append(f"gains {self.mean - 1:+.1%}")
        if self.worst[0] < LOSS:
            reasons.append(f"{self.worst[1]} {self.worst[0] - 1:+.1%}")
        return f"goes: {'; '.join(reasons)}" if reasons else "stays"


def summaries(results: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], Summary]:
    """Of each trial and each way, where there was one."""
    found: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for result in results:
        for each in result["trials"]:
            medians = {setting: spread["median"] for setting, spread in each["ratios"].items()}
            by_task = found.setdefault((each["trial"], each["without"]), {})
            by_task[result["task"]] = medians
    return {key: Summary.of(by_task) for key, by_task in found.items()}


def as_tables(results: Sequence[Mapping[str, Any]], trials: Sequence[str]) -> str:
    """The verdicts, and what they are made of."""
    found = summaries(results)
    verdicts = [
        (
            f"{name}, {way}",
            str(each.tasks),
            *(
                f"{each.settings[setting]:.3f}" if setting in each.settings else "–"
                for setting in SETTINGS
            ),
            f"{each.mean:.3f}",
            f"{each.worst[0]:.3f} ({each.worst[1]})",
            each.verdict,
        )
        for (name, way), each in sorted(found.items(), key=lambda item: trials.index(item[0][0]))
    ]
    header = ("option, without", "tasks", *SETTINGS.values(), "mean", "worst", "verdict")
    never = [name for name in trials if all(name != key[0] for key in found)]
    return "\n".join(
        (
            table(header, verdicts) if verdicts else "Nothing was tried.",
            *(("", f"Taken in none of these tasks: {', '.join(never)}.") if never else ()),
            "",
            _details(results, trials),
        )
    )


def _details(results: Sequence[Mapping[str, Any]], trials: Sequence[str]) -> str:
    """A line for each trial of each task."""
    rows = []
    for name in trials:
        for result in results:
            for each in (each for each in result["trials"] if each["trial"] == name):
                spreads = {key: Spread(**spread) for key, spread in each["ratios"].items()}
                medians = [spread.median for spread in spreads.values()]
                rows.append(
                    (
                        f"{name}, {each['without']}",
                        f"{result['task']}",
                        *(str(spreads.get(setting, "–")) for setting in SETTINGS),
                        f"{statistics.geometric_mean(medians):.3f}",
                    )
                )
    header = ("option, without", "task", *SETTINGS.values(), "mean")
    return table(header, rows) if rows else ""


def _configs(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What was chosen, in words."""
    for result in results:
        for label, configs in result["configs"].items():
            for kernel, config in configs.items():
                yield f"- {result['task']}, {label}, {kernel}: {config}"


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
    made.add_argument("--output", type=Path, default=RESULTS, help="the folder of the results")
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
    told = "\n".join((text, "", "What was chosen:", "", *_configs(results)))
    write("option-trials", here, told, data, options.output, f"option-trials-{options.label}")
    return text


if __name__ == "__main__":
    sys.exit(main())
