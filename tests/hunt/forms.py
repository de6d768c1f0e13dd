"""What an expression may be made of: its text, and beside it what it means in plain NumPy.

The forms are in three files: element by element here, along dimensions in `dimensions`, of elements
that move in `movements`.
"""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tests.hunt.values import (
    FLOATS,
    INTEGERS,
    WEAK,
    Ambiguous,
    Value,
    cast,
    checked,
    elementwise,
    is_float,
    is_integer,
    of_exponent,
    own_float,
    promoted,
)

Chooser = Callable[[random.Random, Sequence[Value]], "dict[str, Any] | None"]


@dataclass(frozen=True)
class Form:
    """An expression of others.

    Attributes:
        name: what it is called in a program's description.
        text: as it is written; ``{0}`` is the first operand, other names are the parameters'.
        kinds: what each operand has to be, see `KINDS`.
        compute: its meaning, of the operands' values and the parameters.
        choose: parameters for some operands, None where there are none that fit.
        rows: the rows of the table of operations that it has.
    """

    name: str
    text: str
    kinds: tuple[str, ...]
    compute: Callable[..., Value]
    choose: Chooser | None = None
    rows: tuple[str, ...] = ()
    #: How it is written for Triton's interpreter, whose values have not all members.
    plain: str | None = None


#: What an operand may be.
KINDS: dict[str, Callable[[Value], bool]] = {
    "any": lambda v: True,
    "typed": lambda v: v.dtype not in WEAK,
    "number": lambda v: v.dtype != "bool",
    "tile": lambda v: v.dtype not in WEAK and len(v.shape) > 0,
    "number tile": lambda v: v.dtype not in (*WEAK, "bool") and len(v.shape) > 0,
    "float": lambda v: v.dtype in FLOATS,
    "real": lambda v: v.dtype in ("float32", "float64"),
    "float32": lambda v: v.dtype == "float32",
    "integer": lambda v: is_integer(v.dtype),
    "integers": lambda v: v.dtype in INTEGERS,
    "int32": lambda v: v.dtype == "int32",
    "bool": lambda v: v.dtype == "bool",
    "bool tile": lambda v: v.dtype == "bool" and len(v.shape) > 0,
    "scalar": lambda v: v.dtype not in WEAK and len(v.shape) == 0,
}

FORMS: dict[str, Form] = {}


def form(
    name: str,
    text: str,
    kinds: str,
    compute: Callable[..., Value],
    choose: Chooser | None = None,
    rows: str | None = None,
    plain: str | None = None,
) -> None:
    """Add a form; without ``rows`` its row is called as it is."""
    assert name not in FORMS, name
    has = (name,) if rows is None else tuple(rows.split())
    FORMS[name] = Form(name, text, tuple(kinds.split(", ")), compute, choose, has, plain)


# Operators.


def _arithmetic(function: Callable[..., Any], ulps: float = 1) -> Callable[..., Value]:
    def compute(*operands: Value) -> Value:
        dtype = promoted(operands[0].dtype, operands[1].dtype)
        if "bool" in {value.dtype for value in operands}:
            operands = tuple(cast(v, "int32") if v.dtype == "bool" else v for v in operands)
        return elementwise(function, _fitting(operands, dtype), dtype, ulps)

    return compute


