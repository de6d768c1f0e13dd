"""Negated integers as NVIDIA's assembler keeps them.

Of the greatest of `a`, `-b` and `c` as signed integers of up to 32 bits it makes one instruction of three
operands from sm_90 on, and loses the minus: `ptxas` of CUDA 12.8 and of 12.9, seen in what they make of
`max(max(a, -b), c)`, and on an H100. What is negated as `~b + 1` stays so.
"""

from __future__ import annotations

import re

_NEGATION = re.compile(
    r"^(?P<indent>[ \t]*)(?:neg\.s(?:16|32)\s+(?P<to>%\w+),|sub\.s(?:16|32)\s+(?P<less>%\w+), 0,)\s*"
    r"(?P<of>%\w+);",
    re.M,
)
_WIDTH = re.compile(r"\.s(16|32)")
_EXTREMUM = re.compile(r"\b(?:max|min)\.s(?:16|32)\b")


def spelled_out(text: str) -> str:
    """A program in PTX whose integers are negated in two steps where it asks for greatest or least ones."""
    return _NEGATION.sub(_in_two_steps, text) if _EXTREMUM.search(text) else text


def _in_two_steps(found: re.Match[str]) -> str:
    width, to = _WIDTH.findall(found[0])[0], found["to"] or found["less"]
    lines = (f"not.b{width} \t{to}, {found['of']};", f"add.s{width} \t{to}, {to}, 1;")
    return "\n".join(f"{found['indent']}{line}" for line in lines)
