"""`Size`: an integer that a call gives, such as a size or a stride, in a running program.

Among integers it is one of any width. Where it meets the elements of a tile, or a float, it has a type, as an
argument of a kernel has, and does not yield as a number of the source does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.tile import Tile, of_python
from ninetoothed.language import dtypes

_LARGEST_INT32 = 2**31 - 1


class Size(int):
    """An integer that is known only when a kernel is called."""

    __slots__ = ()
    __hash__ = int.__hash__
    #: NumPy's scalars leave it to a size what both together are.
    __array_ufunc__ = None

    @property
    def own_dtype(self) -> dtypes.DType:
        """Its type beside elements: of 32 bits where they hold it."""
        fits = -_LARGEST_INT32 - 1 <= self <= _LARGEST_INT32
        return dtypes.int32 if fits else dtypes.int64

    def tile(self) -> Tile:
        """The integer as a 0-d tile."""
        return Tile.of(self)

    def __neg__(self) -> Size:
        return Size(-int(self))

    def __pos__(self) -> Size:
        return self

    def __abs__(self) -> Size:
        return Size(abs(int(self)))

    def __invert__(self) -> Size:
        return Size(~int(self))


class _Float(float):
    """A float that leaves it to a size on its right what both together are."""

    __slots__ = ()


def _left(name: str) -> Callable[[_Float, Any], Any]:
    function: Callable[[float, Any], Any] = getattr(float, name)

    def operate(left: _Float, right: Any) -> Any:
        if isinstance(right, np.generic | np.ndarray):
            return getattr(operator, name)(float(left), right)
        return NotImplemented if type(right) is Size else function(left, right)

    return operate


for _name in ("__add__", "__sub__", "__mul__", "__truediv__", "__floordiv__", "__mod__"):
    setattr(_Float, _name, _left(_name))


def left_operand(value: Any) -> Any:
    """What stands on the left of an operator: a float yields to a size, as it does on its right."""
    return _Float(value) if type(value) is float else value


def typed(value: Any) -> Any:
    """A size as a 0-d tile; anything else as it is."""
    if type(value) is Size:
        return value.tile()
    return float(value) if type(value) is _Float else value


#: What no symbol computes: the running kernel does, of what it is given as an argument.
_OF_THE_KERNEL = ("truediv", "and_", "or_", "xor")


def _between(name: str, is_reflected: bool) -> Callable[[Size, Any], Any]:
    function: Callable[[Any, Any], Any] = getattr(operator, name)

    def operate(size: Size, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return function(other, int(size)) if is_reflected else function(int(size), other)
        other = of_python(other)
        if not isinstance(other, (int, float)):
            return NotImplemented
        # What divides by a size of 0 may be behind an `and` or in a choice, where nobody asks for it.
        is_by_zero = name in ("floordiv", "mod") and not (size if is_reflected else other)
        is_whole = isinstance(other, int) and name not in _OF_THE_KERNEL and not is_by_zero
        own: Any = int(size) if is_whole else size.tile()
        other = int(other) if is_whole else typed(other)
        result = function(other, own) if is_reflected else function(own, other)
        return Size(result) if isinstance(result, int) else result

    return operate


for _name, _member in (
    *((name, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")),
    *(("and_", "and"), ("or_", "or"), ("xor", "xor"), ("lshift", "lshift"), ("rshift", "rshift")),
):
    setattr(Size, f"__{_member}__", _between(_name, False))
    setattr(Size, f"__r{_member}__", _between(_name, True))


def _compared(name: str) -> Callable[[Size, Any], Any]:
    function: Callable[[Any, Any], bool] = getattr(operator, name)

    def operate(size: Size, other: Any) -> Any:
        """A truth value as a 0-d tile: numbers are made of it as of an element."""
        if isinstance(other, np.ndarray):
            return function(int(size), other)  # type: ignore[arg-type]
        other = of_python(other)
        if not isinstance(other, (int, float)):
            return NotImplemented
        return Tile.of(function(int(size), other), dtypes.bool)

    return operate


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Size, f"__{_name}__", _compared(_name))
