"""What names become: constants where they are known, parameters, the language."""

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
