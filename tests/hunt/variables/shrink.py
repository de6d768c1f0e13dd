"""Makes a program about variables smaller, as long as it fails alike: its text loses what it can lose."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import replace

from tests.hunt.executions import Outcome
from tests.hunt.shrink import plainer, smallest
from tests.hunt.variables.generate import NO_PROGRAM
from tests.hunt.variables.program import TENSORS, Program
from tests.hunt.variables.run import outcome

#: What the application is given.
ALL = (*TENSORS, "n", "m", "f", "b")


def minimal(program: Program, backend: str, found: Outcome) -> tuple[Program, Outcome]:
    """The smallest program found that fails as this one does, and how it fails."""
    tried = {program.text}

    def new(current: Program) -> Iterator[Program]:
        yield from plainer(current)
        for candidate in candidates(current):
            is_new = candidate.text not in tried or candidate.text == current.text
            if is_new and not unknown(candidate.text):
                tried.add(candidate.text)
                yield candidate

    return smallest(program, found, new, lambda each: outcome(each, backend), NO_PROGRAM)


def unknown(text: str) -> set[str]:
    """The names that a text has, and gives no value anywhere."""
    nodes = list(ast.walk(ast.parse(text)))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    given = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    given |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    given |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {node.id for node in names} - given - {*dir(builtins), *ALL, "ntl"}


def candidates(program: Program) -> Iterator[Program]:
    """Programs that are a little smaller, those without a whole statement first."""
    count = sum(
        isinstance(node, (ast.stmt, ast.expr)) for node in ast.walk(ast.parse(program.text))
    )
    for kind in (ast.stmt, ast.expr):
        for at in range(count):
            for way in range(8):
                tree = ast.parse(program.text)
                if not _changed(tree, kind, at, way):
                    break
                text = ast.unparse(tree) + "\n"
                if len(text) < len(program.text):
                    yield replace(program, text=text)
    used = {node.id for node in ast.walk(ast.parse(program.text)) if isinstance(node, ast.Name)}
    types = {n: t for n, t in program.types.items() if n in used}
    numbers = {n: v for n, v in program.numbers.items() if n in used}
    if len(types) < len(program.types) or len(numbers) < len(program.numbers):
        if set(types) - {"w"}:
            yield replace(program, types=types, numbers=numbers)
    if program.constants:
        yield replace(program, constants=frozenset())
    for size, tile in ((1, 1), (program.tile, program.tile), (2, 2), (4, 4)):
        if size < program.size or tile < program.tile:
            yield replace(program, size=size, tile=tile)


def _changed(tree: ast.AST, kind: type, at: int, way: int) -> bool:
    """Change the statement or the expression at a place in one way; False where there is no such one."""
    seen = -1
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            places = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
            for place, node in places:
                if not isinstance(node, kind) or isinstance(getattr(node, "ctx", None), ast.Store):
                    continue
                seen += 1
                if seen < at:
                    continue
                ways = list(_smaller_statement(node) if kind is ast.stmt else _smaller(node))
                if way >= len(ways):
                    return False
                if place is None:
                    setattr(parent, name, ways[way])
                elif kind is ast.stmt:
                    value[place : place + 1] = ways[way]
                    if not value and name == "body" and parent is not tree:
                        value.append(ast.Pass())
                else:
                    value[place] = ways[way]
                return True
    return False


def _smaller_statement(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.FunctionDef) and node.name == "application":
        return
    yield []
    if isinstance(node, (ast.If, ast.For, ast.While)):
        yield node.body
        if node.orelse:
            yield node.orelse
            yield [ast.If(node.test, node.body, [])]
    if isinstance(node, ast.Assign):
        if len(node.targets) > 1:
            for target in node.targets:
                yield [ast.Assign([target], node.value, lineno=0)]
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and isinstance(value, (ast.Tuple, ast.List)):
            for at, (one, item) in enumerate(zip(target.elts, value.elts)):
                if not isinstance(one, ast.Starred):
                    yield [ast.Assign([one], item, lineno=0)]


def _smaller(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, (ast.Constant, ast.Name)):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield child
    if isinstance(node, (ast.Tuple, ast.List)) and len(node.elts) > 1:
        for at in range(len(node.elts)):
            yield type(node)(node.elts[:at] + node.elts[at + 1 :], node.ctx)
    yield ast.Name("x", ast.Load())
    yield ast.Constant(1)
