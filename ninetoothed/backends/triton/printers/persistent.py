"""The loop over a program's share of the grid, where programs stay (`persistent`)."""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.ir.trees import assign, language, name


def loop(number: str, total: str, count: ast.expr, body: list[ast.stmt]) -> list[ast.stmt]:
    """The loop over a program's share of the grid.

    Args:
        number: the name of the element's number.
        total: the name of how many there are.
        count: how many there are.
        body: what is done for each.
    """
    first, step = (language(n, ast.Constant(0)) for n in ("program_id", "num_programs"))
    rounds = language("range", first, name(total), step, flatten=ast.Constant(True))
    return [
        assign(total, count),
        ast.For(ast.Name(number, ast.Store()), rounds, body, []),
    ]
