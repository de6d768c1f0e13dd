"""``ntl.libdevice``: NVIDIA's library of mathematical functions, in NumPy.

A row of the table is a name, the types it takes and gives, and a function of arrays. As in Triton
nothing is converted: float32 and float64 are told apart, and a Python number is float32 or int32.
The Bessel functions are absent, since NumPy has none.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language import libdevice_bits as bits
from ninetoothed.backends.numpy.language import libdevice_rounding
from ninetoothed.backends.numpy.language.math import each, in_double
from ninetoothed.backends.numpy.values.tile import Tile, as_tiles, joined_validity
from ninetoothed.language import dtypes
from ninetoothed.language.promotion import refuse

_LETTERS = {
    "f": dtypes.float32,
    "d": dtypes.float64,
    "i": dtypes.int32,
    "l": dtypes.int64,
    "u": dtypes.uint32,
    "v": dtypes.uint64,
    "b": dtypes.bool,
}
_LETTER_OF = {dtype: letter for letter, dtype in _LETTERS.items()}

#: Arguments and result, a letter each: "ff>f dd>d" takes two of one float type and gives it.
_ONE, _TWO, _THREE, _FOUR = "f>f d>d", "ff>f dd>d", "fff>f ddd>d", "ffff>f dddd>d"

_DIRECTIONS = "nzdu"


def _wrapped(name: str, types: str, function: Callable[..., Any]) -> Callable[..., Tile]:
    results = dict(pair.split(">") for pair in types.split())

    def call(*arguments: Any, **named: Any) -> Tile:
        # Called as in Triton's library.
        names = [f"arg{place}" for place in range(len(arguments), len(arguments) + len(named))]
        for unknown in named.keys() - {*names}:
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown!r}")
        tiles = as_tiles(*arguments, *map(named.__getitem__, names))
        letters = "".join(_LETTER_OF.get(tile.dtype, "?") for tile in tiles)
        if letters not in results:
            accepted = " or ".join(
                f"({', '.join(str(_LETTERS[letter]) for letter in option)})" for option in results
            )
            found = ", ".join(str(tile.dtype) for tile in tiles)
            raise refuse(f"ntl.libdevice.{name} takes {accepted}, but got ({found}).")
        dtype = _LETTERS[results[letters]]
        try:
            data = function(*(tile.data for tile in tiles))
        except ValueError as error:
            shapes = ", ".join(str(tile.shape) for tile in tiles)
            raise refuse(f"ntl.libdevice.{name} needs shapes that match: {shapes}.") from error
        return Tile(np.asarray(data).astype(dtype.numpy)[()], dtype, joined_validity(*tiles))

    call.__name__ = call.__qualname__ = name
    return call


def _gamma(x: float) -> float:
    if x != x or x == -math.inf or (x < 0 and x == math.floor(x)):
        return math.nan
    try:
        return math.gamma(x) if x else math.copysign(math.inf, x)
    except OverflowError:
        return math.inf


def _log_gamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


def _normal_quantile(p: float) -> float:
    if p in (0.0, 1.0):
        return math.inf if p else -math.inf
    return statistics.NormalDist().inv_cdf(p) if 0 < p < 1 else math.nan


def _scaled_erfc(x: float) -> float:
    """exp(x²)·erfc(x)."""
    if x < -26:
        return math.inf
    if x < 20:
        return math.exp(x * x) * math.erfc(x)
    # The asymptotic series; from 20 on its terms fall below the last bit after the fifth.
    series, term = 1.0, 1.0
    for k in range(1, 6):
        term *= -(2 * k - 1) / (2 * x * x)
        series += term
    return series / (x * math.sqrt(math.pi))


def _inverse_erf(x: float) -> float:
    if abs(x) < 1e-4:  # (x + 1) / 2 would lose the digits of a small x
        return math.sqrt(math.pi) / 2 * (x + math.pi / 12 * x**3)
    return _normal_quantile((x + 1) / 2) / math.sqrt(2)


def _length(*arrays: Any) -> Any:
    return np.sqrt(sum(np.asarray(x, np.float64) ** 2 for x in arrays))


def _fused(x: Any, y: Any, z: Any) -> Any:
    return in_double(lambda a, b, c: a * b.astype(np.float64) + c.astype(np.float64))(x, y, z)


def _round_half_away(x: Any) -> Any:
    return np.copysign(np.trunc(np.abs(x) + np.nextafter(x.dtype.type(0.5), x.dtype.type(0))), x)


def _exponent(x: Any) -> Any:
    x = np.asarray(x)
    exponent = np.frexp(x)[1] - 1
    # CUDA: the smallest int of zero and not-a-number, the largest of infinity.
    special = np.where(np.isinf(x), 2**31 - 1, -(2**31))
    return np.where(np.isfinite(x) & (x != 0), exponent, special)


def _float_exponent(x: Any) -> Any:
    exponent = np.asarray(np.frexp(x)[1] - 1, x.dtype)
    exponent = np.where(x == 0, -np.inf, exponent)
    return np.where(np.isfinite(x), exponent, np.abs(x))


def _difference(x: Any, y: Any) -> Any:
    return np.where(x > y, x - y, np.where(np.isnan(x) | np.isnan(y), np.nan, 0))


def _ieee_remainder(x: Any, y: Any) -> Any:
    def one(a: float, b: float) -> float:
        is_undefined = a != a or b != b or math.isinf(a) or b == 0
        return math.nan if is_undefined else math.remainder(a, b)

    return each(one)(x, y)


def _to_integer(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: function(x).astype(np.int64)


def _power(x: Any, y: Any) -> Any:
    return np.power(x, y.astype(x.dtype))


def _reciprocal(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: in_double(lambda *ys: 1 / function(*ys))(*xs)


def _directions(
    stem: str, types: str, make: Callable[[str], Callable[..., Any]]
) -> dict[str, tuple[str, Callable[..., Any]]]:
    names = [f"{stem}_r{direction}" for direction in _DIRECTIONS]
    return {name: (types, make(name)) for name in names}


def _arithmetic(
    nearest: Callable[..., Any], exact: Callable[..., Any]
) -> Callable[[str], Callable[..., Any]]:
    return lambda name: libdevice_rounding.directed(name, nearest, exact)


#: name -> (types, function).
_TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    # Integers and bits
    "brev": ("i>i l>l", bits.reversed_bits),
    "byte_perm": ("iii>i", bits.permuted_bytes),
    "clz": ("i>i l>i", bits.leading_zeros),
    "ffs": ("i>i l>i", bits.first_set),
    "hadd": ("ii>i uu>u", bits.halved_sum(0)),
    "mul24": ("ii>i uu>u", bits.product_24),
    "mulhi": ("ii>i ll>l uu>u vv>v", bits.product_high),
    "popc": ("i>i l>i", bits.set_bits),
    "rhadd": ("ii>i uu>u", bits.halved_sum(1)),
    "sad": ("iiu>i uuu>u", bits.sum_of_difference),
    # Bits as another type
    "double2hiint": ("d>i", lambda x: bits.halves(x)[0]),
    "double2loint": ("d>i", lambda x: bits.halves(x)[1]),
    "double_as_longlong": ("d>l", bits.reinterpreted("i8")),
    "float_as_int": ("f>i", bits.reinterpreted("i4")),
    "float_as_uint": ("f>i", bits.reinterpreted("i4")),
    "hiloint2double": ("ii>d", bits.from_halves),
    "int_as_float": ("i>f", bits.reinterpreted("f4")),
    "longlong_as_double": ("l>d", bits.reinterpreted("f8")),
    "uint_as_float": ("u>f", bits.reinterpreted("f4")),
    # Rounding and parts
    "abs": ("f>f d>d i>i l>l", np.abs),
    "ceil": (_ONE, np.ceil),
    "copysign": (_TWO, np.copysign),
    "fdim": (_TWO, _difference),
    "floor": (_ONE, np.floor),
    "fmod": (_TWO, np.fmod),
    "ilogb": ("f>i d>i", _exponent),
    "ldexp": ("fi>f di>d", np.ldexp),
    "llrint": ("f>l d>l", _to_integer(np.rint)),
    "llround": ("f>l d>l", _to_integer(_round_half_away)),
    "logb": (_ONE, _float_exponent),
    "nearbyint": (_ONE, np.rint),
    "nextafter": (_TWO, np.nextafter),
    "remainder": (_TWO, _ieee_remainder),
    "rint": (_ONE, np.rint),
    "round": (_ONE, _round_half_away),
    "saturatef": ("f>f", lambda x: np.where(np.isnan(x), np.float32(0), np.clip(x, 0, 1))),
    "scalbn": ("fi>f di>d", np.ldexp),
    "trunc": (_ONE, np.trunc),
    # Tests
    "finitef": ("f>b", np.isfinite),
    "isfinited": ("d>b", np.isfinite),
    "isinf": ("f>b d>b", np.isinf),
    "isnan": ("f>b d>b", np.isnan),
    "signbit": ("f>i d>i", np.signbit),
    # Powers and logarithms
    "cbrt": (_ONE, np.cbrt),
    "exp": (_ONE, np.exp),
    "exp10": (_ONE, in_double(functools.partial(np.power, 10.0))),
    "exp2": (_ONE, np.exp2),
    "expm1": (_ONE, np.expm1),
    "fast_dividef": ("ff>f", np.true_divide),
    "fast_exp10f": ("f>f", in_double(functools.partial(np.power, 10.0))),
    "fast_expf": ("f>f", np.exp),
    "fast_log10f": ("f>f", np.log10),
    "fast_log2f": ("f>f", np.log2),
    "fast_logf": ("f>f", np.log),
    "fast_powf": ("ff>f", _power),
    "fma": (_THREE, _fused),
    "hypot": (_TWO, np.hypot),
    "log": (_ONE, np.log),
    "log10": (_ONE, np.log10),
    "log1p": (_ONE, np.log1p),
    "log2": (_ONE, np.log2),
    "norm3d": (_THREE, in_double(_length)),
    "norm4d": (_FOUR, in_double(_length)),
    "pow": ("ff>f dd>d fi>f di>d", _power),
    "rcbrt": (_ONE, _reciprocal(np.cbrt)),
    "rcp64h": ("d>d", lambda x: 1 / x),
    "rhypot": (_TWO, _reciprocal(np.hypot)),
    "rnorm3d": (_THREE, _reciprocal(_length)),
    "rnorm4d": (_FOUR, _reciprocal(_length)),
    "rsqrt": (_ONE, _reciprocal(np.sqrt)),
    "rsqrt_rn": ("f>f", _reciprocal(np.sqrt)),
    "sqrt": (_ONE, np.sqrt),
    # Angles
    "acos": (_ONE, np.arccos),
    "acosh": (_ONE, np.arccosh),
    "asin": (_ONE, np.arcsin),
    "asinh": (_ONE, np.arcsinh),
    "atan": (_ONE, np.arctan),
    "atan2": (_TWO, np.arctan2),
    "atanh": (_ONE, np.arctanh),
    "cos": (_ONE, np.cos),
    "cosh": (_ONE, np.cosh),
    "cospi": (_ONE, in_double(lambda x: np.cos(np.pi * np.fmod(x, 2.0)))),
    "fast_cosf": ("f>f", np.cos),
    "fast_sinf": ("f>f", np.sin),
    "fast_tanf": ("f>f", np.tan),
    "fast_tanhf": ("f>f", np.tanh),
    "sin": (_ONE, np.sin),
    "sinh": (_ONE, np.sinh),
    "sinpi": (_ONE, in_double(lambda x: np.sin(np.pi * np.fmod(x, 2.0)))),
    "tan": (_ONE, np.tan),
    "tanh": (_ONE, np.tanh),
    # Probability
    "erf": (_ONE, each(math.erf)),
    "erfc": (_ONE, each(math.erfc)),
    "erfcinv": (_ONE, each(lambda x: -_normal_quantile(x / 2) / math.sqrt(2))),
    "erfcx": (_ONE, each(_scaled_erfc)),
    "erfinv": (_ONE, each(_inverse_erf)),
    "lgamma": (_ONE, each(_log_gamma)),
    "normcdf": (_ONE, each(lambda x: math.erfc(-x / math.sqrt(2)) / 2)),
    "normcdfinv": (_ONE, each(_normal_quantile)),
    "tgamma": (_ONE, each(_gamma)),
    # With a rounding direction
    **_directions("add", _TWO, _arithmetic(np.add, lambda x, y: x + y)),
    **_directions("div", _TWO, _arithmetic(np.true_divide, lambda x, y: x / y)),
    **_directions("fma", _THREE, _arithmetic(_fused, lambda x, y, z: x * y + z)),
    **_directions("mul", _TWO, _arithmetic(np.multiply, lambda x, y: x * y)),
    **_directions("rcp", _ONE, _arithmetic(np.reciprocal, lambda x: 1 / x)),
    **_directions("sqrt", _ONE, libdevice_rounding.directed_root),
    **_directions("sub", _TWO, _arithmetic(np.subtract, lambda x, y: x - y)),
    # Conversions
    **_directions("double2float", "d>f", libdevice_rounding.narrowed),
    **_directions("double2int", "d>i", libdevice_rounding.float_to_integer),
    **_directions("double2ll", "d>l", libdevice_rounding.float_to_integer),
    **_directions("double2uint", "d>i", libdevice_rounding.float_to_integer),
    **_directions("double2ull", "d>l", libdevice_rounding.float_to_integer),
    **_directions("float2int", "f>i", libdevice_rounding.float_to_integer),
    **_directions("float2ll", "f>l", libdevice_rounding.float_to_integer),
    **_directions("float2uint", "f>i", libdevice_rounding.float_to_integer),
    **_directions("float2ull", "f>l", libdevice_rounding.float_to_integer),
    **_directions("int2float", "i>f", libdevice_rounding.narrowed),
    **_directions("ll2double", "l>d", libdevice_rounding.narrowed),
    **_directions("ll2float", "l>f", libdevice_rounding.narrowed),
    **_directions("uint2float", "u>f", libdevice_rounding.narrowed),
    **_directions("ull2double", "v>d", libdevice_rounding.narrowed),
    **_directions("ull2float", "v>f", libdevice_rounding.narrowed),
    "int2double_rn": ("i>d", libdevice_rounding.narrowed("int2double_rn")),
    "uint2double_rn": ("u>d", libdevice_rounding.narrowed("uint2double_rn")),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: _wrapped(name, *row) for name, row in _TABLE.items()
}
