"""Tables that a reader understands, and files that keep the figures."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, its columns lined up for plain text too: the first left, the others right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join(padded)} |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]

    return "\n".join((line(header), f"| {' | '.join(rule)} |", *map(line, rows)))


def write(
    name: str, environment: dict[str, str], text: str, data: Any, folder: Path = RESULTS
) -> list[Path]:
    """Write a table and its raw figures, as `<date>-<machine>-<name>.md` and `.json`."""
    machine = re.sub(r"[^a-z0-9]+", "-", environment["device"].lower()).strip("-")
    stem = f"{environment['date'][:10]}-{machine}-{name}"
    folder.mkdir(parents=True, exist_ok=True)
    raw, readable = folder / f"{stem}.json", folder / f"{stem}.md"
    raw.write_text(json.dumps({"environment": environment, name: data}, indent=1) + "\n")
    readable.write_text(text + "\n")

    return [raw, readable]


def describe(environment: dict[str, str]) -> str:
    """The machine, the versions and the date in one line."""
    versions = ", ".join(
        f"{key} {value}" for key, value in environment.items() if key not in ("device", "date")
    )
    return f"{environment['device']}, {environment['date']}; {versions}"
