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


def test_what_a_store_loads_waits_for_earlier_stores_too():
    def application(x):
        x[1] = 1.0
        x += 1

    assert after(application, order_memory) == expected("""
        store x[1, 0:0 + N * 1:1] = 1.0
        ntl.debug_barrier()
        store x = x + 1
    """)


def test_a_store_waits_until_others_have_loaded_what_it_stores_to():
    def selected(x):
        x[1:] = x[:-1]

    def anywhere(x, n):
        x.source[0, n] = x.source[n, 0]

    def spread(x, n):
        x.source[n, x.offsets(1)[None, :] + x.offsets(0)[:, None]] = x

    def summed(x, n):
        ntl.atomic_add(x.source[n, x.offsets(1)[None, :] + x.offsets(0)[:, None]], x)

    for application in (selected, anywhere, spread, summed):
        first, second, _ = after(application, order_memory).splitlines()
        assert first.startswith("x_value = x") and second == "ntl.debug_barrier()"


def test_a_store_to_chosen_elements_waits_for_earlier_loads():
    def stored(x, y, n):
        v = x
        x.source[0, n] = 1.0
        y = v

    def changed(x, y, n):
        v = x
        ntl.atomic_add(x.source[0, n], 1.0)
        y = v

    def tile(x, y, n):
        v = x.source[0, n]
        x = 0.0
        y = v

    for application in (stored, changed, tile):
        assert after(application, order_memory).splitlines()[1] == "ntl.debug_barrier()"


def test_a_round_waits_for_what_the_one_before_loaded_or_stored():
    def stores(x, y, n):
        for k in range(n):
            x.source[0, k] = 1.0
            y = x

    def tiles(rows, y, n):
        for k in range(2):
            rows[k + 1] = rows[k]

    def asked(x):
        while ntl.sum(x) < 5:
            x.source[0, 0] = 1.0

    assert after(stores, order_memory).count("debug_barrier") == 2
    assert after(tiles, order_memory).count("debug_barrier") == 1
    assert after(asked, order_memory).splitlines()[1:] == [
        "while condition:",
        "    ntl.debug_barrier()",
        "    store x.source[0, 0] = 1.0",
        "    ntl.debug_barrier()",
        "    condition = ntl.sum(x) < 5",
    ]


def test_tiles_that_have_elements_in_common_wait():
    def stored(windows):
        windows[0] = 1.0
        windows[1] = 2.0

    def in_rounds(windows, n):
        for k in range(n):
            windows[k] = 1.0

    def copied(windows):
        windows[0] = windows[1]

    def apart(pairs):
        even, odd = pairs[0], pairs[1]
        pairs[0] = even - odd
        pairs[1] = even + odd

    for application in (stored, in_rounds, copied):
        assert after(application, order_memory).count("debug_barrier") == 1
    assert "debug_barrier" not in after(apart, order_memory)


def test_lanes_that_have_an_element_in_common_load_before_any_stores():
    def application(spread):
        spread += 1

    assert after(application, order_memory).splitlines()[-2] == "ntl.debug_barrier()"


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


# What other threads need.


