"""What applications become: expressions, assignments, positions."""

import builtins

import pytest

import ninetoothed.language as ntl
from tests.parsing.applications import M, expected, parsed, program_of

FACTOR = 3


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
        "ntl.cast(n, float) + ntl.cast(n, int)"
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
        (lambda odd: ntl.zeros(odd.shape, ntl.int32), "ntl.zeros((padded(3), padded(5)), int32)"),
        (lambda odd: ntl.full((odd.shape[0],), 1, ntl.int32), "ntl.full((padded(3),), 1, int32)"),
        (lambda odd: ntl.full((4,), 1, ntl.int32), "ntl.full((4,), 1, int32)"),
        (
            lambda odd: ntl.zeros(shape=(6,), dtype=ntl.int32),
            "ntl.zeros(shape=(padded(6),), dtype=int32)",
        ),
        (lambda odd: ntl.broadcast_to(odd, 3, 5), "ntl.broadcast_to(odd, (padded(3), padded(5)))"),
        (lambda odd: ntl.reshape(odd, (32,)), "ntl.reshape(odd, (32,))"),
        (lambda odd: odd.reshape(5, 3), "odd.reshape((padded(5), padded(3)))"),
        (lambda odd: ntl.zeros((M * 2,), ntl.int32), "ntl.zeros((padded((M * 2)),), int32)"),
        (lambda odd: ntl.zeros((2 * odd.shape[0],), ntl.int32), "ntl.zeros((padded(6),), int32)"),
    ],
)
def test_shapes_are_padded(call, text):
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
        store y = x + ntl.arange(0, padded(size)) + 4 + 3
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
        n_1 = n * 2
        n_1 += 1
        store y = x * n_1
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
