"""Draws a program of a seed, which Python can run."""

from __future__ import annotations

import contextlib
import random

from tests.hunt.executions import TooSlow
from tests.hunt.values import Ambiguous
from tests.hunt.variables.oracle import executed
from tests.hunt.variables.program import Program
from tests.hunt.variables.statements import INDENT, Scope, Statements

#: The names of what is drawn here.
FAMILIES = ("variables", "padded-variables")

#: What Python says of a program that is none: a variable without a value, a dictionary's item that is not there.
NO_PROGRAM = (
    Ambiguous,
    TooSlow,
    NameError,
    TypeError,
    ValueError,
    IndexError,
    KeyError,
    ZeroDivisionError,
    OverflowError,
    RecursionError,
    AttributeError,
    SyntaxError,
)


def program(seed: int, family: str = "variables") -> Program:
    """A program, the same for the same seed."""
    choose = random.Random(seed)
    while True:
        drawn = _drawn(seed, choose, family)
        with contextlib.suppress(*NO_PROGRAM):
            executed(drawn)
            return drawn


def _drawn(seed: int, choose: random.Random, family: str) -> Program:
    kinds = choose.choice(
        (("float32",),) * 5
        + (("float64",), ("int32",), ("float32", "int32"), ("float32", "float64"))
    )
    types = {name: choose.choice(kinds) for name in ("x", "z", "y", "v")}
    types = {"x": types["x"], "z": types["z"], "w": "float32", "y": types["y"], "v": types["v"]}
    is_wide = set(kinds) == {"float64"}
    tile = choose.choice((1, 2, 3, 4, 4, 8))
    size = choose.choice((tile, 2 * tile, choose.randint(1, 2 * tile)))
    pads: dict[str, tuple[int, int]] = {}
    others: dict[str, float] = {}
    if family == "padded-variables":
        size = max(size, 2)
        for name in ("x", "z", "y")[: choose.randint(1, 3)]:
            pads[name] = choose.choice(((1, 0), (0, 1), (1, 1)))
            if choose.random() < 0.4:
                others[name] = choose.choice((2, -1))
    numbers = {
        "n": choose.randint(0, 3),
        "m": choose.randint(0, 3),
        "f": choose.choice((0.5, -1.5, 2.0)),
        "b": choose.random() < 0.5,
    }
    statements = Statements(choose, is_wide, size % tile == 0)
    statements.is_padded = bool(pads)
    known = {**types, "w": "float32 row", "n": "int", "m": "int", "f": "float", "b": "bool"}
    if "float64" in kinds and "float32" in kinds:
        # It has the type of the widest tensor, and so has what it meets.
        del known["f"]
    statements.scope = Scope({name: kind for name, kind in types.items() if name != "w"})
    statements.tiles = tuple(sorted(set(kinds)))
    lines: list[str] = []
    functions = {}
    for _ in range(choose.randint(0, 2)):
        name, kind = statements.fresh("h"), statements.function_type()
        if any(k not in ("int", "float", "bool") for _, k in kind[1][kind[2] :]):
            continue
        defined = statements.scope
        statements.scope = Scope({})
        lines += [*statements.defined(name, kind, functions), "", ""]
        statements.scope = defined
        functions[name] = kind
    for _ in range(choose.randint(0, 1)):
        lines += [*statements.defined_procedure(statements.fresh("s")), "", ""]
    statements.scope = Scope({**known, **functions})
    statements.outputs = {name: types[name] for name in ("y", "v")}
    if choose.random() < 0.15:
        statements.outputs["x"] = types["x"]
    body = statements.block(choose.randint(2, 6))
    body += statements.last_stores()
    lines += ["def application():", *(INDENT + line for line in body)]
    constants = frozenset(name for name in numbers if choose.random() < 0.1)
    return Program(
        seed,
        "\n".join(lines) + "\n",
        types,
        size,
        tile,
        4,
        numbers,
        constants,
        pads,
        others,
        family,
    )
