"""Numbers passed by value: which element type each is taken as, and whether it fits that.

A launch function asks on each call, in an expression, what the class of a number does not tell; see
`key_parts`. The slow path asks everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ninetoothed.errors import ArgumentError, NineToothedError, shown
from ninetoothed.frontends.base import Frontend
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.language.promotion import integer_bounds
from ninetoothed.tensors.arrange import SCALE_TYPES, SCALES, Parameter

#: What an integer is that nothing was declared of: the first that it fits.
_UNDECLARED = (dtypes.int32, dtypes.int64, dtypes.uint64)

#: The largest of float16. Wider types take what is too large for them as infinite, as in C; this one's
#: conversion is refused by the library that packs it.
_LARGEST_FLOAT16 = 65504.0


def bounds(dtype: dtypes.DType) -> tuple[Any, Any] | None:
    """The least and the greatest number of a type, or None where every number is taken."""
    if dtype is dtypes.float16:
        return -_LARGEST_FLOAT16, _LARGEST_FLOAT16
    return integer_bounds(dtype) if dtype.kind in ("int", "uint") else None


def past_32_bits(value: int) -> str | None:
    """The name of the type of an undeclared integer that is no int32; None where nothing holds it."""
    found = _first_that_holds(value)
    return None if found is None else found.name


def is_scale(value: Any, dtype: dtypes.DType) -> bool:
    """Whether a number of a type is one of `Call.scales`."""
    low, high = SCALES
    return dtype in SCALE_TYPES and low <= value <= high


def key_parts(parameter: Parameter, names: Mapping[str, str]) -> list[str]:
    """What a plan may depend on of a number, in expressions; no plan is kept for one that does not fit.

    Args:
        names: what ``int``, ``float`` and ``past_32_bits_`` are called.
    """
    name, dtype = parameter.name, parameter.dtype
    class_ = f"{name}.__class__"
    if dtype is None:
        wide = f"{names['past_32_bits_']}({name})"
        return [
            class_,
            f"{class_} is {names['int']} and (-0x80000000 <= {name} <= 0x7FFFFFFF or {wide})",
        ]
    # What does not fit its type is taken as if nothing was declared.
    taken = f"({class_}, {names['past_32_bits_']}({name}), {name} * 0 == 0)"
    within = bounds(dtype)
    if within is None:
        return [class_]
    low, high = within
    return [f"{class_} if {low} <= {name} <= {high} else {taken}"]


def scale_part(parameter: Parameter, names: Mapping[str, str]) -> str:
    """Whether a number may be a scale, as an expression."""
    low, high = SCALES
    # NumPy's float64 is a float too, and its class does not tell which.
    is_float = f"{names['isinstance']}({parameter.name}, {names['float']})"
    return f"{is_float} and {low} <= {parameter.name} <= {high}"


def number(kernel: Definition, frontend: Frontend, parameter: Parameter, value: Any) -> Any:
    """A scalar as a Python number: as given, or what a tensor or NumPy scalar holds.

    It is of the kind that was declared where it fits that type, else as given.

    Raises:
        ArgumentError: it is no number, or an integer too large for every type.
    """
    subject = f"kernel `{kernel.name}`: `{parameter.name}`"
    if not isinstance(value, (bool, int, float)):
        if frontend.owns(type(value)):
            value = _held(frontend, subject, value)
        elif hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
            value = value.item()
    if not isinstance(value, (bool, int, float)):
        raise ArgumentError(
            f"{subject} is passed by value and must be a number or a tensor of no dimensions, got "
            f"{shown(value)}"
        )
    if isinstance(value, int) and not isinstance(value, bool):
        # An enumeration's class does not tell how large its member is.
        value = int(value)
    dtype = parameter.dtype
    if dtype is None or not _fits(value, dtype):
        if value.__class__ is int and _first_that_holds(value) is None:
            ranges = [(each, *integer_bounds(each)) for each in _UNDECLARED[1:]]
            widest = " or ".join(f"{each} ({low} to {high})" for each, low, high in ranges)
            raise ArgumentError(
                f"{subject} is {shown(value)}, which fits no integer type: {widest}. Give a float, "
                "or a number within one of these."
            )
        return value
    if dtype is dtypes.bool:
        # Of NumPy's floats the comparison is NumPy's, which no launcher takes for an integer.
        return bool(value != 0)
    return float(value) if dtype.is_floating() else value


def _held(frontend: Frontend, subject: str, value: Any) -> Any:
    """What a tensor without dimensions holds; any other tensor as it is."""
    try:
        is_scalar = len(frontend.evaluate("shape", value)) == 0
        return frontend.evaluate("item", value) if is_scalar else value
    except NineToothedError:
        raise
    except Exception as error:
        # It has no elements, or its class answers in its own way.
        raise ArgumentError(
            f"{subject} is passed by value, and the tensor has none: {type(error).__name__}: {error}"
        ) from error


def _fits(value: bool | int | float, dtype: dtypes.DType) -> bool:
    """Whether a number can be passed as a type."""
    if dtype is dtypes.bool:
        # As a store to elements of bool: whether it is not 0.
        return True
    if dtype.is_floating():
        try:
            value = float(value)
        except OverflowError:
            return False
        # Infinities and what is no number are in every type of floats.
        return dtype is not dtypes.float16 or not _LARGEST_FLOAT16 < abs(value) < float("inf")
    low, high = bounds(dtype) or (value, value)
    return not isinstance(value, float) and low <= value <= high


def dtype_of(value: Any, declared: dtypes.DType | None, is_beside_float64: bool) -> dtypes.DType:
    """The element type that a number is passed as, as `number` gives it.

    Args:
        declared: what its parameter was declared with.
        is_beside_float64: whether a tensor of the call has elements of float64.
    """
    if declared is not None and _fits(value, declared):
        return declared
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, float):
        return dtypes.float64 if is_beside_float64 else dtypes.float32
    return _first_that_holds(value) or dtypes.uint64


def _first_that_holds(value: int) -> dtypes.DType | None:
    for dtype in _UNDECLARED:
        low, high = bounds(dtype) or (value, value)
        if low <= value <= high:
            return dtype
    return None
