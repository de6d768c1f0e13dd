"""Negated integers as NVIDIA's assembler keeps them.

`ptxas` of CUDA 12.8 and of 12.9 loses the minus, seen in what it makes and on an H100 and an H200:

- Of the greatest of `a`, `-b` and `c` as signed integers of up to 32 bits it makes one instruction of three
  operands from sm_90 on, and takes `b` (`max(max(a, -b), c)`).
- Of the absolute value of a constant that only it finds, since lanes exchange it, it takes the constant.

What is negated as `~b + 1` stays so.
"""

from __future__ import annotations

import re

_NEGATION = re.compile(
    r"^(?P<indent>[ \t]*)(?:neg\.s(?:16|32)\s+(?P<to>%\w+),|sub\.s(?:16|32)\s+(?P<less>%\w+), 0,)\s*"
    r"(?P<of>%\w+);",
    re.M,
)
_ABSOLUTE = re.compile(r"^(?P<indent>[ \t]*)abs\.s(?:16|32)\s+(?P<to>%\w+),\s*(?P<of>%\w+);", re.M)
_WIDTH = re.compile(r"\.s(16|32)")
_EXTREMUM = re.compile(r"\b(?:max|min)\.s(?:16|32)\b")


def spelled_out(text: str) -> str:
    """A program in PTX whose integers are negated in two steps where it asks for greatest or least ones,
    and absolute values by such a step where lanes exchange values."""
    if _EXTREMUM.search(text):
        text = _NEGATION.sub(_in_steps, text)
    if "shfl" in text:
        text = _ABSOLUTE.sub(_in_steps, text)
    return text


def _in_steps(found: re.Match[str]) -> str:
    width, of = _WIDTH.findall(found[0])[0], found["of"]
    to = found["to"] or found["less"]
    lines = [f"not.b{width} \t{to}, {of};", f"add.s{width} \t{to}, {to}, 1;"]
    if found.re is _ABSOLUTE:
        lines.append(f"max.s{width} \t{to}, {to}, {of};")
    return "\n".join(f"{found['indent']}{line}" for line in lines)
