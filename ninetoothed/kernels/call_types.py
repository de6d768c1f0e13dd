"""What the element types that a call gives make of a kernel, and whether they make sense in it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from ninetoothed.errors import ArrangementError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.language.dtypes import DType
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.inference import infer
from ninetoothed.program.program import Program
from ninetoothed.tensors.arrange import Arrangement

Result = TypeVar("Result")
_Typed = TypeVar("_Typed", Arrangement, Program)


def check_types(kernel: Definition, dtypes: Mapping[str, DType]) -> None:
    """Raise where loops or branches change a variable's element type, where what is divided and what it is
    divided by are not of one signedness, where what is joined is not of one type, or where what no device
    computes with is computed with, with tensors and scalars of these.

    Raises:
        ApplicationError: located.
    """
    _check(kernel, tuple(dtypes.items()))


@analysis
def _check(kernel: Definition, dtypes: tuple[tuple[str, DType], ...]) -> None:
    # The program's own nodes say what is so in all calls.
    infer(Draft(kernel.program), dict(dtypes), is_checked=True)


def fitting(kernel: Definition, call: Call, use: Callable[[Definition], Result]) -> Result:
    """What is made of a kernel for a call, whose element types stand where others were declared; where
    shapes do not fit it, of the one by number.

    The outermost shapes may yet agree: dimensions of size 1 may stand anywhere in them.
    """
    given = {**call.scalars, **{name: each.dtype for name, each in call.arguments.items()}}
    known = {
        p.name: p.dtype for p in kernel.parameters if p.dtype and p.name not in kernel.untouched
    }
    others = {name: given[name] for name in known.keys() & given if given[name] is not known[name]}
    if others:
        kernel = _with_types(kernel, tuple(sorted(others.items())))
    try:
        return use(kernel)
    except ArrangementError as error:
        with contextlib.suppress(ArrangementError):
            return use(kernel.by_number)
        raise error


@analysis
def _with_types(kernel: Definition, dtypes: tuple[tuple[str, DType], ...]) -> Definition:
    given = dict(dtypes)

    def retyped(of: _Typed) -> _Typed:
        parameters = (replace(p, given_dtype=given.get(p.name)) for p in of.parameters)
        return replace(of, parameters=tuple(parameters))

    return replace(kernel, arrangement=retyped(kernel.arrangement), program=retyped(kernel.program))
