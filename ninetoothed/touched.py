"""Which tensors a program touches once its compile-time constants are known.

A parameter that is used only in a branch that is not taken may be given any argument with a shape.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ninetoothed.program import Program

#: What the test of an ``if`` may consist of to be decided by constants alone.
_DECIDABLE = (
    ast.Name,
    ast.Constant,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
    ast.operator,
    ast.expr_context,
)


def touched(program: Program, constants: Mapping[str, Any]) -> frozenset[str]:
    """The tensor parameters whose elements, offsets, strides, pointer or type are used.

    Args:
        constants: the values of the constexpr parameters, by name.
    """
    nodes = _nodes([*program.body, *program.helpers.values()], constants)
    return frozenset(node.parameter for node in nodes if hasattr(node, "parameter"))


def _nodes(statements: Iterable[ast.stmt], constants: Mapping[str, Any]) -> Iterator[ast.AST]:
    for statement in statements:
        if isinstance(statement, ast.If) and _is_decided(statement.test, constants):
            test = ast.fix_missing_locations(ast.Expression(statement.test))
            holds = eval(compile(test, "<test>", "eval"), {}, dict(constants))
            yield from _nodes(statement.body if holds else statement.orelse, constants)
            continue
        for name, value in ast.iter_fields(statement):
            if name in ("body", "orelse") and isinstance(value, list):
                yield from _nodes(value, constants)
            elif isinstance(value, ast.AST):
                yield from ast.walk(value)
            elif isinstance(value, list):
                yield from (
                    node for item in value if isinstance(item, ast.AST) for node in ast.walk(item)
                )
        yield statement


def _is_decided(test: ast.expr, constants: Mapping[str, Any]) -> bool:
    return all(
        isinstance(node, _DECIDABLE) and (not isinstance(node, ast.Name) or node.id in constants)
        for node in ast.walk(test)
    )
