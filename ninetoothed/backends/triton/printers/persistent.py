"""The loop over a program's share of the grid, where programs stay (`persistent`)."""

from __future__ import annotations

import ast


def loop(number: str, total: str, count: ast.expr, body: list[ast.stmt]) -> list[ast.stmt]:
    """The loop over a program's share of the grid.

    Args:
        number: the name of the element's number.
        total: the name of how many there are.
        count: how many there are.
        body: what is done for each.
    """
    rounds = _language(
        "range", _grid("program_id"), ast.Name(total, ast.Load()), _grid("num_programs")
    )
    rounds.keywords.append(ast.keyword("flatten", ast.Constant(True)))
    return [
        ast.Assign([ast.Name(total, ast.Store())], count),
        ast.For(ast.Name(number, ast.Store()), rounds, body, []),
    ]


def _grid(function: str) -> ast.Call:
    return _language(function, ast.Constant(0))


def _language(function: str, *arguments: ast.expr) -> ast.Call:
    attribute = ast.Attribute(ast.Name("tl", ast.Load()), function, ast.Load())
    return ast.Call(attribute, list(arguments), [])
