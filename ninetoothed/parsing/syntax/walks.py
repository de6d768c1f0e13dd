"""Walks over the tree of a function: its statements, what it returns, what is its own and what it assigns."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

#: Where statements of a statement stand, in the order of the text.
_BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")

#: What has no part that the function around it computes, and what has its defaults alone.
_WITHOUT_PARTS = (ast.Name, ast.Constant, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def statements_in(node: ast.AST) -> list[ast.AST]:
    """What stands in the blocks of a statement, in the order of the text; handlers and cases have blocks too."""
    return [statement for name in _BLOCKS for statement in node.__dict__.get(name, ())]


def returns_value(tree: ast.FunctionDef) -> bool:
    """Whether a function returns more than None: then assigning a parameter rebinds its own name."""
    found = (node.value for one in tree.body for node in returns_of(one))
    return any(v and not (isinstance(v, ast.Constant) and v.value is None) for v in found)


def returns_of(node: ast.AST) -> Iterator[ast.Return]:
    """The returns of the function itself that a statement of it is or has."""
    pending = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, ast.Return):
            yield current
        elif not isinstance(current, ast.FunctionDef | ast.ClassDef):
            pending.extend(reversed(statements_in(current)))


def of_one_function(node: ast.AST) -> Iterator[ast.AST]:
    """As ``ast.walk`` in the order of the text, but not into functions defined within: of these the
    defaults alone are this function's to compute."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, _WITHOUT_PARTS):
            continue
        if isinstance(current, _FUNCTIONS):
            pending.extend(reversed(defaults_of(current)))
            continue
        fields = current.__dict__
        is_own = isinstance(current, ast.comprehension)
        for name in reversed(current._fields):
            if is_own and name == "target":
                # Its variables are its own.
                continue
            value = fields.get(name)
            if isinstance(value, list):
                for item in reversed(value):
                    if isinstance(item, ast.AST):
                        pending.append(item)
            elif isinstance(value, ast.AST) and value._fields:
                pending.append(value)


def defaults_of(node: ast.FunctionDef | ast.Lambda) -> list[ast.expr]:
    """The defaults of a function defined within another one, which computes them."""
    return [*node.args.defaults, *(each for each in node.args.kw_defaults if each is not None)]


def assigned_names(nodes: Iterable[ast.AST]) -> dict[str, int]:
    """The names that statements of one function assign, in order, and how many places do."""
    found: dict[str, int] = {}
    for node in nodes:
        for child in of_one_function(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                found[child.id] = found.get(child.id, 0) + 1
            elif isinstance(child, ast.FunctionDef):
                found[child.name] = found.get(child.name, 0) + 1
    return found
