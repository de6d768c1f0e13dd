"""LANGUAGE.md, "Symbol"."""

from __future__ import annotations

import ast
import os

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.tuning.space import candidates
from tests.contract.kernels import arange, empty


def test_an_integer_expression_over_pythons_own_syntax_tree():
    assert Symbol("a * (b + 1)") == Symbol(ast.parse("a * (b + 1)", mode="eval").body)


@pytest.mark.parametrize("text", "a+b a-b a*b a//b a%b a<b a<=b a>b a>=b a&b a[b]".split())
def test_supports_arithmetic_comparisons_and_subscripts(text):
    """It supports `+ - * // %`, comparisons, `&` and subscripts, … prints as Python."""
    symbol = eval(text, {"a": Symbol("a"), "b": Symbol("b")})

    assert str(symbol) == ast.unparse(ast.parse(text))


def test_mixes_with_ints():
    assert str(2 * Symbol("a") + 1) == "2 * a + 1"
    assert str(1 - Symbol("a") // 3 % 5) == "1 - a // 3 % 5"


def test_compares_and_hashes_by_structure():
    assert Symbol("a + 1") == Symbol("a") + 1
    assert hash(Symbol("a + 1")) == hash(Symbol("a") + 1)
    assert Symbol("a + 1") != Symbol("a + 2")


def scaled(size, **given):
    """A kernel over blocks of a size, run on seven elements."""

    def arrangement(x, y):
        return x.tile((size,)), y.tile((size,))

    def application(x, y):
        y = 2 * x  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    x, y = arange(7), empty(7)
    kernel(x, y, *given.pop("positional", ()), **given)
    return torch.equal(y, 2 * x)


def test_a_constexpr_is_given_by_keyword():
    """known when the kernel is called, given by keyword (`kernel(..., BLOCK_SIZE=1024)`)"""
    assert scaled(Symbol("BLOCK_SIZE", constexpr=True), BLOCK_SIZE=1024)
    assert scaled(Symbol("BLOCK_SIZE", constexpr=True), BLOCK_SIZE=3)


def test_a_constexpr_is_given_positionally_after_the_tensors():
    """or positionally after the tensors"""
    assert scaled(Symbol("BLOCK_SIZE", constexpr=True), positional=(4,))


def test_positional_constexprs_come_in_the_order_in_which_the_arrangement_names_them():
    """a window's size, then its stride, whatever order the expressions of sizes have"""
    size, stride = Symbol("window", constexpr=True), Symbol("step", constexpr=True)

    def arrangement(x, y):
        return x.tile((size,), strides=(stride,), floor_mode=True), y.tile((1,))

    def application(x, y):
        y = ntl.max(x)  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
    x, y = arange(9), empty(3)
    kernel(x, y, 4, 2)

    assert y.tolist() == [4, 6, 8]


def test_a_symbol_is_given_whatever_is_left_of_it():
    """a tensor of one row has one program and no row beyond, however many rows a tile has"""
    rows = Symbol("ROWS", constexpr=True)

    def kernel(rows):
        def every_other(tensor):
            arranged = tensor.tile((rows, -1))
            arranged.dtype = arranged.dtype[0, ::2]
            return arranged

        def arrangement(x, y):
            return every_other(x), every_other(y)

        def application(x, y):
            y = 2 * x  # noqa: F841

        tensors = (Tensor(shape=(1, 6)), Tensor(shape=(1, 6)))
        return ninetoothed.make(arrangement, application, tensors)

    x = arange(1, 6)
    for given, found in (({"ROWS": 4}, rows), ({}, Symbol("BLOCK", meta=True))):
        y = torch.zeros(1, 6)
        kernel(found)(x, y, **given)
        assert y[:, ::2].tolist() == (2 * x[:, ::2]).tolist() and not y[:, 1::2].any()
        if not os.environ.get("TRITON_INTERPRET"):
            pytest.importorskip("triton")
            compiled = kernel(found).compile(x, y, target=("cuda", 90), **given)
            assert compiled.asm["cubin"]
    with pytest.raises(ArgumentError, match="missing: ROWS"):
        kernel(rows)(x, x)
    with pytest.raises(ArrangementError, match="index"):
        kernel(rows)(x, x, ROWS=0)


def test_a_constexpr_has_no_default_bounds():
    """No default bounds (0 and negative values are values)."""
    symbol = Symbol("s", constexpr=True)

    assert (symbol.lower_bound, symbol.upper_bound) == (None, None)


def test_a_meta_symbol_is_chosen_by_the_tuner():
    assert scaled(Symbol("size", meta=True))
    assert scaled(block_size())
    assert scaled(block_size(lower_bound=64, upper_bound=64))


def test_a_meta_symbols_bounds_default():
    """Bounds default to 32 … 1024, powers of two."""
    symbol = Symbol("s", meta=True)

    assert (symbol.lower_bound, symbol.upper_bound, symbol.power_of_two) == (32, 1024, True)


@pytest.mark.parametrize(
    "given, expected",
    [
        ({"lower_bound": 1500}, (1500, 2048)),
        ({"upper_bound": 20}, (16, 20)),
        ({"upper_bound": 1}, (1, 1)),
        ({"upper_bound": 20, "power_of_two": False}, (20, 20)),
        ({"lower_bound": 33, "upper_bound": 33, "power_of_two": False}, (33, 33)),
    ],
    ids=str,
)
def test_there_is_a_value_between_a_bound_and_the_others_default(given, expected):
    """Bounds default to 32 … 1024, powers of two."""
    symbol = Symbol("s", meta=True, **given)

    assert (symbol.lower_bound, symbol.upper_bound) == expected
    assert all(expected[0] <= value <= expected[1] for value in candidates(symbol))
    assert scaled(symbol)


def test_block_size_is_a_fresh_meta_symbol():
    first, second = block_size(), block_size(lower_bound=16, upper_bound=64)

    assert first.meta and second.meta
    assert first != block_size()
    assert (second.lower_bound, second.upper_bound) == (16, 64)


@pytest.mark.parametrize("name", "x_size_0 y_size_0 x_stride_0 program range float len".split())
def test_a_constexpr_may_be_called_as_what_a_generated_source_has(name):
    block = Symbol(name, constexpr=True)

    def arrangement(x, y):
        return x.tile((block,)).tile((-1,)), y.tile((1,))

    def application(x, y):
        greatest = float("-inf")
        for k in range(x.shape[0]):
            greatest = ntl.maximum(greatest, ntl.max(x[k]))
        y = greatest  # noqa: F841

    x, y = arange(7) - 9, empty(1)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(x, y, **{name: 4})
    assert y.tolist() == [-2]


@pytest.mark.parametrize("constexpr", [True, False], ids=["constexpr", "meta"])
def test_symbols_of_one_name_that_were_declared_differently_are_two(constexpr):
    rows = Symbol("B", constexpr=True) if constexpr else Symbol("B", meta=True)
    columns = Symbol("B", meta=True, lower_bound=64, upper_bound=64)

    def application(x, y):
        y = x + 1  # noqa: F841

    def arrangement(*tensors):
        return tuple(tensor.tile((rows, columns)) for tensor in tensors)

    x, y = arange(19, 70), empty(19, 70)
    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    kernel(x, y, **({"B": 4} if constexpr else {}))
    assert torch.equal(y, x + 1)


def test_two_symbols_of_one_name_cannot_both_be_given():
    rows, columns = Symbol("B", constexpr=True), Symbol("B", constexpr=True, power_of_two=True)

    def application(x, y):
        y = x  # noqa: F841

    def arrangement(*tensors):
        return tuple(tensor.tile((rows, columns)) for tensor in tensors)

    with pytest.raises(ArgumentError, match="called `B`: .*two symbols that were declared diff"):
        ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
