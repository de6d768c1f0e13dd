"""The order of programs: every element of the grid once, and neighbours that share what they read."""

from __future__ import annotations

import ast
import itertools
import math

import pytest

from ninetoothed.backends.triton.analysis import program_order
from ninetoothed.backends.triton.printers import program_order as printing
from ninetoothed.backends.triton.printers.spelling import Spelling
from ninetoothed.symbols.expr import as_symbol
from tests.golden.kernels import TEN


def positions(make, grid, *extra):
    """The grid position of each program, computed by the emitted statements."""
    targets = {dim: f"program_{dim}" for dim in range(len(grid))}
    tree = lambda size: as_symbol(size).ast()  # noqa: E731
    body = make("program", targets, grid, tree, *extra)
    module = ast.fix_missing_locations(ast.Module(body, []))
    code = compile(module, "<order>", "exec")
    result = []
    for program in range(math.prod(grid)):
        names = {"program": program}
        exec(code, names)
        result.append(tuple(names[target] for target in targets.values()))
    return result


def grouped(group):
    """The grouped order with so many rows in a group."""

    def make(whole, targets, grid, tree, fresh):
        return printing.grouped(whole, targets, grid, group, tree, fresh)

    return make


@pytest.mark.parametrize(
    "grid", [(1, 1), (3, 5), (8, 4), (9, 7), (17, 3), (2, 9, 4), (2, 3, 10, 2)]
)
@pytest.mark.parametrize("group", [1, 3, 8])
def test_grouped_order_visits_every_element_once(grid, group):
    found = positions(grouped(group), grid, lambda wanted: f"_{wanted}")

    assert sorted(found) == list(itertools.product(*map(range, grid)))


@pytest.mark.parametrize("grid", [(7,), (3, 5), (2, 3, 4)])
def test_plain_order_is_row_major(grid):
    assert positions(printing.plain, grid) == list(itertools.product(*map(range, grid)))


def test_a_position_is_what_the_one_before_leaves():
    grid = (as_symbol(5), as_symbol(7), as_symbol(3))
    tree = lambda size: as_symbol(size).ast()  # noqa: E731

    def second(targets):
        *_, last = printing.plain("program", targets, grid, tree)
        return ast.unparse(ast.fix_missing_locations(last.value))

    assert second({0: "first", 1: "second"}) == "program // 3 - first * 7"
    assert second({1: "second"}) == "program // 3 % 7"


def by_inverses(whole, targets, grid, tree):
    """Positions by multiplication; the statements contain the factors' values."""
    inverse = lambda wanted, value: ast.Constant(int(value.evaluate({})))  # noqa: E731
    body = printing.by_inverses(
        whole, targets, tuple(map(as_symbol, grid)), tree, inverse, lambda wanted: f"_{wanted}"
    )
    spelled = [ast.fix_missing_locations(Spelling("tl").of(each)) for each in body]
    text = "\n".join(map(ast.unparse, spelled))
    return ast.parse(text.replace(".to(tl.int64)", "").replace(".to(tl.int32)", "")).body


@pytest.mark.parametrize(
    "grid",
    [(3, 5), (1, 5), (5, 1), (2, 3, 4), (1, 7, 3, 1), (4, 48, 16, 1), (2, 1, 9), (3, 2, 5, 2)],
)
def test_order_by_inverses_is_row_major(grid):
    assert program_order.are_inverses_exact(grid)
    assert positions(by_inverses, grid) == list(itertools.product(*map(range, grid)))


@pytest.mark.parametrize("divisor", [3, 7, 641, 1023, 1025, 16383])
def test_inverses_are_exact_as_far_as_it_is_said(divisor):
    count = ((1 << 30) - 1) // divisor // divisor
    (statement, *_) = by_inverses("program", {0: "row"}, (count, divisor), as_symbol)
    row = compile(ast.Expression(statement.value), "<order>", "eval")

    assert program_order.are_inverses_exact((count, divisor))
    assert not program_order.are_inverses_exact((count + 1, divisor))
    for multiple in range(divisor, count * divisor, max(count // 500, 1) * divisor):
        assert eval(row, {"program": multiple}) == multiple // divisor
        assert eval(row, {"program": multiple - 1}) == (multiple - 1) // divisor


def test_a_dimension_that_nobody_needs_is_not_found_out():
    (statement,) = by_inverses("program", {0: "row"}, (6, 5, 4), as_symbol)

    assert "//" not in ast.unparse(statement) and ast.unparse(statement).startswith(
        "row = program * "
    )


@pytest.mark.parametrize("grid", [(0, 5), (5, 0), (1 << 20, 1 << 10), (1 << 15, 1 << 8)])
def test_where_inverses_are_not_exact(grid):
    assert not program_order.are_inverses_exact(grid)


def test_a_group_goes_down_its_rows_first():
    found = positions(grouped(4), (16, 4), lambda wanted: f"_{wanted}")

    assert found[:5] == [*((row, 0) for row in range(4)), (0, 1)]


@pytest.mark.parametrize(
    ("name", "grouped"),
    [
        ("mm", True),
        ("addmm", True),
        ("bmm", True),
        ("conv2d", True),
        ("add", False),
        ("softmax", False),
        ("sdpa", False),
    ],
)
def test_products_are_grouped_and_nothing_else(name, grouped):
    assert program_order.is_grouped(TEN[name].arrangement) is grouped
