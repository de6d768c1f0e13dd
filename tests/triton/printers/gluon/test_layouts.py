"""Which layout each value gets, and what lowered statements look like with it."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from ninetoothed.backends.triton.ir.nodes import TritonRef
from ninetoothed.backends.triton.ir.products import Needs, Product
from ninetoothed.backends.triton.printers.gluon.forms import Form, NotPossibleError
from ninetoothed.backends.triton.printers.gluon.layouts import Layouts
from ninetoothed.backends.triton.printers.gluon.legality import Legality
from ninetoothed.backends.triton.printers.gluon.sizes import Sizes, Types
from ninetoothed.backends.triton.printers.spelling import Spelling
from ninetoothed.language import dtypes
from ninetoothed.program.nodes import DTypeRef
from ninetoothed.program.types import COUNT, of_dtype
from ninetoothed.symbols.expr import Symbol, padded

SIZES = {name: Symbol(name) for name in "MND"}
SCORES = {"scores": ("M", "N")}


class Lowered(ast.NodeTransformer):
    """``tl.exp`` as a name of Triton's, and ``tl.float32`` as an element type."""

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if ast.unparse(node.value) != "tl":
            return self.generic_visit(node)
        dtype = dtypes.bool if node.attr == "int1" else getattr(dtypes, node.attr, None)
        return TritonRef(name=node.attr) if dtype is None else DTypeRef(dtype=dtype)


def typed(*lines: str, products: dict[str, tuple[str, str]] | None = None) -> list[ast.stmt]:
    """Lowered statements, with types, after the products of some sizes."""
    statements = Lowered().visit(ast.parse("\n".join(lines))).body
    types = Types((), ("R", "C", "scale"))
    types.known |= {name: COUNT_OF[name] for name in SIZES}
    for name, sizes in (products or SCORES).items():
        types.known[name] = of_dtype(dtypes.float32, tuple(SIZES[size] for size in sizes))
    types.block(statements)
    return statements


COUNT_OF = {name: replace(COUNT, number=padded(size)) for name, size in SIZES.items()}


def sizes_of() -> Sizes:
    return Sizes(lambda size: ast.parse(str(size), mode="eval").body)


def asked(statements: list[ast.stmt]) -> Sizes:
    """The statements' sizes, where all of them are understood."""
    sizes = sizes_of()
    end: Any = ast.Constant(0)
    legality = Legality(Form(statements, ast.For(), [], [], "i", end, {}), sizes)
    for statement in statements:
        legality.statement(statement)
    return sizes


def written(*lines: str, products: dict[str, tuple[str, str]] | None = None) -> str:
    """The lines with layouts."""
    products = products or SCORES
    statements = typed(*lines, products=products)
    sizes = asked(statements)
    found = [Product(SIZES[r], SIZES[r], SIZES[c], "", "") for r, c in products.values()]
    columns = tuple(product.columns for product in found)
    layouts = Layouts(sizes, Needs(tuple(found), columns), lambda name: name)
    result: list[str] = []

    def run() -> None:
        for name in products:
            layouts.product(name)
        assignments = [layouts.assignment(statement) for statement in statements]
        assert all(first is other for first, other in assignments)
        plain = [Spelling("gl").of(ast.fix_missing_locations(other)) for _, other in assignments]
        result[:] = map(ast.unparse, map(ast.fix_missing_locations, plain))

    layouts.settle(run)
    run()
    return "\n".join(result)


def test_a_matrix_lies_as_a_product_of_so_many_columns():
    assert written("x = tl.zeros((M, D), dtype=tl.float32)") == (
        "x = gl.zeros((M, D), gl.float32, columns_D)"
    )


def test_a_vector_lies_as_what_it_is_combined_with():
    assert written("place = 4 + tl.arange(0, M)", "x = scores * place[:, None]") == (
        "place = 4 + gl.arange(0, M, gl.SliceLayout(1, columns_N))\nx = scores * place[:, None]"
    )


def test_it_does_not_matter_how_often_it_has_another_name_by_then():
    lines = ["place = tl.arange(0, N)", "other = place", "x = scores * other[None, :]"]

    assert "gl.arange(0, N, gl.SliceLayout(0, columns_N))" in written(*lines)


def test_two_matrices_that_meet_a_vector():
    lines = [
        "sums = tl.sum(scores, axis=1)",
        "x = tl.exp(scores) / sums[:, None]",
        "y = v * sums[:, None]",
    ]
    found = written(*lines, products={"scores": ("M", "N"), "v": ("M", "D")})

    assert "x = divide_rows(gl.exp(scores), sums[:, None])" in found
    assert "y = v * gl.convert_layout(sums, gl.SliceLayout(1, columns_D))[:, None]" in found


def test_a_vector_beside_a_matrix_is_a_row():
    assert "gl.where(is_seen[None, :], scores, 0)" in written(
        "is_seen = tl.arange(0, N) < 7", "x = tl.where(is_seen, scores, 0)"
    )


