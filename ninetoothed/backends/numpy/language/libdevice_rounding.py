"""Arithmetic and conversions with a rounding direction, exact, on float32 and float64 arrays.

The direction is the last letter of libdevice's names: ``n`` to nearest, ``z`` toward zero, ``d``
down, ``u`` up. Directed results are found with exact rationals, one element after the other: they
are rare in kernels, and right is better than fast here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

Compare = Callable[[Fraction], bool]


def _adjusted(nearest: Any, direction: str, is_above: Compare, is_below: Compare) -> Any:
    """The float next to the exact result in ``direction``.

    Args:
        nearest: a float at most one step away from it.
        is_above: whether a value is greater than the exact result; ``is_below`` is the contrary.
    """
    if direction == "z":
        direction = "d" if nearest > 0 else "u"
    limit = nearest.dtype.type(-np.inf if direction == "d" else np.inf)
    is_beyond, is_short = (is_above, is_below) if direction == "d" else (is_below, is_above)
    while math.isfinite(nearest) and is_beyond(Fraction(float(nearest))):
        nearest = np.nextafter(nearest, limit)
    while True:
        closer = np.nextafter(nearest, -limit)
        if not math.isfinite(closer) or is_beyond(Fraction(float(closer))):
            return nearest
        if not is_short(Fraction(float(nearest))):
            return nearest
        nearest = closer


def directed(
    name: str, nearest: Callable[..., Any], exact: Callable[..., Any]
) -> Callable[..., Any]:
    """``nearest`` with another rounding, that of the last letter of ``name``.

    Args:
        nearest: the function in NumPy, rounding to nearest.
        exact: of rationals, the exact result; it may raise `ZeroDivisionError`.
    """
    direction = name[-1]
    if direction == "n":
        return nearest

    def one(rounded: Any, *arguments: Any) -> Any:
        if not all(map(math.isfinite, (rounded, *arguments))):
            return rounded
        try:
            value = exact(*(Fraction(argument) for argument in arguments))
        except ZeroDivisionError:
            return rounded
        return _adjusted(rounded, direction, lambda r: r > value, lambda r: r < value)

    return _by_element(one, nearest)


def directed_root(name: str) -> Callable[..., Any]:
    """The square root with the rounding of the last letter of ``name``."""
    direction = name[-1]
    if direction == "n":
        return np.sqrt

    def one(rounded: Any, argument: Any) -> Any:
        if not math.isfinite(rounded) or not math.isfinite(argument) or argument <= 0:
            return rounded
        value = Fraction(argument)
        return _adjusted(rounded, direction, lambda r: r * r > value, lambda r: r * r < value)

    return _by_element(one, np.sqrt)


def _by_element(one: Callable[..., Any], nearest: Callable[..., Any]) -> Callable[..., Any]:
    def operate(*arrays: Any) -> Any:
        rounded = np.asarray(nearest(*arrays))
        spread = [np.broadcast_to(array, rounded.shape) for array in arrays]
        results = np.empty_like(rounded)
        for place in np.ndindex(rounded.shape):
            results[place] = one(rounded[place], *(array[place].item() for array in spread))
        return results

    return operate


_TO_INTEGRAL = {"n": np.rint, "z": np.trunc, "d": np.floor, "u": np.ceil}


def float_to_integer(name: str) -> Callable[..., Any]:
    """A float as an integer, saturated as a GPU does it; the type is read off ``name``."""
    integral = _TO_INTEGRAL[name[-1]]
    kind = name.split("2")[1].split("_")[0]
    target = np.dtype({"int": "i4", "uint": "u4", "ll": "i8", "ull": "u8"}[kind])
    bounds = np.iinfo(target)
    #: What not-a-number becomes: 0 in 32 bits, the highest bit alone in 64.
    of_nan = 0 if target.itemsize == 4 else -(2**63)

    def convert(x: Any) -> Any:
        rounded = np.asarray(integral(x), np.float64)
        is_high, is_low = rounded >= float(bounds.max), rounded <= float(bounds.min)
        inner = np.where(is_high | is_low | np.isnan(rounded), 0.0, rounded).astype(target)
        inner = np.where(is_high, bounds.max, np.where(is_low, bounds.min, inner)).astype(target)
        signed = inner.view(f"i{target.itemsize}")
        return np.where(np.isnan(rounded), np.array(of_nan, signed.dtype), signed)

    return convert


def narrowed(name: str) -> Callable[..., Any]:
    """A number as the narrower float in ``name``, rounded in the direction in ``name``."""
    target = np.float64 if name.split("2")[1].startswith("double") else np.float32
    return directed(name, lambda x: x.astype(target), lambda x: x)
