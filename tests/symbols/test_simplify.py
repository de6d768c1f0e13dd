"""Simplification and bounds: readable rules, and laws on random expressions."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ninetoothed import Symbol, Tensor
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import as_symbol, index, make, maximum, minimum, padded
from ninetoothed.symbols.simplify import (
    are_equal,
    difference,
    difference_interval,
    floors_as_it_truncates,
    is_nonnegative,
    product,
    simplify,
)
from ninetoothed.tensors.access import needed

X, Y = Tensor(2, name="x").shape
N, M = Symbol("n", meta=True), Symbol("m", meta=True)
GIVEN = Symbol("given", constexpr=True, lower_bound=1, upper_bound=8, power_of_two=True)
FREE = Symbol("free")
I3 = index("i", 3)
IN = index("j", N)

RULES = [
    # Terms cancel and are counted.
    (X + Y - X, "x_size_1"),
    (X + X + X, "x_size_0 * 3"),
    ((X + 1) - (X - 1), "2"),
    (X * Y - Y * X, "0"),
    (0 * X, "0"),
    (1 * X + 0, "x_size_0"),
    (-(X - Y), "x_size_1 - x_size_0"),
    (2 * (X + 3) - 6, "x_size_0 * 2"),
    # Quotients.
    (X // 1, "x_size_0"),
    (X * N // N, "x_size_0"),
    ((X * N + I3) // N, "x_size_0 + i // n"),
    ((X * 6 + I3) // 6, "x_size_0"),
    ((X * 6 + 8) // 3, "x_size_0 * 2 + 2"),
    (X // N // M, "x_size_0 // (m * n)"),
    (I3 // 3, "0"),
    (I3 // 4, "0"),
    (IN // N, "0"),
    ((X * N + IN) // N, "x_size_0"),
    ((X + N - 1) // N, "(n + x_size_0 - 1) // n"),
    (X // 0, "0"),
    (X // (maximum(Y - Y, 0) * 2), "0"),
    # Remainders.
    (X % 1, "0"),
    (X * N % N, "0"),
    ((X * 6 + I3) % 3, "i"),
    (IN % N, "j"),
    ((X * N + IN) % N, "j"),
    (I3 % 5, "i"),
    (X % 0, "0"),
    # A quotient and its remainder meet again.
    (X // N * N + X % N, "x_size_0"),
    (3 * (X // 3) + X % 3, "x_size_0"),
    ((X // 3 * 3 + X % 3) * M, "m * x_size_0"),
    # Two remainders that are the digits of one.
    (X // 3 % 4 * 3 + X % 3, "x_size_0 % 12"),
    ((X // N % M * N + X % N) * Y, "x_size_1 * (x_size_0 % (m * n))"),
    (X // 12 * 12 + X // 3 % 4 * 3 + X % 3, "x_size_0"),
    (X // 3 % 4 * 2 + X % 3, "x_size_0 // 3 % 4 * 2 + x_size_0 % 3"),
    # Extrema and comparisons that are decided.
    (minimum(X, X + 1), "x_size_0"),
    (maximum(I3, 2), "2"),
    (minimum(I3, 3), "i"),
    (maximum(X, 0), "x_size_0"),
    (X >= 0, "True"),
    (I3 < 3, "True"),
    (I3 >= 3, "False"),
    (X < X + 1, "True"),
    (N > 0, "True"),
    (I3 * 2 <= 4, "True"),
    # What is not known stays.
    (X < Y, "x_size_0 < x_size_1"),
    (FREE // 2, "free // 2"),
    (padded(X), "padded(x_size_0)"),
]


@pytest.mark.parametrize(("expression", "text"), RULES, ids=[f"{e}" for e, _ in RULES])
def test_rule(expression, text):
    assert str(simplify(expression)) == text


def test_a_known_value_is_an_int():
    assert type(simplify(X - X + 3)) is int
    assert type(simplify(5)) is int


def test_differences_and_products_are_simplified():
    assert difference(X + 1, X) == 1
    assert product([]) == 1
    assert product([2, X, 3]) is simplify(X * 6)
    assert product([X, 0]) == 0


@pytest.mark.parametrize(
    ("expression", "bounds"),
    [
        (X, (0, float("inf"))),
        (N, (1, float("inf"))),
        (GIVEN, (-float("inf"), float("inf"))),
        (Tensor(1, shape_options={"lower_bound": 4, "upper_bound": 8}).shape[0], (0, float("inf"))),
        (FREE, (-float("inf"), float("inf"))),
        (Symbol("meta", meta=True), (1, float("inf"))),
        (I3, (0, 2)),
        (IN, (0, float("inf"))),
        (I3 * 5 - 1, (-1, 9)),
        (7 - I3, (5, 7)),
        (I3 * I3, (0, 4)),
        ((I3 - 1) * (I3 - 1), (-1, 1)),
        ((I3 + 5) % 8, (5, 7)),
        ((I3 + 6) % 8, (0, 7)),
        (X % 8, (0, 7)),
        (FREE % 8, (0, 7)),
        (I3 // 2, (0, 1)),
        ((I3 - 5) // 2, (-3, -2)),
        (minimum(I3, 1), (0, 1)),
        (maximum(I3, 1), (1, 2)),
        (padded(I3 + 3), (4, 8)),
        (-I3, (-2, 0)),
    ],
    ids=str,
)
def test_bounds(expression, bounds):
    assert interval(expression) == bounds


def test_bounds_of_leaves_may_be_given():
    assert interval(X + 1, {X: (2, 5)}) == (3, 6)


def test_provably_not_negative():
    assert is_nonnegative(X)
    assert is_nonnegative(X * 2 + I3)
    assert not is_nonnegative(X - 1)


# The laws. A leaf is drawn within its bounds, and no divisor is ever zero or negative.

SIZE_BOUNDED = Tensor(shape=(None,), shape_options={"lower_bound": 2, "upper_bound": 9}).shape[0]
LEAVES = {
    X: (0, 40),
    Y: (1, 12),
    N: (1, 16),
    M: (1, 5),
    SIZE_BOUNDED: (2, 9),
    FREE: (-20, 20),
    I3: (0, 2),
}
POSITIVE = [Y, N, M, SIZE_BOUNDED]


def expressions():
    leaves = st.one_of(
        st.sampled_from([*LEAVES, IN]),
        st.integers(-9, 9).map(as_symbol),
        st.integers(1, 4).map(as_symbol),
    )
    divisors = st.one_of(
        st.sampled_from(POSITIVE),
        st.integers(1, 8).map(as_symbol),
        st.builds(lambda a, b: a * b, st.sampled_from(POSITIVE), st.integers(1, 4)),
        st.builds(lambda a, b: a * b, st.sampled_from(POSITIVE), st.sampled_from(POSITIVE)),
    )

    def larger(inner):
        binary = st.sampled_from(["+", "-", "*", "+", "min", "max"])
        return st.one_of(
            st.builds(make, binary, inner, inner),
            st.builds(make, st.sampled_from(["//", "%"]), inner, divisors),
            st.builds(lambda a, b: a // b * b + a % b, inner, divisors),
            st.builds(lambda a, b, c: a // b % c * b + a % b, inner, divisors, divisors),
            st.builds(lambda a, d, b: (a * d + b) // d, inner, divisors, inner),
            st.builds(lambda a, d, b: (a * d + b) % d, inner, divisors, inner),
            st.builds(lambda a: -a, inner),
        )

    return st.recursive(leaves, larger, max_leaves=10)


def values_of_leaves(seed):
    choose = random.Random(seed)
    values = {leaf: choose.randint(*bounds) for leaf, bounds in LEAVES.items()}
    return {**values, IN: choose.randrange(values[N])}


@settings(max_examples=600)
@given(expressions(), st.integers(0, 10**6))
def test_a_simplified_expression_has_the_same_value(expression, seed):
    simplified = as_symbol(simplify(expression))
    for number in range(5):
        values = values_of_leaves(seed + number)
        assert simplified.evaluate(values) == expression.evaluate(values), (simplified, values)


@settings(max_examples=400)
@given(expressions(), st.integers(0, 10**6))
def test_every_value_lies_within_the_bounds(expression, seed):
    for bounded in (expression, simplify(expression)):
        low, high = interval(bounded)
        for number in range(5):
            value = expression.evaluate(values_of_leaves(seed + number))
            assert low <= value <= high


@settings(max_examples=400)
@given(expressions(), expressions())
def test_a_difference_that_is_not_written_down_has_the_bounds_of_the_one_that_is(left, right):
    written = difference(left, right)
    assert difference_interval(left, right) == interval(written)
    assert are_equal(left, right) == (written == 0)


@settings(max_examples=400)
@given(st.sampled_from(["<", "<=", ">", ">="]), expressions(), expressions(), st.integers(0, 10**6))
def test_a_decided_comparison_always_comes_out_so(op, left, right, seed):
    comparison = make(op, left, right)
    simplified = as_symbol(simplify(comparison))
    for number in range(5):
        values = values_of_leaves(seed + number)
        assert bool(simplified.evaluate(values)) == bool(comparison.evaluate(values))


@settings(max_examples=200)
@given(st.lists(st.tuples(expressions(), expressions()), max_size=4), st.integers(0, 10**6))
def test_the_needed_conditions_hold_exactly_where_all_do(pairs, seed):
    conditions = [as_symbol(left) < right for left, right in pairs]
    reduced = needed(conditions)
    for number in range(8):
        values = values_of_leaves(seed + number)
        assert all(c.evaluate(values) for c in reduced) == all(
            c.evaluate(values) for c in conditions
        )


@pytest.mark.parametrize("seed", range(4))
def test_the_needed_conditions_of_tiles_of_tiles_hold_exactly_where_all_do(seed):
    """Conditions as nested tiles make them, where one often implies another."""
    choose = random.Random(seed)
    for _ in range(60):
        size, inner, outer = (choose.randint(1, 9) for _ in range(3))
        stride = choose.randint(1, inner)
        n, b = (
            choose.choice((value, make_leaf(name))) for name, value in (("s", size), ("b", inner))
        )
        program, selection = index("p", 4), index("k", outer)
        lane = index("l", padded(b))
        number = program * outer + selection
        position = number * stride + lane
        count = (as_symbol(n) + b - 1) // as_symbol(b)
        conditions = [number < count, position < as_symbol(n), lane < as_symbol(b)]
        choose.shuffle(conditions)
        reduced = needed(conditions)
        known = {
            leaf: value for leaf, value in ((n, size), (b, inner)) if not isinstance(leaf, int)
        }
        lanes = 1 << (inner - 1).bit_length()
        for p, k, l in itertools.product(range(4), range(outer), range(lanes)):
            values = {**known, program: p, selection: k, lane: l}
            assert all(c.evaluate(values) for c in reduced) == all(
                c.evaluate(values) for c in conditions
            ), (conditions, reduced, values)


def make_leaf(name):
    return Symbol(name, constexpr=True)


def test_what_only_repeats_is_left_out():
    position = index("l", 4) + index("p") * 4

    assert needed([position < X, position < X]) == [position < X]
    assert needed([position < X, position < X + 3]) == [position < X]
    assert needed([position >= 0]) == []


def test_values_of_arrays_simplify_alike():
    """The rules hold lane by lane, as backends evaluate them."""
    expression = (X * N + I3) % N + (X * 6 + I3) // 3
    lanes = np.arange(3)
    values = {X: 5, N: 7, I3: lanes}
    np.testing.assert_array_equal(
        as_symbol(simplify(expression)).evaluate(values), expression.evaluate(values)
    )


# A device's division truncates. What is emitted for a quotient or a remainder whose dividend may be
# negative rounds down all the same; every other one must come out as Python's.


def truncated(dividend, divisor):
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def on_a_device(expression, values):
    """The value as the emitted text computes it."""
    if expression.op not in ("//", "%") or not floors_as_it_truncates(expression):
        inner = [o for o in expression.operands if isinstance(o, Symbol)]
        if not inner or expression in values:
            return expression.evaluate(values)
        known = [as_symbol(int(on_a_device(operand, values))) for operand in inner]
        return make(expression.op, *known).operands[0]
    dividend, divisor = (on_a_device(operand, values) for operand in expression.operands)
    quotient = truncated(dividend, divisor)
    return quotient if expression.op == "//" else dividend - divisor * quotient


#: An expression for each rule: `d` and `e` are sizes, `x` and `y` may be negative.
DIVISIONS = [
    lambda x, y, d, e: (d * e - 1) // e,
    lambda x, y, d, e: (d * e - 1) % e,
    lambda x, y, d, e: (d * e - 1 - d) % (e * d),
    lambda x, y, d, e: (x * d + y) // d,
    lambda x, y, d, e: (x * d + y) % d,
    lambda x, y, d, e: (x * d - 1) // (d * e),
    lambda x, y, d, e: (x * d - 1) % (d * e),
    lambda x, y, d, e: x // d // e,
    lambda x, y, d, e: x // d % e * d + x % d,
    lambda x, y, d, e: x // d * d + x % d,
    lambda x, y, d, e: (x - y) // d * d + (x - y) % d,
    lambda x, y, d, e: x % (d * e) // d,
    lambda x, y, d, e: x % (d * e) % d,
    lambda x, y, d, e: (6 * x + 4) // 2 % 3,
    lambda x, y, d, e: (6 * x - 4) % 4,
    lambda x, y, d, e: minimum(x, d) // e + maximum(x, 0) % e,
    lambda x, y, d, e: (d - 3 + e - 1) // e,
]


@pytest.mark.parametrize("number", range(len(DIVISIONS)))
def test_each_rule_holds_over_a_box_of_integers_in_both_divisions(number):
    x, y = Symbol("x"), Symbol("y")
    expression = as_symbol(DIVISIONS[number](x, y, N, M))
    simplified = as_symbol(simplify(expression))
    for box in itertools.product(range(-7, 8), range(-3, 4), range(1, 5), range(1, 5)):
        values = dict(zip((x, y, N, M), box))
        expected = expression.evaluate(values)
        assert simplified.evaluate(values) == expected, (simplified, values)
        assert on_a_device(simplified, values) == expected, (simplified, values)


@settings(max_examples=600)
@given(expressions(), st.integers(0, 10**6))
def test_a_simplified_expression_has_the_same_value_on_a_device(expression, seed):
    simplified = as_symbol(simplify(expression))
    for number in range(5):
        values = values_of_leaves(seed + number)
        assert on_a_device(simplified, values) == expression.evaluate(values), (simplified, values)
