"""Tables that a reader understands, and files that keep the figures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.spread import Spread

RESULTS = Path(__file__).parent / "results"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns lined up for plain text too: the first left, the others right."""
    widths = [max(2, *map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    return "\n".join((line(header), f"| {' | '.join(rule)} |", *map(line, rows)))


def write(
    name: str,
    environment: dict[str, str],
    text: str,
    data: Any,
    folder: Path = RESULTS,
    label: str | None = None,
) -> list[Path]:
    """Write a table and its raw figures, as `<date>-<machine>-<label>.md` and `.json`.

    In the raw figures the data are under `name`, which is the label too where none is given.
    """
    machine = re.sub(r"[^a-z0-9]+", "-", environment["device"].lower()).strip("-")
    stem = f"{environment['date'][:10]}-{machine}-{label or name}"
    folder.mkdir(parents=True, exist_ok=True)
    raw, readable = folder / f"{stem}.json", folder / f"{stem}.md"
    raw.write_text(json.dumps({"environment": environment, name: data}, indent=1) + "\n")
    readable.write_text(text + "\n")

    return [raw, readable]


def figure(path: Path, results: Sequence[dict[str, Any]]) -> Path:
    """Draw how fast each task's contenders are as bars, PyTorch's speed being 1. It needs matplotlib.

    The results are those of `benchmarks.tasks`; the whiskers are the least and greatest of the rounds.
    """
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for result in results for name in result["milliseconds"]))
    drawn = Figure(figsize=(1.0 + 1.1 * len(results), 4.0), layout="constrained")
    axes = drawn.add_subplot()
    width = 0.8 / len(names)
    for index, name in enumerate(names):
        speeds = [
            Spread.of(speeds_over(result["milliseconds"], name, names[-1])) for result in results
        ]
        axes.bar(
            [place + (index - (len(names) - 1) / 2) * width for place in range(len(results))],
            [speed.median for speed in speeds],
            width,
            label=name,
            yerr=[
                [speed.median - speed.least for speed in speeds],
                [speed.greatest - speed.median for speed in speeds],
            ],
            error_kw={"elinewidth": 0.7},
        )
    axes.axhline(1.0, color="black", linewidth=0.5)
    axes.set_xticks(range(len(results)), [result["task"] for result in results])
    axes.set_ylabel(f"speed, {names[-1]} = 1")
    axes.legend(ncols=len(names), frameon=False)
    drawn.savefig(path)
    return path


def speeds_over(milliseconds: Mapping[str, Sequence[float]], name: str, peer: str) -> list[float]:
    """How many times as fast as the peer one contender was in each round; zero where it failed."""
    if name not in milliseconds or peer not in milliseconds:
        return [0.0]
    return [
        theirs / its for its, theirs in zip(milliseconds[name], milliseconds[peer], strict=True)
    ]


def describe(environment: dict[str, str]) -> str:
    """The machine, the versions and the date in one line."""
    versions = ", ".join(
        f"{key} {value}" for key, value in environment.items() if key not in ("device", "date")
    )
    return f"{environment['device']}, {environment['date']}; {versions}"
