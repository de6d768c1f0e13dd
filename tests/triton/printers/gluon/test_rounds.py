"""A split loop's rounds as one loop and as two: what is under a condition, and what cannot be."""

from __future__ import annotations

import ast

import pytest

from ninetoothed.backends.triton.printers.gluon.rounds import Step, in_one, in_two
from ninetoothed.backends.triton.printers.gluon.trees import expression


def steps(*lines: str) -> list[Step]:
    """Statements, those of the first rounds and those of the others separated by a bar."""
    found = []
    for line in lines:
        first, bar, other = line.partition("|")
        usual = ast.parse((other if bar else first).strip()).body[0]
        found.append(Step(ast.parse(first.strip()).body[0] if first.strip() else None, usual))
        if not bar:
            found[-1] = Step(usual, usual)
    return found


def one(*lines: str, known=("x", "y"), needed=("x",)) -> str | None:
    """The rounds of one loop."""
    body = in_one(steps(*lines), expression("i >= middle"), known, needed)
    return None if body is None else "\n".join(map(ast.unparse, body))


def two(*lines: str, needed=("x",)) -> tuple[str, str]:
    """The rounds of two."""
    first, other = in_two(steps(*lines), needed)
    return "; ".join(map(ast.unparse, first)), "; ".join(map(ast.unparse, other))


def test_what_both_do_is_done_in_every_round():
    assert one("x = f(x)") == "x = f(x)"


def test_what_the_others_do_besides_is_done_in_their_rounds():
    assert one("x = f(x)", "| x = h(x)", "x = g(x)") == (
        "x = f(x)\nif i >= middle:\n    x = h(x)\nx = g(x)"
    )


def test_what_they_do_otherwise_is_done_in_their_rounds():
    assert one("x = f(x) | x = h(x)", "y = x", needed=("y",)) == (
        "if i >= middle:\n    x = h(x)\nelse:\n    x = f(x)\ny = x"
    )


def test_what_both_name_has_a_value_in_every_round():
    assert one("m = f(x) | m = h(x)", "x = m", known=("x",)) is not None


def test_one_condition_for_what_is_computed_early_and_read_late():
    assert one("m = h(i)", "x = f(x)", "wait(x)", "| x = k(m, x)", "x = g(x)") == (
        "x = f(x)\nwait(x)\nif i >= middle:\n    m = h(i)\n    x = k(m, x)\nx = g(x)"
    )


def test_what_the_first_rounds_need_too_is_computed_in_all():
    assert one("m = h(i)", "| x = k(m, x)", "x = g(x, m)") == (
        "m = h(i)\nif i >= middle:\n    x = k(m, x)\nx = g(x, m)"
    )


@pytest.mark.parametrize("computed", ["h(x)", "gl.load(p)"])
def test_what_cannot_be_computed_later_has_a_condition_of_its_own(computed):
    found = one(f"m = {computed}", "x = f(x)", "store(x)", "| x = k(m, x)")

    # What one branch names has no value in another.
    assert found is None


def test_nothing_is_computed_that_nobody_reads():
    assert one("m = f(x)", "x = g(x)") == "x = g(x)"
    assert one("x = g(y)", "y = x") == "x = g(y)\ny = x"


def test_what_would_have_no_value_in_the_first_rounds():
    lines = ("x = f(x)", "| m = h(x)")

    assert one(*lines, needed=("x", "m")) is None
    assert one(*lines, known=("x", "m"), needed=("x", "m")) is not None


@pytest.mark.parametrize(
    "statement", ["m = warpgroup_mma_wait(0, deps=[x])", "mbarrier.wait(a, 0)", "gl.store(p, x)"]
)
def test_what_does_more_than_compute_is_never_under_a_condition(statement):
    assert one("x = f(x)", statement, "| x = g(m, x)").splitlines()[1] == statement


def test_two_loops_each_do_what_they_need():
    assert two("n = i", "m = h(i)", "x = f(x)", "| x = k(m, x)", "x = g(x)") == (
        "x = f(x); x = g(x)",
        "m = h(i); x = f(x); x = k(m, x); x = g(x)",
    )
