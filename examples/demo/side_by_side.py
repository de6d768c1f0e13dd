"""Texts beside each other on a terminal, each in a column of its own."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

GAP = " │ "
#: A column narrower than this breaks every other line of code; the texts then stand in a row below
#: each other.
NARROWEST = 44


def break_at(line: str, begin: int, width: int) -> int:
    """Where to break a line after its indentation: at a space, else after a bracket, else anywhere."""
    for signs in (" ", "([{,"):
        place = max(line.rfind(sign, begin + 1, width) for sign in signs) + 1
        if place > begin + 1:
            return place
    return width


def wrapped(text: str, width: int) -> list[str]:
    """The lines of ``text``, those longer than ``width`` continued below, deeper than they began."""
    lines: list[str] = []
    for line in text.splitlines():
        begin = len(line) - len(line.lstrip())
        deeper = begin + 8 if begin + 8 < width // 2 else 0
        while len(line) > width:
            place = break_at(line, begin, width)
            lines.append(line[:place].rstrip())
            line, begin = " " * deeper + line[place:].lstrip(), deeper
        lines.append(line)
    return lines


def column(parts: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Titled texts below each other, each title underlined, as lines of at most ``width``."""
    lines: list[str] = []
    for title, text in parts:
        if lines:
            lines.append("")
        lines += [title[:width], "─" * width, *wrapped(text, width)]
    return lines


def widths_of(columns: Sequence[Sequence[tuple[str, str]]], width: int) -> list[int]:
    """How wide each column is: what its longest line needs where that is less than a fair share."""
    widths = [0] * len(columns)
    needs = [
        max(len(line) for part in parts for text in part for line in text.splitlines())
        for parts in columns
    ]
    left = width - len(GAP) * (len(columns) - 1)
    for served, index in enumerate(sorted(range(len(columns)), key=needs.__getitem__)):
        widths[index] = min(needs[index], left // (len(columns) - served))
        left -= widths[index]
    return widths


def side_by_side(columns: Sequence[Sequence[tuple[str, str]]], width: int) -> str:
    """Columns of titled texts, beside each other if each gets what it needs or `NARROWEST` characters.

    Args:
        columns: for each column its parts, as (title, text).
        width: of the terminal, in characters.
    """
    if width < len(columns) * (NARROWEST + len(GAP)):
        return "\n".join(column(list(itertools.chain(*columns)), width))
    widths = widths_of(columns, width)
    texts = (column(parts, each) for parts, each in zip(columns, widths, strict=True))
    rows = itertools.zip_longest(*texts, fillvalue="")
    return "\n".join(
        GAP.join(f"{cell:<{each}}" for cell, each in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
