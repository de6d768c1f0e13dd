"""Puts the ratios of a run of `benchmarks.tasks` into the README's table.

    python -m benchmarks.readme [RESULTS.json]

By default the last results in `benchmarks/results/tasks` are taken. Those of the same day in the other
settings become the table of settings in `docs/performance.md`, with their means.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.fresh import ROOT
from benchmarks.common.report import RESULTS

README = ROOT / "README.md"

PERFORMANCE = ROOT / "docs" / "performance.md"

#: The settings that the memory-bound tasks are timed in, by what their results' names end in.
SETTINGS = {
    "": "cold after writing",
    "-do_bench": "timed by `do_bench`",
    "-none-results-kept": "in a row, results kept",
    "-none-results-chained": "in a chain",
}
MEMORY_BOUND = ("add", "silu", "softmax", "rms_norm", "rope")

_SETTINGS_TABLE = re.compile(r"\| \| add \| silu \|.*\n(?:\|.*\n)+")

_TABLE = re.compile(r"\| task \| ours / .*\n(?:\|.*\n)+")


def last_results(folder: Path = RESULTS / "tasks") -> Path:
    """The last results of the ten tasks on an H200."""
    return max(folder.glob("*-nvidia-h200-tasks.json"))


def as_table(results: Sequence[dict[str, Any]]) -> str:
    """Ours over each peer, task by task, and the geometric means."""
    ten = [result for result in results if result["task"] != "rope_"]
    peers = list(dict.fromkeys(peer for result in ten for peer in result["ratios"]))
    lines = [("task", *(f"ours / {peer}" for peer in peers)), ("---", *("---" for _ in peers))]
    for result in ten:
        found = {peer: spread["median"] for peer, spread in result["ratios"].items()}
        cells = (f"{found[peer]:.3f}" if peer in found else "–" for peer in peers)
        lines.append((result["task"], *cells))
    columns = (
        [result["ratios"][peer]["median"] for result in ten if peer in result["ratios"]]
        for peer in peers
    )
    means = (f"{statistics.geometric_mean(column):.3f}" for column in columns)
    lines.append(("geometric mean", *means))

    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def settings_table(results: dict[str, Sequence[dict[str, Any]]]) -> str:
    """The memory-bound tasks over each peer, a row for each setting, and the mean of all but the first.

    Args:
        results: by setting.
    """
    found = {
        setting: {result["task"]: result["ratios"] for result in of_setting}
        for setting, of_setting in results.items()
    }
    peers = list(next(iter(found.values()))["add"])
    rows = {
        setting: [[ratios[task][peer]["median"] for peer in peers] for task in MEMORY_BOUND]
        for setting, ratios in found.items()
    }
    _, *others = rows.values()
    rows["mean of the last three"] = [
        [statistics.geometric_mean(values) for values in zip(*of_task)] for of_task in zip(*others)
    ]
    lines = [["", *MEMORY_BOUND], ["---"] * (1 + len(MEMORY_BOUND))]
    for setting, row in rows.items():
        cells = (", ".join(f"{ratio:.3f}" for ratio in ratios) for ratios in row)
        lines.append([setting, *cells])
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def updated(text: str, results: Sequence[dict[str, Any]]) -> str:
    """The README's text with the table of these results."""
    new, count = _TABLE.subn(lambda _: as_table(results), text)
    if count != 1:
        raise ValueError(f"the README has {count} tables of ratios; it needs one")
    return new


def results_of(path: Path) -> list[dict[str, Any]]:
    """The results in a file that `benchmarks.tasks` wrote."""
    return json.loads(path.read_text())["tasks"]["results"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Rewrite the README."""
    parser = argparse.ArgumentParser("python -m benchmarks.readme", description=__doc__)
    parser.add_argument("results", nargs="?", type=Path, default=None)
    options = parser.parse_args(arguments)
    path = options.results or last_results()
    README.write_text(updated(README.read_text(), results_of(path)))
    print(f"README.md has the table of {path}")
    others = {
        setting: path.with_name(f"{path.stem}{ending}.json") for ending, setting in SETTINGS.items()
    }
    if all(other.exists() for other in others.values()):
        made = settings_table({setting: results_of(other) for setting, other in others.items()})
        PERFORMANCE.write_text(_SETTINGS_TABLE.sub(lambda _: made, PERFORMANCE.read_text()))
        print("docs/performance.md has the table of settings")


if __name__ == "__main__":
    main()
