"""Forms along dimensions: reductions, scans, sorts, products."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.hunt.forms import form
from tests.hunt.values import (
    FLOATS,
    INTEGERS,
    Ambiguous,
    Value,
    cast,
    checked,
    counted,
    elementwise,
    exact,
    filled,
    is_float,
    promoted,
    reduced_type,
    total_error,
    with_exponent,
)

LEAST, MOST = -np.inf, np.inf


def _limits(value: Value) -> tuple[float, float]:
    """What is less and what is more than any element, in the storage's own type."""
    return (LEAST, MOST) if is_float(value.dtype) else (-(2**63), 2**63 - 1)


def _an_axis(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    rank = len(values[0].shape)
    axis = choose.randrange(rank)
    return {"axis": axis if choose.random() < 0.8 else axis - rank}


def _an_axis_or_none(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    return {"axis": None} if choose.random() < 0.4 else _an_axis(choose, values)


def flattened(value: Value, axis: int | None) -> tuple[Value, int]:
    """The value and the axis of its arrays that is meant; all lanes are one for None."""
    if axis is None:
        return value.like(lambda a: a.reshape(len(a), int(np.prod(a.shape[1:])))), 1
    return value, 1 + axis % len(value.shape)


def _exists(value: Value, axis: int) -> np.ndarray:
    there = value.exists.any(axis=axis)
    if not there.any(axis=tuple(range(1, there.ndim))).all():
        # Of a program that has no element it is the identity in the rows that are there.
        raise Ambiguous("a reduction of nothing")
    return there


Reduction = Callable[[Value, int], tuple[np.ndarray, np.ndarray, str]]


def _reduction(name: str, of: Reduction, kinds: str = "number tile", call: str = "") -> None:
    """The forms of a reduction: as a function, as a member, with the dimension kept."""

    def compute(value: Value, axis: int | None) -> Value:
        value, place = flattened(value, axis)
        data, error, dtype = of(value, place)
        return checked(data, _exists(value, place), error, dtype, 1)

    def keeping(value: Value, axis: int) -> Value:
        place = 1 + axis % len(value.shape)
        return compute(value, axis).like(lambda a: np.expand_dims(a, place))

    first = call or f"ntl.{name}({{0}}, axis={{axis}}"
    form(name, first + ")", kinds, compute, _an_axis_or_none)
    form(f"{name} kept", first + ", keep_dims=True)", kinds, keeping, _an_axis, rows=name)
    if not call:
        form(f"{name} of a tile", f"{{0}}.{name}({{axis}})", kinds, compute, _an_axis, rows=name)


def _sum(value: Value, axis: int) -> tuple[np.ndarray, np.ndarray, str]:
    dtype = reduced_type(value.dtype)
    return filled(value, 0).sum(axis=axis), total_error(value, axis, dtype), dtype


def _greatest(value: Value, axis: int) -> tuple[np.ndarray, np.ndarray, str]:
    data = filled(value, _limits(value)[0]).max(axis=axis)
    return _nothing(data, value, axis), _worst(value, axis), _extremum_type(value.dtype)


def _least(value: Value, axis: int) -> tuple[np.ndarray, np.ndarray, str]:
    data = filled(value, _limits(value)[1]).min(axis=axis)
    return _nothing(data, value, axis), _worst(value, axis), _extremum_type(value.dtype)


def _nothing(data: np.ndarray, value: Value, axis: int) -> np.ndarray:
    return np.where(value.exists.any(axis=axis), data, np.zeros((), data.dtype))


def _worst(value: Value, axis: int) -> np.ndarray:
    return np.where(value.exists, value.error, 0.0).max(axis=axis)


def _extremum_type(dtype: str) -> str:
    if is_float(dtype):
        return "float32" if dtype in ("float16", "bfloat16") else dtype
    return "int32" if INTEGERS[dtype][0] < 32 else dtype


def _place(is_greatest: bool) -> Reduction:
    def of(value: Value, axis: int) -> tuple[np.ndarray, np.ndarray, str]:
        ranked = value.data
        if not is_float(value.dtype):
            # What float64 does not tell apart has a rank of its own all the same.
            ranked = np.unique(ranked, return_inverse=True)[1].reshape(ranked.shape)
        ranked = ranked.astype(np.float64) * (1 if is_greatest else -1)
        lower = np.where(value.exists, ranked - value.error, LEAST)
        upper = np.where(value.exists, ranked + value.error, LEAST)
        place = lower.argmax(axis=axis)
        best = np.expand_dims(place, axis)
        others = upper.copy()
        np.put_along_axis(others, best, LEAST, axis)
        is_near = (others >= np.take_along_axis(lower, best, axis)).any(axis=axis)
        if (is_near & value.exists.any(axis=axis)).any() and not value.is_exact:
            raise Ambiguous("a place among equals")
        return place, np.zeros(place.shape), "int32"

    return of


_reduction("sum", _sum)
_reduction("max", _greatest)
_reduction("min", _least)


def _position(name: str, is_greatest: bool, extremum: str) -> None:
    of = _place(is_greatest)

    def compute(value: Value, axis: int) -> Value:
        value, place = flattened(value, axis)
        data, error, dtype = of(value, place)
        return checked(data, _exists(value, place), error, dtype, 1)

    def both(value: Value, axis: int) -> Value:
        place = compute(value, axis)
        data, error, dtype = (_greatest if is_greatest else _least)(
            value, 1 + axis % len(value.shape)
        )
        if not is_float(value.dtype):
            raise Ambiguous("two types")
        total = data + place.data
        return checked(total, place.exists, error, promoted(value.dtype, "int32"), 1)

    form(name, f"ntl.{name}({{0}}, axis={{axis}})", "number tile", compute, _an_axis)
    form(
        f"{extremum} with its place",
        f"value_and_place_of_{extremum}({{0}}, {{axis}})",
        "real",
        both,
        _an_axis,
        rows=extremum,
    )


_position("argmax", True, "max")
_position("argmin", False, "min")


def _bits(function: Any, identity: int) -> Reduction:
    def of(value: Value, axis: int) -> tuple[np.ndarray, np.ndarray, str]:
        data = function.reduce(filled(value, identity), axis=axis)
        return data, np.zeros(data.shape), value.dtype

    return of


def _of_integers(name: str, function: Any, text: str) -> None:
    of = _bits(function, 0)

    def compute(value: Value, axis: int) -> Value:
        if value.dtype not in ("int32", "int64"):
            raise Ambiguous("narrow integers")
        value, place = flattened(value, axis)
        data, error, dtype = of(value, place)
        return checked(data, _exists(value, place), error, dtype, 1)

    form(name, text, "number tile", compute, _an_axis)


_of_integers("xor_sum", np.bitwise_xor, "ntl.xor_sum({0}, axis={axis})")
_of_integers("reduce_or", np.bitwise_or, "ntl.reduce_or({0}, axis={axis})")


def _custom(value: Value, axis: int, helper: str) -> Value:
    """`reduce` with one of the header's functions."""
    value, place = flattened(value, axis)
    dtype = value.dtype
    if dtype not in ("float32", "float64", "int32", "int64"):
        raise Ambiguous("narrow types")
    if helper == "added":
        data, error = filled(value, 0).sum(axis=place), total_error(value, place, dtype)
    elif helper == "larger":
        data, error, _ = _greatest(value, place)
    elif helper == "shifted":
        count = value.exists.sum(axis=place)
        data = filled(value, 0).sum(axis=place) + 2 * np.maximum(count - 1, 0)
        error = total_error(value, place, dtype) * 2 + (
            1e-5 if is_float(dtype) and not value.is_exact else 0
        )
    else:
        data, error = _product(value, place, False)
    return checked(data, _exists(value, place), error, dtype, 1)


def _product(value: Value, axis: int, accumulate: bool) -> tuple[np.ndarray, np.ndarray]:
    along = np.cumprod if accumulate else np.prod
    data = along(filled(value, 1), axis=axis)
    if not is_float(value.dtype):
        return data, np.zeros(data.shape)
    size = np.where(value.exists, np.abs(value.data), 1.0)
    unit = 2.0 ** -FLOATS[value.dtype][0]
    bound = along(size * (1 + 2 * unit) + np.where(value.exists, value.error, 0), axis=axis)
    return data, bound - along(size, axis=axis)


def _an_axis_and_helper(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    helper = choose.choice(("added", "larger", "shifted", "multiplied"))
    return {**_an_axis_or_none(choose, values), "helper": helper}


form("reduce", "ntl.reduce({0}, {axis}, {helper})", "number tile", _custom, _an_axis_and_helper)


# Scans.


def _turned(value: Value, axis: int, reverse: bool) -> Value:
    return value.moved(lambda a: np.flip(a, axis)) if reverse else value


def _cumulated(value: Value, axis: int, reverse: bool, product: bool) -> Value:
    place = 1 + axis % len(value.shape)
    value = _turned(value, place, reverse)
    if product:
        dtype = "float32" if value.dtype == "bfloat16" else value.dtype
        data, error = _product(value, place, True)
    else:
        dtype = reduced_type(value.dtype, lambda name: "float32" if name == "bfloat16" else name)
        data, error = (
            np.cumsum(filled(value, 0), axis=place),
            total_error(value, place, dtype, True),
        )
    return _turned(checked(data, value.exists, error, dtype, 1), place, reverse)


def _an_axis_and_a_direction(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    return {**_an_axis(choose, values), "reverse": choose.random() < 0.3}


for _name, _is_product in (("cumsum", False), ("cumprod", True)):
    form(
        _name,
        f"ntl.{_name}({{0}}, axis={{axis}}, reverse={{reverse}})",
        "number tile",
        lambda v, axis, reverse, product=_is_product: _cumulated(v, axis, reverse, product),
        _an_axis_and_a_direction,
    )


def _fewer(value: Value) -> Value:
    return elementwise(lambda a: a - 3, [value], "int32")


def _counted(value: Value, axis: int | None) -> Value:
    value, place = flattened(value, axis)
    data, error, dtype = _sum(value, place)
    return _fewer(checked(data, _exists(value, place), error, dtype, 1))


form(
    "truths counted",
    "(ntl.sum({0}, axis={axis}) - 3)",
    "bool tile",
    _counted,
    _an_axis_or_none,
    rows="sum",
)
form(
    "truths counted along",
    "(ntl.cumsum({0}, axis={axis}, reverse={reverse}) - 3)",
    "bool tile",
    lambda v, axis, reverse: _fewer(_cumulated(v, axis, reverse, False)),
    _an_axis_and_a_direction,
    rows="cumsum",
)


def _scanned(value: Value, axis: int, helper: str) -> Value:
    place = 1 + axis % len(value.shape)
    if value.dtype not in ("float32", "float64", "int32", "int64"):
        raise Ambiguous("narrow types")
    if helper == "added":
        return _cumulated(value, axis, False, False)
    if helper == "multiplied":
        return _cumulated(value, axis, False, True)
    counted(value, place)
    if helper == "larger":
        data = np.maximum.accumulate(filled(value, _limits(value)[0]), axis=place)
        data = np.where(value.exists, data, np.zeros((), data.dtype))
        error = np.maximum.accumulate(np.where(value.exists, value.error, 0.0), axis=place)
    else:
        data = np.cumsum(filled(value, 0), axis=place) + 2 * (
            np.cumsum(value.exists, axis=place) - 1
        )
        error = 2 * total_error(value, place, value.dtype, True)
    return checked(data, value.exists, error, value.dtype, 1)


form(
    "associative_scan",
    "ntl.associative_scan({0}, {axis}, {helper})",
    "number tile",
    _scanned,
    lambda choose, values: {
        **_an_axis(choose, values),
        "helper": choose.choice(("added", "larger", "shifted", "multiplied")),
    },
)


def _softmax(value: Value, axis: int) -> Value:
    place = 1 + axis % len(value.shape)
    data = filled(value, LEAST)
    greatest = data.max(axis=place, keepdims=True)
    with np.errstate(all="ignore"):
        powers = np.where(value.exists, np.exp(data - greatest), 0.0)
        result = np.where(value.exists, powers / powers.sum(axis=place, keepdims=True), 0.0)
    off = np.where(value.exists, value.error, 0.0).max(axis=place, keepdims=True)
    found = checked(result, value.exists, result * (4 * off + 1e-6), value.dtype, 16)
    return with_exponent(found, data - greatest)


form("softmax", "ntl.softmax({0}, {axis}, keep_dims=True)", "real", _softmax, _an_axis)


# Sorts.


def _sorted(value: Value, descending: bool, kept: int | None = None) -> Value:
    count = counted(value, -1 % value.data.ndim)
    turned: Callable[[np.ndarray], np.ndarray] = lambda a: a  # noqa: E731
    if descending:
        # The least integer has no negative.
        turned = np.negative if is_float(value.dtype) else np.invert
    data = np.where(value.exists, turned(value.data), _limits(value)[1])
    data = np.sort(data, axis=-1)
    error = np.broadcast_to(_worst(value, -1)[..., None], data.shape)
    data, error = data[..., :kept], error[..., :kept]
    exists = np.arange(data.shape[-1]) < count
    data = np.where(exists, turned(data), np.zeros((), data.dtype))
    return Value(data, exists, np.where(exists, error, 0.0), value.dtype)


def _some(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    size = values[0].shape[-1]
    return None if size < 4 else {"k": 1 << choose.randrange(1, size.bit_length() - 1)}


def _a_direction(choose: random.Random, values: Sequence[Value]) -> dict[str, Any]:
    return {"descending": choose.random() < 0.4}


form("sort", "ntl.sort({0}, descending={descending})", "number tile", _sorted, _a_direction)
# What is in order rises alone, and padding comes after it.
form(
    "merge",
    "ntl.bitonic_merge(ntl.sort({0}), descending={descending})",
    "number tile",
    _sorted,
    _a_direction,
    rows="bitonic_merge",
)


def _topk(value: Value, k: int) -> Value:
    most = 1 << (value.shape[-1] - 1).bit_length()
    if k > most:
        raise Ambiguous("more than there are are refused")
    # Triton reduces with `max` where fewer than all are asked for, which widens.
    found = cast(value, _extremum_type(value.dtype)) if k < most else value
    return _sorted(found, True, k)


form("topk", "ntl.topk({0}, {k})", "number tile", _topk, _some)


def _histogram(value: Value) -> Value:
    if len(value.shape) != 1 or value.dtype != "int32":
        raise Ambiguous("a histogram of something else")
    bins = np.arange(8)[:, None]
    hits = ((value.data & 7)[:, None, :] == bins) & value.exists[:, None, :]
    return exact(hits.sum(axis=-1), "int32")


form("histogram", "ntl.histogram({0} & 7, 8)", "number tile", _histogram)


# Products.


def _dot(one: Value, other: Value) -> Value:
    if one.dtype != other.dtype or one.dtype not in ("float32", "float16"):
        raise Ambiguous("types of no product")
    if len(one.shape) != 2 or len(other.shape) != 2 or one.shape[1] != other.shape[0]:
        raise Ambiguous("shapes of no product")
    if one.shape[1] < 16:
        raise Ambiguous("too few for a product")
    inner = one.exists[:, :, None, :] & other.exists.transpose(0, 2, 1)[:, None, :, :]
    there = inner.any(axis=-1)
    if not (one.exists.any(axis=2).all() and other.exists.any(axis=1).all()):
        rows, columns = one.exists.any(axis=2), other.exists.any(axis=1)
        there = rows[:, :, None] & columns[:, None, :]
    left, right = filled(one, 0), filled(other, 0)
    if (inner != (one.exists[:, :, None, :] & there[..., None])).any():
        raise Ambiguous("sizes that do not meet")
    size = np.abs(left) @ np.abs(right)
    error = (
        size * 2.0**-20 + (one.error @ (np.abs(right) + other.error)) + np.abs(left) @ other.error
    )
    return checked(left @ right, there, error, "float32", 1)


form("dot", "ntl.dot({0}, {1})", "tile, tile", _dot)
