"""Values of the reference: for each program and lane an element, whether it exists, and how exact it is.

Nothing here knows how the package works. Floats are computed in float64 beside a bound of how far any
sensible evaluation in their own type may be from that; where a step (a comparison, a rounding) would
depend on less than this bound, the program is `Ambiguous` and no test of anything.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

#: How often operands met of which one has elements where another has none.
unequal_meetings = [0]


class Ambiguous(Exception):
    """The reference does not say what this program gives: it is not a program to try."""


#: Forms that move elements: what they give exists where it does, and is stored nowhere else.
RESHAPED = frozenset(("ravel", "flat", "flat view"))
MOVED = RESHAPED | {
    *("gather", "cat", "interleave", "interleave by name", "join", "join by name", "split"),
    *("merge", "sort", "topk"),
}

#: The bits of a float's mantissa, the hidden one too, and what it holds at most here.
FLOATS = {"float16": (11, 4e3), "bfloat16": (8, 1e5), "float32": (24, 1e6), "float64": (53, 1e9)}

#: The power of two that is the least number above 0.
LEAST_EXPONENTS = {"float16": -24, "bfloat16": -133, "float32": -149}

INTEGERS = {
    "int8": (8, True),
    "int16": (16, True),
    "int32": (32, True),
    "int64": (64, True),
    "uint8": (8, False),
    "uint16": (16, False),
    "uint32": (32, False),
}

#: The types that Python's own numbers have until they meet another.
WEAK = ("weak int", "weak float")

#: The type of a literal float by itself or beside integers: in a program with elements of float64 it is one.
own_float = ["float32"]


def is_float(dtype: str) -> bool:
    return dtype in FLOATS or dtype == "weak float"


def is_integer(dtype: str) -> bool:
    return dtype in INTEGERS or dtype == "weak int"


@dataclass(frozen=True)
class Value:
    """What a name stands for in all programs at once.

    Attributes:
        data: (programs, lanes…); float64, int64 or bool. Sizes are padded to powers of two.
        exists: likewise, whether an element is there.
        error: likewise, by how much the element may be off.
        dtype: the name of its element type, or one of `WEAK`.
        loaded: likewise, where there is none because a tile that was loaded there has none, and for no
            other reason; None for nowhere.
        known: likewise, those of ``loaded`` whose data is what is computed of the 0 that was read there,
            which a store stores; None for nowhere.
    """

    data: np.ndarray
    exists: np.ndarray
    error: np.ndarray
    dtype: str
    loaded: np.ndarray | None = None
    known: np.ndarray | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one program's value."""
        return self.data.shape[1:]

    @property
    def is_exact(self) -> bool:
        return not self.error[self.exists].any()

    def like(self, change: Callable[[np.ndarray], np.ndarray]) -> Value:
        """The same moved about."""
        return replace(
            self,
            data=change(self.data),
            exists=change(self.exists),
            error=change(self.error),
            loaded=None if self.loaded is None else change(self.loaded),
            known=None if self.known is None else change(self.known),
        )

    def moved(self, change: Callable[[np.ndarray], np.ndarray]) -> Value:
        """`like`, of which what does not exist is not stored, and so is not said to be read as 0."""
        return replace(self.like(change), known=None)


def number(value: float | int) -> Value:
    """A number as it stands in a program."""
    kind = "weak float" if isinstance(value, float) else "weak int"
    return constant(value, (1,), kind)


def constant(value: float | int | bool, shape: Sequence[int], dtype: str) -> Value:
    data = np.full(shape, value, storage_of(dtype))
    return Value(data, np.ones(shape, bool), np.zeros(shape), dtype)


def exact(data: np.ndarray, dtype: str, exists: np.ndarray | None = None) -> Value:
    data = np.asarray(data).astype(storage_of(dtype))
    there = np.ones(data.shape, bool) if exists is None else np.broadcast_to(exists, data.shape)
    return Value(data, there, np.zeros(data.shape), dtype)


def storage_of(dtype: str) -> type:
    if dtype == "bool":
        return np.bool_
    return np.float64 if is_float(dtype) else np.int64


def aligned(values: Sequence[Value]) -> list[Value]:
    """The values with as many lanes' dimensions as the one that has most, and of one shape."""
    rank = max(len(value.shape) for value in values)
    spread = [
        value.like(
            lambda a, r=len(value.shape): a.reshape(a.shape[:1] + (1,) * (rank - r) + a.shape[1:])
        )
        for value in values
    ]
    try:
        shape = np.broadcast_shapes(*(value.data.shape for value in spread))
    except ValueError:
        raise Ambiguous("the shapes do not fit") from None
    return [value.like(lambda array: np.broadcast_to(array, shape)) for value in spread]


# Types.


