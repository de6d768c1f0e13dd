"""Extrema of what LLVM's simplifier does not end the process at.

Of `max(f(a, b), max(a, b))`, with f one of its own functions of two operands or more (a division, `fma`,
`copysign`), it asks which extremum is the opposite of f, and aborts: seen in the LLVM of Triton 3.6, of
floating point alone. `max(max(f(a, b), a), b)` is the same number. Programs without one are left as they are.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

_OPERATION = re.compile(
    r"^(?P<indent> *)(?P<name>%[\w.$-]+) = (?P<kind>[\w.]+) (?P<left>%[\w.$#-]+), (?P<right>%[\w.$#-]+)"
    r"(?P<rest>.*)"
)
_EXTREMUM = re.compile(r"arith\.(?:max|min)(?:num|imum)f")
_STRING = re.compile(r'"[^"\n]*"')


class _Operation(NamedTuple):
    kind: str
    operands: tuple[str, str]


def regrouped(text: str) -> str:
    """A program in MLIR's text whose extrema of such operands take them one by one."""
    if len(_EXTREMUM.findall(text)) < 2:
        return text
    names = map("%regrouped.{}".format, itertools.count())
    known: dict[str, _Operation] = {}
    # What each region that is open defines: after it another may use its names.
    regions: list[list[str]] = [[]]
    lines = []
    for line in text.split("\n"):
        if found := _OPERATION.match(line):
            made = _Operation(found["kind"], (found["left"], found["right"]))
            if parts := _aborted_at(made, known):
                whole, (first, second) = parts
                indent, rest, partial = found["indent"], found["rest"], next(names)
                lines.append(f"{indent}{partial} = {made.kind} {whole}, {first}{rest}")
                line = f"{indent}{found['name']} = {made.kind} {partial}, {second}{rest}"
            known[found["name"]] = made
            regions[-1].append(found["name"])
        lines.append(line)
        for brace in re.findall("[{}]", _STRING.sub("", line)):
            if brace == "{":
                regions.append([])
            else:
                for name in regions.pop():
                    known.pop(name, None)
    return "\n".join(lines)


def _aborted_at(
    made: _Operation, known: dict[str, _Operation]
) -> tuple[str, tuple[str, str]] | None:
    """Of an extremum of f(a, b) and of that same extremum of a and b: the first, and a and b."""
    if _EXTREMUM.fullmatch(made.kind):
        for one, other in itertools.permutations(made.operands):
            of_one, of_other = known.get(one), known.get(other)
            if of_one and of_other and of_one.kind != made.kind == of_other.kind:
                if {*of_one.operands} == {*of_other.operands}:
                    return one, of_other.operands
    return None
