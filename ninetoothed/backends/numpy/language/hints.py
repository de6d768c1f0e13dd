"""Hints, checks and prints; loops; what a compiler alone can do is refused by name."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.creation import integer
from ninetoothed.backends.numpy.language.identities import without_padding
from ninetoothed.backends.numpy.language.math import logical_not, logical_or
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.tile import Tile, as_tile, number
from ninetoothed.errors import NineToothedError, caller_location, failed_assertion
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.operations import identity_of
from ninetoothed.language.promotion import refuse


def _hint(input: Any, values: Any) -> Any:
    """``input``: what a compiler would make of ``values`` changes no result."""
    return input


def assume(cond: Any) -> None:
    """Checks what a compiler would take for granted."""
    if not holds(cond):
        raise NineToothedError("What ntl.assume says does not hold.", caller_location())


def holds(cond: Any) -> bool:
    """Whether a condition holds: of a tile, in every element that exists."""
    if cond is None or isinstance(cond, str | tuple | list | dict):
        return bool(cond)
    return bool(
        np.all(without_padding(as_tile(cond).to(dtypes.bool), identity_of("device_assert")))
    )


def debug_barrier() -> None:
    """Nothing: a program's elements are computed together."""


def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> None:
    """Raises if ``cond`` does not hold in an element where ``mask`` does."""
    checked = cond if mask is None else logical_or(cond, logical_not(mask))
    if not holds(checked):
        failed(msg)


def failed(msg: Any) -> None:
    """Raises what an assertion of the running kernel says."""
    program = context.running_program()
    where = "" if program is None else f" in program {program}"
    raise NineToothedError(failed_assertion(msg, where), caller_location())


def device_print(prefix: str, *args: Any, hex: bool = False) -> None:
    """Prints the program's index, ``prefix`` and the values."""
    program = context.running_program()
    values = [np.asarray(as_tile(argument).data) for argument in args]
    shown = [np.vectorize(builtins.hex)(v) if hex and v.dtype.kind in "iu" else v for v in values]
    print(prefix if program is None else f"{program} {prefix}", *shown)


def static_assert(cond: Any, msg: Any = "") -> None:
    """Raises if ``cond``, a compile-time value, does not hold."""
    if not cond:
        raise refuse(f"ntl.static_assert failed: {msg}")


def static_print(
    *values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False
) -> None:
    """Prints compile-time values, as Python's ``print`` does."""
    print(*values, sep=sep, end=end, file=file, flush=flush)


def _count(arg1: Any, arg2: Any = None, step: Any = None, **hints: Any) -> builtins.range:
    """Python's ``range``; the hints (``num_stages`` …) change no result."""
    first, last = (0, arg1) if arg2 is None else (arg1, arg2)
    by = 1 if step is None else integer(step, "A loop's step")
    return builtins.range(integer(first, "A loop's start"), integer(last, "A loop's end"), by)


def static_range(arg1: Any, arg2: Any = None, step: Any = None) -> tuple[int, ...]:
    """The numbers of Python's ``range``, over compile-time bounds: constants, by whatever name it is gone over."""
    return tuple(_count(arg1, arg2, step))


def condition(arg1: Any, disable_licm: bool = False) -> Any:
    """``arg1``: what a ``while`` tests."""
    return arg1


def constexpr(value: Any) -> Any:
    """``value``: everything is known here."""
    return value


def scalar_type(name: Any) -> DType:
    """``ntl.dtype("fp32")``: the element type of that name."""
    for dtype in map(dtypes.by_name, dtypes.NAMES):
        if name in (dtype.name, dtype.triton_name, dtype.signature):
            return dtype
    raise refuse(f"There is no element type called {name!r} here.")


def str_to_ty(name: str, c: Any = None) -> DType:
    """The element type of a name in a signature, such as ``"fp32"``."""
    return scalar_type("i1" if name in ("B", "u1") else name)


def to_tensor(value: Any) -> Tile:
    """``value`` as a tile; a number has the type that it has by itself."""
    return as_tile(value) if isinstance(value, Tile) else as_tile(number(value))


def _no_target(*version: Any) -> bool:
    return False


#: Those whose name a function here cannot have, or is not to.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "dtype": scalar_type,
    "max_constancy": _hint,
    "max_contiguous": _hint,
    "multiple_of": _hint,
    "range": _count,
    "slice": builtins.slice,
    "target_info.cuda_capability_geq": _no_target,
    "target_info.current_target": lambda: None,
    "target_info.is_cuda": _no_target,
    "target_info.is_hip": _no_target,
    "target_info.is_hip_cdna3": _no_target,
    "target_info.is_hip_cdna4": _no_target,
    "to_tensor": to_tensor,
    "tuple": lambda values: builtins.tuple(values),
}