def _fitting(operands: Sequence[Value], dtype: str) -> list[Value]:
    """The operands in a type; Python's integers have to fit it."""
    for value in operands:
        if value.dtype == "weak int" and dtype in INTEGERS:
            bits, signed = INTEGERS[dtype]
            least, most = (
                (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
            )
            if (value.data < least).any() or (value.data > most).any():
                raise Ambiguous("a number that does not fit")
    return [cast(v, dtype) if v.dtype not in WEAK else _strong(v, dtype) for v in operands]


def _strong(value: Value, dtype: str) -> Value:
    data = value.data.astype(np.float64 if is_float(dtype) else np.int64)
    return checked(data, value.exists, value.error, dtype, 1)


def _comparison(function: Callable[..., Any]) -> Callable[..., Value]:
    def compute(*operands: Value) -> Value:
        if not any(is_float(value.dtype) for value in operands):
            return elementwise(function, operands, "bool")
        dtype = promoted(operands[0].dtype, operands[1].dtype)
        return elementwise(function, _fitting(operands, dtype), "bool", is_smooth=False)

    return compute


def _chained(one: Value, middle: Value, last: Value) -> Value:
    both = (_comparison(operator.lt)(one, middle), _comparison(operator.le)(middle, last))
    return elementwise(np.logical_and, both, "bool")


def _floor_divided(function: Callable[..., Any]) -> Callable[..., Value]:
    def compute(one: Value, other: Value) -> Value:
        dtype = promoted(one.dtype, other.dtype, is_division=True)
        one, other = _fitting((one, other), dtype)
        if (other.data == 0)[np.broadcast_to(other.exists, other.data.shape)].any():
            raise Ambiguous("division by zero")
        if not (one.is_exact and other.is_exact):
            raise Ambiguous("a quotient's floor of what is inexact")
        if is_float(dtype):
            # Rounding the quotient up to a whole number would make another one of it.
            quotient = elementwise(lambda a, b: a / np.where(b == 0, 1, b), (one, other), "float64")
            near = np.abs(quotient.data - np.rint(quotient.data))
            if ((near < 1e-3 * np.abs(quotient.data)) & (near > 0) & quotient.exists).any():
                raise Ambiguous("a quotient near a whole number")
        safe = lambda a, b: function(a, np.where(b == 0, 1, b))  # noqa: E731
        return replace(elementwise(safe, (one, other), dtype), known=None)

    return compute


def _true_division(one: Value, other: Value) -> Value:
    if is_integer(one.dtype) and is_integer(other.dtype):
        _fitting((one, other), promoted(one.dtype, other.dtype, is_division=True))
    dtype = promoted(one.dtype, other.dtype, is_division=True)
    if not is_float(dtype):
        dtype = own_float[0]
    _check_divisor(other)
    operands = _fitting((one, other), dtype)
    return _quotient(operands, dtype)


def _check_divisor(divisor: Value) -> None:
    """What is not 0 here may be rounded to it."""
    is_zero = np.abs(divisor.data) <= np.maximum(divisor.error, _LEAST_NORMAL)
    if is_zero[np.broadcast_to(divisor.exists, is_zero.shape)].any():
        raise Ambiguous("division by zero")


def _quotient(operands: Sequence[Value], dtype: str) -> Value:
    """What it is of the 0 that is read where nothing is, is not said."""
    quotient = elementwise(lambda a, b: a / np.where(b == 0, 1, b), operands, dtype, 3)
    return replace(quotient, known=None)


def _bitwise(function: Callable[..., Any]) -> Callable[..., Value]:
    def compute(one: Value, other: Value) -> Value:
        dtype = promoted(one.dtype, other.dtype)
        if one.dtype == other.dtype == "bool":
            return elementwise(function, (one, other), "bool")
        return elementwise(function, _fitting((one, other), dtype), dtype)

    return compute


def _negative(value: Value) -> Value:
    if value.dtype == "bool":
        value = cast(value, "int32")
    return elementwise(np.negative, [value], value.dtype)


def _truth(value: Value) -> Value:
    return cast(value, "bool")


for _symbol, _function in {"+": np.add, "-": np.subtract, "*": np.multiply}.items():
    _text = f"({{0}} {_symbol} {{1}})"
    form(_symbol, _text, "any, any", _arithmetic(_function), rows="")
    # Truth values count.
    form(f"{_symbol} of truths", _text, "bool tile, bool tile", _arithmetic(_function), rows="")
for _name, _function in {"add": np.add, "sub": np.subtract, "mul": np.multiply}.items():
    form(_name, f"ntl.{_name}({{0}}, {{1}})", "tile, any", _arithmetic(_function))
form("//", "({0} // {1})", "number, number", _floor_divided(np.floor_divide), rows="")
form("%", "({0} % {1})", "number, number", _floor_divided(np.mod), rows="")
form("hashed", "(({0} & 255) * 1103515245 % 64)", "int32", lambda v: _hashed(v), rows="")
form("/", "({0} / {1})", "number, number", _true_division, rows="")
for _symbol, _name in {
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
}.items():
    _function = _comparison(getattr(operator, _name))
    form(_symbol, f"({{0}} {_symbol} {{1}})", "number, number", _function, rows="")
# Of sizes alone the first two may decide it: then it is no tile, as in Python.
form("chained", "({0} < {1} <= {2})", "tile, number, number", _chained, rows="")
for _symbol, _function in {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}.items():
    _text = f"({{0}} {_symbol} {{1}})"
    form(f"{_symbol} of integers", _text, "integers, integer", _bitwise(_function), rows="")
    form(f"{_symbol} of truths", _text, "bool, bool", _bitwise(_function), rows="")
form("~", "(~{0})", "integers", lambda v: elementwise(np.invert, [v], v.dtype), rows="")
form("negative", "(-{0})", "typed", _negative, rows="")
form("positive", "(+{0})", "typed", lambda v: v, rows="")
form("not", "(not {0})", "tile", lambda v: _not(v), rows="")


def _hashed(value: Value) -> Value:
    """A remainder of a product that wraps around, of what is not negative."""
    return elementwise(
        lambda a: ((a.astype(np.int64) & 255) * 1103515245).astype(np.int32) % 64, [value], "int32"
    )


def _not(value: Value) -> Value:
    truth = _truth(value)
    return elementwise(np.logical_not, [truth], "bool")


for _name, _function in {"and": np.logical_and, "or": np.logical_or}.items():
    _compute = lambda a, b, f=_function: elementwise(f, (a, b), "bool")  # noqa: E731
    form(_name, f"({{0}} {_name} {{1}})", "bool tile, bool tile", _compute, rows="")
    form(f"logical_{_name}", f"{{0}}.logical_{_name}({{1}})", "bool tile, bool tile", _compute)


def _shifted(value: Value, by: int, leftwards: bool) -> Value:
    shift = np.left_shift if leftwards else np.right_shift
    return elementwise(lambda a: shift(a, by), [value], value.dtype)


def _shifted_truth(value: Value, by: Value) -> Value:
    operands = (cast(value, "int32"), cast(by, "int32"))
    return elementwise(np.left_shift, operands, "int32")


form("<< of truths", "({0} << {1})", "bool, bool", _shifted_truth, rows="")
for _symbol, _leftwards in {"<<": True, ">>": False}.items():
    form(
        _symbol,
        f"({{0}} {_symbol} {{by}})",
        "integers",
        lambda v, by, left=_leftwards: _shifted(v, by, left),
        lambda choose, values: {"by": choose.randrange(1, 4)},
        rows="",
    )


# Functions of one real number.


def _of_one(function: Callable[..., Any], ulps: float, smooth: bool = True) -> Callable[..., Value]:
    return lambda value: elementwise(function, [value], value.dtype, ulps, smooth)


def _sigmoid(value: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-value))


