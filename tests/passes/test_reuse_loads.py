"""A tile that was loaded is used again."""

import ninetoothed.language as ntl
from ninetoothed.passes import reuse_loads
from tests.parsing.applications import expected
from tests.passes.passed import after

# Loads reused.


def test_a_tile_is_loaded_once():
    def application(x, y):
        y = x * x + x

    assert after(application, reuse_loads) == expected("""
        x_tile = x
        store y = x_tile * x_tile + x_tile
    """)


def test_a_variable_that_holds_the_tile_is_used():
    def application(x, y):
        v = x
        y = v + x

    assert after(application, reuse_loads) == expected("""
        v = x
        store y = v + v
    """)


def test_a_variable_that_changes_is_not_used():
    def application(x, y):
        v = x
        v = v + 1
        y = v + x

    assert after(application, reuse_loads) == expected("""
        x_tile = x
        v = x_tile
        v = v + 1
        store y = v + x_tile
    """)


def test_tiles_are_told_apart_by_their_indices():
    def application(rows, y, n):
        y = rows[n] + rows[0] + rows[n] + rows[n + 1]

    assert after(application, reuse_loads) == expected("""
        rows_tile = rows[n]
        store y = rows_tile + rows[0] + rows_tile + rows[n + 1]
    """)


def test_a_store_ends_the_use():
    def application(x, y, z):
        y = x
        z = x

    assert after(application, reuse_loads) == expected("""
        store y = x
        store z = x
    """)


def test_a_changed_index_ends_the_use():
    def application(rows, y, n):
        v = rows[n]
        n = n + 1
        y = v + rows[n]

    assert "v + rows[n_1]" in after(application, reuse_loads)


def test_an_effect_ends_the_use():
    def application(x, y):
        v = x
        ntl.atomic_add(x.data_ptr() + x.offsets(), v)
        y = v + x

    assert "store y = v + x" in after(application, reuse_loads)


def test_printing_does_not_end_the_use():
    def application(x, y):
        v = x
        ntl.device_print("v", v)
        y = v + x

    assert "store y = v + v" in after(application, reuse_loads)


def test_a_load_before_a_loop_is_used_in_it():
    def application(x, many, y):
        total = x + 0.0
        for k in range(many.shape[0]):
            total += many[k] * x + many[k]
        y = total + x

    text = after(application, reuse_loads)

    assert text.splitlines()[0] == "x_tile = x"
    assert text.splitlines()[3:] == [
        "    many_tile = many[k]",
        "    total += many_tile * x_tile + many_tile",
        "store y = total + x_tile",
    ]


def test_a_load_of_a_range_is_not_used_in_rounds_that_change_it():
    def stored(cell):
        for k in range(cell):
            cell = cell + 1

    def selected(rows, y, n):
        i = n
        for k in range(ntl.max(rows[i])):
            i = i + ntl.max(rows[i])
        y = i

    for application in (stored, selected):
        assert after(application, reuse_loads) == after(application)


def test_a_load_in_a_branch_is_not_used_after_it():
    def application(x, y, n):
        v = y * 0
        if n > 0:
            v = x + 1
        y = v + x

    assert "store y = v + x" in after(application, reuse_loads)


def test_a_load_that_may_not_happen_is_no_first_one():
    def application(x, y, n):
        v = (x + 1) if n > 0 else 0.0
        y = v + x

    assert "x_tile" not in after(application, reuse_loads)
