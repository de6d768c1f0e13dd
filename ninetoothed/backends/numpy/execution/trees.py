"""Small makers and readers of Python's syntax trees."""

from __future__ import annotations

import ast
from typing import Any


def parameter_names(arguments: ast.arguments) -> list[str]:
    """A function's parameters in order, ``*args`` and ``**kwargs`` included."""
    parameters = arguments.posonlyargs + arguments.args
    parameters += [arguments.vararg] if arguments.vararg else []
    parameters += arguments.kwonlyargs
    parameters += [arguments.kwarg] if arguments.kwarg else []
    return [parameter.arg for parameter in parameters]


def argument_keys(arguments: ast.arguments) -> dict[int | str, str]:
    """A function's parameters that are one argument each, by their place and by their keyword."""
    positional = arguments.posonlyargs + arguments.args
    by_place: dict[int | str, str] = {
        place: parameter.arg for place, parameter in enumerate(positional)
    }
    return by_place | {each.arg: each.arg for each in arguments.args + arguments.kwonlyargs}


def iterated_names(tree: ast.AST) -> set[str]:
    """The names that loops and comprehensions assign."""
    loops = (n for n in ast.walk(tree) if isinstance(n, (ast.For, ast.comprehension)))
    return {name for loop in loops for name in stored_names(loop.target)}


def stored_names(tree: ast.AST) -> set[str]:
    """All names that are assigned."""
    return {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def function_within(tree: ast.FunctionDef, name: str) -> ast.FunctionDef | ast.Lambda | None:
    """The function defined in another one that is all that a name stands for there."""
    functions: list[ast.FunctionDef | ast.Lambda] = []
    others = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == name and node is not tree:
            functions.append(node)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            own = [each for each in node.targets if isinstance(each, ast.Name) and each.id == name]
            functions += [node.value] * len(own)
            others -= len(own)  # The name is met by itself.
        elif isinstance(node, ast.arg):
            others += node.arg == name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            others += node.id == name
    return functions[0] if len(functions) == 1 and not others else None


def bare_arguments(arguments: ast.arguments) -> ast.arguments:
    """Parameters without annotations and defaults: the function object keeps the defaults."""

    def bare(argument: ast.arg) -> ast.arg:
        return ast.copy_location(ast.arg(argument.arg), argument)

    return ast.arguments(
        posonlyargs=[bare(argument) for argument in arguments.posonlyargs],
        args=[bare(argument) for argument in arguments.args],
        vararg=arguments.vararg and bare(arguments.vararg),
        kwonlyargs=[bare(argument) for argument in arguments.kwonlyargs],
        kw_defaults=[None] * len(arguments.kwonlyargs),
        kwarg=arguments.kwarg and bare(arguments.kwarg),
        defaults=[],
    )


def name_of(identifier: str, context: ast.expr_context | None = None) -> ast.Name:
    """The tree of a name."""
    return ast.Name(identifier, context or ast.Load())


def is_hook_call(node: ast.AST, name: str) -> bool:
    """Whether a node is a call of a hook."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def hook_call(hook: str, *arguments: ast.expr) -> ast.Call:
    """The tree of ``hook(*arguments)``."""
    return ast.Call(name_of(hook), list(arguments), [])


def placed_at(node: Any, place: ast.AST) -> Any:
    """``node``, its new parts on the line of ``place``."""
    return ast.fix_missing_locations(ast.copy_location(node, place))


def placed_at_end(node: Any, place: Any) -> Any:
    """``node``, all of it on the last line of ``place``."""
    line = place.end_lineno or place.lineno
    part: Any
    for part in ast.walk(placed_at(node, place)):
        if hasattr(part, "lineno"):
            part.lineno = part.end_lineno = line
            part.col_offset = part.end_col_offset = 0
    return node
