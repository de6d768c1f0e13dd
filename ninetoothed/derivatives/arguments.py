"""The arguments of a call, as a derivative needs them."""

from __future__ import annotations

import ast
from typing import Any

from ninetoothed.language.operations import Operation


def is_axis(entry: ast.expr) -> bool:
    """Whether a subscript's entry is ``:`` or None."""
    if isinstance(entry, ast.Slice):
        return entry.lower is entry.upper is entry.step is None
    return isinstance(entry, ast.Constant) and entry.value is None


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """The positional arguments of a call, a method's value first."""
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    return [*own, *call.args]


def argument(call: ast.Call, place: int, name: str) -> ast.expr | None:
    """An argument of a call, by its place or its name; None where it is not given."""
    given = arguments_of(call)
    named = {keyword.arg: keyword.value for keyword in call.keywords}
    return given[place] if place < len(given) else named.get(name)


def constant_of(node: ast.expr | None, default: Any = None) -> Any:
    """The number, or the tuple of them, that a node is; `ValueError` where it is none."""
    if node is None:
        return default
    return ast.literal_eval(node)


def reduced_axis(operation: Operation, call: ast.Call) -> tuple[int | None, bool]:
    """The axis of a reduction, and whether it keeps the dimension; `ValueError` where not known."""
    axis = constant_of(argument(call, operation.places.get("axis", 1), "axis"))
    place = operation.places.get("keep_dims", 9)
    return axis, bool(constant_of(argument(call, place, "keep_dims"), False))


def permutation(call: ast.Call, rank: int) -> tuple[int, ...]:
    """The order that ``trans`` or ``permute`` gives dimensions."""
    given = [constant_of(each) for each in arguments_of(call)[1:]]
    if not given:
        return (*range(rank - 2), rank - 1, rank - 2)
    dims = given[0] if isinstance(given[0], tuple | list) else given
    return tuple(int(dim) % rank for dim in dims)