_REAL: dict[str, tuple[Callable[..., Any], float]] = {
    "erf": (np.vectorize(math.erf, otypes=[float]), 8),
    "sin": (np.sin, 8),
    "cos": (np.cos, 8),
    "sqrt": (np.sqrt, 4),
    "sqrt_rn": (np.sqrt, 2),
    "exp": (np.exp, 8),
    "exp2": (np.exp2, 8),
    "log": (np.log, 16),
    "log2": (np.log2, 16),
    "rsqrt": (lambda a: 1 / np.sqrt(a), 8),
    "sigmoid": (_sigmoid, 16),
}
#: The type that a number has where it meets no other.
OWN_TYPES = {"weak int": "int32", "bfloat16": "float32"}

#: What is not defined for all numbers is asked of positive ones.
_POSITIVE = ("sqrt", "sqrt_rn", "log", "log2", "rsqrt")
for _name, (_function, _ulps) in _REAL.items():
    _compute = _of_one(_function, _ulps)
    if _name in ("exp", "sigmoid"):
        _compute = of_exponent(_function, _ulps, math.inf if _name == "exp" else 0.0)
    _kind = "float32" if _name == "sqrt_rn" else "real"
    form(_name, f"ntl.{_name}({{0}})", _kind, _compute)
    _text = f"ntl.{_name}({{0}})"
    form(f"{_name} of a tile", f"{{0}}.{_name}()", _kind, _compute, rows=_name, plain=_text)
    if _name in _POSITIVE:
        form(
            f"{_name} of what is positive",
            f"ntl.{_name}(ntl.abs({{0}}) + 0.5)",
            _kind,
            lambda v, f=_compute: f(elementwise(lambda a: np.abs(a) + 0.5, [v], v.dtype)),
            rows=f"{_name} abs",
        )
form("ceil", "ntl.ceil({0})", "real", _of_one(np.ceil, 1, False))
form("floor", "ntl.floor({0})", "real", _of_one(np.floor, 1, False))
form("abs", "ntl.abs({0})", "number tile", _of_one(np.abs, 1))


# Of several.


