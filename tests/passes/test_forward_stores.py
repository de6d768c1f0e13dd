"""Stored values, used instead of loads."""

import pytest

import ninetoothed.language as ntl
from ninetoothed import passes
from ninetoothed.passes import forward_stores
from tests.parsing.applications import expected
from tests.passes.passed import after

# Stored values forwarded.


def test_a_stored_value_is_used_instead_of_a_load():
    def application(x, y, z):
        y = x + 1
        z = y * 2

    assert after(application, forward_stores) == expected("""
        y_value = x + 1
        store y = y_value
        y_stored = forwarded(y, y_value)
        store z = y_stored * 2
    """)


def test_a_variable_stored_is_used_as_it_is():
    def application(x, y, z):
        v = x + 1
        y = v
        z = y

    assert after(application, forward_stores) == expected("""
        v = x + 1
        store y = v
        y_stored = forwarded(y, v)
        store z = y_stored
    """)


def test_a_variable_that_changes_later_is_kept():
    def application(x, y, z):
        v = x + 1
        y = v
        v = v + 1
        z = y + v

    assert "y_value = v" in after(application, forward_stores)


def test_a_forwarded_value_is_rounded_and_in_the_tiles_shape():
    def application(x, y, z):
        y = 0.5
        z = y

    assert after(application, *passes.PASSES) == expected("""
        y_value = 0.5
        store y = y_value
        y_stored = ntl.cast(masked(ntl.broadcast_to(y_value, (padded(M), padded(N))), mask(y, (0, 1)), 'zero'), y.dtype)
        store z = y_stored
    """)


def test_the_shape_is_left_where_it_is_known_to_fit():
    def application(x, y, z):
        y = x + 1
        z = y

    assert "broadcast_to" not in after(application, *passes.PASSES)


def other_store(x, y, z):
    y = x + 1
    z = x
    z = y


def effect(x, y, z):
    y = x + 1
    ntl.atomic_add(y.data_ptr() + y.offsets(), x)
    z = y


def other_tile(rows, y, z):
    rows[0] = y
    z = rows[1]


def changed_index(rows, y, z, n):
    i = n
    rows[i] = y
    i = i + 1
    z = rows[i]


def store_to_elements(x, y, z):
    y = x
    y.source[0, 0] = 1
    z = y


def with_other(padless, z):
    padless = z + 1
    z = padless


def lanes_of_one_element(spread, z):
    spread = ntl.arange(0, 4)
    z = spread


def after_a_loop_that_stores(x, y, z, n):
    y = x + 1
    for k in range(n):
        z = x
    z = y


def in_the_next_round(x, y, z, n):
    for k in range(n):
        z = y
        y = x + k


@pytest.mark.parametrize(
    "application",
    [
        other_store,
        effect,
        other_tile,
        changed_index,
        store_to_elements,
        with_other,
        lanes_of_one_element,
        after_a_loop_that_stores,
        in_the_next_round,
    ],
)
def test_what_may_have_changed_is_not_forwarded(application):
    assert "forwarded" not in after(application, forward_stores)


def test_forwarding_into_branches_and_loops():
    def application(x, y, z, n):
        y = x + 1
        total = ntl.zeros(y.shape, dtype=ntl.float32)
        for k in range(n):
            total += y
        if n > 1:
            z = total + y

    assert after(application, forward_stores) == expected("""
        y_value = x + 1
        store y = y_value
        y_stored = forwarded(y, y_value)
        total = ntl.zeros((padded(M), padded(N)), dtype=float32)
        for k in range(n):
            total += y_stored
        if n > 1:
            store z = total + y_stored
    """)
