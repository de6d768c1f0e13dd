"""What a call takes that searches for nothing, beside what it took before or what is ranked next.

    python -m benchmarks.tuner.choices --beside COMMIT --list FILE  # whose first choice is another, on any machine
    python -m benchmarks.tuner.choices --of FILE                # those calls, timed: now over then
    python -m benchmarks.tuner.choices --selection llama --count 12  # the first over the best of so many

The calls are those of `benchmarks.sweep`: ``--tasks``, ``--match`` and ``--selection`` take some of them. All that is
timed of a call is compared with PyTorch's result, then timed in turns with it, cold after writing and in a row.
Whoever changes the estimate begins with the first two.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import fresh
from benchmarks.common.measure import Timer, environment, num_turns
from benchmarks.common.report import RESULTS, describe, table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.launch import checked_out
from benchmarks.peers.contenders import BY_NAME, OURS, TORCH
from benchmarks.sweep import POINTS, SELECTIONS, Point, selected
from benchmarks.tuner.rankings import of_each_kind
from ninetoothed import plugins
from ninetoothed.backends.base import Call, Device, Plan
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.planning.space import space_of
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.definition import Definition
from ninetoothed.tuning.space import Config, Space
from tests.examples.maker import Maker
from tests.tuning.machines import H200

#: What another checkout's estimate has first for some points, by their names.
_OTHERS = """
import json, sys
sys.path.insert(0, sys.argv[1])
from benchmarks.tuner.choices import firsts_of
print(json.dumps(firsts_of(json.loads(sys.argv[2]))))
"""

#: Of so many that are ranked first the best few are timed in turns, after a look at each.
_LOOK, _FEW = 8.0, 2

#: How far a result's norm may be from that of PyTorch's, in the type's own steps.
_STEPS = 4


#: The calls that ran nothing: kernels remember the plans that list them here.
_SEEN: list[tuple[Definition, Call, tuple[Any, ...]]] = []


class Empty(Maker):
    """Makes tensors of which nothing is read: their memory is never touched."""

    def __init__(self) -> None:
        super().__init__(torch.float16)

    def _random(self, *shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=self.dtype)


@contextmanager
def watched(kind: str) -> Iterator[list[tuple[Definition, Call, tuple[Any, ...]]]]:
    """Within, a call on this kind of device runs nothing: its kernel, what it is and its values are listed."""
    backend = plugins.backend_for(kind)

    def plan(definition: Definition, call: Call, values: Any) -> Plan:
        return Plan(lambda *given: _SEEN.append((definition, call, given)))

    _SEEN.clear()
    backend.plan = plan  # type: ignore[method-assign]
    try:
        yield _SEEN
    finally:
        del backend.plan


def name_of(point: Point) -> str:
    """A point's name in tables, and in another process."""
    return f"{point.task} {point.size}"


def space_for(point: Point) -> Space:
    """What an H200 may choose from for a point, whatever this machine is."""
    with watched("cpu") as seen:
        BY_NAME[point.task].contenders[OURS](*point.build(Empty()), **point.options)
    [(definition, call, _)] = seen
    planner = Planner(definition, replace(call, device=Device("cuda")))
    return space_of(definition, planner._decisive, H200)


