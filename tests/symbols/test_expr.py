"""Symbols: structure, printing, bounds, immutability, evaluation, errors."""

from __future__ import annotations

import ast
import copy
import gc
import math
import pickle
import sys
import threading

import numpy as np
import pytest

from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ArgumentError
from ninetoothed.symbols.expr import (
    as_expression,
    as_symbol,
    constant,
    index,
    is_expression,
    maximum,
    minimum,
    padded,
)

A, B, C = Symbol("a"), Symbol("b"), Symbol("c")

PRINTED = [
    (A + B, "a + b"),
    (A - B, "a - b"),
    (A * B, "a * b"),
    (A // B, "a // b"),
    (A % B, "a % b"),
    (A & B, "a & b"),
    (A | B, "a | b"),
    (A < B, "a < b"),
    (A <= B, "a <= b"),
    (A > B, "a > b"),
    (A >= B, "a >= b"),
    (A[B], "a[b]"),
    (A[2], "a[2]"),
    (-A, "-a"),
    (+A, "a"),
    (A + 1, "a + 1"),
    (1 + A, "1 + a"),
    (1 - A, "1 - a"),
    (2 * A, "2 * a"),
    (7 // A, "7 // a"),
    (7 % A, "7 % a"),
    (1 & A, "1 & a"),
    (1 | A, "1 | a"),
    (A + -3, "a + -3"),
    ((A + B) * C, "(a + b) * c"),
    (A + B * C, "a + b * c"),
    (A - (B - C), "a - (b - c)"),
    (A - B - C, "a - b - c"),
    (-(A + B), "-(a + b)"),
    (minimum(A, 3), "min(a, 3)"),
    (maximum(A, B), "max(a, b)"),
    ((A < B) & (B < C), "(a < b) & (b < c)"),
]


@pytest.mark.parametrize(("symbol", "text"), PRINTED, ids=[text for _, text in PRINTED])
def test_prints_as_python(symbol, text):
    assert str(symbol) == repr(symbol) == text


@pytest.mark.parametrize(
    "text", "a a+b*2 (a+b)//c-1 a%(b+1) a<b a[b+1] a&b|c -a a>=1 a==b a!=b 7 -7".split()
)
def test_parses_what_it_prints(text):
    symbol = Symbol(text)

    assert Symbol(str(symbol)) is symbol
    assert str(symbol) == ast.unparse(ast.parse(text, mode="eval"))


def test_turns_into_pythons_syntax_tree_with_the_leaves_renamed():
    tree = (A * 2 + B).ast(lambda leaf: ast.Name(leaf.name.upper(), ast.Load()))

    assert ast.unparse(tree) == "A * 2 + B"


def test_a_syntax_tree_becomes_a_symbol():
    assert Symbol(ast.parse("a + 1", mode="eval").body) is A + 1


def test_equal_structure_is_equal_and_hashes_alike():
    assert Symbol("a + b * 2") == A + B * 2
    assert hash(Symbol("a + b * 2")) == hash(A + B * 2)
    assert {A + B: 1}[Symbol("a") + Symbol("b")] == 1


def test_another_structure_is_not_equal():
    assert A + B != B + A
    assert A != B
    assert Symbol("a") != Symbol("a", constexpr=True)
    assert Symbol("a", constexpr=True) != Symbol("a", constexpr=True, upper_bound=8)


def test_a_symbol_of_a_symbol_is_that_symbol():
    assert Symbol(A + B) is A + B
    assert Symbol(A) is A


def test_a_number_is_a_symbol_that_equals_it():
    assert Symbol(3) == 3
    assert Symbol(np.int64(3)) == 3
    assert Symbol(3) != 4
    assert A != 3


def test_numbers_fold():
    assert Symbol(3) + 4 == 7
    assert (Symbol(7) // 2, Symbol(7) % 2, -Symbol(7)) == (3, 1, -7)
    assert minimum(2, 5) == 2
    assert padded(5) == 8
    assert bool(Symbol(3) < 4) is True
    assert bool(Symbol(4) < 4) is False


def test_true_and_one_are_told_apart():
    assert str(constant(True)) == "True"
    assert str(constant(1)) == "1"


@pytest.mark.parametrize(
    ("keywords", "bounds", "power_of_two"),
    [
        ({}, (None, None), False),
        ({"lower_bound": 3}, (3, None), False),
        ({"power_of_two": True}, (None, None), True),
        ({"constexpr": True}, (None, None), False),
        ({"constexpr": True, "lower_bound": 4}, (4, None), False),
        ({"constexpr": True, "upper_bound": 0}, (None, 0), False),
        ({"constexpr": True, "lower_bound": 2**21}, (2**21, None), False),
        ({"meta": True}, (32, 1024), True),
        ({"meta": True, "upper_bound": 16}, (16, 16), True),
        ({"meta": True, "lower_bound": 64}, (64, 1024), True),
        ({"meta": True, "lower_bound": 2048}, (2048, 2048), True),
        ({"meta": True, "power_of_two": False}, (32, 1024), False),
    ],
)
def test_bounds_have_defaults(keywords, bounds, power_of_two):
    symbol = Symbol("s", **keywords)

    assert (symbol.lower_bound, symbol.upper_bound) == bounds
    assert symbol.power_of_two is power_of_two
    assert symbol.constexpr is bool(keywords.get("constexpr"))
    assert symbol.meta is bool(keywords.get("meta"))


def test_only_names_are_constexpr_or_meta():
    expression = Symbol("s", constexpr=True) + 1

    assert not expression.constexpr
    assert not expression.meta


def test_keywords_may_be_added_to_a_name():
    assert Symbol(A, constexpr=True) is Symbol("a", constexpr=True)


def test_block_sizes_are_fresh_and_tuned():
    first, second = block_size(), block_size()

    assert first != second
    assert first.meta and first.power_of_two
    assert (first.lower_bound, first.upper_bound) == (32, 1024)
    assert (block_size(64, 128).lower_bound, block_size(64, 128).upper_bound) == (64, 128)


@pytest.mark.parametrize("name", ["op", "operands", "name", "anything"])
def test_is_immutable(name):
    with pytest.raises(AttributeError, match="immutable"):
        setattr(A, name, 1)


@pytest.mark.parametrize(
    ("arguments", "keywords", "words"),
    [
        ((1.5,), {}, "1.5"),
        ((None,), {}, "None"),
        (("a +",), {}, "not a Python expression"),
        (("f(a)",), {}, r"f\(a\).*it takes"),
        (("a ** 2",), {}, "a \\*\\* 2"),
        (("1.5",), {}, "1.5"),
        (("a < b < c",), {}, "a < b < c"),
        (("a",), {"constexpr": True, "meta": True}, "`a`.*not both"),
        (("a",), {"lower_bound": 4, "upper_bound": 2}, "`a`.*4 to 2"),
        (("a + 1",), {"constexpr": True}, "plain name.*a \\+ 1"),
        ((A + 1,), {"meta": True}, "plain name.*a \\+ 1"),
    ],
)
def test_what_cannot_be_a_symbol_is_an_error(arguments, keywords, words):
    with pytest.raises((TypeError, ValueError), match=words):
        Symbol(*arguments, **keywords)


@pytest.mark.parametrize("other", [1.5, "b", None, True, [1]])
def test_arithmetic_with_anything_but_integers_is_a_type_error(other):
    with pytest.raises(TypeError):
        A + other
    with pytest.raises(TypeError):
        other * A


@pytest.mark.parametrize("comparison", [A < B, A >= 3, (A < B) & (B < C)])
def test_a_comparison_cannot_decide_an_if(comparison):
    with pytest.raises(TypeError, match="only known when the kernel is called"):
        bool(comparison)


def test_a_symbol_cannot_be_iterated_over():
    with pytest.raises(TypeError, match="cannot be iterated"):
        list(A)


def test_what_only_a_name_has_is_an_error_on_an_expression():
    with pytest.raises(TypeError, match="`a \\+ b` is an expression"):
        (A + B).lower_bound


def test_evaluates_on_ints_and_on_arrays():
    expression = (A * 3 + B) % 7 - minimum(A, B)
    values = np.arange(5)

    assert expression.evaluate({A: 4, B: 9}) == (4 * 3 + 9) % 7 - 4
    np.testing.assert_array_equal(
        expression.evaluate({A: values, B: 2}), (values * 3 + 2) % 7 - np.minimum(values, 2)
    )
    assert maximum(A, B).evaluate({A: 4, B: 9}) == 9
    assert (A[B]).evaluate({A: [5, 6, 7], B: 2}) == 7
    assert padded(A).evaluate({A: 9}) == 16


def test_evaluates_the_position_in_an_empty_dimension_to_zero():
    assert (A // B).evaluate({A: 5, B: 0}) == 0
    assert (A % B).evaluate({A: 5, B: 0}) == 0
    np.testing.assert_array_equal((A % B).evaluate({A: np.arange(3), B: 0}), [0, 0, 0])


def test_a_leaf_without_a_value_is_a_key_error():
    with pytest.raises(KeyError):
        (A + B).evaluate({A: 1})


def test_substitutes_leaves_by_numbers_and_expressions():
    assert (A + B * A).substitute({A: 2}) is 2 + B * 2
    assert (A + B).substitute({A: B, B: A}) is B + A
    assert (A * 2).substitute({A: 3}) == 6


def test_names_its_leaves_once_from_left_to_right():
    assert list((B + A * B // C).leaves()) == [B, A, C]


def test_sizes_of_tensors_are_told_apart_whatever_they_are_called():
    x, y = Tensor(1, name="x"), Tensor(1, name="x")

    assert str(x.shape[0]) == str(y.shape[0]) == "x_size_0"
    assert x.shape[0] != y.shape[0]
    assert x.shape[0] != Symbol("x_size_0")


def test_indices_of_the_compiler_are_fresh():
    assert index("i", 4) != index("i", 4)


def test_expressions_are_symbols_and_integers_but_no_booleans():
    assert is_expression(A)
    assert is_expression(3)
    assert is_expression(np.int32(3))
    assert not is_expression(True)
    assert not is_expression(3.0)
    assert type(as_expression(Symbol(3))) is int
    assert as_expression(A) is A
    assert as_symbol(3) == 3


def test_survives_copying_and_pickling():
    expression = A * 2 + Symbol("n", constexpr=True)

    assert copy.deepcopy(expression) is expression
    assert pickle.loads(pickle.dumps(expression)) is expression


def test_unused_symbols_are_forgotten():
    from ninetoothed.symbols.interned import references

    gc.collect()
    before = len(references)
    keep = [Symbol(f"forgotten_{number}") + 1 for number in range(100)]
    assert len(references) >= before + 200
    del keep
    gc.collect()
    assert len(references) < before + 100


@pytest.fixture
def short_turns():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def test_threads_that_make_the_same_symbol_get_the_same_one(short_turns):
    start, made = threading.Barrier(8), []

    def work():
        start.wait()
        made.append([Symbol(f"shared_{number}") * 2 + 1 for number in range(200)])

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(a is b for others in made for a, b in zip(made[0], others))


def test_a_symbol_that_is_forgotten_and_made_anew_meanwhile_is_one(short_turns):
    def work():
        for number in range(2000):
            one = Symbol(f"passing_{number % 3}") * 2
            assert one is Symbol(f"passing_{number % 3}") * 2
            del one
        ended.append(True)

    ended = []
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ended) == 4


def test_a_power_is_a_product():
    a = Symbol("a")
    assert a**2 == a * a
    assert (a + 1) ** 3 == (a + 1) * (a + 1) * (a + 1)
    assert a**1 is a and a**0 == 1
    assert (a**3).evaluate({a: 5}) == 125


def test_a_quotient_that_may_be_no_integer_says_what_to_write():
    with pytest.raises(
        TypeError, match=r"`\(a \+ 1\) / 2` may be no integer.*`a // b` rounds down"
    ):
        (Symbol("a") + 1) / 2


@pytest.mark.parametrize(
    "operate", [lambda s: s << 1, lambda s: 1 >> s, lambda s: s ^ 1, lambda s: ~s, abs]
)
def test_what_symbols_do_not_have_says_what_to_write(operate):
    with pytest.raises(ArgumentError, match="symbols have sums, products and quotients") as raised:
        operate(Symbol("a"))
    assert raised.value.location.file == __file__


def test_a_subscript_is_one_expression():
    assert str(Symbol("x")[Symbol("i") + 1]) == "x[i + 1]"

    with pytest.raises(TypeError, match="not \\(0, 1\\)"):
        Symbol("x")[0, 1]


def test_python_rounds_and_divides_symbols():
    n = Symbol("n")
    assert (round(n), math.floor(n), math.ceil(n), math.trunc(n)) == (n, n, n, n)
    assert (divmod(n, 4), divmod(7, n)) == ((n // 4, n % 4), (7 // n, 7 % n))
