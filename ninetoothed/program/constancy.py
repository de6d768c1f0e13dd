"""Which expressions of a Program a backend's compiler knows the value of."""

from __future__ import annotations

import ast
import operator
from collections.abc import Collection, Mapping
from typing import Any

from ninetoothed.program.nodes import DTypeRef, ElementType, SymbolValue
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.operators import BinaryFunction


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


def decided(test: ast.expr, constants: Mapping[Any, Any]) -> bool | None:
    """Whether a condition holds; None where the constants, by name or by symbol, do not decide it."""
    try:
        return bool(_value(test, constants))
    except _UnknownError:
        return None


class _UnknownError(Exception):
    """A value that the constants do not give."""


_COMPARE: dict[type[ast.cmpop], BinaryFunction] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


#: Those of integers that a Symbol does not have itself.
_BITS: dict[type[ast.operator], BinaryFunction] = {
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def _value(node: ast.expr, constants: Mapping[Any, Any]) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, DTypeRef):
        return node.dtype
    if isinstance(node, ast.Name) and node.id in constants:
        return constants[node.id]
    if isinstance(node, SymbolValue) and constants.keys() >= {*as_symbol(node.symbol).leaves()}:
        return as_symbol(node.symbol).evaluate(constants)
    if isinstance(node, ast.BinOp) and type(node.op) in _BITS:
        return _BITS[type(node.op)](_value(node.left, constants), _value(node.right, constants))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return not _value(node.operand, constants)
    if isinstance(node, ast.BoolOp):
        return _any_or_all(node, constants)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
        left, right = _value(node.left, constants), _value(node.comparators[0], constants)
        try:
            return _COMPARE[type(node.ops[0])](left, right)
        except TypeError:
            raise _UnknownError from None
    raise _UnknownError


def _any_or_all(node: ast.BoolOp, constants: Mapping[Any, Any]) -> bool:
    """One operand may decide for all, whatever the unknown ones are."""
    decisive = isinstance(node.op, ast.Or)
    decisions = [decided(operand, constants) for operand in node.values]
    if decisive in decisions:
        return decisive
    if None in decisions:
        raise _UnknownError
    return not decisive
