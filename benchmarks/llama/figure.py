"""Draws the paper's experiment from kept results, beside the first of them; it needs matplotlib and no GPU.

python -m benchmarks.llama.figure RESULTS.json [MORE.json …]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.common.report import grouped_bars
from benchmarks.common.spread import Spread

_PART = "paper, "


def experiments(files: list[Path]) -> dict[str, dict[str, Any]]:
    """What the files have of the experiment, by how many tokens were generated."""
    found: dict[str, dict[str, Any]] = {}
    for file in files:
        for title, entries in json.loads(file.read_text())["model"].items():
            if title.startswith(_PART):
                found.setdefault(title.removeprefix(_PART), {}).update(entries)
    return found


def draw(files: list[Path]) -> Path:
    """Tokens a second of each contender, an SVG file; the whiskers are the least and greatest run."""
    from matplotlib.figure import Figure

    found = experiments(files)
    contenders = list(dict.fromkeys(name for entries in found.values() for name in entries))
    drawn = Figure(figsize=(7.0, 3.6), layout="constrained")
    axes = drawn.add_subplot()
    rates: dict[str, dict[int, Spread]] = {}
    for name in contenders:
        rates[name] = {
            place: Spread.of(entries[name]["tokens_per_second"])
            for place, entries in enumerate(found.values())
            if name in entries
        }
    grouped_bars(axes, rates)
    machine = json.loads(files[0].read_text())["environment"]["device"]
    axes.set_xticks(range(len(found)), list(found))
    axes.set(ylabel="tokens a second", title=machine)
    axes.legend(ncols=3, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.1))
    path = files[0].with_suffix(".svg")
    drawn.savefig(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser("python -m benchmarks.llama.figure", description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="of `python -m benchmarks.llama`")
    print(draw(parser.parse_args().results))
