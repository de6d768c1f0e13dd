"""Statements and expressions as trees and as text; nothing here knows what they mean."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ninetoothed import threads
from ninetoothed.program.nodes import clone


class NotPossibleError(Exception):
    """A program has no translation."""


def parse(line: str) -> ast.stmt:
    """A statement from its text."""
    (statement,) = threads.parse(line).body
    return statement


def expression(line: str, **parts: ast.expr) -> ast.expr:
    """An expression from its text, with parts put in for names."""
    statement = parse(line)
    assert isinstance(statement, ast.Expr)
    return put(statement.value, parts)


def put(tree: ast.expr, parts: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with others in the place of names."""
    return _Put(parts).visit(tree)  # type: ignore[no-any-return]


class _Put(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return clone(self._parts[node.id]) if node.id in self._parts else node


def text(tree: ast.AST) -> str:
    """A tree's text."""
    return ast.unparse(ast.fix_missing_locations(clone(tree)))


def language(function: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.expr:
    """A call of a function of Gluon's language."""
    attribute = ast.Attribute(ast.Name("gl", ast.Load()), function, ast.Load())
    return ast.Call(attribute, list(arguments), list(keywords))


def library(function: str, *arguments: ast.expr) -> ast.expr:
    """A call of a function of `gluon_library`."""
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


def called(call: ast.Call) -> str:
    """The last part of the name that is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else text(call.func)


def owner(call: ast.AST) -> str:
    """The name whose method is called."""
    func = call.func if isinstance(call, ast.Call) else None
    return text(func.value) if isinstance(func, ast.Attribute) else ""
