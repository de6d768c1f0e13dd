"""The definition in a text that a function's code was compiled from."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Sequence
from types import CodeType
from typing import Any

from ninetoothed import threads
from ninetoothed.parsing.syntax.walks import statements_in

#: How many files' trees are kept. Each is read again when its text has changed.
_FILES_KEPT = 64


def definition_of(code: CodeType, lines: Sequence[str]) -> ast.FunctionDef | None:
    """The definition that ``code`` was compiled from, else None.

    Args:
        lines: those of the file.
    """
    if code.co_name == "<lambda>":
        return _as_definition(
            _choose_lambda(code, _lambdas("".join(lines)).get(code.co_firstlineno, []))
        )
    # A file that was edited since may have another function in its place.
    return _checked(code, _definition_at(code, lines)) or _checked(
        code, _definitions("".join(lines)).get((code.co_name, code.co_firstlineno))
    )


def _checked(code: CodeType, found: ast.AST | None) -> ast.FunctionDef | None:
    """A definition, if code was compiled from one like it."""
    if not isinstance(found, ast.FunctionDef) or found.name != code.co_name:
        return None
    is_like_it = _first_line(found) == code.co_firstlineno
    return found if is_like_it and _parameter_names(found.args) == _varnames(code) else None


def _definition_at(code: CodeType, lines: Sequence[str]) -> ast.AST | None:
    """What begins on a code's first line, parsed without the rest of the file, which may be long.

    It has the lines that the code has, and those after them that are further in. Where that is cut short,
    as by a bracket that is closed further out, nothing is found.
    """
    begin, end = code.co_firstlineno - 1, _last_line(code)
    if end > len(lines):
        return None
    margin = _margin(lines[begin])
    while end < len(lines) and (_is_empty(lines[end]) or len(_margin(lines[end])) > len(margin)):
        end += 1
    above = "\n" * (begin - 1) + ("if True:\n" if margin else "\n") if begin else ""
    try:
        block = threads.parse(above + "".join(lines[begin:end])).body
    except SyntaxError:
        return None
    if margin and block and isinstance(block[0], ast.If):
        block = block[0].body
    return block[0] if block else None


def _last_line(code: CodeType) -> int:
    """The last line that a code, or one within it, has an instruction of."""
    own = max((line for _, _, line in code.co_lines() if line is not None), default=0)
    within = (_last_line(each) for each in code.co_consts if isinstance(each, CodeType))
    return max([code.co_firstlineno, own, *within])


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _is_empty(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


@functools.lru_cache(maxsize=_FILES_KEPT)
def _parsed(text: str) -> ast.Module:
    try:
        return threads.parse(text)
    except SyntaxError:
        return ast.Module([], [])


@functools.lru_cache(maxsize=_FILES_KEPT)
def _definitions(text: str) -> dict[tuple[str, int], ast.FunctionDef]:
    """A file's definitions by name and first line."""
    definitions: dict[tuple[str, int], ast.FunctionDef] = {}
    pending: list[ast.AST] = [_parsed(text)]
    # Statements stand in statements alone: their expressions need not be gone through.
    for node in pending:
        pending.extend(statements_in(node))
        if isinstance(node, ast.FunctionDef):
            definitions[node.name, _first_line(node)] = node
    return definitions


def _first_line(node: ast.FunctionDef) -> int:
    """A code object's first line, which is that of the first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


@functools.lru_cache(maxsize=_FILES_KEPT)
def _lambdas(text: str) -> dict[int, list[ast.Lambda]]:
    """A file's lambdas by line."""
    lambdas: dict[int, list[ast.Lambda]] = {}
    for node in ast.walk(_parsed(text)):
        if isinstance(node, ast.Lambda):
            lambdas.setdefault(node.lineno, []).append(node)
    return lambdas


def _choose_lambda(code: CodeType, candidates: list[ast.Lambda]) -> ast.Lambda | None:
    """The one lambda of a line that ``code`` can have come from; None where that is not certain."""
    fitting = [node for node in candidates if _parameter_names(node.args) == _varnames(code)]
    extent = _extent(code) if len(fitting) > 1 else None
    if extent is not None:
        # Of lambdas within each other it is the innermost one that has all that the code was made of.
        start, end = extent
        around = [node for node in fitting if _start(node.body) <= start and end <= _end(node.body)]
        latest = max((_start(node.body) for node in around), default=None)
        fitting = [node for node in around if _start(node.body) == latest]
    elif len(fitting) > 1:
        fitting = [node for node in fitting if _contents(_compiled(node)) == _contents(code)]
    return fitting[0] if len(fitting) == 1 else None


def _extent(code: CodeType) -> tuple[tuple[int, int], tuple[int, int]] | None:
    """The lines and columns between which what code was made of stands; Python 3.10 keeps none."""
    starts, ends = [], []
    positions = getattr(code, "co_positions", tuple)
    for line, last_line, column, last_column in positions():
        if None not in (line, last_line, column, last_column):
            start, end = (line, column), (last_line, last_column)
            if start < end:
                starts.append(start)
                ends.append(end)
    return (min(starts), max(ends)) if starts else None


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    return node.end_lineno or node.lineno, node.end_col_offset or 0


def _compiled(node: ast.Lambda) -> CodeType:
    code = compile(ast.Expression(node), "<lambda>", "eval")
    return next(constant for constant in code.co_consts if isinstance(constant, CodeType))


def _contents(code: CodeType) -> tuple[list[Any], list[str]]:
    """The constants and the names of a function; whether a name is a closure's is left open."""
    constants = [constant for constant in code.co_consts if not isinstance(constant, CodeType)]
    return constants, sorted(code.co_names + code.co_freevars)


def _as_definition(node: ast.Lambda | None) -> ast.FunctionDef | None:
    if node is None:
        return None
    body = ast.copy_location(ast.Return(value=node.body), node.body)
    definition = ast.FunctionDef(
        name="lambda_", args=node.args, body=[body], decorator_list=[], returns=None
    )
    return ast.copy_location(definition, node)


def _parameter_names(arguments: ast.arguments) -> list[str]:
    names = [item.arg for item in arguments.posonlyargs + arguments.args + arguments.kwonlyargs]
    return names + [item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None]


def _varnames(code: CodeType) -> list[str]:
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars])
