"""Programs written in other ways, which mean the same: what is expected of one is expected of the other.

A way is some rewritings, each with a number that chooses where; one that fits nowhere is left out.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping, Sequence

from tests.hunt.spelling import helpers  # noqa: F401
from tests.hunt.spelling.rewritings import REWRITINGS
from tests.hunt.spelling.scopes import Application

#: Rewritings by name, each with its number.
Spelling = tuple[tuple[str, int], ...]

#: How many of the programs are respelled.
SHARE = 0.5

#: Helpers and loops come more often than their share.
_BY_WEIGHT = [
    *REWRITINGS,
    *(name for name in REWRITINGS for _ in "12" if "helper" in name or "loop" in name),
    *("helper_that_rebinds", "loop_over_other_numbers", "index_that_moves_on") * 3,
]

#: What is refused of what is written another way: a variable has one type after an `if`, and what is computed
#: of the numbers of a loop that is unrolled, Python computes.
EXPECTED = (
    r"The ways through this `if` give '\w+' different (element types|shapes)",
    "Computed at compile time, this raises ZeroDivisionError",
)


def spelling(seed: int) -> Spelling:
    """How the program of a seed is written; drawn by itself, so that the program is what it was."""
    choose = random.Random(f"{seed}, spelling")
    if choose.random() > SHARE:
        return ()
    count = choose.randint(1, 8)
    return tuple((choose.choice(_BY_WEIGHT), choose.randrange(1000)) for _ in range(count))


def respelled(
    text: str,
    chosen: Spelling,
    ranks: Mapping[str, int],
    numbers: Sequence[str],
    flags: Sequence[str],
    levels: Mapping[str, int] | None = None,
) -> str:
    """An application's text, and that of its helpers before it, written another way.

    Args:
        ranks: how many dimensions its tensors have.
        numbers: its other parameters that only a call gives.
        flags: those that are known when it is compiled.
        levels: the numbers that sizes of levels are in a call, by how they are written.
    """
    if not chosen:
        return text
    app = Application(
        ast.parse(text), dict(ranks), tuple(numbers), tuple(flags), dict(levels or {})
    )
    for name, number in chosen:
        app.choose = random.Random(number)
        REWRITINGS[name](app)
        ast.fix_missing_locations(app.module)
    return ast.unparse(app.module) + "\n"
