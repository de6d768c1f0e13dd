"""What the element types that a call gives make of a kernel, and whether they make sense in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import integer_bounds
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.inference import infer
from ninetoothed.program.program import Program
from ninetoothed.tensors.arrange import Arrangement, Parameter

Result = TypeVar("Result")
_Typed = TypeVar("_Typed", Arrangement, Program)


def check_types(kernel: Definition, dtypes: Mapping[str, DType]) -> None:
    """Raise where loops or branches change a variable's element type, where what is divided and what it is
    divided by are not of one signedness, where what is joined is not of one type, or where what no device
    computes with is computed with, with tensors and scalars of these; and where a tensor of integers cannot
    hold what its elements out of bounds read as.

    Raises:
        ApplicationError, ArgumentError: located.
    """
    for parameter in kernel.tensor_parameters:
        if parameter.name in dtypes:
            _check_other(kernel, parameter, dtypes[parameter.name])
    _check(kernel, tuple(dtypes.items()))


def _check_other(kernel: Definition, parameter: Parameter, dtype: DType) -> None:
    other = parameter.source.other
    if other is None or dtype.kind not in ("int", "uint"):
        return
    low, high = integer_bounds(dtype)
    if not low <= other <= high or other != int(other):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{parameter.name}` was declared with other={other}, which {dtype}, "
            f"as it is given, does not hold. Declare a whole number from {low} to {high}.",
            parameter.source.location,
        )


@analysis
def _check(kernel: Definition, dtypes: tuple[tuple[str, DType], ...]) -> None:
    # The program's own nodes say what is so in all calls.
    infer(Draft(kernel.program), dict(dtypes), is_checked=True)


def as_given(kernel: Definition, call: Call) -> Definition:
    """The kernel with the element types of a call where others were declared, and with its scales."""
    given = {**call.scalars, **{name: each.dtype for name, each in call.arguments.items()}}
    known = {
        p.name: p.dtype for p in kernel.parameters if p.dtype and p.name not in kernel.untouched
    }
    others = {name: given[name] for name in known.keys() & given if given[name] is not known[name]}
    return _as_given(kernel, others, call.scales)


def with_scales(kernel: Definition, scales: Iterable[str]) -> Definition:
    """The kernel where these numbers are scales in every call."""
    return _as_given(kernel, {}, frozenset(scales))


def decisive_scales(kernel: Definition, numbers: Iterable[str]) -> frozenset[str]:
    """Those of some numbers of which it makes a difference to the kernel that they are scales."""
    whole = frozenset(numbers)
    text = with_scales(kernel, whole).optimized.text()
    return frozenset(
        name for name in whole if with_scales(kernel, whole - {name}).optimized.text() != text
    )


def _as_given(
    kernel: Definition, dtypes: Mapping[str, DType], scales: frozenset[str]
) -> Definition:
    scales = scales if kernel.program.has_lowest else frozenset()
    return _retyped(kernel, tuple(sorted(dtypes.items())), scales) if dtypes or scales else kernel


def fitting(kernel: Definition, call: Call, use: Callable[[Definition], Result]) -> Result:
    """What is made of a kernel as a call gives it; where shapes do not fit it, of the one by number.

    The outermost shapes may yet agree: dimensions of size 1 may stand anywhere in them.
    """
    kernel = as_given(kernel, call)
    try:
        return use(kernel)
    except ArrangementError as error:
        with contextlib.suppress(ArrangementError):
            return use(kernel.by_number)
        raise error


@analysis
def _retyped(
    kernel: Definition, dtypes: tuple[tuple[str, DType], ...], scales: frozenset[str]
) -> Definition:
    given = dict(dtypes)

    def retyped(of: _Typed) -> _Typed:
        return replace(
            of,
            parameters=tuple(
                replace(p, given_dtype=given.get(p.name), is_scale=p.name in scales)
                for p in of.parameters
            ),
        )

    return replace(kernel, arrangement=retyped(kernel.arrangement), program=retyped(kernel.program))
