"""Whether the types that a call's tensors have make sense in the application."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.language.dtypes import DType
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.effects import called_name, is_atomic
from ninetoothed.program.inference import infer
from ninetoothed.program.types import type_of

#: What takes tiles of one type, or of floats.
_OF_ONE_KIND = ("join", "interleave", "cat", "fma", "dot")


def check_types(kernel: Definition, dtypes: Mapping[str, DType]) -> None:
    """Raise where loops or branches change a variable's element type, where what is divided and what it is
    divided by are not of one signedness, where what is joined is not of one type, or where what no device
    computes with is computed with, with tensors of these.

    Raises:
        ApplicationError: located.
    """
    is_narrow = any(each.kind == "float" and each.bits == 8 for each in dtypes.values())
    if is_narrow or _depends_on_types(kernel):
        _check(kernel, tuple(dtypes.items()))


@analysis
def _depends_on_types(kernel: Definition) -> bool:
    """Whether the types of tensors can make a difference: else `make` knew."""
    return any(
        (hasattr(node, "orelse") and hasattr(node, "body"))
        or _divides(node)
        or (isinstance(node, ast.Call) and _asks_for_types(called_name(node)))
        for node in kernel.program.nodes()
    )


def _asks_for_types(function: str) -> bool:
    """Whether what a function is given must be of one type, or no value."""
    return function in _OF_ONE_KIND or is_atomic(function)


def _divides(node: ast.AST) -> bool:
    """Whether this divides what are not known to be floats, or yield to them."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod):
        return False
    operands = type_of(node.left), type_of(node.right)
    return not any(each.kind == "float" or isinstance(each.number, bool | int) for each in operands)


@analysis
def _check(kernel: Definition, dtypes: tuple[tuple[str, DType], ...]) -> None:
    # The program's own nodes say what is so in all calls.
    infer(Draft(kernel.program), dict(dtypes), is_checked=True)
