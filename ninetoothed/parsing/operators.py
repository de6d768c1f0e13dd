"""Operators and comparisons: computed where the operands are known."""

from __future__ import annotations

import ast
import operator
from collections.abc import Collection, Mapping
from typing import Any, cast

from ninetoothed.parsing.expressions import ExpressionFrame
from ninetoothed.parsing.objects import literal
from ninetoothed.parsing.values import (
    Cell,
    Group,
    Known,
    Level,
    Method,
    Named,
    Range,
    Runtime,
    Symbolic,
    Value,
    copy_of,
    same,
)
from ninetoothed.program.effects import called_name, has_effect, names_assigned
from ninetoothed.program.nodes import clone, walk
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.operators import PYTHON_BINARY, PYTHON_COMPARE, PYTHON_UNARY
from ninetoothed.symbols.simplify import is_nonnegative

#: The largest exponent of a value of the running kernel.
MOST_FACTORS = 64

#: The operations that a symbolic integer supports itself.
_SYMBOLIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)

_EQUALITY: dict[type[ast.cmpop], ast.cmpop] = {ast.Is: ast.Eq(), ast.IsNot: ast.NotEq()}


class OperatorFrame(ExpressionFrame):
    """A frame that evaluates operators and comparisons."""

    def _evaluate_BinOp(self, node: ast.BinOp) -> Value:
        left, right = self.in_order([node.left, node.right], self._loaded)
        return self.binary(left, node.op, right, node)

    def binary(self, left: Value, op: ast.operator, right: Value, node: ast.AST) -> Value:
        """``left op right``."""
        if isinstance(op, ast.MatMult):
            raise self.error(node, "`@` is not supported: use `ntl.dot`.")
        if isinstance(left, Group) or isinstance(right, Group):
            concatenated = self._concatenated(left, op, right, node)
            if concatenated is not None:
                return concatenated
        if isinstance(left, Known) and isinstance(right, Known):
            one, other = literal(left.object), literal(right.object)
            return self.computed(PYTHON_BINARY[type(op)], node, one, other)
        if isinstance(op, _SYMBOLIC) and _is_arithmetic_on_sizes(left, op, right):
            one, other = symbol_of(left), symbol_of(right)
            return self.computed(lambda: PYTHON_BINARY[type(op)](one, other), node)
        count = (
            literal(right.object) if isinstance(op, ast.Pow) and isinstance(right, Known) else None
        )
        if type(count) is int and 1 <= count <= MOST_FACTORS:
            return self._power(self.computed_once(left, node, "factor"), count, node)
        operands = [self.expression(value, node) for value in (left, right)]
        if isinstance(op, ast.Pow) and not all(map(self.is_constant, operands)):
            raise self.error(
                node,
                f"`**` of a value of the running kernel takes a whole number from 1 to {MOST_FACTORS} that "
                "is known at compile time: use `ntl.sqrt`, `ntl.libdevice.pow` or "
                "`ntl.exp2(exponent * ntl.log2(base))`.",
            )
        return Runtime(self.at(ast.BinOp(left=operands[0], op=op, right=operands[1]), node))

    def _power(self, base: Value, count: int, node: ast.AST) -> Value:
        """A whole power, as products."""
        if count == 1:
            return copy_of(base)
        half = self.computed_once(self._power(base, count // 2, node), node, "factor")
        result = self.binary(copy_of(half), ast.Mult(), copy_of(half), node)
        return self.binary(result, ast.Mult(), copy_of(base), node) if count % 2 else result

    def _concatenated(
        self, left: Value, op: ast.operator, right: Value, node: ast.AST
    ) -> Group | None:
        """Tuples added, or repeated."""
        if isinstance(op, ast.Add) and isinstance(left, Group) and isinstance(right, Group):
            self.check_operation(operator.add, (left.items, right.items), node)
            return Group(left.items + right.items)
        if isinstance(op, ast.Mult):
            group, count = (left, right) if isinstance(left, Group) else (right, left)
            if isinstance(count, Known) and isinstance(count.object, int):
                assert isinstance(group, Group)
                self.check_operation(operator.mul, (group.items, count.object), node)
                return Group(group.items * count.object)
        return None

    def _evaluate_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            if truth is not None:
                return Known(not truth)
        if isinstance(value, Known):
            item = literal(value.object)
            return self.computed(lambda: PYTHON_UNARY[type(node.op)](item), node)
        if isinstance(value, Symbolic) and isinstance(node.op, ast.USub):
            return self.computed(lambda: 0 - value.symbol, node)
        operand = self.expression(value, node)
        return Runtime(self.at(ast.UnaryOp(op=node.op, operand=operand), node))

    def _evaluate_BoolOp(self, node: ast.BoolOp) -> Value:
        wanted = isinstance(node.op, ast.And)
        parts: list[ast.expr] = []
        given: dict[Cell, Value] = {}
        for position, operand in enumerate(node.values):
            before = self.state.cells()
            with self.state.captured() as statements:
                value = self._loaded(operand)
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
            is_last = position == len(node.values) - 1
            if not parts and (is_last or truth is (not wanted)):
                self.state.block.extend(statements)
                return value
            if not statements or self._are_values(statements, named):
                given |= named
                set_cells(named)
            if truth is wanted and not is_last and not statements:
                continue
            expression = self.expression(value, operand)
            if parts and statements and not self._are_values(statements, named):
                parts = [self._short_circuit(node, parts, statements, expression)]
            else:
                self.state.block.extend(statements)
                parts.append(expression)
            if truth is (not wanted):
                break
        set_cells(dict.fromkeys(given))
        self.state.given[node] = wanted, given
        return Runtime(self._all_of(node.op, parts, node))

    def given_by(self, test: ast.expr) -> dict[bool, dict[Cell, Value]]:
        """By how a condition came out, the variables that only what stands behind ``and`` or ``or`` gave a value.

        These statements were run in any case, for what they name is new; and Python has run them where the
        first operand did not decide.
        """
        wanted, given = self.state.given.pop(test, (True, {}))
        return {wanted: given, not wanted: {}}

    def _are_values(self, statements: list[ast.stmt], named: Collection[Cell]) -> bool:
        """Whether all that they do is to name values, which tiles need in any case.

        Args:
            named: variables that had no value before.
        """
        variables = {
            name
            for cell in self.state.cells()
            if cell not in named
            for name in (cell.name, *cell.item_names.values())
        }
        return all(
            isinstance(statement, ast.Assign)
            and variables.isdisjoint(names_assigned([statement]))
            and not has_effect(statement.value)
            and not any(
                isinstance(node, ast.Call) and called_name(node) == "load"
                for node in walk(statement.value)
            )
            for statement in statements
        )

    def _all_of(self, op: ast.boolop, parts: list[ast.expr], node: ast.AST) -> ast.expr:
        if len(parts) == 1:
            return parts[0]
        return self.at(ast.BoolOp(op=op, values=parts), node)

    def _short_circuit(
        self, node: ast.BoolOp, parts: list[ast.expr], statements: list[ast.stmt], last: ast.expr
    ) -> ast.expr:
        """An operand that takes statements is only evaluated where Python would evaluate it."""
        result = self.saved(self._all_of(node.op, parts, node), node, "condition")
        test: ast.expr = clone(result)
        if isinstance(node.op, ast.Or):
            test = self.at(ast.UnaryOp(op=ast.Not(), operand=test), node)
        statements.append(self.assignment(result.id, last, node))
        self.state.joining.append(ast.If(test=test, body=statements, orelse=[]))
        self.emit(self.state.joining[-1], node)
        return result

    def _evaluate_IfExp(self, node: ast.IfExp) -> Value:
        condition = self._loaded(node.test)
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
        if not body and not orelse:
            if same(one, other):
                return one
            nodes = self.expression(one, node.body), self.expression(other, node.orelse)
            return Runtime(self.at(ast.IfExp(test=test, body=nodes[0], orelse=nodes[1]), node))
        cell = Cell(self.state.fresh("choice"))
        value = self.merge(cell, (one, body), (other, orelse), node, constant)
        self.conditional(test, body, orelse, node)
        cell.value = value
        return self.read(cell, cell.name, node)

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

    # Comparisons.

    def _evaluate_Compare(self, node: ast.Compare) -> Value:
        # `is` asks what a tile is, not what it holds.
        asks = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        operands = [node.left, *node.comparators]
        evaluate = self.evaluate if asks else self._loaded

        def compared(operand: ast.expr) -> Value:
            if operand in operands[:2]:
                return evaluate(operand)
            before, start = self.state.cells(), len(self.state.block)
            value = evaluate(operand)
            is_changed = any(cell.value is not old for cell, old in before.items())
            if is_changed or not self._are_values(self.state.block[start:], ()):
                raise self.error(
                    operand,
                    "This changes a variable or a tensor, and Python comes to it only where the comparison "
                    "before it holds: write two comparisons with `and`.",
                )
            return value

        values = self.in_order(operands, compared)
        if len(node.ops) == 1:
            return self._compare(values[0], node.ops[0], values[1], node)
        results: list[Value] = []
        for index, op in enumerate(node.ops):
            left, right = values[index], values[index + 1]
            if isinstance(right, Runtime) and index < len(node.ops) - 1:
                if not isinstance(right.node, ast.Name | ast.Constant):
                    right = Runtime(self.saved(right.node, node, "value"))
                values[index + 1] = Runtime(clone(right.node))
            results.append(self._compare(left, op, right, node))
        return self._conjunction(results, node)

    def _conjunction(self, results: list[Value], node: ast.AST) -> Value:
        """All of several comparisons, of tiles too."""
        if any(self.truth(result) is False for result in results):
            return Known(False)
        rest = [result for result in results if self.truth(result) is None]
        if not rest:
            return Known(True)
        whole = self.expression(rest[0], node)
        for result in rest[1:]:
            right = self.expression(result, node)
            whole = self.at(ast.BinOp(left=whole, op=ast.BitAnd(), right=right), node)
        return Runtime(whole)

    def _compare(self, left: Value, op: ast.cmpop, right: Value, node: ast.Compare) -> Value:
        if isinstance(op, ast.In | ast.NotIn):
            return self._contained(left, op, right, node)
        if isinstance(op, ast.Is | ast.IsNot):
            known = self._identical(left, right, node)
            if known is not None:
                return Known(known is isinstance(op, ast.Is))
        elif isinstance(left, Known) and isinstance(right, Known):
            one, other = left.object, right.object
            if not isinstance(op, ast.Eq | ast.NotEq):
                one, other = literal(one), literal(other)
            return self.computed(lambda: PYTHON_COMPARE[type(op)](one, other), node)
        elif isinstance(op, ast.Eq | ast.NotEq):
            equal = self._equal(left, right, node)
            if equal is not None:
                return equal if isinstance(op, ast.Eq) else self._negated(equal, node)
        nodes = self.expression(left, node), self.expression(right, node)
        if any(map(_is_value, nodes)):
            # What was one object in Python, an enum's member, is a number or a text here.
            op = _EQUALITY.get(type(op), op)
        compared = self.at(ast.Compare(left=nodes[0], ops=[op], comparators=[nodes[1]]), node)
        holds = self.state.decisions.of(compared)
        return Runtime(compared) if holds is None else Known(holds)

    def _negated(self, value: Value, node: ast.AST) -> Value:
        truth = self.truth(value)
        if truth is not None:
            return Known(not truth)
        operand = self.expression(value, node)
        return Runtime(self.at(ast.UnaryOp(op=ast.Not(), operand=operand), node))

    def _identical(self, left: Value, right: Value, node: ast.Compare) -> bool | None:
        """``left is right`` where it is known."""
        if isinstance(left, Known) and isinstance(right, Known):
            return left.object is right.object or same(left, right)
        if isinstance(left, Group) and isinstance(right, Group):
            if _is_one_name(node):
                return True
            raise self.error(
                node, "Whether two tuples are one object is not known here: compare with `==`."
            )
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Known) and one.object is None and not isinstance(other, Runtime):
                return False
        return False if _is_tuple_and_none(left, right) else None

    def _equal(self, left: Value, right: Value, node: ast.Compare) -> Value | None:
        """``left == right`` where that is no comparison of two numbers of the running kernel."""
        if isinstance(left, Symbolic) and same(left, right):
            return Known(True)
        if _is_tuple_and_none(left, right):
            return Known(False)
        if isinstance(left, Named) or isinstance(right, Named):
            if not all(map(_is_dictionary, (left, right))):
                return Known(False)
            one, other = self.named(left, node), self.named(right, node)
            if one.keys() != other.keys():
                return Known(False)
            left, right = Group(tuple(one.values())), Group(tuple(other[key] for key in one))
        if isinstance(left, Group) and isinstance(right, Group):
            if len(left.items) != len(right.items):
                return Known(False)
            pairs = zip(left.items, right.items, strict=True)
            return self._conjunction([self._compare(a, ast.Eq(), b, node) for a, b in pairs], node)
        if isinstance(left, Level | Method | Range) or isinstance(right, Level | Method | Range):
            return Known(same(left, right))
        return None

    def _contained(self, left: Value, op: ast.cmpop, right: Value, node: ast.Compare) -> Value:
        """``left in right``."""
        if isinstance(right, Known) and isinstance(left, Known):
            item, container = left.object, right.object
            found = self.computed(lambda: item in container, node)
            return found if isinstance(op, ast.In) else self._negated(found, node)
        if not isinstance(right, Group):
            raise self.error(node, "`in` needs a tuple of compile-time constants on its right.")
        if isinstance(right, Named) and isinstance(left, Known):
            return Known((left.object in right.keys) is isinstance(op, ast.In))
        if isinstance(left, Runtime) and not isinstance(left.node, ast.Name):
            left = Runtime(self.saved(left.node, node, "value"))
        results = []
        for item in self.elements(right, node):
            copy: Value = Runtime(clone(left.node)) if isinstance(left, Runtime) else left
            result = self._compare(copy, ast.Eq(), item, node)
            if self.truth(result):
                return Known(isinstance(op, ast.In))
            if self.truth(result) is None:
                results.append(self.expression(result, node))
        if not results:
            return Known(isinstance(op, ast.NotIn))
        found = Runtime(self._all_of(ast.Or(), results, node))
        return found if isinstance(op, ast.In) else self._negated(found, node)


def set_cells(values: Mapping[Cell, Value | None]) -> None:
    """Have variables hold values."""
    for cell, value in values.items():
        cell.value = value


def _is_value(node: ast.expr) -> bool:
    """Whether a node is a literal of which there may be several equal objects."""
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool | None)


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
    return (
        isinstance(value, Known)
        and isinstance(value.object, int)
        and not isinstance(value.object, bool)
    )


def symbol_of(value: Value) -> Any:
    """The integer or symbol of such a value."""
    return value.symbol if isinstance(value, Symbolic) else literal(cast(Known, value).object)


def _is_dictionary(value: Value) -> bool:
    known = isinstance(value, Known) and isinstance(value.object, dict)
    return known or isinstance(value, Named)


def _is_one_name(node: ast.Compare) -> bool:
    """Whether a comparison is of one variable with itself."""
    operands = [node.left, *node.comparators]
    return len({each.id if isinstance(each, ast.Name) else each for each in operands}) == 1


def _is_tuple_and_none(left: Value, right: Value) -> bool:
    """Whether one is a tuple and the other is known to be something else."""
    return any(
        isinstance(one, Group)
        and (
            isinstance(other, Symbolic)
            or (isinstance(other, Known) and not isinstance(other.object, tuple | list))
        )
        for one, other in ((left, right), (right, left))
    )
