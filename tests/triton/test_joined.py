"""The two parts of a split loop as one: what is under a condition, and when they stay two."""

from __future__ import annotations

import ast

import pytest

pytest.importorskip("triton", reason="needs Triton")

from ninetoothed.backends.triton.printers.joined import join  # noqa: E402


def joined(first: str, second: str, known=("x", "y"), needed=("x",)) -> str:
    """What two loops become whose bodies are these, statements separated by semicolons."""
    loops = [
        ast.parse(f"for i in range({bounds}): {body}").body[0]
        for bounds, body in (("middle", first), ("middle, end", second))
    ]
    return "\n".join(map(ast.unparse, join(*loops, known, needed)))


def test_what_both_do_is_done_in_every_round():
    assert joined("x = f(x)", "x = f(x)") == "for i in range(end):\n    x = f(x)"


def test_what_the_second_does_besides_is_done_in_its_rounds():
    assert joined("x = f(x); x = g(x)", "x = f(x); x = h(x); x = g(x)") == (
        "for i in range(end):\n    x = f(x)\n    if i >= middle:\n        x = h(x)\n    x = g(x)"
    )


def test_what_they_do_otherwise_is_done_in_their_rounds():
    assert joined("x = f(x); y = x", "x = h(x); y = x", needed=("y",)) == (
        "for i in range(end):\n"
        "    if i >= middle:\n"
        "        x = h(x)\n"
        "    else:\n"
        "        x = f(x)\n"
        "    y = x"
    )


def test_what_the_first_does_besides_is_done_in_its_rounds():
    assert joined("x = f(x); x = h(x)", "x = f(x)") == (
        "for i in range(end):\n    x = f(x)\n    if i < middle:\n        x = h(x)"
    )


def test_one_condition_for_what_is_computed_early_and_read_late():
    assert joined(
        "x = f(x); wait(x); x = g(x)", "m = h(i); x = f(x); wait(x); x = k(m, x); x = g(x)"
    ) == (
        "for i in range(end):\n"
        "    x = f(x)\n"
        "    wait(x)\n"
        "    if i >= middle:\n"
        "        m = h(i)\n"
        "        x = k(m, x)\n"
        "    x = g(x)"
    )


@pytest.mark.parametrize(
    ("computed", "count"), [("h(x)", 2), ("h(z)", 1), ("gl.load(p)", 2)], ids=str
)
def test_what_cannot_be_computed_later_keeps_them_two(computed, count):
    first = "x = f(x); store(x)"
    second = f"m = {computed}; x = f(x); store(x); x = k(m, x)"

    assert joined(first, second).count("for i in") == count


def test_nothing_is_computed_that_nobody_reads():
    assert "m = " not in joined("m = f(x); x = g(x)", "m = f(x); x = g(x)")
    assert "y = x" in joined("x = g(y); y = x", "x = g(y); y = x")


def test_a_loop_that_begins_later():
    loops = [
        ast.parse(f"for i in range({bounds}): x = f(x)").body[0]
        for bounds in ("start, middle", "middle, end")
    ]

    (loop,) = join(*loops, {"x"}, {"x"})
    assert ast.unparse(loop).startswith("for i in range(start, end):")


def test_what_would_have_no_value_in_the_other_rounds_keeps_them_two():
    first, second = "x = f(x)", "x = f(x); m = h(x)"

    assert joined(first, second, needed=("x", "m")).count("for i in") == 2
    assert joined(first, second, known=("x", "m"), needed=("x", "m")).count("for i in") == 1


@pytest.mark.parametrize(
    "statement", ["x = warpgroup_mma_wait(0, deps=[x])", "mbarrier.wait(a, 0)", "gl.store(p, x)"]
)
def test_what_does_more_than_compute_is_never_under_a_condition(statement):
    found = joined("x = f(x); x = g(x)", f"x = f(x); {statement}; x = g(x)")

    assert found.count("for i in") == 2 and "if" not in found
