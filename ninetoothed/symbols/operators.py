"""The operators of expressions: how each is written in Python's syntax tree, and what it computes.

They compute over ints and over NumPy's arrays alike. Nothing here knows what a `Symbol` is.
"""

from __future__ import annotations

import ast
import itertools
import operator
from collections.abc import Callable
from typing import Any

UnaryFunction = Callable[[Any], Any]
BinaryFunction = Callable[[Any, Any], Any]


def next_power_of_2(size: int) -> int:
    """The least power of two that is no less."""
    return 1 << max(size - 1, 0).bit_length()


def _is_zero(divisor: Any) -> bool:
    """Dividing by the size of an empty dimension gives 0: it has no element to be found there."""
    return getattr(divisor, "ndim", 0) == 0 and bool(divisor == 0)


def _minimum(a: Any, b: Any) -> Any:
    both_plain = isinstance(a, int) and isinstance(b, int)
    return min(a, b) if both_plain else (a + b - abs(a - b)) // 2


def _maximum(a: Any, b: Any) -> Any:
    return -_minimum(-a, -b)


ARITHMETIC: dict[str, tuple[type[ast.operator], BinaryFunction]] = {
    "+": (ast.Add, lambda a, b: a + b),
    "-": (ast.Sub, lambda a, b: a - b),
    "*": (ast.Mult, lambda a, b: a * b),
    "//": (ast.FloorDiv, lambda a, b: a * 0 if _is_zero(b) else a // b),
    "%": (ast.Mod, lambda a, b: a * 0 if _is_zero(b) else a % b),
    "&": (ast.BitAnd, lambda a, b: a & b),
    "|": (ast.BitOr, lambda a, b: a | b),
}
COMPARISONS: dict[str, tuple[type[ast.cmpop], BinaryFunction]] = {
    "<": (ast.Lt, lambda a, b: a < b),
    "<=": (ast.LtE, lambda a, b: a <= b),
    ">": (ast.Gt, lambda a, b: a > b),
    ">=": (ast.GtE, lambda a, b: a >= b),
    "==": (ast.Eq, lambda a, b: a == b),
    "!=": (ast.NotEq, lambda a, b: a != b),
}

#: What an operator computes of its operands' values.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{op: function for op, (_, function) in (*ARITHMETIC.items(), *COMPARISONS.items())},
    "neg": lambda a: -a,
    "[]": lambda a, b: a[b],
    "min": _minimum,
    "max": _maximum,
    "padded": next_power_of_2,
}

#: What Python computes for the nodes of its tree, of whatever has such operators.
PYTHON_UNARY: dict[type[ast.unaryop], UnaryFunction] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}
PYTHON_BITWISE: dict[type[ast.operator], BinaryFunction] = {
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.BitAnd: operator.and_,
}
PYTHON_BINARY: dict[type[ast.operator], BinaryFunction] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    **PYTHON_BITWISE,
}
PYTHON_COMPARE: dict[type[ast.cmpop], BinaryFunction] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}

#: The operator that a node of Python's tree stands for.
OPERATOR_OF_NODE = {
    node: op for op, (node, _) in itertools.chain(ARITHMETIC.items(), COMPARISONS.items())
}


def over(op: str, operands: list[ast.expr]) -> ast.expr:
    """Python's tree of one of the operators over trees."""
    if op in ARITHMETIC:
        return ast.BinOp(operands[0], ARITHMETIC[op][0](), operands[1])
    if op in COMPARISONS:
        return ast.Compare(operands[0], [COMPARISONS[op][0]()], [operands[1]])
    if op == "neg":
        return ast.UnaryOp(ast.USub(), operands[0])
    if op == "[]":
        return ast.Subscript(operands[0], operands[1], ast.Load())
    return ast.Call(ast.Name(op, ast.Load()), operands, [])
