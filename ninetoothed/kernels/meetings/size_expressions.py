"""Integers and conditions in a program that sizes and rounds of loops decide, as symbols.

Conditions are made of arithmetic alone, so that C can compute them too.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import SymbolValue
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, index, make, maximum, minimum
from ninetoothed.symbols.operators import OPERATOR_OF_NODE
from ninetoothed.symbols.simplify import difference

#: The variables that are integers over sizes and rounds of loops.
Integers = Mapping[str, Symbol]


def integer(node: ast.expr | None, known: Integers) -> Symbol | None:
    """An integer over sizes and rounds of loops; None of anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return constant(int(node.value))
    if isinstance(node, SymbolValue):
        return as_symbol(node.symbol)
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return computed(ast.Sub(), constant(0), integer(node.operand, known))
    if isinstance(node, ast.BinOp):
        return computed(node.op, integer(node.left, known), integer(node.right, known))
    return None


def computed(operator: ast.operator, left: Symbol | None, right: Symbol | None) -> Symbol | None:
    """What an operator makes of two integers; None where one is not known."""
    if left is None or right is None or type(operator) not in OPERATOR_OF_NODE:
        return None
    return make(OPERATOR_OF_NODE[type(operator)], left, right)


def condition(node: ast.expr, known: Integers) -> Symbol | None:
    """1 where a condition on sizes alone holds, else 0; None of anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        holds = condition(node.operand, known)
        return None if holds is None else 1 - holds
    if isinstance(node, ast.BoolOp):
        parts = [condition(item, known) for item in node.values]
        result = parts[0]
        for part in parts[1:]:
            if result is None or part is None:
                return None
            result = (minimum if isinstance(node.op, ast.And) else maximum)(result, part)
        return result
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    left, right = integer(node.left, known), integer(node.comparators[0], known)
    if left is None or right is None or not (is_of_sizes(left) and is_of_sizes(right)):
        return None
    return _compared(node.ops[0], left, right)


def _compared(operator: ast.cmpop, left: Symbol, right: Symbol) -> Symbol | None:
    match operator:
        case ast.Gt() | ast.GtE():
            return _compared(ast.Lt() if isinstance(operator, ast.Gt) else ast.LtE(), right, left)
        case ast.Lt():
            return minimum(1, maximum(0, right - left))
        case ast.LtE():
            return minimum(1, maximum(0, right - left + 1))
        case ast.NotEq():
            return minimum(1, maximum(left - right, right - left))
        case ast.Eq():
            return 1 - minimum(1, maximum(left - right, right - left))
    return None


def is_of_sizes(expression: Symbol) -> bool:
    """Whether it is the same for all programs and rounds, and for all that the tuner may choose."""
    return not any(leaf.meta or leaf.leaf.role == "index" for leaf in expression.leaves())


@dataclass(frozen=True)
class Counting:
    """The variable of a loop that counts, and what a ``range`` of it would be given."""

    name: str
    numbers: tuple[Symbol | None, ...]

    @property
    def first(self) -> Symbol | None:
        return constant(0) if len(self.numbers) == 1 else self.numbers[0]

    @property
    def step(self) -> Symbol | None:
        return self.numbers[2] if len(self.numbers) > 2 else constant(1)

    @property
    def count(self) -> Symbol | None:
        """How many rounds there are; None where that is not known, or not the same for all programs."""
        first, step = self.first, self.step
        last = self.numbers[0] if len(self.numbers) == 1 else self.numbers[1]
        if first is None or last is None or step is None or step.op != "const" or step == 0:
            return None
        if any(leaf.leaf.role == "index" for bound in (first, last) for leaf in bound.leaves()):
            return None
        size = step.operands[0]
        span = last - first if size > 0 else first - last
        return (span + (abs(size) - 1)) // constant(abs(size))

    @property
    def is_down(self) -> bool:
        """Whether it counts down, by a number."""
        return self.step is not None and self.step.op == "const" and self.step.operands[0] < 0

    def value(self, round: Symbol) -> Symbol | None:
        """Its value in a round; rounds are numbered from the end where it counts down.

        So positions grow with the number of the round.
        """
        if self.first is None or self.step is None:
            return None
        if not self.is_down:
            return self.first + self.step * round
        return None if self.count is None else self.first + self.step * (self.count - 1 - round)


def counting(loop: ast.While, known: Integers) -> Counting | None:
    """The variable that a ``while`` counts with: it is compared with a bound, and one step moves it."""
    test = loop.test
    if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
        return None
    name, bound = test.left.id, test.comparators[0]
    moving = [statement for statement in loop.body if name in names_assigned([statement])]
    first, last = known.get(name), integer(bound, known)
    if first is None or last is None or len(moving) != 1:
        return None
    before, statement = index(name), moving[0]
    if isinstance(statement, ast.AugAssign):
        after = computed(statement.op, before, integer(statement.value, {}))
    else:
        after = integer(getattr(statement, "value", None), {name: before})
    step = None if after is None else difference(after, before)
    if names_read(bound) & names_assigned(loop.body) or not isinstance(step, int):
        return None
    bounds = {ast.Lt: (1, 0), ast.LtE: (1, 1), ast.Gt: (-1, 0), ast.GtE: (-1, -1)}
    bounds |= {ast.NotEq: (step, 0)} if abs(step) == 1 else {}
    sign, beyond = bounds.get(type(test.ops[0]), (0, 0))
    return Counting(name, (first, last + beyond, constant(step))) if sign * step > 0 else None


def of_range(loop: ast.For, known: Integers) -> Counting:
    """The variable of a ``for`` over a range."""
    assert isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call)
    return Counting(loop.target.id, tuple(integer(item, known) for item in loop.iter.args))


def rounds(loop: ast.For | ast.While, known: Integers) -> tuple[Counting, ast.expr | None]:
    """What a loop counts, and the condition that it has a round; None where nobody knows which way it counts."""
    if isinstance(loop, ast.While):
        return counting(loop, known) or _UNCOUNTED, loop.test
    assert isinstance(loop.iter, ast.Call)
    counts, numbers = of_range(loop, known), loop.iter.args
    if counts.step is None or counts.step.op != "const" or counts.step == 0:
        return counts, None
    first = ast.Constant(value=0) if len(numbers) == 1 else numbers[0]
    way = ast.Gt() if counts.is_down else ast.Lt()
    test = ast.Compare(first, [way], [numbers[0 if len(numbers) == 1 else 1]])
    return counts, ast.copy_location(test, loop)


#: Of a loop of which nobody knows what it counts.
_UNCOUNTED = Counting("while", (None, None))
