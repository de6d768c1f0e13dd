"""Loads that no round changes, moved before the loop."""

import pytest

import ninetoothed.language as ntl
from ninetoothed.passes import hoist_loads
from tests.passes.passed import after

# Loads hoisted.


def test_an_invariant_load_moves_before_the_loop():
    def application(x, many, y):
        total = 0.0
        for k in range(many.shape[0]):
            total += ntl.sum(x * many[k])
        y = total

    text = after(application, hoist_loads)

    assert text.splitlines()[1] == "x_tile = x"
    assert "total += ntl.sum(x_tile * many[k])" in text


def test_out_of_several_loops_at_once():
    def application(x, grid, y):
        total = 0.0
        for i in range(2):
            for j in range(3):
                total += ntl.sum(x * grid[i, j] * grid[i, 0])
        y = total

    lines = after(application, hoist_loads).splitlines()

    assert lines[1] == "x_tile = x"
    assert lines[3] == "    grid_tile = grid[i, 0]"


def loop_with_store(x, rows, y):
    for k in range(3):
        rows[k] = x


def loop_with_effect(x, y, n):
    for k in range(n):
        ntl.atomic_add(y.data_ptr() + y.offsets(), x)


def loop_with_condition(x, y, n):
    total = 0.0
    for k in range(n):
        if k > 2:
            total += ntl.sum(x)
    y = total


def loop_with_choice(x, y, n):
    total = 0.0
    for k in range(n):
        total += ntl.sum(x) if k > 2 else 0.0
    y = total


@pytest.mark.parametrize(
    "application", [loop_with_store, loop_with_effect, loop_with_condition, loop_with_choice]
)
def test_what_stays_in_the_loop(application):
    assert "x_tile" not in after(application, hoist_loads)
