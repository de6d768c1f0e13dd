"""Trees from templates; nothing here knows what they mean."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from ninetoothed import threads
from ninetoothed.language import operations
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.nodes import LanguageRef, clone

#: What stands for a name in a template: a tree; or another name, or a number.
Part = ast.expr | str | int


def statement(template: str, **parts: Part) -> ast.stmt:
    """A statement of Gluon, with parts put in for names."""
    (result,) = threads.parse(template).body
    return _Put(parts).visit(result)  # type: ignore[no-any-return]


def expression(template: str, **parts: Part) -> ast.expr:
    """An expression of Gluon, with parts put in for names."""
    return statement(template, **parts).value  # type: ignore[attr-defined, no-any-return]


def put(tree: ast.expr, parts: Mapping[str, Part]) -> ast.expr:
    """An expression with others in the place of names."""
    return _Put(parts).visit(tree)  # type: ignore[no-any-return]


class _Put(ast.NodeTransformer):
    def __init__(self, parts: Mapping[str, Part]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        part = self._parts.get(node.id)
        if part is None:
            return node
        if isinstance(part, ast.expr):
            return clone(part)
        return ast.Name(part, node.ctx) if isinstance(part, str) else ast.Constant(part)


def language(function: str, *arguments: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.expr:
    """A call of a function of Gluon's language."""
    attribute = ast.Attribute(ast.Name("gl", ast.Load()), function, ast.Load())
    return ast.Call(attribute, list(arguments), list(keywords))


def library(function: str, *arguments: ast.expr) -> ast.expr:
    """A call of a function of `gluon_library`."""
    return ast.Call(ast.Name(function, ast.Load()), list(arguments), [])


def called(value: ast.expr | None) -> str:
    """The function of the language that a call is of, or Python's or ours; ``""`` of what is no such call."""
    function = value.func if isinstance(value, ast.Call) else None
    if isinstance(function, LanguageRef):
        operation = operations.find(function.name)
        return operation.name if operation else function.name
    return function.id if isinstance(function, ast.Name) else ""


def cast_value(value: ast.expr) -> ast.expr | None:
    """What ``value.to(…)`` is of; None of anything else."""
    function = value.func if isinstance(value, ast.Call) else None
    is_cast = isinstance(function, ast.Attribute) and function.attr == "to"
    return function.value if is_cast else None  # type: ignore[union-attr]


# What calls and subscripts are made of.


def elements(call: ast.Call) -> list[ast.expr]:
    """The arguments of an element-wise function that have elements."""
    return call.args[:1] if called(call) == "cast" else call.args


def given_of(call: ast.Call) -> list[ast.expr]:
    """The arguments besides the first, whether they are named or not."""
    return [*call.args[1:], *(keyword.value for keyword in call.keywords)]


def axis_of(call: ast.Call) -> int | None:
    """The dimension that a reduction is over; None where it does not say."""
    axis = next(iter(given_of(call)), None)
    return axis.value if isinstance(axis, ast.Constant) else None  # type: ignore[return-value]


def new_axis(value: ast.Subscript) -> int | None:
    """The place of the dimension that a subscript adds to a vector; None of any other subscript."""
    entries = value.slice.elts if isinstance(value.slice, ast.Tuple) else []
    kinds = [kind_of(entry) for entry in entries]
    is_new = all(e.value is None for e in entries if isinstance(e, ast.Constant))
    if not is_new or kinds not in ([ast.Constant, ast.Slice], [ast.Slice, ast.Constant]):
        return None
    return kinds.index(ast.Constant)