def test_tiles_that_rounds_may_have_in_common_wait():
    def halved(rows):
        for k in range(6):
            rows[k // 2] = rows[k // 2] * 2

    def of_inner_rounds(grid):
        for k in range(2):
            for j in range(3):
                grid[0, j] = grid[0, j] + k

    def counted(rows, n):
        i = n
        while i < 3:
            rows[i] = rows[i] * 2
            i = i // 2

    for application in (halved, of_inner_rounds, counted):
        assert "debug_barrier" in after(application, order_memory)


def test_tiles_of_a_round_that_its_number_and_what_stays_select_do_not_wait():
    def application(grid, n):
        for k in range(2):
            for j in range(3):
                grid[n + k, j - n] = grid[n + k, j - n] * 2

    assert "debug_barrier" not in after(application, order_memory)


def test_what_other_threads_need_is_loaded_before_it_is_stored_to():
    def broadcast(cell, x, y):
        scale = cell
        cell = scale * 2
        y = x * scale

    def summed(x):
        x = x / ntl.sum(x)

    def asked(cell, y):
        if cell > 0:
            y = 1.0
        cell = 0.0

    def not_stored(x, y, z):
        value = y
        y = x
        z = value

    def selects(cell, rows, y):
        y = rows[cell]
        cell = cell + 1

    for application in (broadcast, summed, asked, not_stored, selects):
        *_, rest = after(application, order_memory).partition("ntl.debug_barrier()")
        assert rest.strip().startswith("store")


def test_what_stays_in_place_does_not_wait():
    def plain(x, y):
        x = x + y

    def turned(rows, y):
        one, other = rows[0], rows[1]
        rows[0] = one * y - other
        rows[1] = one + other * y

    assert "debug_barrier" not in after(plain, order_memory)
    assert "debug_barrier" not in after(turned, order_memory)


def test_one_barrier_before_a_loop_serves_all_its_rounds():
    def application(rows):
        total = 0.0
        for k in range(3):
            total += ntl.sum(rows[k])
        for k in range(3):
            rows[k] = rows[k] / total

    assert after(application, order_memory) == expected("""
        total = 0.0
        for k in range(3):
            total += ntl.sum(rows[k])
        ntl.debug_barrier()
        for k in range(3):
            store rows[k] = rows[k] / total
    """)


# Atomic operations within expressions.


def _barriers(application):
    """The lines behind barriers."""
    lines = [line.strip() for line in after(application, order_memory).splitlines()]
    return [line for before, line in zip(lines, lines[1:]) if before == "ntl.debug_barrier()"]


def test_an_atomic_operation_waits_for_what_is_loaded_before_it_and_is_waited_for_by_what_is_after():
    change = "before = ntl.atomic_add(x.source[0, 0], 1.0)"

    def after_a_load(x, y):
        y = x + ntl.atomic_add(x.source[0, 0], 1.0)

    def as_an_argument(x, y):
        y = ntl.where(x > 0, ntl.atomic_add(x.source[0, 0], 1.0), 0.0)

    def in_an_index(x, y):
        y.source[0, ntl.atomic_add(x.source[0, 0], 1.0)] = x.source[0, 1]

    def in_a_choice(x, y, n):
        y = x + (ntl.atomic_add(x.source[0, 0], 1.0) if n > 0 else 0.0)

    def between(x, y):
        y = ntl.sum(x) + ntl.atomic_add(x.source[0, 0], 1.0) * x

    def twice(x, y):
        y = ntl.atomic_add(x.source[0, 0], 1.0) + ntl.atomic_add(x.source[0, 0], 2.0)

    def in_itself(x):
        ntl.atomic_add(x.source[0, ntl.atomic_add(x.source[0, 0], 1.0)], 3.0)

    def stored_to(x):
        x = ntl.atomic_add(x.source[0, 0], 1.0)

    def of_what_is_there(x, y):
        y = ntl.atomic_add(x.source[0, 0], x.source[0, 1])

    def where_it_is(x, y):
        y = ntl.atomic_add(x.source[0, 0], 1.0, mask=ntl.sum(x) > 0)

    for application in (after_a_load, as_an_argument, in_an_index, in_a_choice):
        assert _barriers(application) == [change]
    assert _barriers(between) == [change, "store y = value + before * x"]
    assert _barriers(twice) == ["before_1 = ntl.atomic_add(x.source[0, 0], 2.0)"]
    assert _barriers(in_itself) == ["ntl.atomic_add(x.source[0, before], 3.0)"]
    assert _barriers(stored_to) == ["store x = before"]
    assert _barriers(of_what_is_there) == ["before = ntl.atomic_add(x.source[0, 0], x_value)"]
    assert _barriers(where_it_is) == [change.replace(")", ", mask=x_value)")]


def test_an_atomic_operation_in_a_condition_is_made_in_each_round():
    def application(x, y):
        while ntl.atomic_add(x.source[0, 0], 1.0) < 3:
            y = x

    assert after(application, order_memory) == expected("""
        before = ntl.atomic_add(x.source[0, 0], 1.0)
        condition = before < 3
        while condition:
            ntl.debug_barrier()
            store y = x
            ntl.debug_barrier()
            before_1 = ntl.atomic_add(x.source[0, 0], 1.0)
            condition = before_1 < 3
    """)


def test_an_atomic_operation_behind_and_is_made_where_numbers_before_it_hold():
    def numbers(x, y, n):
        if n > 0 and ntl.atomic_add(x.source[0, 0], 1.0) > 2:
            y = 1.0

    def tiles(x, y):
        y = x > 0 or ntl.atomic_add(x, 1.0) > 0

    assert after(numbers, order_memory) == expected("""
        condition = n > 0
        if condition:
            before = ntl.atomic_add(x.source[0, 0], 1.0)
            condition = before > 2
        if condition:
            store y = 1.0
    """)
    assert after(tiles, order_memory).splitlines()[-2:] == [
        "condition = condition or before > 0",
        "store y = condition",
    ]


def test_an_atomic_operation_alone_keeps_its_statement():
    def application(x, y):
        ntl.atomic_add(y, x)
        old = ntl.atomic_max(x, 1.0)
        y = old

    assert "before" not in after(application, order_memory)
