"""Which indices a program selects, as expressions: what `specialization.selections` finds in numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from ninetoothed.backends.triton.specialization.selections import Selection, Walk, called, parts
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import SymbolValue
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, make, maximum, minimum

#: The least and the greatest value; None where it is not known.
Bounds = tuple[Symbol | None, Symbol | None]


def taken(kernel: Definition) -> dict[Selection, Bounds]:
    """The least and the greatest index that the program selects, wherever it does."""
    walk = _SymbolicWalk({})
    found: dict[Selection, Bounds] = {}
    program = kernel.optimized
    for body in (program.body, *(helper.body for helper in program.helpers.values())):
        for parameter, place, bounds in walk.statements(body):
            selection = (parameter, place)
            known = found.get(selection)
            found[selection] = bounds if known is None else walk.either(known, bounds)
    return found


class _SymbolicWalk(Walk):
    unknown: Bounds = (None, None)

    def either(self, one: Bounds, other: Bounds) -> Bounds:
        return _of_both(minimum, one[0], other[0]), _of_both(maximum, one[1], other[1])

    def range_of(self, iterated: ast.expr) -> Bounds:
        if not isinstance(iterated, ast.Call) or not called(iterated).endswith("range"):
            return self.unknown
        bounds = [self.bounds(argument) for argument in iterated.args]
        start, end = bounds if len(bounds) == 2 else ((as_symbol(0),) * 2, bounds[0])
        if len(bounds) > 2 or start[0] is None:
            return self.unknown
        return start[0], None if end[1] is None else maximum(end[1] - 1, start[0])

    def bounds(self, node: ast.expr) -> Bounds:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return (as_symbol(node.value),) * 2
        if isinstance(node, SymbolValue):
            return (as_symbol(node.symbol),) * 2
        if isinstance(node, ast.Name):
            known: Bounds = self._known.get(node.id, self.unknown)
            return known
        operands, operator = parts(node)
        if not operator:
            return self.unknown
        return _operated(operator, [self.bounds(operand) for operand in operands])


def _operated(operator: str, bounds: list[Bounds]) -> Bounds:
    lows, highs = zip(*bounds, strict=True)
    if operator == "neg":
        return _negated(highs[0]), _negated(lows[0])
    if operator == "+":
        return _of_both(_sum, *lows), _of_both(_sum, *highs)
    if operator == "-":
        return _of_both(_sum, lows[0], _negated(highs[1])), _of_both(
            _sum, highs[0], _negated(lows[1])
        )
    if operator == "min":
        return _of_both(minimum, *lows), _of_some(minimum, highs)
    if operator == "max":
        return _of_some(maximum, lows), _of_both(maximum, *highs)
    (low, high), by = bounds[0], lows[1]
    if by is None or by is not highs[1] or interval(by)[0] < 1:
        return None, None
    if operator == "%":
        return as_symbol(0), by - 1
    # A product or a quotient by what is positive keeps the order.
    return tuple(None if bound is None else make(operator, bound, by) for bound in (low, high))  # type: ignore[return-value]


def _sum(a: Symbol, b: Symbol) -> Symbol:
    return a + b


def _negated(bound: Symbol | None) -> Symbol | None:
    return None if bound is None else -bound


def _of_both(function: object, one: Symbol | None, other: Symbol | None) -> Symbol | None:
    if one is None or other is None:
        return None
    return one if one is other else function(one, other)  # type: ignore[operator,no-any-return]


def _of_some(function: object, bounds: Iterable[Symbol | None]) -> Symbol | None:
    """What is known of a minimum's upper bound where one operand's is."""
    known = [bound for bound in bounds if bound is not None]
    if not known:
        return None
    return known[0] if len(known) == 1 else _of_both(function, *known)
