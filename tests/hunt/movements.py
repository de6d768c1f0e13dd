"""Forms of elements that move: shapes, and values joined, taken apart and made."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tests.hunt.dimensions import _an_axis
from tests.hunt.forms import FORMS, form
from tests.hunt.values import (
    Ambiguous,
    Value,
    aligned,
    cast,
    checked,
    elementwise,
    exact,
    filled,
    promoted,
    reduced_type,
    total_error,
)


def _of_rank(*ranks: int) -> Any:
    return lambda choose, values: {} if len(values[0].shape) in ranks else None


def _axes(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    rank = len(values[0].shape)
    return None if rank < 2 else {"dims": tuple(choose.sample(range(rank), rank))}


def _permuted(value: Value, dims: tuple[int, ...]) -> Value:
    return value.moved(lambda a: a.transpose(0, *(1 + dim for dim in dims)))


def _transposed(value: Value) -> Value:
    return value.moved(lambda a: a.swapaxes(1, 2))


form("trans", "ntl.trans({0})", "tile", _transposed, _of_rank(2))
form("T", "{0}.T", "tile", _transposed, _of_rank(2), rows="trans")
form("permute", "ntl.permute({0}, {dims})", "tile", _permuted, _axes)


def _place(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    rank = len(values[0].shape)
    return None if rank > 2 else {"axis": choose.randint(0, rank)}


def _expanded(value: Value, axis: int) -> Value:
    return value.moved(lambda a: np.expand_dims(a, 1 + axis))


form("expand_dims", "ntl.expand_dims({0}, {axis})", "tile", _expanded, _place)
form("column", "{0}[:, None]", "tile", lambda v: _expanded(v, 1), _of_rank(1), rows="")
form("row", "{0}[None, :]", "tile", lambda v: _expanded(v, 0), _of_rank(1, 1), rows="")
form("rows", "{0}[None, :, :]", "tile", lambda v: _expanded(v, 0), _of_rank(2), rows="")
form("depth", "{0}[:, :, None]", "tile", lambda v: _expanded(v, 2), _of_rank(2), rows="")


def _flat(value: Value) -> Value:
    return value.moved(lambda a: a.reshape(len(a), math.prod(a.shape[1:])))


form("ravel", "ntl.ravel({0})", "tile", _flat, _of_rank(2, 3))
form("flat", "flat({0})", "tile", _flat, _of_rank(2), rows="reshape")
form("flat view", "flat_view({0})", "tile", _flat, _of_rank(2), rows="view")
form(
    "item",
    "ntl.sum({0}, axis=0, keep_dims=True).item()",
    "number tile",
    lambda v: _item(v),
    _of_rank(1),
)


def _item(value: Value) -> Value:
    dtype = reduced_type(value.dtype)
    if not value.exists.any(axis=1).all():
        raise Ambiguous("a sum of nothing")
    data, error = filled(value, 0).sum(axis=1), total_error(value, 1, dtype)
    return checked(data, np.ones(data.shape, bool), error, dtype, 1)


# Elements to other places.


def _flipped(value: Value, axis: int) -> Value:
    """What exists in reverse order, where it is."""
    place, exists = 1 + axis % len(value.shape), value.exists
    places = np.argsort(~exists, axis=place, kind="stable")
    after = exists.sum(axis=place, keepdims=True) - exists.cumsum(axis=place)
    source = np.take_along_axis(places, after, place)
    return value.moved(lambda a: np.where(exists, np.take_along_axis(a, source, place), a))


form("flip", "ntl.flip({0}, {axis})", "number tile", _flipped, _an_axis)
form("flip of the last", "ntl.flip({0})", "number tile", lambda v: _flipped(v, -1), rows="flip")


def _reversed_places(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    return {"last": values[0].shape[0] - 1} if len(values[0].shape) == 1 else None


form(
    "gather",
    "gathered_backwards({0})",
    "number tile",
    lambda v, last: v.moved(lambda a: np.flip(a, 1)),
    _reversed_places,
    rows="gather arange",
)


def _both(one: Value, other: Value) -> tuple[Value, Value]:
    if one.shape != other.shape:
        raise Ambiguous("shapes that differ")
    if one.dtype != other.dtype:
        raise Ambiguous("types that differ")
    return tuple(aligned((one, other)))  # type: ignore[return-value]


def _together(one: Value, other: Value, arrange: Any) -> Value:
    one, other = _both(one, other)
    return Value(
        arrange(one.data, other.data),
        arrange(one.exists, other.exists),
        arrange(one.error, other.error),
        one.dtype,
    )


def _joined(one: Value, other: Value) -> Value:
    return _together(one, other, lambda a, b: np.stack((a, b), -1))


def _interleaved(one: Value, other: Value) -> Value:
    joined = _joined(one, other)
    return joined.moved(lambda a: a.reshape(*a.shape[:-2], 2 * a.shape[-2]))


def _small(choose: random.Random, values: Sequence[Value]) -> dict[str, Any] | None:
    return {} if np.prod(values[0].shape) <= 512 and len(values[0].shape) <= 2 else None


def _summed(value: Value) -> Value:
    """The sum of all elements of a value of one dimension or more."""
    flat = _flat(value)
    dtype = reduced_type(flat.dtype)
    if not flat.exists.any(axis=1).all():
        raise Ambiguous("a sum of nothing")
    data, error = filled(flat, 0).sum(axis=1), total_error(flat, 1, dtype)
    return checked(data, np.ones(data.shape, bool), error, dtype, 1)


form("join", "ntl.join({0}, {1})", "number tile, number tile", _joined, _small)
form("interleave", "ntl.interleave({0}, {1})", "number tile, number tile", _interleaved, _small)
form(
    "cat",
    "ntl.sum(ntl.cat({0}, {1}, can_reorder=True))",
    "number tile, number tile",
    lambda a, b: _summed(_together(a, b, lambda c, d: np.concatenate((c, d), 1))),
    _of_rank(1),
)
form(
    "split",
    "second_half(ntl.join({0}, {1}))",
    "number tile, number tile",
    lambda a, b: _both(a, b)[1].moved(lambda each: each),
    _small,
    rows="split join",
)


def _sum_of_broadcast(value: Value, other: Value) -> Value:
    dtype = promoted(value.dtype, other.dtype)
    return elementwise(np.add, [cast(value, dtype), cast(other, dtype)], dtype)


form(
    "broadcast",
    "sum_of_broadcast({0}, {1})",
    "number tile, number tile",
    _sum_of_broadcast,
    lambda choose, values: {} if values[0].dtype == values[1].dtype else None,
)


# Made.


def _like(value: Value) -> Value:
    # It has the first one's shape, and its own elements where that has its.
    return Value(np.zeros_like(value.data), value.exists, np.zeros(value.data.shape), value.dtype)


form("zeros_like", "ntl.zeros_like({0})", "number tile", _like)


def _positions(value: Value, size: int) -> Value:
    lanes = np.broadcast_to(np.arange(size), (len(value.data), size))
    return exact(lanes, "int32")


form(
    "positions",
    "positions({0})",
    "tile",
    lambda v: _positions(v, v.shape[0]),
    _of_rank(1),
    rows="arange",
)


def _broadcast_row(value: Value, size: int) -> Value:
    return value.moved(lambda a: np.broadcast_to(a[:, None], (len(a), size, *a.shape[1:])))


form(
    "broadcast_to",
    "in_rows({0}, {size})",
    "tile",
    _broadcast_row,
    lambda choose, values: {"size": choose.choice((2, 4))} if len(values[0].shape) == 1 else None,
)


# Operands that are given by name.

for _name, _text in (
    ("maximum", "ntl.maximum({0}, y={1})"),
    ("minimum", "ntl.minimum(x={0}, y={1})"),
    ("where", "ntl.where({0}, y={2}, x={1})"),
    ("fma", "ntl.fma({0}, y={1}, z={2})"),
    ("join", "ntl.join(a={0}, b={1})"),
    ("interleave", "ntl.interleave({0}, b={1})"),
    ("dot", "ntl.dot({0}, other={1})"),
):
    FORMS[f"{_name} by name"] = replace(FORMS[_name], name=f"{_name} by name", text=_text)