def _maximum(function: Callable[..., Any]) -> Callable[..., Value]:
    compute = _arithmetic(function)

    def of_typed(*operands: Value) -> Value:
        # A number has a type of its own here, as all arguments of Triton's function have.
        floats = {v.dtype for v in operands if is_float(v.dtype) and v.dtype not in WEAK}
        own = OWN_TYPES | {"weak float": "float32" if floats - {"float64"} else own_float[0]}
        operands = tuple(_strong(v, own.get(v.dtype, v.dtype)) for v in operands)
        _of_one_signedness(operands)
        return compute(*operands)

    return of_typed


form("maximum", "ntl.maximum({0}, {1})", "number tile, number", _maximum(np.maximum))
form("minimum", "ntl.minimum({0}, {1})", "number tile, number", _maximum(np.minimum))


def _of_one_signedness(operands: Sequence[Value]) -> None:
    """That none of several integers may become another by being chosen."""
    kinds = {INTEGERS[value.dtype][1] for value in operands if value.dtype in INTEGERS}
    if len(kinds) > 1:
        raise Ambiguous("operands of both signednesses")


def _where(condition: Value, one: Value, other: Value) -> Value:
    _of_one_signedness((one, other))
    dtype = promoted(one.dtype, other.dtype)
    return elementwise(np.where, (condition, *_fitting((one, other), dtype)), dtype)


def _of_reals(function: Callable[..., Any], ulps: float) -> Callable[..., Value]:
    def compute(*operands: Value) -> Value:
        dtypes = {value.dtype for value in operands}
        if len(dtypes) > 1:
            raise Ambiguous("several types")
        return elementwise(function, operands, operands[0].dtype, ulps)

    return compute


def _clamp(value: Value) -> Value:
    return elementwise(lambda a: np.clip(a, -1.5, 2.0), [value], value.dtype)


#: Of float32.
_LEAST_NORMAL = 2.0**-126


def _divided(one: Value, other: Value) -> Value:
    _check_divisor(other)
    return replace(_of_reals(lambda a, b: a / np.where(b == 0, 1, b), 3)(one, other), known=None)


form("where", "ntl.where({0}, {1}, {2})", "bool tile, number tile, number", _where)
form("fma", "ntl.fma({0}, {1}, {2})", "real, real, real", _of_reals(lambda a, b, c: a * b + c, 2))
form("div_rn", "ntl.div_rn({0}, {1})", "float32, float32", _divided)
form("fdiv", "ntl.fdiv({0}, {1})", "real, real", _divided)
form("clamp", "ntl.clamp({0}, -1.5, 2.0)", "real", _clamp)


def _umulhi(value: Value) -> Value:
    if value.dtype not in ("int32",):
        raise Ambiguous("umulhi of other integers")
    return elementwise(
        lambda a: (
            (a & 0xFFFFFFFF).astype(np.uint64) * np.uint64(1000000007) >> np.uint64(32)
        ).astype(np.int64),
        [value],
        "int32",
    )


form("umulhi", "ntl.umulhi({0}, 0 * {0} + 1000000007)", "integers", _umulhi)


def _cdiv(value: Value, by: int) -> Value:
    # Of what is negative it is what Triton makes of it, and the least number stays so; what is divided, in the
    # type itself, is the number and as much as rounds up.
    bits, signed = INTEGERS[value.dtype]
    most = (1 << bits - signed) - by
    if (np.abs(value.data[value.exists]) > most).any():
        raise Ambiguous("no absolute value, or none that is rounded up")
    if (value.data[value.exists] == -(1 << (bits - 1))).any():
        raise Ambiguous("no absolute value")
    return elementwise(lambda a: np.floor_divide(np.abs(a) + (by - 1), by), [value], value.dtype)


form(
    "cdiv",
    "ntl.cdiv(ntl.abs({0}), {by})",
    "integers",
    _cdiv,
    lambda choose, values: {"by": choose.randrange(2, 6)},
)


# Types.

#: What one may be made into, as it is written.
TYPES = ("float32", "float32", "float64", "int32", "int64", "int16", "int8", "float16", "uint8")


def _a_type(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    return {"dtype": choose.choice(TYPES)}


form("to", "{0}.to(ntl.{dtype})", "tile", cast, _a_type)
form("cast", "ntl.cast({0}, ntl.{dtype})", "tile", cast, _a_type)
form("truth", "{0}.to(ntl.int1)", "tile", _truth, rows="to")


def _of_a_vector(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    return {} if len(values[0].shape) == 1 else None


for _name in ("max_constancy", "max_contiguous", "multiple_of"):
    form(_name, f"ntl.{_name}({{0}}, 1)", "integers", lambda v: v, _of_a_vector)
