"""Between which numbers an expression's value lies, by the bounds of the names in it.

Interval arithmetic over the expression as it is written: nothing is rewritten here, so that a
difference of equal terms is as wide as two differing ones. `simplify` first where that matters.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

from ninetoothed.symbols.expr import Expression, Symbol, padded

#: The least and the greatest value, inclusive; infinite where there is none.
Interval = tuple[int | float, int | float]

_INFINITY = float("inf")


def interval(expression: Expression, ranges: Mapping[Symbol, Interval] | None = None) -> Interval:
    """Bounds (inclusive) of the expression's value.

    Args:
        ranges: bounds of leaves; the others have those of their `Leaf`.
    """
    if not isinstance(expression, Symbol):
        return (expression, expression)
    return known_interval(expression) if ranges is None else _interval(expression, ranges)


@functools.lru_cache(maxsize=16384)
def known_interval(expression: Symbol) -> Interval:
    """Those of a Symbol by the bounds of its leaves."""
    return _interval(expression, None)


def _interval(expression: Symbol, ranges: Mapping[Symbol, Interval] | None) -> Interval:
    op, operands = expression.op, expression.operands
    if op == "const":
        return (operands[0], operands[0])
    if ranges is not None and expression in ranges:
        return ranges[expression]
    if op == "leaf":
        return _leaf_interval(expression)
    if op in ("sequence_start", "sequence_length"):
        return (0, _INFINITY)
    bounds = [interval(operand, ranges) for operand in operands if isinstance(operand, Symbol)]
    if op == "+":
        return (bounds[0][0] + bounds[1][0], bounds[0][1] + bounds[1][1])
    if op == "-":
        return (bounds[0][0] - bounds[1][1], bounds[0][1] - bounds[1][0])
    if op == "neg":
        return (-bounds[0][1], -bounds[0][0])
    if op == "*":
        return product_interval(*bounds)
    if op == "//":
        return _quotient_interval(*bounds)
    if op == "%":
        return _remainder_interval(*bounds)
    if op == "min":
        return (min(bounds[0][0], bounds[1][0]), min(bounds[0][1], bounds[1][1]))
    if op == "max":
        return (max(bounds[0][0], bounds[1][0]), max(bounds[0][1], bounds[1][1]))
    if op == "padded":
        low, high = bounds[0]
        return (_padded_bound(low), _padded_bound(high))
    return (-_INFINITY, _INFINITY)


def _leaf_interval(symbol: Symbol) -> Interval:
    leaf = symbol.leaf
    if leaf.role == "index":
        upper = interval(leaf.extent)[1] - 1 if leaf.extent is not None else _INFINITY  # type: ignore[arg-type]
        return (0, max(upper, 0))
    if leaf.meta:
        # Its bounds are the tuner's: an arrangement is looked at with small numbers too.
        return (1, _INFINITY)
    # Declared bounds are promises, which a call may break: nothing is proved by them.
    return (0 if leaf.role == "size" else -_INFINITY, _INFINITY)


def _padded_bound(bound: float) -> float:
    if abs(bound) == _INFINITY:
        return max(bound, 1)
    return padded(int(bound)).operands[0]


def product_interval(one: Interval, other: Interval) -> Interval:
    """Between which numbers a product lies."""
    corners = [0 if a == 0 or b == 0 else a * b for a in one for b in other]
    return (min(corners), max(corners))


def _quotient_interval(numerator: Interval, denominator: Interval) -> Interval:
    if denominator[0] <= 0:
        return (-_INFINITY, _INFINITY)
    corners = [_floordiv(n, d) for n in numerator for d in denominator]
    return (min(corners), max(corners))


def _floordiv(a: float, b: float) -> float:
    if abs(a) == _INFINITY:
        return a
    if b == _INFINITY:
        return 0 if a >= 0 else -1
    return a // b


def _remainder_interval(numerator: Interval, denominator: Interval) -> Interval:
    if denominator[0] <= 0:
        return (-_INFINITY, _INFINITY)
    low, high = numerator
    divisor = denominator[0]
    if denominator[0] == denominator[1] and abs(low) != _INFINITY and abs(high) != _INFINITY:
        if low // divisor == high // divisor:
            return (low % divisor, high % divisor)
    if low >= 0:
        return (0, min(high, denominator[1] - 1))
    return (0, denominator[1] - 1)
