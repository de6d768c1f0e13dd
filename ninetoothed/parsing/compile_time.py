"""What constexpr symbols decide while an application is parsed, and how large what is computed may become.

``9**9**9`` takes Python longer than anybody waits, and whatever is made of it no device holds. What would be
too large is refused before it is computed where its size can be told, else as soon as it is there.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from ninetoothed.errors import ApplicationError
from ninetoothed.program.nodes import SymbolValue
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import PYTHON_BINARY, PYTHON_COMPARE, PYTHON_UNARY

#: The widest integer; sixteen of a device's make one.
MOST_BITS = 1024

#: The longest string or tuple.
MOST_ITEMS = 1 << 16

#: The largest number whose factorial is computed: it is about as wide as an integer may be.
_MOST_FACTORS = 170

#: What a value is made of, beside symbolic integers, where it is decided.
_MADE = (ast.Constant, ast.Compare, ast.BinOp, ast.UnaryOp)


@dataclass
class Decisions:
    """What is decided while an application is parsed.

    Attributes:
        values: of constexpr symbols, as far as they are known.
        missing: the symbols whose values would have decided something.
        rounds: by what a loop goes over, the symbols that decide whether it has a round: they are asked
            for where nothing else makes sense of the application.
        leaves_out: whether loops are left out of which that is open.
        unrolled: the symbols that decide how often loops of which a compiler knows the variable go round.
    """

    values: Mapping[Symbol, int] = field(default_factory=dict)
    missing: set[Symbol] = field(default_factory=set)
    rounds: dict[ast.AST, set[Symbol]] = field(default_factory=dict)
    leaves_out: bool = False
    unrolled: set[Symbol] = field(default_factory=set)

    def of(self, node: ast.expr) -> bool | None:
        """Whether what is made of symbolic integers and constants holds; None where that is not known."""
        found = self.number(node)
        return None if found is None else bool(found)

    def number(self, node: ast.expr) -> Any:
        """What is made of symbolic integers and constants, which is asked for; None where it is not known."""
        symbols = symbols_of(node)
        self.missing |= symbols - self.values.keys()
        return self.known(node) if symbols else None

    def needed(self, node: ast.expr) -> Any:
        """The same of what makes no sense unless it is known: unrolled, a loop's variable may be."""
        found = self.number(node)
        if found is None:
            self.missing |= self.unrolled - self.values.keys()
        return found

    def known(self, node: ast.expr) -> Any:
        """The same without asking for it."""
        symbols = symbols_of(node)
        if not symbols or not symbols <= self.values.keys():
            return None
        try:
            return self._value(node)
        except (KeyError, TypeError, ValueError, ArithmeticError, ApplicationError):
            # An operation that is none of integers, or a text.
            return None

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, SymbolValue):
            return as_symbol(node.symbol).evaluate(self.values)
        if isinstance(node, ast.BinOp):
            operands = self._value(node.left), self._value(node.right)
            check_operation(PYTHON_BINARY[type(node.op)], operands)
            return checked(PYTHON_BINARY[type(node.op)](*operands))
        if isinstance(node, ast.UnaryOp):
            return PYTHON_UNARY[type(node.op)](self._value(node.operand))
        if isinstance(node, ast.Compare):
            (op,), (right,) = node.ops, node.comparators
            return PYTHON_COMPARE[type(op)](self._value(node.left), self._value(right))
        assert isinstance(node, ast.Constant)
        return node.value


def symbols_of(node: ast.expr) -> set[Symbol]:
    """The constexpr symbols of which a value is made, with constants; none where anything else is in it."""
    symbols: set[Symbol] = set()
    for part in ast.walk(node):
        if isinstance(part, SymbolValue):
            symbols.update(as_symbol(part.symbol).leaves())
        elif isinstance(part, ast.expr) and not isinstance(part, _MADE):
            return set()
    are_given = all(s.leaf.constexpr and s.leaf.role == "symbol" for s in symbols)
    return symbols if are_given else set()


def check_operation(function: Callable[..., Any], operands: tuple[Any, ...]) -> None:
    """Raises ApplicationError where a function of Python's would make something too large."""
    match operands:
        case int(one), int(other), *_ if function in (operator.pow, pow):
            is_small = abs(one) <= 1 or other <= 0 or len(operands) > 2
            if not is_small and other * (one.bit_length() - 1) > MOST_BITS:
                raise _too_wide()
        case int(), int(other) if function is operator.lshift and other > MOST_BITS:
            raise _too_wide()
        case (str() | bytes() | tuple() | list() as items, int(count)) | (
            int(count),
            str() | bytes() | tuple() | list() as items,
        ) if function is operator.mul:
            check_length(len(items) * count)
        case tuple(one), tuple(other) if function is operator.add:
            check_length(len(one) + len(other))
        case str(form), given if function is operator.mod:
            starred = given if isinstance(given, tuple) and "*" in form else ()
            check_length(max([_widest(form), *(n for n in starred if isinstance(n, int))]))
        case _, str(form) if function is format:
            check_length(_widest(form))
        case int(one), *_ if function in (math.factorial, math.comb, math.perm):
            if one > (_MOST_FACTORS if function is math.factorial else MOST_BITS):
                raise _too_wide()


def _widest(form: str) -> int:
    """The largest number in a format."""
    return max((int(digits[:18]) for digits in re.findall(r"\d+", form)), default=0)


def checked(value: Any) -> Any:
    """What was computed.

    Raises:
        ApplicationError: it is too large.
    """
    if isinstance(value, int) and value.bit_length() > MOST_BITS:
        raise _too_wide()
    if isinstance(value, str | bytes | tuple | list):
        check_length(len(value))
    return value


def check_length(count: int) -> None:
    """Raises ApplicationError where something would have so many items, and that is too many."""
    if count > MOST_ITEMS:
        raise ApplicationError(
            f"Computed at compile time, this has {count} items, more than the {MOST_ITEMS} that are kept."
        )


def _too_wide() -> ApplicationError:
    return ApplicationError(
        f"Computed at compile time, this is an integer of more than {MOST_BITS} bits, and a device has "
        "64. A float holds larger numbers."
    )