def promoted(first: str, second: str, is_division: bool = False) -> str:
    """The type that two values are combined in, as C has it; Python's numbers yield where they can."""
    if first in WEAK and second in WEAK:
        raise Ambiguous("two numbers")
    if second in WEAK:
        first, second = second, first
    if first in WEAK:
        if is_float(second):
            return _divided(second) if is_division else second
        if first == "weak float":
            return own_float[0]
        return "int32" if second == "bool" else second
    if is_float(first) or is_float(second):
        for name in ("float64", "float32"):
            if name in (first, second):
                return name
        if {first, second} == {"float16", "bfloat16"}:
            raise Ambiguous("two kinds of 16 bits")
        if "float16" in (first, second):
            return _divided("float16") if is_division else "float16"
        both = first == second
        return "bfloat16" if both and not is_division else "float32"
    if "bool" in (first, second):
        return "int32" if first == second else first if second == "bool" else second
    (bits, signed), (others, other_signed) = INTEGERS[first], INTEGERS[second]
    if signed == other_signed:
        return first if bits >= others else second
    if is_division:
        raise Ambiguous("operands of both signednesses")
    unsigned, wide = (second, others) if signed else (first, bits)
    return unsigned if wide >= (bits if signed else others) else (first if signed else second)


def _divided(dtype: str) -> str:
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def wrapped(data: np.ndarray, dtype: str) -> np.ndarray:
    """Integers as their type holds them."""
    bits, signed = INTEGERS[dtype]
    data = data.astype(np.int64)
    if bits == 64:
        return data
    data = data & ((1 << bits) - 1)
    return np.where(data >> (bits - 1) == 1, data - (1 << bits), data) if signed else data


def rounded(data: np.ndarray, dtype: str) -> np.ndarray:
    """Floats as their type holds them, the least ones too; ranges are kept by `checked`."""
    if dtype in ("float64", "weak float"):
        return data
    grain = np.maximum(np.frexp(data)[1] - FLOATS[dtype][0], LEAST_EXPONENTS[dtype])
    return np.ldexp(np.rint(np.ldexp(data, -grain)), grain)


def checked(
    data: np.ndarray,
    exists: np.ndarray,
    error: np.ndarray,
    dtype: str,
    ulps: float,
    known: np.ndarray | None = None,
) -> Value:
    """A computed value of a type: integers wrap, floats are rounded, so many units at most.

    Args:
        known: as `Value` has it, of which only those stay that are numbers.
    """
    if dtype == "bool":
        return Value(data.astype(bool), exists, np.zeros(data.shape), dtype, known=known)
    if dtype in INTEGERS:
        return Value(wrapped(data, dtype), exists, np.zeros(data.shape), dtype, known=known)
    bits, most = FLOATS[dtype]
    kept = exists
    if known is not None:
        known = known & np.isfinite(data) & np.isfinite(error) & (np.abs(data) <= most)
        kept = exists | known
    data = np.where(kept, data, 0.0)
    if not np.isfinite(data).all():
        raise Ambiguous("no number")
    if (np.abs(data) > most).any():
        raise Ambiguous("too large")
    unit = np.abs(data) * 2.0**-bits + 2.0 ** (-24 if dtype == "float16" else -126)
    inexact = (rounded(data, dtype) != data) | (ulps > 1)
    error = np.where(kept, error + np.where(inexact, 2 * ulps * unit, 0), 0.0)
    is_off = error > 0.05 * np.maximum(np.abs(data), 1.0)
    if (is_off & exists).any():
        raise Ambiguous("too inexact to tell")
    if known is not None:
        known = known & ~is_off
        error = np.where(exists | known, error, 0.0)
    return Value(data, exists, error, dtype, known=known)


# Element by element.


def elementwise(
    function: Callable[..., np.ndarray],
    operands: Sequence[Value],
    dtype: str,
    ulps: float = 1,
    is_smooth: bool = True,
) -> Value:
    """A function of the elements at each place; the result exists where all operands do.

    Args:
        ulps: how many units in the last place it may be off; 1 where it is rounded once.
        is_smooth: whether a small change of an operand changes the result little.
    """
    operands = aligned(operands)
    exists = np.logical_and.reduce([value.exists for value in operands])
    unequal_meetings[0] += any((value.exists != exists).any() for value in operands)
    loaded = _loaded(operands)
    known = None
    if loaded is not None:
        known = loaded & np.logical_and.reduce([v.exists | _known(v) for v in operands])
    with np.errstate(all="ignore"):
        data = function(*(value.data for value in operands))
        kept = exists if known is None else exists | known
        data = np.where(kept, data, np.zeros((), data.dtype))
        error = np.zeros(data.shape)
        if any(value.error.any() for value in operands):
            sides = ([value.data - value.error, value.data + value.error] for value in operands)
            corners = list(
                itertools.product(
                    *(side if v.error.any() else side[:1] for side, v in zip(sides, operands))
                )
            )
            if not is_smooth:
                corners.append(_together(operands))
            for corner in corners:
                away = function(*corner)
                if is_smooth:
                    away = np.abs(away.astype(np.float64) - data.astype(np.float64))
                    error = np.maximum(error, np.where(kept, away, 0.0))
                    continue
                if (away != data)[exists].any():
                    raise Ambiguous("a step within the error")
                if known is not None:
                    known = known & (away == data)
    if not np.isfinite(error[exists]).all():
        raise Ambiguous("no bound")
    return replace(checked(data, exists, 1.5 * error, dtype, ulps, known), loaded=loaded)


