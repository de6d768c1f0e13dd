"""Conversions between element types, on bare NumPy arrays, with Triton's results.

Rounding is to nearest, ties to even, unless asked otherwise; a float becomes an integer by
dropping its fraction; the 8-bit floats saturate instead of overflowing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ninetoothed.errors import OutOfRangeError, caller_location
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse

#: An ndarray, or the NumPy scalar that an operation on 0-d arrays returns.
Array = Any

_LARGEST_FLOAT8 = {dtypes.float8_e4m3: 448.0, dtypes.float8_e5m2: 57344.0}

_UNSIGNED_OF_WIDTH = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def cast_array(array: Array, source: DType, target: DType) -> Array:
    """``array``'s values as ``target``; the array itself where the types agree."""
    if source is target:
        return array
    if target in _LARGEST_FLOAT8:
        return _to_float8(array, source, target)
    if target is dtypes.bool:
        return array != source.numpy.type(0)
    if source.kind == "float" and target.kind != "float":
        return _float_to_integer(array, source, target)
    if target is dtypes.bfloat16 and source.bits >= 32 and source is not dtypes.float32:
        return _to_odd_float32(array).astype(target.numpy)
    return array.astype(target.numpy)


def _to_odd_float32(array: Array) -> Array:
    """The float32 of each number if there is one, else of the two beside it the one with an odd last bit.

    What is rounded again, to fewer bits, is then as if it had been rounded once.
    """
    wide = np.asarray(array, dtype=np.float64)
    narrow = wide.astype(np.float32)
    is_even = narrow.view(np.int32) & 1 == 0
    is_rounded = np.isfinite(narrow) & (narrow != wide) & is_even
    toward = np.where(narrow < wide, np.float32(np.inf), np.float32(-np.inf))
    return np.where(is_rounded, np.nextafter(narrow, toward), narrow)


def _float_to_integer(array: Array, source: DType, target: DType) -> Array:
    if source.bits < 32:
        array = array.astype(np.float32)
    if target.bits >= 32:
        return array.astype(target.numpy)
    # NumPy leaves a value that a narrow integer cannot hold undefined; by way of a wide one the
    # low bits are kept, on every machine.
    return array.astype(np.int64).astype(target.numpy)


def check_range(array: Array, source: DType, target: DType, validity: Iterable[Array] = ()) -> None:
    """That an integer type holds the floats that are to become of it.

    Args:
        validity: where there are any.

    Raises:
        OutOfRangeError: it does not hold one of them. What a GPU makes of that differs.
    """
    if source.kind != "float" or target.kind not in ("int", "uint"):
        return
    limits = np.iinfo(target.numpy)
    whole = np.trunc(np.asarray(array, dtype=np.float64))
    # The greatest of 64 bits is no float; what comes after it is.
    holds = (whole >= float(limits.min)) & (whole < 2.0 ** (target.bits - (target.kind == "int")))
    for mask in validity:
        holds = holds | ~np.asarray(mask, dtype=bool)
    if not holds.all():
        first = np.broadcast_to(array, holds.shape)[~holds].flat[0]
        raise OutOfRangeError(
            f"{float(first)!r} becomes {target}, which holds {limits.min} to {limits.max}: on a GPU any "
            "number may come of it. Limit it first, with `ntl.clamp`.",
            caller_location(),
        )


def _to_float8(array: Array, source: DType, target: DType) -> Array:
    if source is not dtypes.float64:
        array = array.astype(np.float32)
    limit = _LARGEST_FLOAT8[target]
    return np.clip(array, -limit, limit).astype(target.numpy)


def narrowing_cast(array: Array, source: DType, target: DType, rounding: str) -> Array:
    """A narrowing float conversion, rounded to nearest (``"rtne"``) or toward zero (``"rtz"``)."""
    if source.kind != "float" or target.kind != "float" or source.bits <= target.bits:
        raise refuse(
            f"fp_downcast_rounding is for a conversion to a narrower float, not from {source} to "
            f"{target}."
        )
    if rounding not in ("rtne", "rtz"):
        raise refuse(f"fp_downcast_rounding is 'rtne' or 'rtz', but got {rounding!r}.")
    nearest = cast_array(array, source, target)
    return nearest if rounding == "rtne" else _next_toward_zero(nearest, array, target)


def _next_toward_zero(nearest: Array, exact: Array, target: DType) -> Array:
    rounded = np.asarray(nearest)
    is_too_large = np.abs(rounded.astype(np.float64)) > np.abs(np.asarray(exact, np.float64))
    bits = rounded.view(_UNSIGNED_OF_WIDTH[target.bits])
    # A float's magnitude grows with its bits, so the next one toward zero is one less.
    return (bits - is_too_large.astype(bits.dtype)).view(target.numpy)


def bitcast_array(array: Array, source: DType, target: DType) -> Array:
    """The same bits read as ``target``, which must be as wide as ``source``."""
    if source is target:
        return array
    if source.bits != target.bits:
        raise refuse(
            f"A bitcast needs types of one width, but {source} has {source.bits} bits and "
            f"{target} has {target.bits}."
        )
    return array.view(target.numpy)
