"""Texts beside each other on a terminal, each in a column of its own."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Sequence

GAP = " │ "
#: A column narrower than this breaks every other line of code; the texts then stand in a row below
#: each other.
NARROWEST = 44


def wrapped(text: str, width: int) -> list[str]:
    """The lines of ``text``, those longer than ``width`` continued below, deeper than they began."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 8)
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=indent if len(indent) < width // 2 else "",
            drop_whitespace=True,
            replace_whitespace=False,
            break_on_hyphens=False,
        ) or [""]
    return lines


def column(parts: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Titled texts below each other, each title underlined, as lines of at most ``width``."""
    lines: list[str] = []
    for title, text in parts:
        if lines:
            lines.append("")
        lines += [title[:width], "─" * width, *wrapped(text, width)]
    return lines


def side_by_side(columns: Sequence[Sequence[tuple[str, str]]], width: int) -> str:
    """Columns of titled texts, beside each other if each gets at least `NARROWEST` characters.

    Args:
        columns: for each column its parts, as (title, text).
        width: of the terminal, in characters.
    """
    each = (width - len(GAP) * (len(columns) - 1)) // len(columns)
    if each < NARROWEST:
        return "\n".join(column(list(itertools.chain(*columns)), width))
    rows = itertools.zip_longest(*(column(parts, each) for parts in columns), fillvalue="")
    return "\n".join(GAP.join(f"{cell:<{each}}" for cell in row).rstrip() for row in rows)
