"""Which layout each value gets, and what Triton's statements look like with it."""

from __future__ import annotations

import ast

import pytest

from ninetoothed.backends.triton.layouts import Layouts, NotPossibleError, text


def written(*lines: str, products: dict[str, tuple[str, str]] | None = None) -> str:
    """The lines with layouts, after the products of some sizes."""
    layouts = Layouts(lambda name: name)
    result: list[str] = []

    def run() -> None:
        for name, (rows, columns) in (products or {"scores": ("M", "N")}).items():
            layouts.product(name, rows, columns)
        result[:] = [text(layouts.statement(line)) for line in ast.parse("\n".join(lines)).body]

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

    assert "x = gl.exp(scores) / sums[:, None]" in found
    assert "y = v * gl.convert_layout(sums, gl.SliceLayout(1, columns_D))[:, None]" in found


def test_a_vector_beside_a_matrix_is_a_row():
    assert "gl.where(is_seen[None, :], scores, 0)" in written(
        "is_seen = tl.arange(0, N) < 7", "x = tl.where(is_seen, scores, 0)"
    )


def test_what_nobody_combines_lies_as_the_first_product():
    assert written("last = tl.max(tl.arange(0, M))") == (
        "last = gl.max(gl.arange(0, M, gl.SliceLayout(1, columns_N)), axis=0)"
    )


def test_the_maximum_of_a_row_is_found_in_two_steps():
    assert written("x = tl.max(scores, axis=1)") == (
        "x = row_max(scores, gl.SliceLayout(1, columns_N))"
    )


@pytest.mark.parametrize(
    ("comparison", "limit"),
    [
        ("column[None, :] <= row[:, None]", "R + 0 - (C + 0)"),
        ("column[None, :] < row[:, None]", "R + 0 - (C + 0) - 1"),
        ("row[:, None] >= column[None, :]", "R + 0 - (C + 0)"),
        ("row[:, None] > column[None, :]", "R + 0 - (C + 0) - 1"),
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
    layouts = Layouts(lambda name: name)
    layouts.product("x", "M", "N")
    layouts.product("y", "M", "D")
    layouts.statement(ast.parse("z = x + y").body[0])

    assert layouts.equal == {("N", "D")}


@pytest.mark.parametrize(
    "line",
    [
        "x = tl.sort(scores)",
        "x = tl.sum(scores)",
        "x = tl.sum(scores, axis=1, keep_dims=True)",
        "x = mine(scores)",
        "x = max(scores, 0)",
        "x = scores if scale else 0",
        "x = tl.reshape(scores, (N, M))",
        "x, y = tl.split(scores)",
        "x = tl.broadcast_to(tl.arange(0, M)[:, None], (M, N))",
        "x = scores[:, None]",
        "if scale: x = 1",
    ],
)
def test_what_is_not_understood(line):
    with pytest.raises(NotPossibleError):
        written(line)
