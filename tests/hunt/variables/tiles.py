"""Tiles for an application that Python itself runs: the elements of a block that exist, and no others.

They do not change: ``a += b`` gives the variable another one, as in the language. What a Python number
becomes beside a tile, and which type two tiles have together, is decided here and not by NumPy.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.hunt.values import Ambiguous

#: Element types, each before those that it becomes beside.
ORDER = ("bool", "int32", "float32", "float64")

#: Numbers beyond this are not drawn: below it integers fit, and rounding is small beside the result.
MOST = 2.0**20


@dataclass(frozen=True, eq=False)
class Tile:
    """Elements of one program's block, or one element or number that only the running kernel knows.

    Attributes:
        owner: the parameter that these are the elements of.
        exists: which of them there are; None where all are. The others read as 0, and what is computed of
            that element by element is what a store stores.
        kept: which of a parameter's a store to it leaves alone; None where it leaves none.
    """

    data: np.ndarray
    owner: str | None = None
    exists: np.ndarray | None = None
    kept: np.ndarray | None = None

    @property
    def dtype(self) -> str:
        return self.data.dtype.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    def to(self, dtype: str) -> Tile:
        return made(self.data, dtype, self.exists)

    def __getitem__(self, index: Any) -> Tile:
        place = operator.index(index)
        is_there = self.shape and 0 <= place < len(self.data)
        if not is_there or (self.exists is not None and not self.exists[place]):
            raise Ambiguous("an element that is not there")
        return Tile(self.data[place])

    def __bool__(self) -> bool:
        if self.shape:
            raise Ambiguous("the truth of a tile")
        return bool(self.data)

    def __index__(self) -> int:
        if self.shape or self.dtype != "int32":
            raise Ambiguous("a position that is none")
        return int(self.data)

    def __abs__(self) -> Tile:
        return made(abs(self.data), self.dtype, self.exists)

    def __neg__(self) -> Tile:
        return made(-self.data, self.dtype, self.exists)


def made(data: Any, dtype: str, exists: np.ndarray | None = None) -> Tile:
    """A tile of a type, of numbers that it holds without doubt."""
    data = np.asarray(data)
    if data.size and not (abs(data) < MOST).all():
        raise Ambiguous("a number that is too large")
    return Tile(data.astype(dtype), None, exists)


def _existing(*values: Any) -> np.ndarray | None:
    """Where all of them exist."""
    each = [e for value in values if (e := getattr(value, "exists", None)) is not None]
    return np.logical_and.reduce(each) if each else None


def common(*values: Any) -> str:
    """The type that values have together; a Python number is of its kind alone."""
    kinds = {bool: "bool", int: "int32", float: "float32"}
    return max((kinds.get(type(v)) or v.dtype for v in values), key=ORDER.index)


def _binary(compute: Callable[[Any, Any], Any], result: str = "", at_least: str = "bool") -> Any:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (Tile, int, float)):
            return NotImplemented
        dtype = max(common(self, other), at_least, key=ORDER.index)
        one, two = (getattr(value, "data", value) for value in (self, other))
        with np.errstate(all="ignore"):
            data = compute(_as(one, dtype), _as(two, dtype))
        return made(data, result or dtype, _existing(self, other))

    return method


def _as(value: Any, dtype: str) -> np.ndarray:
    return np.asarray(value).astype(dtype)


def _reflected(method: Any) -> Any:
    def reflected(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float)):
            return NotImplemented
        return method(Tile(_as(other, common(self, other))), self)

    return reflected


def _divided(one: Any, two: Any) -> Any:
    if not np.all(two):
        raise Ambiguous("a division by 0")
    return one // two


def _remainder(one: Any, two: Any) -> Any:
    if not np.all(two):
        raise Ambiguous("a division by 0")
    return one % two


for _name, _compute in {"add": np.add, "sub": np.subtract, "mul": np.multiply}.items():
    _method = _binary(_compute, at_least="int32")
    setattr(Tile, f"__{_name}__", _method)
    setattr(Tile, f"__r{_name}__", _reflected(_method))
Tile.__truediv__ = _binary(np.divide, at_least="float32")  # type: ignore[attr-defined]
for _name, _compute in {"floordiv": _divided, "mod": _remainder}.items():
    setattr(Tile, f"__{_name}__", _binary(_compute, at_least="int32"))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Tile, f"__{_name}__", _binary(getattr(operator, _name), "bool"))


def _where(condition: Tile, one: Any, other: Any) -> Tile:
    dtype = common(one, other)
    data = (_as(getattr(value, "data", value), dtype) for value in (one, other))
    return Tile(np.where(condition.data, *data), None, _existing(condition, one, other))


def _reduced(reduce: Callable[[np.ndarray], Any]) -> Callable[[Tile], Tile]:
    def reduction(tile: Tile) -> Tile:
        if not tile.shape:
            raise Ambiguous("a reduction of a number")
        data = tile.data if tile.exists is None else tile.data[tile.exists]
        if not data.size:
            raise Ambiguous("a reduction of nothing")
        return made(reduce(data), tile.dtype)

    return reduction


#: What stands for `ninetoothed.language`.
LANGUAGE = SimpleNamespace(
    **{name: name for name in ("int32", "float32", "float64")},
    constexpr="constexpr",
    where=_where,
    maximum=_binary(np.maximum),
    minimum=_binary(np.minimum),
    sum=_reduced(np.sum),
    max=_reduced(np.max),
    min=_reduced(np.min),
    zeros=lambda shape, dtype: Tile(np.zeros(shape, dtype)),
    full=lambda shape, value, dtype: Tile(np.full(shape, value, dtype)),
)
