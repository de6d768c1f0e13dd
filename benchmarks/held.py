"""The speed that no change may lose: everything is measured, and each bound is told beside what was found.

    python -m benchmarks.held [--read] [--output FOLDER]

The ten tasks cold, the memory-bound ones in three more settings, 2 GiB, a launch, the first call of mm,
`make` and `import`, by the benchmarks that measure each; on a CUDA device this takes some ten minutes.
``--read`` measures nothing and takes what the folder has. A memory-bound task counts by the geometric mean
of what `do_bench`, calls in a row and calls in a chain give. The bounds are ratios to the other's time where
nothing else is said. The status is 0 where all was measured and holds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.common.fresh import ROOT
from benchmarks.common.report import table
from benchmarks.readme import MEMORY_BOUND, SETTINGS

PRODUCTS = ("addmm", "bmm", "mm")

TASKS = {*PRODUCTS, *MEMORY_BOUND, "conv2d", "sdpa"}

_AGAIN = (
    *("tasks", "--tasks", ",".join(MEMORY_BOUND), "--rounds", "7"),
    *("--configs", "{configurations}", "--flush"),
)

#: What measures, in the order in which it runs; ``{configurations}`` are those of the first.
MEASURED = (
    ("tasks", "--rounds", "7"),
    (*_AGAIN, "do_bench"),
    (*_AGAIN, "none", "--results", "kept"),
    (*_AGAIN, "none", "--results", "chained"),
    ("sweep", "--selection", "large", "--contenders", "ours,PyTorch", "--effort", "none"),
    ("launch",),
    ("tuner.first_call", "--tasks", "mm", "--efforts", "quick", "--rounds", "1"),
    ("host.make_time",),
    ("host.import_time",),
)


class Bound(NamedTuple):
    """What is held, and what was found: None where it was not measured."""

    what: str
    limit: float
    found: float | None
    is_least: bool = False

    @property
    def holds(self) -> bool | None:
        if self.found is None:
            return None
        return self.found >= self.limit if self.is_least else self.found <= self.limit


def bounds(folder: Path) -> Iterator[Bound]:
    """Each bound, by the figures in a folder."""
    yield from _of_tasks(folder)
    sweep = _read(folder, "*-sweep-large-*.json", "sweep")
    medians = {
        of_size["task"]: {name: statistics.median(t) for name, t in of_size["milliseconds"].items()}
        for of_size in (sweep or {}).get("results", ())
    }
    shares = [taken["copy"] / taken["ours"] for taken in medians.values()]
    share = min(shares) if medians.keys() >= {*MEMORY_BOUND} else None
    yield Bound("2 GiB: least share of the copy's bandwidth", 0.97, share, True)
    launch = _read(folder, "*-launch.json", "launch")
    own, other = (
        statistics.median(launch[name]) if launch else None for name in ("ours", "Triton")
    )
    yield Bound("one call of add on the host, µs", 4.5, own)
    yield Bound("the same over `kernel[grid]`", 0.42, own / other if own and other else None)
    first = _read(folder, "*-first-call.json", "first-call")
    for kind, limit in (("cold", 6), ("warm", 0.2)):
        calls = first["mm"]["seconds"]["quick"][kind] if first else []
        # Of the parts of a process's start the third is the call.
        found = statistics.median(call[2] for call in calls) if calls else None
        yield Bound(f"first call of mm, {kind}, s", limit, found)
    made = _read(folder, "*-make.json", "make") or {}
    first_made = [statistics.median(first for first, _ in runs) for runs in made.values()]
    yield Bound("`make` of the slowest example, ms", 20, max(first_made, default=None))
    imported = _read(folder, "*-import.json", "import")
    found = statistics.median(each[0] for each in imported) if imported else None
    yield Bound("`import` beyond NumPy, ms", 5, found)


def _of_tasks(folder: Path) -> Iterator[Bound]:
    """The bounds of the ten tasks."""
    ratios = _ratios(folder)

    def greatest(peer: str, tasks: Sequence[str] = ()) -> float | None:
        found = [of_peers[peer] for task, of_peers in ratios.items() if not tasks or task in tasks]
        return max(found, default=None)

    over_idiomatic = [of_peers["idiomatic"] for of_peers in ratios.values()]
    mean = statistics.geometric_mean(over_idiomatic) if over_idiomatic else None
    yield Bound("idiomatic Triton, each task", 1.0, greatest("idiomatic"))
    yield Bound("idiomatic Triton, geometric mean", 0.8, mean)
    yield Bound("best Triton that we can write, each", 1.03, greatest("best"))
    yield Bound("PyTorch, products", 1.02, greatest("PyTorch", PRODUCTS))
    yield Bound("PyTorch, attention", 1.0, greatest("PyTorch", ("sdpa",)))
    yield Bound("PyTorch, memory-bound", 0.96, greatest("PyTorch", MEMORY_BOUND))


def _ratios(folder: Path) -> dict[str, dict[str, float]]:
    """Ours over each peer, by task: cold, of what is bound by memory the mean of the other settings.

    Nothing where a task was not measured in one of them.
    """
    found: dict[str, list[dict[str, float]]] = {}
    for setting in SETTINGS:
        data = _read(folder, f"*-tasks{setting}.json", "tasks")
        for result in (data or {}).get("results", ()):
            peers = {peer: spread["median"] for peer, spread in result["ratios"].items()}
            found.setdefault(result["task"], []).append(peers)
    found.pop("rope_", None)
    if found.keys() != TASKS or any(len(found[task]) != len(SETTINGS) for task in MEMORY_BOUND):
        return {}
    return {
        task: {
            peer: statistics.geometric_mean(each[peer] for each in settings[1:] or settings)
            for peer in settings[0]
        }
        for task, settings in found.items()
    }


def _read(folder: Path, pattern: str, name: str) -> Any:
    """The last such figures; None where there are none."""
    paths = sorted(folder.glob(pattern))
    return json.loads(paths[-1].read_text())[name] if paths else None


def _measure(folder: Path) -> None:
    """Run all that measures; what fails is told, and is not measured."""
    for module, *arguments in MEASURED:
        known = max(folder.glob("*-tasks.json"), default=None)
        if "{configurations}" in arguments and known is None:
            continue
        given = [argument.format(configurations=known) for argument in arguments]
        command = [sys.executable, "-m", f"benchmarks.{module}", *given, "--output", str(folder)]
        print(f"== {module} {' '.join(given)}", flush=True)
        if status := subprocess.run(command, cwd=ROOT, check=False).returncode:
            print(f"benchmarks.{module} ended with status {status}", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and tell; gives the exit status."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.held",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--read", action="store_true", help="only what the folder has")
    parser.add_argument("--output", type=Path, help="the folder; by default one that is made")
    options = parser.parse_args(arguments)
    folder = (options.output or Path(tempfile.mkdtemp(prefix="held-"))).resolve()
    if not options.read:
        folder.mkdir(parents=True, exist_ok=True)
        _measure(folder)
    found = list(bounds(folder))
    rows = [
        (
            bound.what,
            f"{'≥' if bound.is_least else '≤'} {bound.limit:g}",
            "not measured" if bound.found is None else f"{bound.found:.3f}",
            {True: "holds", False: "DOES NOT HOLD", None: ""}[bound.holds],
        )
        for bound in found
    ]
    print(table(("what is held", "bound", "found", ""), rows))
    print(f"raw: {folder}")
    return 0 if all(bound.holds for bound in found) else 1


if __name__ == "__main__":
    sys.exit(main())
