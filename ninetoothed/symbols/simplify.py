"""Simplification of integer expressions, and what can be proved of them.

The arithmetic part of an expression is brought into one normal form, a polynomial over atoms
(names, quotients, remainders …), in which equal terms cancel. Quotients and remainders are rewritten
by the rules below; every rule holds for Python's flooring division.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping

from ninetoothed.symbols.bounds import Interval, interval, known_interval, product_interval
from ninetoothed.symbols.expr import Expression, Symbol, as_expression, as_symbol, constant, make

#: A product of atoms, in a fixed order, with repetitions: () is the number one.
Monomial = tuple[Symbol, ...]
Polynomial = dict[Monomial, int]

#: For where no name is known to be 1 or more.
NONE_POSITIVE: frozenset[Symbol] = frozenset()

_ARITHMETIC = ("+", "-", "*", "neg", "const")


def simplify(expression: Expression) -> Expression:
    """An equal expression that is not longer; an int where the value is known."""
    return as_expression(_simplify(as_symbol(expression)))


@functools.lru_cache(maxsize=16384)
def _simplify(expression: Symbol) -> Symbol:
    if expression.op in ("leaf", "const"):
        return expression
    if expression.op in _ARITHMETIC or expression.op in ("//", "%"):
        return _from_polynomial(_polynomial(expression))
    operands = [_simplify(o) if isinstance(o, Symbol) else o for o in expression.operands]
    if expression.op in ("min", "max"):
        return _simplify_extremum(expression.op, *operands)
    if expression.op in ("<", "<=", ">", ">="):
        return _simplify_comparison(expression.op, *operands)
    return make(expression.op, *operands)


def difference(a: Expression, b: Expression) -> Expression:
    """``a - b``, simplified."""
    return simplify(as_symbol(a) - as_symbol(b))


def difference_interval(a: Expression, b: Expression) -> Interval:
    """Between which numbers ``a - b`` lies, simplified."""
    return _interval(_gap(a, b))


def are_equal(a: Expression, b: Expression) -> bool:
    """Whether two expressions are the same, simplified."""
    return not _gap(a, b)


def _gap(a: Expression, b: Expression) -> Polynomial:
    return _sum(_polynomial(as_symbol(a)), _polynomial(as_symbol(b)), -1)


def product(values: tuple[Expression, ...] | list[Expression]) -> Expression:
    """The product, simplified; 1 of none."""
    result: Expression = 1
    for value in values:
        result = result * value
    return simplify(result)


def is_nonnegative(expression: Expression, positive: frozenset[Symbol] = NONE_POSITIVE) -> bool:
    """Whether the expression is provably never negative, where every index is below its extent.

    Args:
        positive: names that are known to be 1 or more.
    """
    ranges = _ranges(positive)
    simplified = simplify(expression)
    if interval(simplified, ranges)[0] >= 0:
        return True
    negated = _scaled(_polynomial(as_symbol(simplified)), -1)
    return _interval(_greatest(negated), ranges)[1] <= 0


def _ranges(positive: frozenset[Symbol]) -> dict[Symbol, Interval] | None:
    return dict.fromkeys(positive, (1, float("inf"))) or None


@functools.lru_cache(maxsize=16384)
def floors_as_it_truncates(expression: Symbol, positive: frozenset[Symbol] = NONE_POSITIVE) -> bool:
    """Whether a quotient or a remainder is the same where division truncates, as on a device.

    So it is where the dividend is never negative, and the divisor neither. One that is a size is taken
    to be positive: nothing runs where it is 0 or less.

    Args:
        positive: names that are known to be 1 or more.
    """
    dividend, divisor = expression.operands
    return _may_divide(divisor, positive) and _is_without_sign(dividend, positive)


def _may_divide(divisor: Symbol, positive: frozenset[Symbol]) -> bool:
    given = [leaf for leaf in divisor.leaves() if leaf.leaf.role == "symbol" and leaf.constexpr]
    return positive.issuperset(given) or interval(divisor, _ranges(positive))[0] >= 0


def _is_without_sign(expression: Symbol, positive: frozenset[Symbol]) -> bool:
    """Whether a value is never negative."""
    op, operands = expression.op, expression.operands
    if op in ("+", "*", "min"):
        if all(_is_without_sign(operand, positive) for operand in operands):
            return True
    elif op in ("//", "%") and _may_divide(operands[1], positive):
        return op == "%" or _is_without_sign(operands[0], positive)
    elif op == "max" and any(_is_without_sign(operand, positive) for operand in operands):
        return True
    return is_nonnegative(expression, positive)


# The normal form.


def _interval(polynomial: Polynomial, ranges: Mapping[Symbol, Interval] | None = None) -> Interval:
    """Bounds of a polynomial: those of its expression, which need not be made for them."""
    find = known_interval if ranges is None else functools.partial(interval, ranges=ranges)
    low: float = 0
    high: float = 0
    for monomial, coefficient in polynomial.items():
        bounds = functools.reduce(product_interval, map(find, monomial)) if monomial else (1, 1)
        # As wide as a number may be.
        number = constant(coefficient).operands[0]
        low += number * bounds[number < 0]
        high += number * bounds[number > 0]
    return (low, high)


@functools.lru_cache(maxsize=16384)
def _polynomial(expression: Symbol) -> Polynomial:
    """The normal form; never changed in place, for it is kept."""
    op, operands = expression.op, expression.operands
    if op == "const":
        return {(): int(operands[0])} if operands[0] else {}
    if op == "neg":
        return _scaled(_polynomial(operands[0]), -1)
    if op == "+":
        return _sum(_polynomial(operands[0]), _polynomial(operands[1]))
    if op == "-":
        return _sum(_polynomial(operands[0]), _polynomial(operands[1]), -1)
    if op == "*":
        return _product(_polynomial(operands[0]), _polynomial(operands[1]))
    if op == "//":
        return _quotient(_polynomial(operands[0]), _polynomial(operands[1]))
    if op == "%":
        return _remainder(_polynomial(operands[0]), _polynomial(operands[1]))
    simplified = _simplify(expression)
    return _polynomial(simplified) if simplified.op == "const" else {(simplified,): 1}


def _sum(a: Polynomial, b: Polynomial, factor: int = 1) -> Polynomial:
    """The first, and a number of times the other."""
    result = dict(a)
    for monomial, coefficient in b.items():
        total = result.get(monomial, 0) + factor * coefficient
        if total:
            result[monomial] = total
        else:
            result.pop(monomial, None)
    return _rejoined(result)


def _scaled(a: Polynomial, factor: int) -> Polynomial:
    return {monomial: coefficient * factor for monomial, coefficient in a.items()}


def _product(a: Polynomial, b: Polynomial) -> Polynomial:
    return _rejoined(_product_plain(a, b))


def _rejoined(a: Polynomial) -> Polynomial:
    """``d * (x // d) + x % d`` is ``x``, and ``d * (x // d % e) + x % d`` is ``x % (d * e)``."""
    for monomial, coefficient in a.items():
        for atom in monomial:
            if atom.op != "%":
                continue
            dividend, divisor, quotient = _divided(atom)
            scale = _product_plain(divisor, {_without(monomial, atom): coefficient})
            for whole, digits in _continued(a, quotient, divisor, dividend):
                expected = _product_plain(digits, scale)
                if expected and all(a.get(key) == value for key, value in expected.items()):
                    rest = {k: v for k, v in a.items() if k not in expected and k != monomial}
                    others = {_without(monomial, atom): coefficient}
                    return _sum(rest, _product_plain(whole, others))
    return a


@functools.lru_cache(maxsize=4096)
def _divided(remainder: Symbol) -> tuple[Polynomial, Polynomial, Polynomial]:
    """Of a remainder the dividend, the divisor and their quotient."""
    dividend, divisor = map(_polynomial, remainder.operands)
    return dividend, divisor, _quotient(dividend, divisor)


def _continued(
    a: Polynomial, quotient: Polynomial, divisor: Polynomial, dividend: Polynomial
) -> Iterator[tuple[Polynomial, Polynomial]]:
    """What a remainder may be part of, and the digits above it that this takes.

    The whole dividend, with the quotient as it is; or the remainder of a multiple of the divisor,
    with a remainder of the quotient that is somewhere in ``a``.
    """
    yield dividend, quotient
    above = _from_polynomial(quotient)
    for monomial in a:
        for atom in monomial:
            if atom.op != "%" or atom.operands[0] is not above:
                continue
            if interval(atom.operands[1])[0] >= 0:
                size = _polynomial(atom.operands[1])
                yield _remainder(dividend, _product(divisor, size)), {(atom,): 1}


def _product_plain(a: Polynomial, b: Polynomial) -> Polynomial:
    """The product; a number is multiplied in, a sum stays together as one factor.

    Multiplying sums out would turn ``N * (H - R + 1) * (W - S + 1)`` into a page.
    """
    if not a or not b:
        return {}
    if len(a) == 1 and () in a:
        return _scaled(b, a[()])
    if len(b) == 1 and () in b:
        return _scaled(a, b[()])
    (left, m), (right, n) = _term(a), _term(b)
    return {tuple(sorted(left + right, key=_order)): m * n}


def _term(a: Polynomial) -> tuple[Monomial, int]:
    """A polynomial as a single term."""
    if len(a) == 1:
        return next(iter(a.items()))
    return (_from_polynomial(a),), 1


def _without(monomial: Monomial, atom: Symbol) -> Monomial:
    position = monomial.index(atom)
    return monomial[:position] + monomial[position + 1 :]


def _split(numerator: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """``numerator`` as ``whole * divisor + rest``."""
    if numerator == divisor:
        return {(): 1}, {}
    factors, scale = _term(divisor)
    whole: Polynomial = {}
    rest: Polynomial = {}
    for monomial, coefficient in numerator.items():
        remaining: Monomial | None = monomial
        for factor in factors:
            if remaining is None or factor not in remaining:
                remaining = None
                break
            remaining = _without(remaining, factor)
        if remaining is None:
            rest[monomial] = coefficient
            continue
        quotient, remainder = divmod(coefficient, scale)
        if quotient:
            whole[remaining] = quotient
        if remainder:
            rest[monomial] = remainder
    return whole, rest


def _quotient(numerator: Polynomial, divisor: Polynomial) -> Polynomial:
    if divisor == {(): 1}:
        return numerator
    if not divisor:
        return {}
    whole, rest = _split(numerator, divisor)
    if not rest or _lies_within(rest, divisor):
        return whole
    if _interval(rest)[0] < 0:
        # `(n + B - 1) // B` stays as it is: its dividend is never negative, so that it means the
        # same where division truncates, as it does on a device.
        whole, rest = {}, numerator
    top, bottom = _from_polynomial(rest), _from_polynomial(divisor)
    if not whole and top.op == "//" and interval(top.operands[1])[0] > 0:
        # (x // a) // b is x // (a * b)
        if interval(bottom)[0] > 0:
            inner = _product(_polynomial(top.operands[1]), divisor)
            return _quotient(_polynomial(top.operands[0]), inner)
    return _sum(whole, _atom(make("//", top, bottom)))


def _remainder(numerator: Polynomial, divisor: Polynomial) -> Polynomial:
    if divisor in ({(): 1}, {}):
        return {}
    _, rest = _split(numerator, divisor)
    if not rest or _lies_within(rest, divisor):
        return rest
    if _interval(rest)[0] < 0:
        # `(m * n - 1) % n` is not `-1 % n` where division truncates.
        rest = numerator
    return _atom(make("%", _from_polynomial(rest), _from_polynomial(divisor)))


def _lies_within(value: Polynomial, divisor: Polynomial) -> bool:
    """Whether ``0 <= value < divisor`` is provable."""
    low, high = _interval(value)
    if low < 0:
        return False
    if high < _interval(divisor)[0]:
        return True
    # An index stays below its extent.
    if len(value) == 1:
        ((monomial, coefficient),) = value.items()
        if coefficient == 1 and len(monomial) == 1 and monomial[0].op == "leaf":
            extent = monomial[0].leaf.extent
            if extent is not None and _polynomial(as_symbol(extent)) == divisor:
                return True
    return False


def _atom(symbol: Symbol) -> Polynomial:
    if symbol.op == "const":
        return {(): symbol.operands[0]} if symbol.operands[0] else {}
    return {(symbol,): 1}


@functools.lru_cache(maxsize=16384)
def _order(symbol: Symbol) -> tuple[bool, str]:
    return (symbol.op != "leaf", symbol.sort_key)


def _from_polynomial(polynomial: Polynomial) -> Symbol:
    """The expression of a polynomial: first the names, then the rest, the number last."""
    terms = list(polynomial.items())
    if len(terms) > 1:
        terms.sort(key=lambda item: (not item[0], item[1] < 0, [*map(_order, item[0])]))
    result: Symbol | None = None
    for monomial, coefficient in terms:
        magnitude = abs(coefficient)
        term: Symbol | None = None
        for atom in monomial:
            term = atom if term is None else make("*", term, atom)
        if term is None:
            term = constant(magnitude)
        elif magnitude != 1:
            term = make("*", term, constant(magnitude))
        if result is None:
            result = term if coefficient > 0 else _negated(term)
        else:
            result = make("+" if coefficient > 0 else "-", result, term)
    return constant(0) if result is None else result


def _negated(term: Symbol) -> Symbol:
    return constant(-term.operands[0]) if term.op == "const" else make("neg", term)


def _simplify_extremum(op: str, a: Symbol, b: Symbol) -> Symbol:
    low, high = difference_interval(a, b)
    if low >= 0:
        return b if op == "min" else a
    if high <= 0:
        return a if op == "min" else b
    return make(op, a, b)


def _simplify_comparison(op: str, a: Symbol, b: Symbol) -> Symbol:
    gap = _gap(a, b)
    low, high = _interval(gap)
    if low < 0 <= high or low <= 0 < high:
        high = min(high, _interval(_greatest(gap))[1])
        if high >= 0:
            low = max(low, -_interval(_greatest(_scaled(gap, -1)))[1])
    holds, fails = {
        "<": (high < 0, low >= 0),
        "<=": (high <= 0, low > 0),
        ">": (low > 0, high <= 0),
        ">=": (low >= 0, high < 0),
    }[op]
    if holds or fails:
        return constant(holds)
    return make(op, a, b)


def _greatest(polynomial: Polynomial) -> Polynomial:
    """A polynomial that is never less, in which no index stands that could grow with a size.

    An index is at most its extent less one; ``d * (x // d)`` is at most ``x``.
    """
    result: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        term = {monomial: coefficient}
        for atom in monomial:
            if atom.op == "leaf" and atom.leaf.extent is not None:
                rest = {_without(monomial, atom): coefficient}
                if _interval(rest)[0] >= 0:
                    term = _product(rest, _gap(atom.leaf.extent, 1))  # type: ignore[arg-type]
                    break
        result = _sum(result, term)
    return _without_quotients(result)


def _without_quotients(polynomial: Polynomial) -> Polynomial:
    result: Polynomial = {}
    for monomial, coefficient in polynomial.items():
        term: Polynomial = {monomial: coefficient}
        for atom in monomial:
            if atom.op != "//" or interval(atom.operands[1])[0] <= 0:
                continue
            others = {_without(monomial, atom): coefficient}
            whole, rest = _split(others, _polynomial(atom.operands[1]))
            if whole and not rest and _interval(whole)[0] >= 0:
                term = _product_plain(whole, _polynomial(atom.operands[0]))
                break
        result = _sum(result, term)
    return result
