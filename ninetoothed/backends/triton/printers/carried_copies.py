"""Variables of a loop that hand their values on, `a, b = b, x`, written so that Triton's compiler sees it.

It visits a loop's body once to find out which variables a round changes: those that are another value
afterwards. Two that are one value before the loop (`a = b = ntl.zeros(...)`) are the same after `a = b`
too, and what is handed on is lost without a word (seen in 3.6). A value that is selected is a new one.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ninetoothed.backends.triton.ir.trees import language
from ninetoothed.program.effects import names_assigned, names_read


def mark_copies(body: Sequence[ast.stmt]) -> None:
    """Has each variable of a loop that gets another one's value from before the round get a new value."""
    _mark(body, set(), None, set())


def _mark(
    body: Sequence[ast.stmt], before: set[str], carried: set[str] | None, computed: set[str]
) -> None:
    """Marks the copies in a block.

    Args:
        before: the names that were assigned before.
        carried: those that were before the loop; None where there is none.
        computed: those that this round has given a value that it computed.
    """
    for statement in body:
        if isinstance(statement, ast.For | ast.While):
            _mark(statement.body, set(before), set(before), set())
            computed -= names_assigned([statement])
        elif isinstance(statement, ast.If):
            for block in (statement.body, statement.orelse):
                _mark(block, set(before), carried, set(computed))
            computed -= names_assigned([statement])
        elif carried is not None and isinstance(statement, ast.Assign | ast.AugAssign):
            value, targets = statement.value, names_assigned([statement])
            is_copy = isinstance(statement, ast.Assign) and isinstance(value, ast.Name)
            if not is_copy or names_read(value) <= computed:
                computed |= targets
            elif targets & carried:
                statement.value = language("where", ast.Constant(True), value, value)
                computed |= targets
            else:
                computed -= targets
        before |= names_assigned([statement])
