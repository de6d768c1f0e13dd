"""A load waits for a store that may have written what it reads."""

import ninetoothed.language as ntl
from ninetoothed import passes
from ninetoothed.passes import order_memory
from tests.parsing.applications import expected
from tests.passes.passed import after

# Order.


def test_a_load_that_may_overlap_waits_for_the_store():
    def application(rows, y):
        rows[0] = y
        y = rows[1]

    assert after(application, order_memory) == expected("""
        store rows[0] = y
        ntl.debug_barrier()
        store y = rows[1]
    """)


def test_one_barrier_serves_several_loads():
    def application(rows, y, z):
        rows[0] = y
        z = rows[1]
        y = rows[2]

    assert after(application, order_memory).count("debug_barrier") == 1


def test_other_tensors_do_not_wait():
    def application(x, y, z):
        y = x
        z = x

    assert "debug_barrier" not in after(application, order_memory)


def test_a_round_waits_for_the_same_place_of_the_round_before():
    def application(x, y, n):
        for k in range(n):
            y = y + x

    assert after(application, order_memory) == expected("""
        for k in range(n):
            ntl.debug_barrier()
            store y = y + x
    """)


def test_tiles_of_different_rounds_do_not_wait():
    def application(rows):
        for k in range(3):
            rows[k] = rows[k] * 2

    assert "debug_barrier" not in after(application, order_memory)


def test_elements_of_the_source_wait():
    def application(x, n):
        for k in range(n):
            x.source[0, k] = x.source[0, k + 1]

    assert "ntl.debug_barrier()" in after(application, order_memory)


def test_a_store_to_chosen_elements_waits_for_one_that_may_meet_it():
    def elements_after_tile(x, y, n):
        y = x
        y.source[0, n] = 1.0

    def tile_after_elements(x, y, n):
        y.source[0, n] = 1.0
        y = x

    def elements_after_elements(y, n):
        y.source[0, n] = 1.0
        y.source[n, 0] = 2.0

    def in_rounds(y, n):
        for k in range(n):
            y.source[0, k // 2] = 1.0

    for application in (elements_after_tile, tile_after_elements, elements_after_elements):
        assert after(application, order_memory).splitlines()[1] == "ntl.debug_barrier()"
    assert "ntl.debug_barrier()" in after(in_rounds, order_memory)


def test_stores_to_other_tensors_and_to_one_tile_do_not_wait():
    def application(x, y, n):
        x.source[0, n] = 1.0
        y.source[0, n] = 1.0

    def tiles(y):
        y = 1.0
        y = 2.0

    assert "debug_barrier" not in after(application, order_memory)
    assert "debug_barrier" not in after(tiles, order_memory)


def test_sums_do_not_wait_for_one_another_but_other_changes_do():
    def sums(rows, y, n):
        for k in range(n):
            ntl.atomic_add(rows[k], y)
            ntl.atomic_add(rows.source[k, 0], 1.0)

    def another(y):
        ntl.atomic_add(y, 1.0)
        ntl.atomic_max(y, 2.0)

    def asked(y, z):
        ntl.atomic_add(y, 1.0)
        z = ntl.atomic_add(y, 1.0)

    def added_to_itself(rows):
        ntl.atomic_add(rows[0], 1.0)
        ntl.atomic_add(rows[0], rows[1])

    def loaded(rows, y):
        ntl.atomic_add(rows[0], 1.0)
        y = rows[1]

    def stored(y):
        ntl.atomic_add(y, 1.0)
        y = 2.0

    assert "debug_barrier" not in after(sums, order_memory)
    for application in (another, asked, added_to_itself, loaded, stored):
        assert after(application, order_memory).splitlines()[1] == "ntl.debug_barrier()"


def test_what_is_forwarded_does_not_wait():
    def application(x, y, z):
        y = x + 1
        z = y

    assert "debug_barrier" not in after(application, *passes.PASSES)


def test_a_store_in_a_branch_is_waited_for():
    def application(x, y, z, n):
        if n > 0:
            y = x
        z = y

    assert after(application, order_memory).splitlines()[-2:] == [
        "ntl.debug_barrier()",
        "store z = y",
    ]
