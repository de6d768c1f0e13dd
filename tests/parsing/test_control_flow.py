"""What conditions and loops become: decided, unrolled, or left to run time."""

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import expected, parsed

FACTOR = 3

# Compile-time control flow.


def test_a_constant_condition_leaves_the_branch_taken():
    def application(x, y):
        if FACTOR == 3:
            y = x
        elif FACTOR == nothing_of_the_kind:  # noqa: F821
            y = undefined(x)  # noqa: F821

    assert parsed(application) == "store y = x"


@pytest.mark.parametrize(
    "condition",
    [
        lambda x, FLAG: FLAG,
        lambda x, FLAG: x.dtype is ntl.float16,
        lambda x, FLAG: FLAG > 3 and x.dtype == ntl.float32,
        lambda x, FLAG: x.dtype.is_floating(),
    ],
)
def test_conditions_known_at_the_call_are_left_to_the_backend(condition):
    def application(x, y, FLAG):
        if condition(x, FLAG):
            y = x

    assert parsed(application).startswith("if ")


def test_what_a_tile_is_can_be_asked():
    def application(x, y):
        if x is not None and x.ndim == 2 and x.shape == y.shape:
            y = x

    assert parsed(application) == "store y = x"


def test_membership_of_an_element_type():
    def application(x, y):
        if x.dtype in (ntl.float16, ntl.bfloat16):
            y = x

    assert parsed(application) == expected("""
        if x.dtype == float16 or x.dtype == bfloat16:
            store y = x
    """)


def test_a_constant_that_two_branches_choose_stays_one():
    def application(x, y, FLAG):
        size = 8
        if FLAG:
            size = 16
        y = x + ntl.arange(0, size)

    assert parsed(application) == expected("""
        if FLAG:
            size_value: ntl.constexpr = 16
        else:
            size_value: ntl.constexpr = 8
        store y = x + ntl.arange(0, padded(size_value))
    """)


def test_a_loop_over_a_tuple_is_unrolled():
    def application(x, y, z):
        total = 0.0
        for tile, scale in zip((x, y), (1, 2)):
            total += tile * scale
        z = total

    assert parsed(application) == expected("""
        total = 0.0 + x * 1
        total_before = total
        total += y * 2
        total = kept(total, total_before)
        store z = total
    """)


def test_static_range_of_constants_is_unrolled():
    def application(x, y):
        product = 1
        for dim in ntl.static_range(2):
            product *= x.shape[dim]
        y = x * product

    assert parsed(application) == "store y = x * (1 * M * N)"


def test_many_rounds_can_be_unrolled():
    def application(x, y):
        count = 0
        for k in ntl.static_range(3000):
            if k % 2 == 0:
                count += 1
        y = x * count

    assert parsed(application) == "store y = x * 1500"


def test_an_unrolled_loop_over_tiles_names_them():
    def application(x, y, z):
        for tile in (x, y):
            z = tile.offsets(0) * tile.shape[0]

    assert parsed(application) == expected("""
        store z = x.offsets(0) * M
        store z = y.offsets(0) * M
    """)


# Run-time control flow.


def test_a_range_is_a_loop():
    def application(rows, y):
        total = ntl.zeros(y.shape, dtype=ntl.float32)
        for k in range(rows.shape[0]):
            total += rows[k]
        y = total

    assert parsed(application) == expected("""
        total = ntl.zeros((padded(M), padded(N)), dtype=float32)
        for k in range(3):
            total += rows[k]
        store y = total
    """)


def test_a_step_that_may_be_negative_is_gone_by_in_rounds():
    def application(x, y, n):
        for i in ntl.range(8, n, n - 4, num_stages=2):
            y = x + i

    assert parsed(application) == expected("""
        bound = n - 4
        for i_round in ntl.range(ntl.cast(-((8 - ntl.cast(n, int64)) // ntl.cast(bound, int64)), int32), num_stages=2):
            i = 8 + i_round * bound
            store y = x + i
    """)


def test_a_loop_without_a_round_is_left_out():
    def application(x, y):
        k = 7
        for k in range(3, 3):
            y = x + undefined_name  # noqa: F821
        y = x * k  # noqa: F841

    assert "store y = x * 7" in parsed(application)
    assert "for" not in parsed(application)


def test_a_range_of_the_language_keeps_its_options():
    def application(many, y):
        for k in ntl.range(1, many.shape[0], 2, num_stages=3):
            y = many[k]

    assert "in ntl.range(1, " in parsed(application)
    assert "num_stages=3" in parsed(application)


def test_a_constant_that_a_loop_changes_is_a_variable():
    def application(x, y, n):
        count = 0
        limit = 5
        for k in range(n):
            count = count + limit
        y = x * count

    assert parsed(application) == expected("""
        count = 0
        for k in range(n):
            count = count + 5
        store y = x * count
    """)


def test_a_constant_assigned_in_a_loop_is_a_variable():
    def application(x, y, n):
        flag = 0
        for k in range(n):
            y = x * flag
            flag = 1
        y = x + flag

    assert parsed(application) == expected("""
        flag = 0
        for k in range(n):
            store y = x * flag
            flag = 1
        store y = x + flag
    """)


def test_tuples_carried_through_a_loop():
    def application(x, y, n):
        pair = (0, x)
        for k in range(n):
            pair = (pair[0] + 1, pair[1] * 2)
        y = pair[1] + pair[0]

    assert parsed(application) == expected("""
        pair_1 = x
        pair_0 = 0
        for k in range(n):
            pair_0 = pair_0 + 1
            pair_1 = pair_1 * 2
        store y = pair_1 + pair_0
    """)


def test_a_runtime_if_merges_what_its_branches_assign():
    def application(x, y, n):
        scale = 1.0
        if n > 0:
            scale = 2.0
        else:
            pass
        y = x * scale

    assert parsed(application) == expected("""
        if n > 0:
            scale = 2.0
        else:
            scale = 1.0
        store y = x * scale
    """)


def test_an_element_type_chosen_by_a_constexpr():
    def application(x, y, FLAG):
        dtype = ntl.float16 if FLAG else ntl.float32
        y = x.to(dtype)

    assert parsed(application) == expected("""
        dtype: ntl.constexpr = float16 if FLAG else float32
        store y = x.to(dtype)
    """)


def test_a_while_loop():
    def application(x, y, n):
        i = n
        while i > 1:
            i = i // 2
        y = x * i

    assert parsed(application) == expected("""
        i = n
        while i > 1:
            i = i // 2
        store y = x * i
    """)


def test_a_while_condition_that_loads_is_loaded_in_each_round():
    def application(cell, n):
        while cell < n:
            cell = cell + 1

    assert parsed(application) == expected("""
        condition = cell < n
        while condition:
            store cell = cell + 1
            condition = cell < n
    """)


def test_a_while_that_is_known_to_be_false_disappears():
    def application(x, y):
        while FACTOR > 3:
            y = x
        y = x + 1

    assert parsed(application) == "store y = x + 1"


def test_an_early_return():
    def application(x, y, n):
        if n == 0:
            return
        y = x

    assert parsed(application) == expected("""
        if not n == 0:
            store y = x
    """)


def test_nested_early_returns():
    def application(x, y, n, m):
        if n > 0:
            y = x
            if m > 0:
                return
            y = x + 1
        y = x + 2

    assert parsed(application) == expected("""
        if n > 0:
            store y = x
            if not m > 0:
                store y = x + 1
                store y = x + 2
        else:
            store y = x + 2
    """)