def of_exponent(
    function: Callable[..., np.ndarray], ulps: float, greatest: float
) -> Callable[[Value], Value]:
    """`elementwise` for a function that devices compute by ``exp``, which tells up to the greatest argument."""
    return lambda value: with_exponent(
        elementwise(function, [value], value.dtype, ulps), np.minimum(value.data, greatest)
    )


def with_exponent(value: Value, exponent: np.ndarray) -> Value:
    """What was computed by ``exp``: devices have ``2 ** (x * log2(e))``, and the product's rounding counts as often
    as x is large."""
    unit = 2.0 ** (-52 if value.dtype == "float64" else -23)
    with np.errstate(all="ignore"):
        off = np.where(value.exists, np.abs(value.data * exponent) * unit, 0.0)
    return replace(value, error=value.error + off)


def _known(value: Value) -> np.ndarray:
    return np.zeros(value.data.shape, bool) if value.known is None else value.known


def _loaded(operands: Sequence[Value]) -> np.ndarray | None:
    """Where an operand alone that was loaded there has no element."""
    if all(value.loaded is None for value in operands):
        return None
    without = [~v.exists if v.loaded is None else ~v.exists & ~v.loaded for v in operands]
    found = np.logical_or.reduce([~value.exists for value in operands])
    return found & ~np.logical_or.reduce(without)


def _together(operands: Sequence[Value]) -> tuple[np.ndarray, ...]:
    """The operands as near to 0, and to one another, as they may be: there a truth may turn."""
    near, found = np.zeros(()), []
    for value in (*operands, *operands):
        near = np.clip(near, value.data - value.error, value.data + value.error)
        found.append(near)
    return tuple(found[len(operands) :])


def cast(value: Value, dtype: str) -> Value:
    """The value in another type, as a store or `to` makes it."""
    if value.dtype == dtype:
        return value
    if dtype == "bool":
        return elementwise(lambda a: a != 0, [value], dtype, is_smooth=False)
    if dtype in INTEGERS:
        if is_float(value.dtype):
            result = elementwise(np.trunc, [value], "float64", is_smooth=False)
            fits = wrapped(result.data, dtype) == result.data
            if not fits[result.exists].all():
                raise Ambiguous("out of range")
            data, error = result.data.astype(np.int64), np.zeros(value.data.shape)
            known = None if result.known is None else result.known & fits
            return Value(data, value.exists, error, dtype, value.loaded, known)
        return elementwise(lambda a: a.astype(np.int64), [value], dtype)
    return elementwise(lambda a: a.astype(np.float64), [value], dtype)


# Along a dimension.


def reduced_type(dtype: str, of_floats: Callable[[str], str] = lambda name: name) -> str:
    """What a sum has: small integers become 32 bits wide."""
    if is_float(dtype):
        return of_floats(dtype)
    if dtype == "bool":
        return "int32"
    bits, signed = INTEGERS[dtype]
    return dtype if bits >= 32 else "int32" if signed else "uint32"


def filled(value: Value, identity: float) -> np.ndarray:
    return np.where(value.exists, value.data, np.array(identity).astype(value.data.dtype))


def total_error(value: Value, axis: int, dtype: str, accumulate: bool = False) -> np.ndarray:
    """How far a sum along an axis of all arrays may be off, in any order of its terms."""
    size = np.where(value.exists, np.abs(value.data.astype(np.float64)), 0.0)
    error = np.where(value.exists, value.error, 0.0)
    along = np.cumsum if accumulate else np.sum
    if not is_float(dtype):
        return along(error, axis=axis)
    bits = FLOATS[dtype][0]
    grain = 2.0**10
    is_whole = not error.any() and (size * grain == np.rint(size * grain)).all()
    if is_whole and (np.sum(size, axis=axis) * grain < 2.0**bits).all():
        return np.zeros(along(error, axis=axis).shape)
    # Sums in a tree round a few times. One by one, each addition rounds, and those of equal terms to one side.
    roundings = np.maximum(4, along(value.exists, axis=axis)) if accumulate else 4
    return along(error, axis=axis) + roundings * along(size, axis=axis) * 2.0**-bits


def counted(value: Value, axis: int) -> np.ndarray:
    """How many elements exist along an axis; they must come first there."""
    count = value.exists.sum(axis=axis, keepdims=True)
    lanes = np.arange(value.data.shape[axis]).reshape(
        [-1 if d == axis else 1 for d in range(value.data.ndim)]
    )
    if (value.exists != (lanes < count)).any():
        raise Ambiguous("elements that exist do not come first")
    return count
