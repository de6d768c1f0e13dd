"""The passes over loads and stores: forwarding, reuse, hoisting, order, dead code."""

import pytest

import ninetoothed.language as ntl
from ninetoothed import passes
from ninetoothed.passes import forward_stores, hoist_loads, order_memory, remove_dead, reuse_loads
from ninetoothed.program.verify import verify
from tests.parsing.applications import body_of, expected, program_of


def after(application, *run):
    """The text of a program after some passes, each of which leaves what it is given alone."""
    program = program_of(application)
    for each in run:
        text = str(program)
        result = each.run(program)
        verify(result)
        assert str(program) == text
        program = result
    return body_of(program)


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
        y_stored = excluded(ntl.broadcast_to(ntl.cast(y_value, y.dtype), (widened(M), widened(N))), mask(y, (0, 1)), 'zero')
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
        total = ntl.zeros((widened(M), widened(N)), dtype=float32)
        for k in range(n):
            total += y_stored
        if n > 1:
            store z = total + y_stored
    """)


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

    assert "v + rows[n]" in after(application, reuse_loads)


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


def test_a_load_in_a_branch_is_not_used_after_it():
    def application(x, y, n):
        v = 0.0
        if n > 0:
            v = x + 1
        y = v + x

    assert "store y = v + x" in after(application, reuse_loads)


def test_a_load_that_may_not_happen_is_no_first_one():
    def application(x, y, n):
        v = (x + 1) if n > 0 else 0.0
        y = v + x

    assert "x_tile" not in after(application, reuse_loads)


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


# Dead code.


def test_what_is_never_read_is_removed():
    def application(x, y, n):
        unused = x + 1
        chain = unused * 2
        counter = n
        counter += 1
        y = x

    assert after(application, remove_dead) == "store y = x"


def test_blocks_that_became_empty_are_removed():
    def application(x, y, n):
        unused = 0.0
        for k in range(n):
            if k > 2:
                unused += 1.0
        y = x

    assert after(application, remove_dead) == "store y = x"


def test_an_empty_first_branch_is_turned_round():
    def application(x, y, n):
        if n > 0:
            unused = x + 1
        else:
            y = x

    assert after(application, remove_dead) == expected("""
        if not n > 0:
            store y = x
    """)


def test_a_method_called_for_what_it_does_stays():
    def application(x, y):
        y.copy_(x)

    assert after(application, remove_dead) == "y.copy_(x)"


def test_effects_stay():
    def application(x, y, n):
        old = ntl.atomic_add(y.data_ptr() + y.offsets(), x)
        while n > 0:
            n = n - 1

    text = after(application, remove_dead)

    assert "atomic_add" in text
    assert "while n > 0" in text


def test_passes_end():
    def application(x, y, n):
        while n > 0:
            unused = x
        y = x

    program = program_of(application)

    assert body_of(passes.run(program)) == body_of(passes.run(passes.run(program)))
