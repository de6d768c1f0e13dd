"""Tables that a reader understands, and files that keep the figures."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.common.spread import Spread

RESULTS = Path(__file__).parents[1] / "results"


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


def grouped_bars(
    axes: Any, heights: Mapping[str, Mapping[int, Spread]], bottom: float = 0.0
) -> None:
    """Bars beside one another at each place, for each name one; the whiskers are the least and greatest."""
    width = 0.8 / len(heights)
    for index, (name, found) in enumerate(heights.items()):
        aside = (index - (len(heights) - 1) / 2) * width
        spreads = found.values()
        axes.bar(
            [place + aside for place in found],
            [spread.median - bottom for spread in spreads],
            width,
            bottom=bottom,
            label=name,
            yerr=[
                [spread.median - spread.least for spread in spreads],
                [spread.greatest - spread.median for spread in spreads],
            ],
            error_kw={"elinewidth": 0.7},
        )


def figure(path: Path, results: Sequence[dict[str, Any]]) -> Path:
    """Draw how many times as fast as each peer ours is, task by task. It needs matplotlib.

    The results are those of `benchmarks.tasks`; the whiskers are the least and greatest of the rounds.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    peers = list(dict.fromkeys(peer for result in results for peer in result["ratios"]))
    drawn = Figure(figsize=(1.0 + len(results), 4.0), layout="constrained")
    axes = drawn.add_subplot()
    speeds: dict[str, dict[int, Spread]] = {}
    for peer in peers:
        speeds[f"over {peer}"] = {
            place: ratio.inverse
            for place, result in enumerate(results)
            if peer in result["ratios"] and (ratio := Spread(**result["ratios"][peer]))
        }
    grouped_bars(axes, speeds, bottom=1.0)  # Bars begin at one: as fast as the peer.
    axes.axhline(1.0, color="black", linewidth=0.5)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xticks(range(len(results)), [result["task"] for result in results])
    axes.set_ylabel("times as fast")
    axes.legend(ncols=len(peers), frameon=False)
    drawn.savefig(path)
    return path


def describe(environment: dict[str, str]) -> str:
    """The machine, the versions and the date in one line."""
    versions = ", ".join(
        f"{key} {value}" for key, value in environment.items() if key not in ("device", "date")
    )
    return f"{environment['device']}, {environment['date']}; {versions}"
