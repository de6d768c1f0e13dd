"""``ntl.libdevice`` against Python's own mathematics, and rounding against exact rationals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.language.libdevice import FUNCTIONS
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.errors import NineToothedError
from ninetoothed.language import dtypes

_ANY = np.array([-3.7, -1.5, -0.8, -0.25, -1e-3, 0.0, 1e-5, 0.3, 0.5, 1.0, 2.5, 7.0])
_UNIT = np.array([-0.99, -0.5, -1e-3, 0.0, 1e-6, 0.25, 0.75, 0.999])
_POSITIVE = np.array([1e-3, 0.1, 0.5, 1.0, 1.5, 4.0, 30.0])
_AT_LEAST_ONE = np.array([1.0, 1.5, 3.0, 100.0])
_PROBABILITY = np.array([1e-6, 0.01, 0.3, 0.5, 0.9, 0.999])

#: name -> (arguments, what Python's own functions make of them)
_REFERENCES = {
    "abs": (_ANY, abs),
    "acos": (_UNIT, math.acos),
    "acosh": (_AT_LEAST_ONE, math.acosh),
    "asin": (_UNIT, math.asin),
    "asinh": (_ANY, math.asinh),
    "atan": (_ANY, math.atan),
    "atanh": (_UNIT, math.atanh),
    "cbrt": (_ANY, lambda x: math.copysign(abs(x) ** (1 / 3), x)),
    "ceil": (_ANY, math.ceil),
    "cos": (_ANY, math.cos),
    "cosh": (_ANY, math.cosh),
    "cospi": (_ANY, lambda x: math.cos(math.pi * x)),
    "erf": (_ANY, math.erf),
    "erfc": (_ANY, math.erfc),
    "erfcx": (_ANY, lambda x: math.exp(x * x) * math.erfc(x)),
    "exp": (_ANY, math.exp),
    "exp10": (_ANY, lambda x: 10.0**x),
    "exp2": (_ANY, lambda x: 2.0**x),
    "expm1": (_ANY, math.expm1),
    "floor": (_ANY, math.floor),
    "lgamma": (_POSITIVE, math.lgamma),
    "log": (_POSITIVE, math.log),
    "log10": (_POSITIVE, math.log10),
    "log1p": (_POSITIVE, math.log1p),
    "log2": (_POSITIVE, math.log2),
    "logb": (_POSITIVE, lambda x: math.frexp(x)[1] - 1),
    "nearbyint": (_ANY, round),
    "normcdf": (_ANY, lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    "rcbrt": (_POSITIVE, lambda x: x ** (-1 / 3)),
    "rcp_rn": (_POSITIVE, lambda x: 1 / x),
    "rint": (_ANY, round),
    "round": (_ANY, lambda x: math.copysign(math.floor(abs(x) + 0.5), x)),
    "rsqrt": (_POSITIVE, lambda x: 1 / math.sqrt(x)),
    "sin": (_ANY, math.sin),
    "sinh": (_ANY, math.sinh),
    "sinpi": (_ANY, lambda x: math.sin(math.pi * x)),
    "sqrt": (_POSITIVE, math.sqrt),
    "tan": (_ANY, math.tan),
    "tanh": (_ANY, math.tanh),
    "tgamma": (_POSITIVE[:-1], math.gamma),
    "trunc": (_ANY, math.trunc),
    "atan2": ((_ANY, _ANY[::-1]), math.atan2),
    "copysign": ((_ANY, _ANY[::-1]), math.copysign),
    "fdim": ((_ANY, _ANY[::-1]), lambda x, y: max(x - y, 0)),
    "fmod": ((_ANY, _ANY[::-1] + 0.125), math.fmod),
    "hypot": ((_ANY, _ANY[::-1]), math.hypot),
    "pow": ((_POSITIVE, _POSITIVE[::-1] / 8), math.pow),
    "remainder": ((_ANY, _ANY[::-1] + 0.125), math.remainder),
    "rhypot": ((_POSITIVE, _POSITIVE[::-1]), lambda x, y: 1 / math.hypot(x, y)),
    "fma": ((_ANY, _ANY[::-1], _ANY), lambda x, y, z: x * y + z),
    "norm3d": ((_ANY, _ANY[::-1], _ANY), math.hypot),
    "rnorm3d": ((_POSITIVE, _POSITIVE, _POSITIVE), lambda *x: 1 / math.hypot(*x)),
    "norm4d": ((_ANY, _ANY[::-1], _ANY, _ANY), math.hypot),
    "rnorm4d": ((_POSITIVE,) * 4, lambda *x: 1 / math.hypot(*x)),
}

_DTYPES = {"float32": dtypes.float32, "float64": dtypes.float64}


def _tile(values, dtype=dtypes.float32) -> Tile:
    return Tile(np.asarray(values, dtype.numpy), dtype)


@pytest.mark.parametrize("dtype", _DTYPES.values(), ids=str)
@pytest.mark.parametrize("name", _REFERENCES)
def test_a_function_agrees_with_python(name, dtype):
    given, reference = _REFERENCES[name]
    tiles = [_tile(values, dtype) for values in (given if isinstance(given, tuple) else (given,))]

    with np.errstate(all="ignore"):
        found = FUNCTIONS[name](*tiles)

    lanes = zip(*(tile.data.tolist() for tile in tiles), strict=True)
    wanted = [float(reference(*lane)) for lane in lanes]
    rtol = 1e-6 if dtype is dtypes.float32 else 1e-13
    assert found.dtype is dtype
    np.testing.assert_allclose(found.data, wanted, rtol=rtol, atol=rtol / 10)


@pytest.mark.parametrize(
    "name, inverse, values",
    [
        ("erfinv", math.erf, _UNIT),
        ("erfcinv", math.erfc, 2 * _PROBABILITY),
        ("normcdfinv", lambda x: 0.5 * math.erfc(-x / math.sqrt(2)), _PROBABILITY),
    ],
)
def test_an_inverse_is_one(name, inverse, values):
    found = FUNCTIONS[name](_tile(values, dtypes.float64))

    np.testing.assert_allclose([inverse(x) for x in found.data], values, rtol=1e-9, atol=1e-12)


def test_inverses_reach_infinity_at_the_ends():
    ends = _tile([-1.0, 1.0, 2.0], dtypes.float64)

    assert FUNCTIONS["erfinv"](ends).data.tolist()[:2] == [-math.inf, math.inf]
    assert math.isnan(FUNCTIONS["erfinv"](ends).data[2])


def test_the_scaled_complement_neither_underflows_nor_jumps():
    x = np.array([-30.0, 5.0, 19.999999, 20.0, 100.0, 1e8])

    found = FUNCTIONS["erfcx"](_tile(x, dtypes.float64)).data

    assert found[0] == math.inf
    # Between these bounds for every positive x (Abramowitz and Stegun, 7.1.13).
    low = 2 / (x[1:] + np.sqrt(x[1:] ** 2 + 2)) / math.sqrt(math.pi)
    high = 2 / (x[1:] + np.sqrt(x[1:] ** 2 + 4 / math.pi)) / math.sqrt(math.pi)
    assert np.all(low * (1 - 1e-13) <= found[1:]) and np.all(found[1:] <= high)
    assert abs(found[2] / found[3] - 20.0 / 19.999999) < 1e-9


_INTEGERS = np.array([0, 1, -1, 5, -7, 2**31 - 1, -(2**31), 0x12345678], np.int32)


def _bits(value: int, width: int) -> str:
    return format(value & (2**width - 1), f"0{width}b")


@pytest.mark.parametrize("width", [32, 64])
@pytest.mark.parametrize(
    "name, reference",
    [
        ("clz", lambda bits: len(bits) if "1" not in bits else bits.index("1")),
        ("popc", lambda bits: bits.count("1")),
        ("ffs", lambda bits: 0 if "1" not in bits else bits[::-1].index("1") + 1),
    ],
)
def test_counting_bits(name, reference, width):
    dtype = dtypes.int32 if width == 32 else dtypes.int64
    values = _INTEGERS.astype(dtype.numpy)

    found = FUNCTIONS[name](Tile(values, dtype))

    assert found.dtype is dtypes.int32
    assert found.data.tolist() == [reference(_bits(v, width)) for v in values.tolist()]


def test_reversing_bits():
    found = FUNCTIONS["brev"](Tile(_INTEGERS, dtypes.int32)).data.tolist()

    assert [_bits(v, 32) for v in found] == [_bits(v, 32)[::-1] for v in _INTEGERS.tolist()]


@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.int64, dtypes.uint32, dtypes.uint64], ids=str
)
def test_the_upper_half_of_a_product_has_its_sign(dtype):
    x = _INTEGERS.astype(np.int64).astype(dtype.numpy)
    y = x[::-1].copy()

    found = FUNCTIONS["mulhi"](Tile(x, dtype), Tile(y, dtype)).data.tolist()

    assert found == [a * b >> dtype.bits for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def test_averages_do_not_overflow():
    x, y = Tile(_INTEGERS, dtypes.int32), Tile(_INTEGERS[::-1].copy(), dtypes.int32)
    pairs = list(zip(x.data.tolist(), y.data.tolist(), strict=True))

    assert FUNCTIONS["hadd"](x, y).data.tolist() == [a + b >> 1 for a, b in pairs]
    assert FUNCTIONS["rhadd"](x, y).data.tolist() == [a + b + 1 >> 1 for a, b in pairs]


def test_products_of_24_bits():
    x = Tile(np.array([3, -3, 2**24 + 5, 2**23], np.int32), dtypes.int32)

    # The upper byte is not read; bit 23 is the sign.
    assert FUNCTIONS["mul24"](x, x).data.tolist() == [9, 9, 25, 0]
    assert FUNCTIONS["mul24"](x, _integer(2)).data.tolist() == [6, -6, 10, -(2**24)]


def test_bytes_are_chosen_by_the_selector():
    x, y = _integer(0x33221100), _integer(0x77665544)

    assert FUNCTIONS["byte_perm"](x, y, _integer(0x7420)).data == 0x77442200
    assert FUNCTIONS["byte_perm"](_integer(0x80), y, _integer(0x0008)).data & 0xFF == 0xFF


def _integer(value: int) -> Tile:
    return Tile(np.array(value, np.int64).astype(np.int32)[()], dtypes.int32)


def test_sums_of_absolute_differences():
    z = Tile(np.uint32(5), dtypes.uint32)

    assert FUNCTIONS["sad"](_integer(3), _integer(-4), z).data == 12


def test_bits_change_their_type():
    x = _tile([1.5, -2.0])

    back = FUNCTIONS["int_as_float"](FUNCTIONS["float_as_int"](x))
    halves = FUNCTIONS["double2hiint"], FUNCTIONS["double2loint"]
    wide = _tile([1.5, -1e300], dtypes.float64)

    assert back.data.tolist() == [1.5, -2.0]
    joined = FUNCTIONS["hiloint2double"](*(half(wide) for half in halves))
    assert joined.data.tolist() == wide.data.tolist()


@pytest.mark.parametrize("direction", "nzdu")
@pytest.mark.parametrize(
    "stem, exact",
    [
        ("add", lambda x, y: x + y),
        ("sub", lambda x, y: x - y),
        ("mul", lambda x, y: x * y),
        ("div", lambda x, y: x / y),
    ],
)
def test_directed_arithmetic_is_the_nearest_float_on_its_side(stem, exact, direction):
    generator = np.random.default_rng(5)
    x = generator.standard_normal(64).astype(np.float32)
    y = (generator.standard_normal(64) * 10.0 ** generator.integers(-9, 9, 64)).astype(np.float32)

    found = FUNCTIONS[f"{stem}_r{direction}"](_tile(x), _tile(y)).data

    for a, b, result in zip(x, y, found, strict=True):
        _assert_rounded(result, exact(Fraction(float(a)), Fraction(float(b))), direction)


def _assert_rounded(result, value: Fraction, direction: str) -> None:
    down, up = (
        np.nextafter(result, result.dtype.type(-np.inf)),
        np.nextafter(result, result.dtype.type(np.inf)),
    )
    got = Fraction(float(result))
    if direction == "z":
        direction = "d" if value > 0 else "u"
    if direction == "d":
        assert got <= value < Fraction(float(up))
    elif direction == "u":
        assert Fraction(float(down)) < value <= got
    else:
        assert abs(got - value) <= min(
            abs(Fraction(float(down)) - value), abs(Fraction(float(up)) - value)
        )


@pytest.mark.parametrize("direction", "nzdu")
def test_directed_roots_and_reciprocals(direction):
    x = np.random.default_rng(6).random(32).astype(np.float32) + np.float32(0.01)

    roots = FUNCTIONS[f"sqrt_r{direction}"](_tile(x)).data
    reciprocals = FUNCTIONS[f"rcp_r{direction}"](_tile(x)).data

    for value, root, reciprocal in zip(x, roots, reciprocals, strict=True):
        _assert_rounded(reciprocal, 1 / Fraction(float(value)), direction)
        square = Fraction(float(root)) ** 2
        if direction in "dz":
            assert square <= float(value)
        if direction == "u":
            assert square >= float(value)


@pytest.mark.parametrize(
    "name, given, expected",
    [
        (
            "float2int_rn",
            [0.5, 1.5, -2.5, 1e20, -1e20, math.nan],
            [0, 2, -2, 2**31 - 1, -(2**31), 0],
        ),
        ("float2int_rz", [1.9, -1.9], [1, -1]),
        ("float2int_rd", [1.9, -1.1], [1, -2]),
        ("float2int_ru", [1.1, -1.9], [2, -1]),
        ("float2uint_rz", [3.7, -5.0, 4e9], [3, 0, 4000000000 - 2**32]),
        ("float2ll_rn", [2.0**40, 1e30], [2**40, 2**63 - 1]),
        ("float2ull_rz", [-1.0, 2.0**63], [0, -(2**63)]),
    ],
)
def test_floats_become_integers_as_on_a_gpu(name, given, expected):
    assert FUNCTIONS[name](_tile(given)).data.tolist() == expected


def test_integers_become_floats_in_the_direction_asked_for():
    x = Tile(np.array([2**24 + 1, -(2**24) - 1], np.int32), dtypes.int32)

    assert FUNCTIONS["int2float_rd"](x).data.tolist() == [2.0**24, -(2.0**24) - 2]
    assert FUNCTIONS["int2float_ru"](x).data.tolist() == [2.0**24 + 2, -(2.0**24)]
    assert FUNCTIONS["int2float_rz"](x).data.tolist() == [2.0**24, -(2.0**24)]
    wide = Tile(np.array([2**63 - 1], np.int64), dtypes.int64)
    assert FUNCTIONS["ll2double_rd"](wide).data.tolist() == [2.0**63 - 1024]


def test_tests_give_booleans():
    x = _tile([1.0, math.inf, math.nan, -math.inf])

    assert FUNCTIONS["isnan"](x).data.tolist() == [False, False, True, False]
    assert FUNCTIONS["isinf"](x).data.tolist() == [False, True, False, True]
    assert FUNCTIONS["finitef"](x).data.tolist() == [True, False, False, False]
    assert FUNCTIONS["isnan"](x).dtype is dtypes.bool


def test_exponents_and_scales():
    x = _tile([1.0, 6.0, 0.3])

    assert FUNCTIONS["ilogb"](x).data.tolist() == [0, 2, -2]
    assert FUNCTIONS["ldexp"](x, _integer(3)).data.tolist() == [8.0, 48.0, np.float32(2.4)]
    assert FUNCTIONS["pow"](x, _integer(2)).data.tolist()[:2] == [1.0, 36.0]


def test_saturation():
    x = _tile([-0.5, 0.25, 3.0, math.nan])

    assert FUNCTIONS["saturatef"](x).data.tolist() == [0.0, 0.25, 1.0, 0.0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: ntl.libdevice.tanh(Tile(np.float16(1), dtypes.float16)),
        lambda: ntl.libdevice.pow(_tile([1.0], dtypes.float64), _tile([2.0])),
        lambda: ntl.libdevice.clz(_tile([1.0])),
    ],
    ids=["float16", "mixed", "a float for an int"],
)
def test_other_types_are_refused_with_the_accepted_ones(call):
    with pytest.raises(NineToothedError, match=r"ntl\.libdevice\.\w+ takes \(.*but got"):
        call()
