"""Whether the types that a call's tensors have make sense in the application."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.kernels.analysis import analysis
from ninetoothed.language.dtypes import DType
from ninetoothed.program.inference import infer
from ninetoothed.program.nodes import clone

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition


def check_types(kernel: Definition, dtypes: Mapping[str, DType]) -> None:
    """Raise where loops or branches change a variable's element type, with tensors of these.

    Raises:
        ApplicationError: located.
    """
    if _assigns_in_ways(kernel):
        _check(kernel, tuple(dtypes.items()))


@analysis
def _assigns_in_ways(kernel: Definition) -> bool:
    """Whether the types of tensors can make a difference: else `make` knew."""
    return any(hasattr(node, "orelse") and hasattr(node, "body") for node in kernel.program.nodes())


@analysis
def _check(kernel: Definition, dtypes: tuple[tuple[str, DType], ...]) -> None:
    # The program's own nodes say what is so in all calls.
    body = [clone(statement) for statement in kernel.program.body]
    infer(replace(kernel.program, body=body, helpers={}), dict(dtypes), is_checked=True)
