"""What applications become: names, constants, control flow."""

import builtins
import enum
import math
from types import SimpleNamespace

import pytest

import ninetoothed.language as ntl
from ninetoothed.language import dtypes
from tests.parsing.applications import M, expected, parsed, program_of

FACTOR = 3
SHAPE = (4, 8)
LIMIT = float("inf")


class Mode(enum.IntEnum):
    FAST = 7


class Kind(enum.Enum):
    SUM = "sum"
    MAX = "max"


settings = SimpleNamespace(scale=0.5, nested=SimpleNamespace(size=16), sizes={"a": 2})

# Names.


def test_a_module_global():
    def application(x, y):
        y = x * FACTOR

    assert parsed(application) == "store y = x * 3"


def test_a_closure_variable():
    scale = 0.25

    def application(x, y):
        y = x * scale

    assert parsed(application) == "store y = x * 0.25"


def test_attributes_of_modules_and_objects():
    def application(x, y):
        y = x * math.pi + settings.nested.size * settings.sizes["a"]

    assert parsed(application) == "store y = x * 3.141592653589793 + 32"


def test_enum_members():
    def application(x, y):
        y = x * Mode.FAST
        if Kind.MAX is Kind.SUM:
            y = x

    assert parsed(application) == "store y = x * 7"


def test_a_member_given_at_the_call_is_compared_by_its_value():
    def application(x, y, MODE):
        if MODE is Kind.SUM:
            y = x
        if MODE is not Mode.FAST and MODE is not None:
            y = x + 1

    assert parsed(application) == expected("""
        if MODE == 'sum':
            store y = x
        if MODE != 7 and MODE is not None:
            store y = x + 1
    """)


def test_a_default_argument_is_a_constant():
    def application(x, y, scale=2.0):
        y = x * scale

    assert parsed(application) == "store y = x * 2.0"


def test_a_constant_parameter():
    def application(x, y, scale):
        y = x * scale

    assert parsed(application, scale=0.5) == "store y = x * 0.5"


def test_scalars_and_constexpr_parameters_are_names():
    def application(x, y, n, FLAG):
        y = x * n + FLAG

    assert parsed(application) == "store y = x * n + FLAG"


def test_a_symbol_from_the_closure():
    def application(x, y):
        y = x * M

    assert parsed(application) == "store y = x * M"


def test_element_types_and_the_language():
    def application(x, y):
        y = ntl.libdevice.tanh(ntl.cast(x, ntl.float16)) + ntl.math.exp(x)

    assert (
        parsed(application)
        == "store y = ntl.libdevice.tanh(ntl.cast(x, float16)) + ntl.math.exp(x)"
    )


def test_functions_of_the_language_by_another_name():
    exp, half = ntl.exp, dtypes.float16

    def application(x, y):
        y = exp(x).to(half)

    assert parsed(application) == "store y = ntl.exp(x).to(float16)"


def test_a_parameter_hides_a_builtin():
    def application(x, y, len):
        y = x * len

    assert parsed(application, len=5) == "store y = x * 5"


def test_a_local_variable_hides_a_global():
    def application(x, y):
        FACTOR = x
        y = FACTOR + 1

    assert parsed(application) == expected("""
        FACTOR = x
        store y = FACTOR + 1
    """)


def test_a_local_that_the_program_needs_for_itself_is_renamed():
    def application(x, y):
        range = x
        y = range * LIMIT

    assert parsed(application) == expected("""
        range_1 = x
        store y = range_1 * float('inf')
    """)


def test_every_name_is_listed():
    def application(x, y):
        total = x + 1
        y = total

    assert {"x", "y", "total"} <= program_of(application).names


# Constants.


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (lambda: float("-inf"), "float('-inf')"),
        (lambda: float("nan"), "float('nan')"),
        (lambda: math.sqrt(16) / 2, "2.0"),
        (lambda: -3, "-3"),
        (lambda: -0.0, "-0.0"),
        (lambda: 2**-1, "0.5"),
        (lambda: max(2, 7) - min((4, 5)), "3"),
        (lambda: len(SHAPE) + SHAPE[-1], "10"),
        (lambda: SHAPE[1:][0], "8"),
        (lambda: sum((1, 2, 3)), "6"),
        (lambda: int("12") + round(2.6), "15"),
        (lambda: 1 if len(SHAPE) == 2 else 0, "1"),
        (lambda: 5 if "a" in ("a", "b") and FACTOR > 2 else 6, "5"),
        (lambda: (not SHAPE) or FACTOR, "3"),
        (lambda: "ab".upper() == "AB", "True"),
        (lambda: ntl.cdiv(10, 4) * ntl.float32.primitive_bitwidth, "96"),
        (lambda: isinstance(FACTOR, int), "True"),
        (lambda: getattr(settings, "missing", 4), "4"),
        (lambda: 1 < FACTOR < 5, "True"),
        (lambda: ~FACTOR, "-4"),
        (lambda: f"{FACTOR}" == "3", "True"),
        (lambda: abs(-2), "2"),
    ],
)
def test_constants_are_computed(expression, text):
    def application(x, y):
        y = x * expression()

    assert parsed(application) == f"store y = x * {text}"


