"""Triton expressions as syntax trees: the small pieces that all of the printers put together."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any


def name(identifier: str) -> ast.expr:
    return ast.Name(identifier, ast.Load())


def language(function: str, *arguments: ast.expr, **keywords: ast.expr) -> ast.expr:
    """A call of a function of Triton's language."""
    attribute: ast.expr = name("tl")
    for part in function.split("."):
        attribute = ast.Attribute(attribute, part, ast.Load())
    return ast.Call(
        attribute, list(arguments), [ast.keyword(key, value) for key, value in keywords.items()]
    )


def element_type(pointer: ast.expr) -> ast.expr:
    """The type of what a pointer points to."""
    return ast.Attribute(ast.Attribute(pointer, "dtype", ast.Load()), "element_ty", ast.Load())


def assign(target: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(target, ast.Store())], value)


def all_of(conditions: Sequence[ast.expr]) -> ast.expr:
    """Where all of one or more conditions hold."""
    return functools.reduce(lambda one, other: ast.BinOp(one, ast.BitAnd(), other), conditions)


def sum_of(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Add(), right)


def method(value: ast.expr, method: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(value, method, ast.Load()), list(arguments), [])


def number(value: Any) -> ast.expr:
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return ast.Call(name("float"), [ast.Constant(str(value))], [])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
