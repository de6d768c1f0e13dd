"""Applications made at random, as the text of a module: expressions over padded tiles.

What is tried: which lanes are padding, through element-wise operations, reductions along either
dimension, scans, loops, branches of both kinds, values stored and read back.
"""

from __future__ import annotations

import random
import re

HEADER = '''\
"""Made by tests.agreement.random_applications."""

import ninetoothed.language as ntl


def shifted(a, b):
    return a + b + 0.5


def product(a, b):
    return a * b


def larger(a, b):
    return ntl.maximum(a, b)
'''

#: Expressions of a tile's shape or of one that broadcasts to it; T stands for a tile, E for any.
FORMS = (
    *("(E + E)", "(E - E)", "(E * E)", "ntl.exp(-ntl.abs(T))", "ntl.where(T > E, E, E)"),
    *("ntl.maximum(T, E)", "ntl.sum(T, axis=1)[:, None]", "ntl.max(T, axis=0)[None, :]"),
    *("ntl.min(T, 1, keep_dims=True)", "ntl.sum(T)", "ntl.max(ntl.trans(T), axis=0)[:, None]"),
    *("ntl.cumsum(T, axis=0)", "ntl.cumsum(T, axis=1)", "ntl.max(ntl.min(T, axis=1))"),
    *("ntl.min(ntl.sum(T, axis=0))", "ntl.reduce(T, 1, shifted, keep_dims=True)"),
    *("ntl.reduce(T, 0, product, keep_dims=True)", "ntl.reduce(T, 0, larger)[None, :]"),
    *("ntl.flip(T)", "ntl.flip(T, 0)", "ntl.sort(T)", "ntl.max(ntl.ravel(T))"),
    *("ntl.sum(ntl.join(T, T))", "ntl.min(ntl.interleave(T, T), axis=1)[:, None]"),
    *("(T if n > 1 else E)", "ntl.sum(ntl.zeros_like(T) + E)", "(E // 2)", "(E % 1.5)"),
    *("ntl.where(T > 0 and T < E, E, E)", "ntl.where(not T > 0, E, E)", "((T > E) + (T > 0))"),
    *("ntl.max(ntl.full((3,), 2, ntl.float32))", "ntl.sum(ntl.full(x.shape, 0.5, ntl.float32))"),
)

TILES = ("(x + E)", "(z + E)", "(x * E)", "x", "z", "full")

LEAVES = ("x", "z", "full", "1.5", "0.0", "2")

CONDITIONS = ("n > 1", "n > 7", "FLAG", "not FLAG", "x.dtype is ntl.float32")

#: Statements; V stands for a variable that has a value, N for one that may not have.
STATEMENTS = (
    *("N = T", "N = T", "N = T", "y = E", "z = E", "V += E"),
    "for k in range(n):\n    V = V * 0.5 + T",
    "for k in range(n):\n    V += E",
    "for k in range(n):\n    V = ntl.maximum(V, T)",
    "for k in range(n):\n    if k > 0:\n        V = V + T",
    "N = ntl.zeros(x.shape, ntl.float32)",
    "if C:\n    V = T",
)


class Maker:
    """Makes applications, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def module(self, count: int) -> str:
        """A module with ``count`` applications, called ``application_0`` and so on."""
        applications = (
            f"\n\ndef application_{number}(x, z, full, n, FLAG, y):\n{self._body()}\n"
            for number in range(count)
        )
        return HEADER + "".join(applications)

    def _body(self) -> str:
        lines, variables = [], []
        for _ in range(self._random.randrange(2, 7)):
            statement = self._random.choice(STATEMENTS)
            if "V" in statement and not variables:
                continue
            old = self._random.choice(variables) if variables else ""
            new = f"v{self._random.randrange(4)}"
            lines += self._filled(statement, 2, variables, {"V": old, "N": new}).splitlines()
            if "N" in statement:
                variables.append(new)
        lines.append(self._filled("y = E", 3, [*variables, "y", "z"]))
        return "\n".join(f"    {line}" for line in lines)

    def _filled(
        self, form: str, depth: int, variables: list[str], names: dict[str, str] | None = None
    ) -> str:
        """A form with all its letters replaced."""
        choose = self._random.choice

        def replacement(match: re.Match[str]) -> str:
            letter = match[0]
            if letter == "T":
                return self._filled(choose(TILES), depth - 1, variables)
            if letter == "C":
                return choose(CONDITIONS)
            if letter in (names or {}):
                return names[letter]
            if depth <= 0 or self._random.random() < 0.2:
                return choose((*LEAVES, *variables))
            return self._filled(choose(FORMS), depth - 1, variables)

        return re.sub(r"\b[CENTV]\b", replacement, form)
