"""Comparisons: computed where the operands are known, of tuples item by item."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ninetoothed.parsing.expressions import ExpressionFrame
from ninetoothed.parsing.objects import counted
from ninetoothed.parsing.values import (
    Cell,
    Evaluated,
    Group,
    Iterated,
    Known,
    Level,
    Method,
    Named,
    Range,
    Runtime,
    Symbolic,
    Tile,
    Value,
    copy_of,
    is_scalar,
    same,
    to_python,
)
from ninetoothed.program.effects import called_name, has_effect, names_assigned
from ninetoothed.program.nodes import clone, walk
from ninetoothed.symbols.operators import PYTHON_COMPARE

NO_TUPLE = (
    "What `zip`, `enumerate`, `reversed` and the like give is no tuple, and nothing but gone over: make one of it, "
    "`tuple(...)`."
)

_EQUALITY: dict[type[ast.cmpop], ast.cmpop] = {ast.Is: ast.Eq(), ast.IsNot: ast.NotEq()}


class ComparisonFrame(ExpressionFrame):
    """A frame that evaluates comparisons."""

    def _evaluate_Compare(self, node: ast.Compare) -> Value:
        # `is` asks what a tile is, not what it holds.
        asks = all(isinstance(op, ast.Is | ast.IsNot) for op in node.ops)
        operands = [node.left, *node.comparators]
        evaluate = self.evaluate if asks else self._loaded
        if any(isinstance(part, ast.NamedExpr) for each in operands[2:] for part in ast.walk(each)):
            return self._compared_in_steps(node)

        def compared(operand: ast.expr) -> Value:
            if operand in operands[:2]:
                return evaluate(operand)
            before, start = self.state.cells(), len(self.state.block)
            value = evaluate(operand)
            is_changed = any(cell.value is not old for cell, old in before.items())
            if is_changed or not self.are_values(self.state.block[start:], ()):
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
                right = self.computed_once(right, node, "value")
                values[index + 1] = copy_of(right)
            results.append(self._compare(left, op, right, node))
        if any(isinstance(result, Runtime) for result in results):
            # A tile's comparison is a tile, also where a constant decides what it holds.
            results = [
                r if self.truth(r) is not False else Runtime(self.expression(r, node))
                for r in results
            ]
        return self._conjunction(results, node)

    def _compared_in_steps(self, node: ast.Compare) -> Value:
        """``a < b < c`` as ``a < b and b < c``: what ``c`` assigns is assigned where ``a < b`` alone."""
        left, middle = self.in_order([node.left, node.comparators[0]], self._loaded)
        middle = self.computed_once(middle, node, "value")
        first = self._compare(left, node.ops[0], middle, node)
        rest = ast.Compare(Evaluated(copy_of(middle)), node.ops[1:], node.comparators[1:])
        values: list[ast.expr] = [Evaluated(first), ast.copy_location(rest, node)]
        whole = ast.copy_location(ast.BoolOp(op=ast.And(), values=values), node)
        for part in (whole, *values):
            if node in self.asked:
                self.asked.add(part)
        return self.evaluate(whole)

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
        elif isinstance(left, Iterated) or isinstance(right, Iterated):
            raise self.error(node, NO_TUPLE)
        elif isinstance(left, Known) and isinstance(right, Known):
            one, other = left.object, right.object
            if not isinstance(op, ast.Eq | ast.NotEq):
                one, other = counted(one), counted(other)
            return self.computed(lambda: PYTHON_COMPARE[type(op)](one, other), node)
        elif isinstance(op, ast.Eq | ast.NotEq):
            equal = self._equal(left, right, node)
            if equal is not None:
                return equal if isinstance(op, ast.Eq) else self._negated(equal, node)
        elif isinstance(left, Group) or isinstance(right, Group):
            plain = to_python(left), to_python(right)
            if plain[0] is None or plain[1] is None:
                raise self.error(
                    node,
                    "Tuples and lists of values of a running kernel are compared with `==` and `!=`.",
                )
            one, other = plain[0].object, plain[1].object
            return self.computed(lambda: PYTHON_COMPARE[type(op)](one, other), node)
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
            is_one = left.object is right.object
            return is_one or (not is_scalar(left.object) and same(left, right))
        if isinstance(left, Group) and isinstance(right, Group):
            if _is_one_name(node):
                return True
            raise self.error(
                node, "Whether two tuples are one object is not known here: compare with `==`."
            )
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Known) and one.object is None:
                if not (isinstance(other, Runtime) and self.may_be_none(other.node)):
                    return False
        return False if _is_tuple_and_none(left, right) else None

    def _equal(self, left: Value, right: Value, node: ast.Compare) -> Value | None:
        """``left == right`` where that is no comparison of two numbers of the running kernel."""
        if isinstance(left, Symbolic) and same(left, right):
            return Known(True)
        if _is_tuple_and_none(left, right) or self._is_number_and_none(left, right):
            return Known(False)
        if isinstance(left, Named) or isinstance(right, Named):
            if not all(map(_is_dictionary, (left, right))):
                return Known(False)
            one, other = self.named(left, node), self.named(right, node)
            if one.keys() != other.keys():
                return Known(False)
            left, right = Group(tuple(one.values())), Group(tuple(other[key] for key in one))
        if isinstance(left, Group) and isinstance(right, Group):
            if type(left) is not type(right) or len(left.items) != len(right.items):
                return Known(False)
            pairs = zip(left.items, right.items, strict=True)
            return self._conjunction([self._compare(a, ast.Eq(), b, node) for a, b in pairs], node)
        if isinstance(left, Level | Method | Range) or isinstance(right, Level | Method | Range):
            return Known(same(left, right))
        return None

    def _is_number_and_none(self, left: Value, right: Value) -> bool:
        """Whether one is None and the other a number or a tile."""
        return any(
            isinstance(one, Known)
            and one.object is None
            and isinstance(other, Runtime | Symbolic | Tile)
            and not (isinstance(other, Runtime) and self.may_be_none(other.node))
            for one, other in ((left, right), (right, left))
        )

    def _contained(self, left: Value, op: ast.cmpop, right: Value, node: ast.Compare) -> Value:
        """``left in right``."""
        if isinstance(right, Known) and isinstance(left, Known):
            self.check_reusable(right, node)
            item, container = left.object, right.object
            found = self.computed(lambda: item in container, node)
            return found if isinstance(op, ast.In) else self._negated(found, node)
        if not isinstance(right, Group):
            raise self.error(node, "`in` needs a tuple of compile-time constants on its right.")
        if isinstance(right, Named) and isinstance(left, Known):
            return Known((left.object in right.keys) is isinstance(op, ast.In))
        if isinstance(left, Runtime):
            left = self.computed_once(left, node, "value")
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
        found = Runtime(self.all_of(ast.Or(), results, node))
        return found if isinstance(op, ast.In) else self._negated(found, node)

    def are_values(self, statements: list[ast.stmt], named: Collection[Cell]) -> bool:
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

        def is_value(value: ast.expr) -> bool:
            calls = (node for node in walk(value) if isinstance(node, ast.Call))
            return not has_effect(value) and all(called_name(call) != "load" for call in calls)

        def names_values(statement: ast.stmt) -> bool:
            if isinstance(statement, ast.If):
                ways = [*statement.body, *statement.orelse]
                return is_value(statement.test) and all(map(names_values, ways))
            is_new = variables.isdisjoint(names_assigned([statement]))
            return isinstance(statement, ast.Assign) and is_new and is_value(statement.value)

        return all(map(names_values, statements))

    def all_of(self, op: ast.boolop, parts: list[ast.expr], node: ast.AST) -> ast.expr:
        if len(parts) == 1:
            return parts[0]
        return self.at(ast.BoolOp(op=op, values=parts), node)


def _is_value(node: ast.expr) -> bool:
    """Whether a node is a literal of which there may be several equal objects."""
    return isinstance(node, ast.Constant) and not isinstance(node.value, bool | None)


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