def test_what_nobody_combines_lies_as_the_first_product():
    assert written("last = tl.max(2 * tl.arange(0, M))") == (
        "last = gl.max(2 * gl.arange(0, M, gl.SliceLayout(1, columns_N)), axis=0)"
    )


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("tl.max(tl.arange(0, M))", "M - 1"),
        ("tl.max(R + tl.arange(0, M))", "R + (M - 1)"),
        ("tl.max(tl.arange(0, M) + R + 2)", "R + 2 + (M - 1)"),
        ("tl.min(R + tl.arange(0, M), axis=0)", "R"),
    ],
)
def test_the_extremes_of_what_counts_up_are_known(value, found):
    assert written(f"x = {value}") == f"x = {found}"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("tl.where(is_seen[None, :], scores, float('-inf'))", "scores"),
        ("tl.where(is_seen[None, :] & everywhere, scores, 0.0)", "scores"),
        ("is_seen[None, :] & (scores > 0)", "scores > 0"),
    ],
)
def test_conditions_that_hold_everywhere_are_left_out(value, found):
    lines = [
        "is_seen = tl.full((N,), True, tl.int1)",
        "everywhere = tl.full((M, N), True, tl.int1)",
    ]

    assert written(*lines, f"x = {value}").splitlines()[-1] == f"x = {found}"


@pytest.mark.parametrize(
    "value",
    [
        "tl.where(is_seen[None, :], 0.0, scores)",
        "tl.where(is_seen[None, :], scores, other)",
        "tl.where(is_seen[None, :], number, 1.0) + scores",
        "is_seen[None, :] & number",
        "tl.where(is_seen[None, :] | (scores > 0), scores, 0.0)",
    ],
    ids=["zero", "of another type", "no product", "of integers", "either"],
)
def test_conditions_stay_where_the_result_would_be_another(value):
    lines = [
        "is_seen = tl.full((N,), True, tl.int1)",
        "other = tl.zeros((M, N), tl.float64)",
        "number = tl.zeros((M, N), tl.int32)",
    ]

    assert "is_seen[None, :]" in written(*lines, f"x = {value}")


def test_numbers_are_no_truth_values():
    assert " & " in written("x = tl.full((M, N), True, tl.int32) & (scores > 0)")


def test_what_held_everywhere_is_forgotten_where_it_changes():
    found = written(
        "is_seen = tl.full((M, N), True, tl.int1)",
        "is_seen = is_seen & (scores > 0)",
        "x = tl.where(is_seen, scores, 0.0)",
    )

    assert "x = gl.where(is_seen, scores, 0.0)" in found


@pytest.mark.parametrize("value", ["scores / 2.0", "scores / row[None, :]", "1.0 / sums[:, None]"])
def test_other_quotients_are_as_they_were(value):
    lines = ["sums = tl.sum(scores, axis=1)", "row = tl.sum(scores, axis=0)"]

    assert "divide_rows" not in written(*lines, f"x = scores + {value}")


def test_the_maximum_of_a_row_is_found_in_two_steps():
    assert written("x = tl.max(scores, axis=1)") == (
        "x = row_max(scores, gl.SliceLayout(1, columns_N))"
    )


@pytest.mark.parametrize(
    ("comparison", "limit"),
    [
        ("column[None, :] <= row[:, None]", "R - C"),
        ("column[None, :] < row[:, None]", "R - C - 1"),
        ("row[:, None] >= column[None, :]", "R - C"),
        ("row[:, None] > column[None, :]", "R - C - 1"),
    ],
)
def test_positions_are_compared_by_eighths(comparison, limit):
    lines = ["row = R + tl.arange(0, M)", "column = C + tl.arange(0, N)"]

    assert f"x = columns_within({limit}, M, N, columns_N)" in written(*lines, f"x = {comparison}")


@pytest.mark.parametrize(
    "changes",
    ["C = C + 1", "column = column * 2", "column = 2 * tl.arange(0, N)"],
    ids=["a number", "the vector", "another step"],
)
def test_what_a_vector_began_with_is_forgotten_where_it_changes(changes):
    found = written(
        "row = R + tl.arange(0, M)",
        "column = C + tl.arange(0, N)",
        changes,
        "x = scores * (column[None, :] <= row[:, None])",
    )

    assert "columns_within" not in found and "column[None, :] <= row[:, None]" in found


def test_what_the_other_way_round_is_compared_as_it_is():
    assert "column[None, :] >= row[:, None]" in written(
        "row = R + tl.arange(0, M)",
        "column = C + tl.arange(0, N)",
        "x = scores * (column[None, :] >= row[:, None])",
    )


def test_sizes_that_meet_must_be_the_same():
    sizes = asked(typed("z = x + y", products={"x": ("M", "N"), "y": ("M", "D")}))

    assert sizes.equal == [(SIZES["N"], SIZES["D"])]
    assert sizes.same(SIZES["D"]) is SIZES["N"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("x = tl.sort(scores)", "`sort` has no layout"),
        ("x = tl.sum(scores)", "a reduction of 2 dimensions"),
        ("x = tl.sum(scores, axis=1, keep_dims=True)", "more than an axis"),
        ("x = mine(scores)", "`mine` is not known"),
        ("x = max(scores, 0)", "where a number is needed"),
        ("x = scores if scale else 0", "where a number is needed"),
        ("x = tl.reshape(scores, (N, M))", "`reshape` has no layout"),
        ("x, y = tl.split(scores)", "several values at once"),
        ("x = tl.broadcast_to(tl.arange(0, M)[:, None], (M, N))", "a broadcast to another"),
        ("x = scores[:, None]", "no new dimension of a vector"),
        ("x = scores.T", "has no layout"),
        ("x = unknown + 1", "shape is not known"),
        ("if scale: x = 1", "no assignment"),
    ],
)
def test_what_is_not_understood_has_a_reason(line, reason):
    with pytest.raises(NotPossibleError, match=reason):
        asked(typed(line))
