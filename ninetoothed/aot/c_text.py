"""Pieces of C text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from ninetoothed.kernels.ahead import TensorMap

_WIDTH = 100


def quoted(text: str) -> str:
    """A string of C."""
    return json.dumps(text)


def or_return(call: str, indent: str = "  ") -> Iterator[str]:
    yield f"{indent}if ((result = {call})) return result;"


def statement(start: str, tests: Sequence[str]) -> Iterator[str]:
    """An assignment of a conjunction, a line for each part."""
    for place, test in enumerate(tests):
        begin = start if place == 0 else " " * 6 + "&& "
        end = ";" if place == len(tests) - 1 else ""
        yield f"{begin}{test}{end}"


def filled(items: Iterable[str], indent: str) -> Iterator[str]:
    line = indent
    for item in items:
        if len(line) + len(item) > _WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += f"{item}, "
    yield line.rstrip()


def tensor_map(map_: TensorMap) -> str:
    extents = ", ".join(map(str, map_.extents))
    numbers = f"{map_.dtype}, {map_.itemsize}, {map_.swizzle}, {len(map_.extents)}"
    return f"    {{{numbers}, {{{extents}}}}},"


def byte_array(data: bytes) -> Iterator[str]:
    """An array's content: numbers, and a last zero for what is text."""
    yield "    {"
    for start in range(0, len(data), 32):
        yield "".join(f"{byte}," for byte in data[start : start + 32])
    yield "0};"
