"""Lowered expressions: the small pieces that all of lowering puts together."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from typing import Any

from ninetoothed.backends.triton.ir.nodes import TritonRef
from ninetoothed.language.dtypes import DType
from ninetoothed.program.nodes import DTypeRef


def name(identifier: str) -> ast.expr:
    return ast.Name(identifier, ast.Load())


def language(function: str, *arguments: ast.expr, **keywords: ast.expr) -> ast.expr:
    """A call of a function of Triton's language."""
    given = [ast.keyword(key, value) for key, value in keywords.items()]
    return ast.Call(TritonRef(name=function), list(arguments), given)


def element(dtype: DType) -> ast.expr:
    """An element type."""
    return DTypeRef(dtype=dtype)


def attribute(value: ast.expr, *names: str) -> ast.expr:
    """What a value has under a name, and that under another."""
    return functools.reduce(lambda tree, one: ast.Attribute(tree, one, ast.Load()), names, value)


def assign(target: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(target, ast.Store())], value)


def all_of(conditions: Sequence[ast.expr]) -> ast.expr:
    """Where all of one or more conditions hold."""
    return functools.reduce(lambda one, other: ast.BinOp(one, ast.BitAnd(), other), conditions)


def sum_of(left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, ast.Add(), right)


def method(value: ast.expr, method: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(value, method, ast.Load()), list(arguments), [])


def spread(value: ast.expr, layout: Sequence[object]) -> ast.expr:
    """A value with a dimension of size 1 wherever a layout has None."""
    entries = [ast.Constant(None) if dim is None else ast.Slice() for dim in layout]
    return ast.Subscript(value, ast.Tuple([*entries], ast.Load()), ast.Load())


def arranged(value: ast.expr, layout: Sequence[int | None]) -> ast.expr:
    """A value of the dimensions that are in a layout, as they stand there."""
    present = [dim for dim in layout if dim is not None]
    order = [sorted(present).index(dim) for dim in present]
    if order != sorted(order):
        dims = ast.Tuple([ast.Constant(place) for place in order], ast.Load())
        value = language("permute", value, dims)
    return spread(value, layout) if present and None in layout else value


def next_power_of_2(size: ast.expr) -> ast.expr:
    """A size padded to a power of two, by Triton's own function."""
    return ast.Call(attribute(name("triton"), "next_power_of_2"), [size], [])


def number(value: Any) -> ast.expr:
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return ast.Call(name("float"), [ast.Constant(str(value))], [])
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)
