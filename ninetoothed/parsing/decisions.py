"""Which constexpr symbols a kernel's branches depend on, and what their values decide."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ninetoothed.program.nodes import SymbolValue
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import PYTHON_BITWISE, PYTHON_COMPARE

#: What a condition is made of, beside symbolic integers, where it is decided.
_MADE = (ast.Constant, ast.Compare, ast.BinOp)


@dataclass
class Decisions:
    """What is decided while an application is parsed.

    Attributes:
        values: of constexpr symbols, as far as they are known.
        missing: the symbols whose values would have decided something.
    """

    values: Mapping[Symbol, int] = field(default_factory=dict)
    missing: set[Symbol] = field(default_factory=set)

    def of(self, node: ast.expr) -> bool | None:
        """Whether what is made of symbolic integers and constants holds; None where that is not known."""
        symbols: set[Symbol] = set()
        for part in ast.walk(node):
            if isinstance(part, SymbolValue):
                symbols.update(as_symbol(part.symbol).leaves())
            elif isinstance(part, ast.expr) and not isinstance(part, _MADE):
                return None
        if not symbols or not all(s.leaf.constexpr and s.leaf.role == "symbol" for s in symbols):
            return None
        unknown = symbols - self.values.keys()
        self.missing |= unknown
        try:
            return None if unknown else bool(self._value(node))
        except (KeyError, TypeError):
            # An operation that is none of integers, or a text.
            return None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, SymbolValue):
            return as_symbol(node.symbol).evaluate(self.values)
        if isinstance(node, ast.BinOp):
            return PYTHON_BITWISE[type(node.op)](self._value(node.left), self._value(node.right))
        if isinstance(node, ast.Compare):
            (op,), (right,) = node.ops, node.comparators
            return PYTHON_COMPARE[type(op)](self._value(node.left), self._value(right))
        assert isinstance(node, ast.Constant)
        return node.value
