"""Puts the ratios of a run of `benchmarks.tasks` into the README's table.

    python -m benchmarks.readme [RESULTS.json]

By default the last results in `benchmarks/results/tasks` are taken.
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

_TABLE = re.compile(r"\| task \| ours / .*\n(?:\|.*\n)+")


def last_results(folder: Path = RESULTS / "tasks") -> Path:
    """The last results of the ten tasks on an H200."""
    return max(folder.glob("*-nvidia-h200-tasks.json"))


def as_table(results: Sequence[dict[str, Any]]) -> str:
    """Ours over each peer, task by task, and the geometric means."""
    ten = [result for result in results if result["task"] != "rope_"]
    peers = list(dict.fromkeys(peer for result in ten for peer in result["ratios"]))
    lines = [
        ("task", *(f"ours / {peer}" for peer in peers)),
        ("---", *("---" for _ in peers)),
    ]
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


if __name__ == "__main__":
    main()
