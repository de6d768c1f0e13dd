"""Which expressions of a Program a backend's compiler knows the value of, or that it is not 0."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from ninetoothed.program.nodes import DTypeRef, ElementType, SymbolValue
from ninetoothed.program.types import type_of
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol


def is_constant(node: ast.expr, names: Collection[str]) -> bool:
    """Whether ``node`` is known when the kernel is compiled, as the variables ``names`` are."""
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, SymbolValue):
        return is_constant_symbol(node.symbol)
    if isinstance(node, ast.Constant | DTypeRef | ElementType):
        return True
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id == "float"
        if not isinstance(node.func, ast.Attribute):
            return False
        parts = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
        return all(is_constant(part, names) for part in parts)
    if isinstance(node, _MADE_OF_PARTS):
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return all(is_constant(part, names) for part in parts)
    return False


_MADE_OF_PARTS = (
    ast.BinOp,
    ast.UnaryOp,
    ast.BoolOp,
    ast.Compare,
    ast.IfExp,
    ast.Attribute,
    ast.Tuple,
    ast.Subscript,
)


def is_constant_symbol(symbol: Any) -> bool:
    """Whether all that a symbolic integer is made of is known when a kernel is compiled."""
    return all(leaf.constexpr or leaf.meta for leaf in symbol.leaves())


def is_count(node: ast.expr) -> bool:
    """Whether an expression of a typed Program counts something: it is not negative, nor near the end of a type."""
    known = type_of(node)
    return known.is_natural and known.kind == "int" and known.dtype is None


def is_nonzero(node: ast.expr) -> bool:
    """Whether an expression of a typed Program is a number that is not 0, whatever a call gives."""
    number = type_of(node).number
    return interval(number)[0] > 0 if isinstance(number, Symbol) else bool(number)