def test_a_constant_local_variable_needs_no_statement():
    def application(x, y):
        size = 4
        size += 4
        y = ntl.arange(0, size)[None, :] + x

    assert parsed(application) == "store y = ntl.arange(0, 8)[None, :] + x"


def test_sizes_are_computed_symbolically():
    def application(x, y):
        half = x.shape[1] // 2
        y = x * (half * 2 + 1)

    assert parsed(application) == "store y = x * (N // 2 * 2 + 1)"


def test_division_of_sizes_is_left_to_run_time():
    def application(x, y):
        y = x / x.shape[1] + 1 / x.source.shape[0]

    assert parsed(application) == "store y = x / N + 1 / x_size_0"


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
        store y = x + ntl.arange(0, size_value)
    """)


def test_a_loop_over_a_tuple_is_unrolled():
    def application(x, y, z):
        total = 0.0
        for tile, scale in zip((x, y), (1, 2)):
            total += tile * scale
        z = total

    assert parsed(application) == expected("""
        total = 0.0 + x * 1
        total += y * 2
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
        total = ntl.zeros((widened(M), widened(N)), dtype=float32)
        for k in range(3):
            total += rows[k]
        store y = total
    """)


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


# Other expressions.


def test_a_chained_comparison_is_a_conjunction():
    def application(x, y, n):
        y = ntl.where(0 < x + 1 < n, x, 0.0)

    assert parsed(application) == expected("""
        value = x + 1
        store y = ntl.where((0 < value) & (value < n), x, 0.0)
    """)


def test_constant_operands_of_and_disappear():
    def application(x, y, n):
        if FACTOR == 3 and n > 1:
            y = x

    assert parsed(application) == expected("""
        if n > 1:
            store y = x
    """)


def test_pythons_functions_of_runtime_values():
    def application(x, y, n):
        y = max(x, n, 1) + min(x, 2) + abs(x) + float(n) + int(n)

    assert parsed(application) == (
        "store y = ntl.maximum(ntl.maximum(x, n), 1) + ntl.minimum(x, 2) + ntl.abs(x) + "
        "ntl.cast(n, float32) + ntl.cast(n, int64)"
    )


def test_views_of_values():
    def application(x, y):
        column = ntl.sum(x, axis=1)
        y = column[:, None] + x[:, :] + x.T

    assert parsed(application) == expected("""
        column = ntl.sum(x, axis=1)
        store y = column[:, None] + x[:, :] + x.T
    """)


def test_the_walrus():
    def application(x, y):
        y = (v := x + 1) * v

    assert parsed(application) == expected("""
        v = x + 1
        store y = v * v
    """)


def test_print_and_assert():
    def application(x, y, n, FLAG):
        print("n", n)
        assert n > 0, "positive"
        assert FLAG
        assert FACTOR == 3
        y = x

    assert parsed(application) == expected("""
        ntl.device_print('n', n)
        ntl.device_assert(n > 0, 'positive')
        ntl.static_assert(FLAG, 'FLAG')
        store y = x
    """)


def test_docstrings_and_pass_disappear():
    def application(x, y):
        """What it does."""
        if FACTOR:
            pass
        y = x

    assert parsed(application) == "store y = x"


def test_a_bare_call_stays():
    def application(x, y):
        ntl.atomic_add(y.data_ptr() + y.offsets(), x)

    assert parsed(application) == "ntl.atomic_add(y.data_ptr() + y.offsets(), x)"


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda odd: ntl.zeros(odd.shape, ntl.int32), "ntl.zeros((widened(3), widened(5)), int32)"),
        (lambda odd: ntl.full((odd.shape[0],), 1, ntl.int32), "ntl.full((widened(3),), 1, int32)"),
        (lambda odd: ntl.full((4,), 1, ntl.int32), "ntl.full((4,), 1, int32)"),
        (
            lambda odd: ntl.zeros(shape=(6,), dtype=ntl.int32),
            "ntl.zeros(shape=(widened(6),), dtype=int32)",
        ),
        (lambda odd: ntl.broadcast_to(odd, 3, 5), "ntl.broadcast_to(odd, widened(3), widened(5))"),
        (lambda odd: ntl.reshape(odd, (15,)), "ntl.reshape(odd, (widened(15),))"),
        (lambda odd: odd.reshape(5, 3), "odd.reshape(widened(5), widened(3))"),
        (lambda odd: ntl.zeros((M * 2,), ntl.int32), "ntl.zeros((widened((M * 2)),), int32)"),
        (lambda odd: ntl.zeros((2 * odd.shape[0],), ntl.int32), "ntl.zeros((widened(6),), int32)"),
    ],
)
def test_shapes_are_widened(call, text):
    def application(odd, y):
        y = call(odd)

    assert parsed(application) == f"store y = {text}"


def test_the_shape_of_a_value_is_wide_already():
    def application(x, y):
        v = x + 1
        y = ntl.zeros(v.shape, dtype=x.dtype) + ntl.full((v.shape[0], 1), 0, x.dtype)

    assert parsed(application) == expected("""
        v = x + 1
        store y = ntl.zeros(v.shape, dtype=x.dtype) + ntl.full((v.shape[0], 1), 0, x.dtype)
    """)


# Assignments.


def test_chained_assignment():
    def application(x, y, z):
        y = z = x + 1

    assert parsed(application) == expected("""
        value = x + 1
        store y = value
        store z = value
    """)


def test_variables_are_swapped():
    def application(x, y, z):
        a, b = x + 1, x + 2
        a, b = b, a
        y, z = a, b

    assert parsed(application) == expected("""
        a = x + 1
        b = x + 2
        value = a
        a = b
        b = value
        store y = a
        store z = b
    """)


def test_tiles_are_swapped():
    def application(x, y):
        x, y = y, x

    assert parsed(application) == expected("""
        value = x
        store x = y
        store y = value
    """)


def test_several_results_of_a_call():
    def application(x, y):
        highest, place = ntl.max(x, 1, return_indices=True)
        y = highest[:, None] + place[:, None]

    assert parsed(application) == expected("""
        highest, place = ntl.max(x, 1, return_indices=True)
        store y = highest[:, None] + place[:, None]
    """)


def test_several_results_stored_at_once():
    def application(x, y, z):
        y, z = ntl.split(x)

    assert parsed(application) == expected("""
        value, value_1 = ntl.split(x)
        store y = value
        store z = value_1
    """)


def test_a_starred_target():
    def application(x, y):
        first, *rest = x.shape
        y = x * rest[0] * len(rest)

    assert parsed(application) == "store y = x * N * 1"


def test_an_annotated_constant():
    def application(x, y, FLAG):
        size: ntl.constexpr = FLAG * 2
        known: ntl.constexpr = 4
        plain: int = 3
        y = x + ntl.arange(0, size) + known + plain

    assert parsed(application) == expected("""
        size: ntl.constexpr = FLAG * 2
        store y = x + ntl.arange(0, size) + 4 + 3
    """)


def test_what_is_made_of_constexprs_alone_stays_constant():
    def application(x, y, FLAG):
        size = FLAG // 2
        y = x + ntl.arange(0, size)

    assert parsed(application).startswith("size: ntl.constexpr = FLAG // 2")


def test_a_scalar_parameter_is_rebound():
    def application(x, y, n):
        n = n * 2
        n += 1
        y = x * n

    assert parsed(application) == expected("""
        n = n * 2
        n += 1
        store y = x * n
    """)


def test_stars_in_calls_and_keywords():
    options = {"axis": 1}

    def application(x, y):
        pair = (x, 0.0)
        y = ntl.where(x > 0, *pair) + ntl.sum(x, **options)[:, None]

    assert parsed(application) == expected("""
        pair_0 = x
        store y = ntl.where(x > 0, pair_0, 0.0) + ntl.sum(x, axis=1)[:, None]
    """)


def test_parsing_is_deterministic_and_leaves_the_function_alone():
    def application(many, y):
        for k in range(many.shape[0]):
            y = many[k] * FACTOR

    code = application.__code__
    first = parsed(application)

    assert parsed(application) == first
    assert application.__code__ is code


def test_positions_are_those_of_the_user(request):
    def application(x, y):
        y = x + 1

    store = program_of(application).body[0]

    assert store.file == builtins.str(request.path)
    assert store.lineno == application.__code__.co_firstlineno + 1