def firsts_of(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """The first choice for some points, as plain data."""
    points = {name_of(point): point for point in POINTS}
    return {name: asdict(space_for(points[name]).first) for name in names}


def config_of(plain: dict[str, Any]) -> Config:
    """A configuration that was plain data."""
    pairs = {name: tuple(map(tuple, plain[name])) for name in ("values", "options")}
    return Config(**{**plain, **pairs})


def contenders_of(points: Sequence[Point], beside: str | None, count: int) -> dict[str, Any]:
    """The configurations to time, by point and by what they are; only those points that have several."""
    firsts = {name: config_of(each) for name, each in firsts_of([*map(name_of, points)]).items()}
    if beside is None:
        spaces = {name_of(point): space_for(point) for point in points}
        ranked = {name: of_each_kind(space, count) for name, space in spaces.items()}
        return {
            name: {"first": first, "ranked": [each for each in ranked[name] if each != first]}
            for name, first in firsts.items()
        }
    with tempfile.TemporaryDirectory() as folder:
        place = beside if Path(beside).is_dir() else checked_out(beside, folder)
        others = fresh.figures(_OTHERS, place, json.dumps(list(firsts)))
    then = {name: config_of(each) for name, each in others.items()}
    return {
        name: {"first": first, "before": then[name]}
        for name, first in firsts.items()
        if first != then[name]
    }


def timed(point: Point, contenders: dict[str, Any], rounds: int) -> dict[str, Any]:
    """The milliseconds of each contender, in both settings, and what it was."""
    task, maker = BY_NAME[point.task], Maker(torch.float16, "cuda")
    ours = functools.partial(task.contenders[OURS], **point.options)
    theirs = functools.partial(task.contenders[TORCH], **point.options)
    arguments = point.build(maker)
    sets = [arguments]
    for _ in range(num_turns(sum(each.nbytes for each in arguments)) - 1):
        sets.append(point.build(maker))
    with watched("cuda") as seen:
        results = [ours(*each) for each in sets]
    definition, call, values = seen[0]
    planner = Planner(definition, call)
    configs = {name: each for name, each in contenders.items() if isinstance(each, Config)}
    configs |= {f"{place}": config for place, config in enumerate(contenders.get("ranked", ()))}

    def compiled(config: Config) -> Any:
        try:
            return planner._candidate(config).run
        except NineToothedError:
            return None

    with ThreadPoolExecutor() as compilers:
        found = dict(zip(configs, compilers.map(compiled, configs.values()), strict=True))
    runs = {name: run for name, run in found.items() if run is not None}
    reference, wrong = theirs(*arguments), []
    for name, run in list(runs.items()):
        results[0].fill_(torch.nan)
        run(*values)
        error = float((results[0] - reference).float().norm() / reference.float().norm())
        if not error <= _STEPS * torch.finfo(reference.dtype).eps:
            wrong.append(f"{name}: {configs[name]}: relative error {error:.3g}")
            del runs[name]
    if "ranked" in contenders:
        with planner._benchmark(values).begun() as benchmark:
            looks = {name: benchmark.measure(run, _LOOK) for name, run in runs.items()}
        best = sorted(looks, key=looks.__getitem__)[:_FEW]
        runs = {name: run for name, run in runs.items() if name in (*best, "first")}
    turns: dict[str, list[Callable[[], object]]] = {
        name: [functools.partial(run, *given) for _, _, given in seen] for name, run in runs.items()
    }
    turns[TORCH] = [functools.partial(theirs, *each) for each in sets]
    settings = {"cold": Timer(), "in a row": Timer("none")}
    return {
        "point": name_of(point),
        "configs": {name: str(configs[name]) for name in runs},
        "milliseconds": {name: t.rounds(turns, rounds, 12.0) for name, t in settings.items()},
        "wrong": wrong,
    }


def rows_of(result: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for each configuration, and one for PyTorch."""
    cold, row = result["milliseconds"].values()
    for name in cold:
        shown = [f"{1e3 * Spread.of(times[name]).median:.2f}" for times in (cold, row)]
        over = [f"{ratios(times, 'first', name).median:.3f}" for times in (cold, row)]
        yield result["point"], name, *shown, *over, result["configs"].get(name, "")


_HEADER = ("call", "who", "cold, µs", "in a row", "first over it, cold", "in a row", "what")


def main(arguments: Sequence[str] | None = None) -> int:
    """List or measure, print and write; gives the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.tuner.choices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--tasks", default="mm,addmm,bmm,conv2d,sdpa", help="separated by commas")
    parser.add_argument("--match", default="", help="a regular expression for the sizes")
    parser.add_argument("--selection", default="", help=f"some of {', '.join(SELECTIONS)}")
    parser.add_argument("--beside", metavar="COMMIT", help="or a folder with another checkout")
    parser.add_argument("--count", type=int, default=12, help="kinds of the ranking")
    parser.add_argument(
        "--list", type=Path, metavar="FILE", help="write what differs, time nothing"
    )
    parser.add_argument("--of", type=Path, metavar="FILE", help="that was written so")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=280.0, help="no call begins after them")
    parser.add_argument("--output", type=Path, default=RESULTS / "tuning")
    options = parser.parse_args(arguments)
    selections = options.selection.split(",") if options.selection else []
    points = [
        point
        for point in selected(selections)
        if point.task in options.tasks.split(",") and re.search(options.match, point.size)
    ]
    start = time.perf_counter()
    if options.of:
        listed = json.loads(options.of.read_text())
        wanted = {
            name: {who: config_of(c) for who, c in each.items()} for name, each in listed.items()
        }
    else:
        wanted = contenders_of(points, options.beside, options.count)
    print(f"{len(wanted)} of {len(points)} calls")
    if options.list:
        for name, configs in wanted.items():
            print(name, *(f"  {who:6} {config}" for who, config in configs.items()), sep="\n")
        options.list.write_text(json.dumps(wanted, default=asdict, indent=1) + "\n")
        return 0
    if not torch.cuda.is_available():
        print("Choices are timed on a CUDA device, and PyTorch finds none here.")
        return 1

    results, left = [], []
    os.environ["NINETOOTHED_CACHE_DIR"] = tempfile.mkdtemp(prefix="choices-")
    for point in points:
        if name_of(point) not in wanted:
            continue
        if time.perf_counter() - start > options.seconds:
            left.append(name_of(point))
            continue
        results.append(timed(point, wanted[name_of(point)], options.rounds))
        print(table(_HEADER, list(rows_of(results[-1]))), flush=True)
        torch.cuda.empty_cache()
    here = environment()
    wrong = [f"{each['point']}, {line}" for each in results for line in each["wrong"]]
    kind = "beside" if options.beside or options.of else "ranked"
    what = (
        "beside another estimate's" if kind == "beside" else f"over {options.count} of the ranking"
    )
    lines = (
        f"# First choices {what}: {len(wanted)} of {len(points)} calls",
        "",
        describe(here),
        "",
        f"Medians of {options.rounds} rounds.",
        "",
        table(_HEADER, [row for result in results for row in rows_of(result)]),
        *(f"\nFAILED: {line}" for line in wrong),
        *((f"\nNo time was left for: {'; '.join(left)}",) if left else ()),
    )
    data = {"results": results, "left": left}
    write("choices", here, "\n".join(lines), data, options.output, f"choices-{kind}")

    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
