"""Operators and choices: computed where the operands are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Hashable, Mapping
from typing import Any, cast

from ninetoothed.language.dtypes import element_type
from ninetoothed.parsing.comparisons import NO_TUPLE, ComparisonFrame
from ninetoothed.parsing.objects import counted, index_of, literal
from ninetoothed.parsing.values import (
    Cell,
    Group,
    Iterated,
    Known,
    Runtime,
    Symbolic,
    Tile,
    Value,
    copy_of,
    same,
    to_python,
)
from ninetoothed.program.effects import reads_memory
from ninetoothed.program.nodes import clone
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.operators import PYTHON_BINARY, PYTHON_UNARY
from ninetoothed.symbols.simplify import is_nonnegative

_NO_NUMBER = (
    "Which value this is only the running kernel knows, and that chooses among numbers, tiles and tuples of as many "
    "of them: choose with an `if` on what is known at compile time, or use each value in a way of its own."
)

#: The largest exponent of a value of the running kernel.
MOST_FACTORS = 64

#: The operations that a symbolic integer supports itself.
_SYMBOLIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


class OperatorFrame(ComparisonFrame):
    """A frame that evaluates operators and choices."""

    def _evaluate_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.in_order([node.left, node.right], self._loaded)
        return self.binary(left, node.op, right, node)

    def binary(self, left: Value, op: ast.operator, right: Value, node: ast.AST) -> Value:
        """``left op right``."""
        if isinstance(op, ast.MatMult):
            raise self.error(node, "`@` is not supported: use `ntl.dot`.")
        if isinstance(left, Group) or isinstance(right, Group):
            return self._of_groups(left, op, right, node)
        if isinstance(left, Known) and isinstance(right, Known):
            one, other = counted(left.object), counted(right.object)
            return self.computed(PYTHON_BINARY[type(op)], node, one, other)
        if isinstance(op, _SYMBOLIC) and _is_arithmetic_on_sizes(left, op, right):
            one, other = symbol_of(left), symbol_of(right)
            return self.computed(lambda: PYTHON_BINARY[type(op)](one, other), node)
        count = (
            literal(right.object) if isinstance(op, ast.Pow) and isinstance(right, Known) else None
        )
        if type(count) is int and 1 <= count <= MOST_FACTORS:
            return self._power(self.computed_once(left, node, "factor"), count, node)
        if isinstance(op, ast.LShift) and isinstance(left, Known) and isinstance(left.object, bool):
            left = Known(int(left.object))
        operands = [self.expression(value, node) for value in (left, right)]
        if isinstance(op, ast.Pow) and not all(map(self.is_constant, operands)):
            exponent = self.needed(right, node)
            if exponent is not right:
                return self.binary(left, op, exponent, node)
            raise self.error(
                node,
                f"`**` of a value of the running kernel takes a whole number from 1 to {MOST_FACTORS} that "
                "is known at compile time: use `ntl.sqrt`, `ntl.libdevice.pow` or "
                "`ntl.exp2(exponent * ntl.log2(base))`. A power of scalars alone, as `1 - beta**step`, is computed "
                "before the call and given as one.",
            )
        return Runtime(self.at(ast.BinOp(left=operands[0], op=op, right=operands[1]), node))

    def rounded_up(self, left: Value, right: Value, node: ast.AST) -> Value | None:
        """``-(-left // right)``, if it is known or a symbolic integer's matter; else None."""
        if isinstance(left, Known) and isinstance(right, Known):
            one, other = map(symbol_of, (left, right))
        elif _is_arithmetic_on_sizes(left, ast.FloorDiv(), right):
            one, other = symbol_of(left), symbol_of(right)
            if is_nonnegative(as_symbol(other)):
                return self.computed(lambda: (one + other - 1) // other, node)
        else:
            return None
        return self.computed(lambda: -(-one // other), node)

    def _power(self, base: Value, count: int, node: ast.AST) -> Value:
        """A whole power, as products."""
        if count == 1:
            return copy_of(base)
        half = self.computed_once(self._power(base, count // 2, node), node, "factor")
        result = self.binary(copy_of(half), ast.Mult(), copy_of(half), node)
        return self.binary(result, ast.Mult(), copy_of(base), node) if count % 2 else result

    def _of_groups(self, left: Value, op: ast.operator, right: Value, node: ast.AST) -> Value:
        """Tuples added, or repeated, and a text with what it shows."""
        if isinstance(left, Iterated) or isinstance(right, Iterated):
            raise self.error(node, NO_TUPLE)
        if isinstance(op, ast.Add) and isinstance(left, Group) and isinstance(right, Group):
            if type(left) is not type(right):
                raise self.error(
                    node, "A list and a tuple are not added: make one of them the other."
                )
            self.check_operation(operator.add, (left.items, right.items), node)
            return type(left)(left.items + right.items)
        if isinstance(op, ast.Mult):
            group, count = (left, right) if isinstance(left, Group) else (right, left)
            count, times = self.needed(count, node), None
            if isinstance(count, Known) and isinstance(count.object, Hashable):  # No array.
                times = index_of(count.object)
            if times is not None:
                assert isinstance(group, Group)
                self.check_operation(operator.mul, (group.items, times), node)
                return type(group)(group.items * times)
        one, other = to_python(left), to_python(right)
        if one is None or other is None:
            raise self.error(
                node,
                "Tuples and lists are added to each other, or repeated a number of times that is known at compile "
                "time; arithmetic is of their items.",
            )
        return self.computed(PYTHON_BINARY[type(op)], node, one.object, other.object)

    def _evaluate_UnaryOp(self, node: ast.UnaryOp) -> Value:
        if isinstance(node.op, ast.Not):
            self.asked.add(node.operand)
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            if truth is not None:
                return Known(not truth)
        if isinstance(value, Known):
            item = counted(value.object)
            return self.computed(lambda: PYTHON_UNARY[type(node.op)](item), node)
        if isinstance(value, Symbolic) and isinstance(node.op, ast.USub):
            return self.computed(lambda: 0 - value.symbol, node)
        operand = self.expression(value, node)
        return Runtime(self.at(ast.UnaryOp(op=node.op, operand=operand), node))

    def _evaluate_BoolOp(self, node: ast.BoolOp) -> Value:
        wanted = isinstance(node.op, ast.And)
        parts: list[ast.expr] = []
        given: dict[Cell, Value] = {}
        if node in self.asked:
            self.asked.update(node.values)
        for position, operand in enumerate(node.values):
            before = self.state.cells()
            is_last = position == len(node.values) - 1
            with self.state.captured() as statements:
                # What constants leave is that operand itself.
                value = (self._loaded if parts or not is_last else self.evaluate)(operand)
            named: dict[Cell, Value] = {}
            if parts:
                named = {
                    cell: cell.value
                    for cell, old in before.items()
                    if old is None and cell.value is not None
                }
                start, inner = len(self.state.block), len(statements)
                self.may_have_changed(before, statements, node)
                parts = [self.kept(Runtime(part), start, node).node for part in parts]
                value = self.kept(value, inner, operand, statements)
                if statements and isinstance(value, Known) and value.object is None:
                    value = Known(False)
            truth = self.truth(value)
            if parts and not self._is_number(value):
                if node not in self.asked and is_last:
                    raise self.error(operand, _NO_NUMBER)
                value = Known(truth)
            if not parts and (is_last or truth is (not wanted)):
                self.state.block.extend(statements)
                return value
            if not statements or self.are_values(statements, named):
                given |= named
                set_cells(named)
            if truth is wanted and not is_last and not (parts and statements):
                self.state.block.extend(statements)
                continue
            expression = self.expression(value, operand)
            if parts and statements and not self.are_values(statements, named):
                parts = [self._short_circuit(node, parts, statements, expression)]
            else:
                self.state.block.extend(statements)
                parts.append(expression)
            if truth is (not wanted):
                break
        set_cells(dict.fromkeys(given))
        self.state.given[node] = wanted, given
        return Runtime(self.all_of(node.op, parts, node))

    def given_by(self, test: ast.expr) -> dict[bool, dict[Cell, Value]]:
        """By how a condition came out, the variables that only what stands behind ``and`` or ``or`` gave a value.

        These statements were run in any case, for what they name is new; and Python has run them where the
        first operand did not decide.
        """
        wanted, given = self.state.given.pop(test, (True, {}))
        return {wanted: given, not wanted: {}}

    def _short_circuit(
        self, node: ast.BoolOp, parts: list[ast.expr], statements: list[ast.stmt], last: ast.expr
    ) -> ast.expr:
        """An operand that takes statements is only evaluated where Python would evaluate it."""
        result = self.saved(self.all_of(node.op, parts, node), node, "condition")
        test: ast.expr = clone(result)
        if isinstance(node.op, ast.Or):
            test = self.at(ast.UnaryOp(op=ast.Not(), operand=test), node)
        statements.append(self.assignment(result.id, last, node))
        self.state.joining.append(ast.If(test=test, body=statements, orelse=[]))
        self.emit(self.state.joining[-1], node)
        return result

    def _evaluate_IfExp(self, node: ast.IfExp) -> Value:
        condition = self.condition(node.test)
        truth = self.truth(condition)
        if truth is not None:
            return self.evaluate(node.body if truth else node.orelse)
        test, given = self.expression(condition, node.test), self.given_by(node.test)
        before, constant = self.state.cells(), self.is_constant(test)
        with self.state.captured() as body:
            set_cells(given[True])
            one = self._loaded(node.body)
        ends = self.back(before)
        with self.state.captured() as orelse:
            set_cells(given[False])
            other = self._loaded(node.orelse)
        one, other = self.meet(before, ends, body, orelse, node, constant, (one, other))
        statements = [*body, *orelse]
        if self.are_values(statements, ()) and not any(map(reads_memory, statements)):
            # Positions of elements, say: a choice of a number and a tile is none of an `if`.
            self.state.block.extend(statements)
            return self._chosen(test, one, other, node)
        cell = Cell(self.state.fresh("choice"))
        value = self.merge(cell, (one, body), (other, orelse), node, constant)
        self.conditional(test, body, orelse, node)
        cell.value = value
        return self.read(cell, cell.name, node)

    def _chosen(self, test: ast.expr, one: Value, other: Value, node: ast.IfExp) -> Value:
        """One of two values; of tuples as long as each other, item by item."""
        if same(one, other):
            return one
        if isinstance(one, Group) and isinstance(other, Group) and _are_alike(one, other):
            if not isinstance(test, ast.Name):
                test = self.saved(test, node, "condition")
            if isinstance(one, Iterated):
                pairs = zip(self.elements(one, node), self.elements(other, node), strict=True)
                chosen = [self._chosen(clone(test), *pair, node) for pair in pairs]
                return self.iterator(chosen, one, other)
            pairs = zip(one.items, other.items, strict=True)
            return one.with_items([self._chosen(clone(test), *pair, node) for pair in pairs])
        are_types = isinstance(one, Known) and element_type(one.object) is not None
        if not (self.is_constant(test) or are_types or all(map(self._is_number, (one, other)))):
            raise self.error(node, _NO_NUMBER)
        nodes = self.expression(one, node.body), self.expression(other, node.orelse)
        return Runtime(self.at(ast.IfExp(test=test, body=nodes[0], orelse=nodes[1]), node))

    def _is_number(self, value: Value) -> bool:
        """Whether a value is a number or a tile, of which a running kernel may choose one."""
        if isinstance(value, Known):
            return isinstance(literal(value.object), bool | int | float)
        return isinstance(value, Runtime | Symbolic | Tile)

    def conditional(
        self, test: ast.expr, body: list[ast.stmt], orelse: list[ast.stmt], node: ast.AST
    ) -> None:
        """Add an ``if``, turned round where only its second branch has statements."""
        if not body and not orelse:
            return
        if not body:
            test = self.at(ast.UnaryOp(op=ast.Not(), operand=test), node)
            body, orelse = orelse, []
        self.emit(ast.If(test=test, body=body, orelse=orelse), node)


def _are_alike(one: Group, other: Group) -> bool:
    """Whether two are tuples, or lists, of as many items, or dictionaries with the same keys."""
    keys = [getattr(group, "keys", None) for group in (one, other)]
    return type(one) is type(other) and len(one.items) == len(other.items) and keys[0] == keys[1]


def set_cells(values: Mapping[Cell, Value | None]) -> None:
    """Have variables hold values."""
    for cell, value in values.items():
        cell.value = value


def _is_arithmetic_on_sizes(left: Value, op: ast.operator, right: Value) -> bool:
    """Whether this is a symbolic integer's matter: it divides by nothing that may be negative."""
    if not is_symbolic(left) or not is_symbolic(right):
        return False
    if not isinstance(op, ast.FloorDiv | ast.Mod):
        return True
    dividend, divisor = (as_symbol(symbol_of(value)) for value in (left, right))
    given = frozenset(leaf for leaf in divisor.leaves() if leaf.constexpr)
    is_given = all(leaf.constexpr for each in (dividend, divisor) for leaf in each.leaves())
    return is_given or is_nonnegative(divisor, given)


def is_symbolic(value: Value) -> bool:
    """Whether a value is an integer that a symbolic expression can be made with."""
    if isinstance(value, Symbolic):
        return True
    found = literal(value.object) if isinstance(value, Known) else None
    return isinstance(found, int) and not isinstance(found, bool)


def symbol_of(value: Value) -> Any:
    """The integer or symbol of such a value."""
    return value.symbol if isinstance(value, Symbolic) else literal(cast(Known, value).object)
