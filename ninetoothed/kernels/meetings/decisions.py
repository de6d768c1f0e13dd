"""Conditions that no size decides: whether a call's numbers do, or what is loaded, or where a program is.

Numbers are known at each call, so that what meets under such a condition is refused where it holds. What
data decide may hold, and so may what numbers do by a function that is not among those here. A position may
be asked about because of what exists there: nothing follows from it.
"""

from __future__ import annotations

import ast
import math
import operator
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.size_expressions import is_of_sizes
from ninetoothed.language import dtypes
from ninetoothed.program.effects import names_read, operation_of, statements_of, targets_of
from ninetoothed.program.nodes import DTypeRef, Load, Offsets, SourceLoad, SymbolValue, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import PYTHON_BINARY, PYTHON_COMPARE, PYTHON_UNARY

#: Variables that a call's numbers and sizes decide, as expressions of the numbers' names.
Numbers = Mapping[str, ast.expr]


def _shifted(shift: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """A shift of 32 bits; a device's of more, or of fewer than none, is no number that is known."""

    def shifted(value: int, by: int) -> int:
        if not 0 <= by < 32:
            raise OverflowError
        return shift(value, by)

    return shifted


def _ordered(choose: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The least or the greatest of two, none of which is a NaN."""

    def ordered(one: Any, other: Any) -> Any:
        if math.isnan(one) or math.isnan(other):
            raise ArithmeticError
        return choose(one, other)

    return ordered


#: What is computed of numbers as a device does: of the rest nothing is known.
_OPERATORS: dict[type, Callable[..., Any]] = {
    node: function
    for table in (PYTHON_UNARY, PYTHON_BINARY, PYTHON_COMPARE)
    for node, function in table.items()
    if node not in (ast.Pow, ast.MatMult, ast.Invert, ast.Is, ast.IsNot)
} | {ast.LShift: _shifted(operator.lshift), ast.RShift: _shifted(operator.rshift)}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "minimum": _ordered(min),
    "maximum": _ordered(max),
    "cdiv": lambda one, other: -(-one // other),
    "where": lambda test, one, other: one if test else other,
}

#: What ``bool``, ``int`` and ``float`` make of a number, and `ntl.cast` to the same.
_CASTS: dict[dtypes.DType, Callable[[Any], Any]] = {
    dtypes.bool: bool,
    dtypes.int64: int,
    dtypes.float32: float,
}


@dataclass(frozen=True)
class Decision:
    """That a condition holds, or that it does not.

    Attributes:
        test: over a call's numbers and sizes; None where data decide.
        condition: the same object for the same condition at the same place.
        holds: which.
    """

    test: ast.expr | None
    condition: object
    holds: bool

    def is_of(self, values: Mapping[str, Any], sizes: Mapping[Symbol, int]) -> bool:
        """Whether it is so for a call's numbers; where these decide, and beyond doubt.

        A device has a float in 32 bits, Python in 64: both have to say so.
        """
        assert self.test is not None
        try:
            found = {
                bool(_value(self.test, values, sizes, rounded))
                for rounded in (lambda value: value, _rounded)
            }
        except (ArithmeticError, TypeError, ValueError, struct.error):
            return False
        return found == {self.holds}

    def is_left_open(self, sizes: Mapping[Symbol, int]) -> bool:
        """Whether it may be so by some numbers, for all that the sizes of a call say."""
        assert self.test is not None
        return _of_sizes(self.test, sizes) is not (not self.holds)


def _of_sizes(test: ast.expr, sizes: Mapping[Symbol, int]) -> bool | None:
    """Whether a condition holds, where sizes say so whatever the numbers are."""
    if isinstance(test, ast.BoolOp):
        found = {_of_sizes(part, sizes) for part in test.values}
        decisive = isinstance(test.op, ast.Or)
        return decisive if decisive in found else None if None in found else not decisive
    if any(isinstance(part, ast.Name) for part in walk(test)):
        return None
    try:
        return bool(_value(test, {}, sizes, lambda value: value))
    except (ArithmeticError, TypeError, ValueError):
        return None


def scalars(kernel: Definition) -> dict[str, ast.expr]:
    """The numbers of a kernel's calls."""
    return {
        parameter.name: ast.Name(id=parameter.name, ctx=ast.Load())
        for parameter in kernel.parameters
        if parameter.kind == "scalar"
    }


def number(node: ast.expr | None, numbers: Numbers) -> ast.expr | None:
    """An expression over a call's numbers and sizes alone; None of anything else."""
    if isinstance(node, ast.Name):
        return numbers.get(node.id)
    if isinstance(node, ast.Constant):
        return node if isinstance(node.value, bool | int | float) else None
    if isinstance(node, SymbolValue):
        return node if is_of_sizes(as_symbol(node.symbol)) else None
    match node:
        case ast.UnaryOp() if type(node.op) in _OPERATORS:
            return _of_parts(node, [node.operand], numbers, lambda o: ast.UnaryOp(node.op, *o))
        case ast.BinOp() if type(node.op) in _OPERATORS:
            parts = [node.left, node.right]
            return _of_parts(node, parts, numbers, lambda p: ast.BinOp(p[0], node.op, p[1]))
        case ast.Compare() if len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
            parts = [node.left, *node.comparators]
            return _of_parts(node, parts, numbers, lambda p: ast.Compare(p[0], node.ops, p[1:]))
        case ast.BoolOp():
            return _of_parts(node, node.values, numbers, lambda p: ast.BoolOp(node.op, p))
        case ast.IfExp():
            parts = [node.test, node.body, node.orelse]
            return _of_parts(node, parts, numbers, lambda p: ast.IfExp(*p))
        case ast.Call() if _function(node) is not None:
            parts, rest = _operands(node)
            return _of_parts(node, parts, numbers, lambda p: ast.Call(node.func, [*p, *rest], []))
    return None


def _function(node: ast.Call) -> Callable[..., Any] | None:
    """What a function of the language computes of numbers; None of one that is not known here."""
    operation, (_, rest) = operation_of(node), _operands(node)
    if operation is None or node.keywords or isinstance(node.func, ast.Attribute):
        return None
    if operation.name == "cast" and len(rest) == 1:
        return _CASTS.get(rest[0].dtype)
    return None if rest else _FUNCTIONS.get(operation.name)


def _operands(node: ast.Call) -> tuple[list[ast.expr], list[DTypeRef]]:
    """The arguments of a call that are values, and those that are element types."""
    types = [item for item in node.args if isinstance(item, DTypeRef)]
    return [item for item in node.args if not isinstance(item, DTypeRef)], types


def _of_parts(
    node: ast.expr,
    parts: Sequence[ast.expr],
    numbers: Numbers,
    made: Callable[[list[ast.expr]], ast.expr],
) -> ast.expr | None:
    found = [number(part, numbers) for part in parts]
    known = [part for part in found if part is not None]
    return ast.copy_location(made(known), node) if len(known) == len(found) else None


def _value(
    node: ast.expr,
    values: Mapping[str, Any],
    sizes: Mapping[Symbol, int],
    rounded: Callable[[Any], Any],
) -> Any:
    def of(part: ast.expr) -> Any:
        return _value(part, values, sizes, rounded)

    match node:
        case ast.Name():
            return rounded(values[node.id])
        case ast.Constant():
            return rounded(node.value)
        case SymbolValue():
            return as_symbol(node.symbol).evaluate(sizes)
        case ast.UnaryOp():
            return _OPERATORS[type(node.op)](of(node.operand))
        case ast.BinOp():
            return _held(rounded(_OPERATORS[type(node.op)](of(node.left), of(node.right))))
        case ast.Call():
            function = _function(node)
            assert function is not None
            return _held(rounded(function(*map(of, _operands(node)[0]))))
        case ast.IfExp():
            return of(node.body) if of(node.test) else of(node.orelse)
        case ast.Compare():
            return _OPERATORS[type(node.ops[0])](of(node.left), of(node.comparators[0]))
        case ast.BoolOp():
            found = map(of, node.values)
            return all(found) if isinstance(node.op, ast.And) else any(found)
    raise TypeError(type(node).__name__)


def _held(value: Any) -> Any:
    """A result, if it is one that an integer of 32 bits holds."""
    if isinstance(value, int) and abs(value) >= 1 << 31:
        raise OverflowError
    return value


def _rounded(value: Any) -> Any:
    return struct.unpack("f", struct.pack("f", value))[0] if isinstance(value, float) else value


@dataclass(frozen=True)
class Kinds:
    """What the variables of a program follow.

    Attributes:
        positions: those that follow which round, program or element it is, and those that count.
        data: those that follow what is loaded.
        numbers: those that follow a number of a call's.
    """

    positions: frozenset[str]
    data: frozenset[str]
    numbers: frozenset[str]

    def is_of_data(self, test: ast.expr, is_of_loop: bool) -> bool:
        """Whether data or numbers decide a condition, and no position does, unless it counts rounds."""
        is_of_position = not is_of_loop and _follows(test, self.positions, _is_position)
        return _follows(test, self.data | self.numbers, _is_load) and not is_of_position


def kinds_of(body: Iterable[ast.stmt], scalars: Iterable[str] = ()) -> Kinds:
    """What the variables follow that these statements assign.

    Args:
        scalars: the names of a call's numbers.
    """
    statements = [inner for statement in body for inner in statements_of(statement)]
    positions: set[str] = set()
    data: set[str] = set()
    numbers = set(scalars)
    size = -1
    while size < len(positions) + len(data) + len(numbers):
        size = len(positions) + len(data) + len(numbers)
        for statement in statements:
            names = {target.id for target in targets_of(statement)}
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.For):
                positions |= names
            if not names or value is None:
                continue
            is_of_data = _follows(value, data, _is_load)
            is_counted = isinstance(statement, ast.AugAssign) or not names.isdisjoint(
                names_read(value)
            )
            data |= names if is_of_data else frozenset()
            numbers |= names if _follows(value, numbers, lambda _: False) else frozenset()
            if (is_counted and not is_of_data) or _follows(value, positions, _is_position):
                positions |= names
    return Kinds(frozenset(positions), frozenset(data), frozenset(numbers))


def _follows(node: ast.AST, names: Collection[str], is_one: Callable[[ast.AST], bool]) -> bool:
    return any(
        is_one(child) or (isinstance(child, ast.Name) and child.id in names) for child in walk(node)
    )


def _is_load(node: ast.AST) -> bool:
    return isinstance(node, Load | SourceLoad)


def _is_position(node: ast.AST) -> bool:
    if isinstance(node, SymbolValue):
        return not is_of_sizes(as_symbol(node.symbol))
    if not isinstance(node, ast.Call):
        return isinstance(node, Offsets)
    operation = operation_of(node)
    # What nobody knows may ask for a position.
    return operation is None or operation.kind in ("program", "memory", "target", "other")
