"""Which tensor parameters a program may write to: what a frontend of immutable arrays gives back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ninetoothed.errors import Location
from ninetoothed.program.effects import called_name, is_atomic, is_write
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementType,
    ExternRef,
    SourcePointer,
    SourceStore,
    Store,
    SymbolValue,
    location,
    walk,
)
from ninetoothed.program.program import Program


def written(program: Program) -> frozenset[str]:
    """The names of the tensor parameters that a run of the program may write to.

    A pointer counts as written through where a store, an atomic operation or a function of the
    user's gets it, by itself or by way of local variables; not where it is only loaded from.
    """
    found: set[str] = set()
    pointers = _pointers_in_names(program)
    for node in program.nodes():
        if isinstance(node, Store):
            found.add(node.tile.parameter)
        elif isinstance(node, SourceStore):
            found.add(node.parameter)
        elif isinstance(node, ast.Call) and is_write(node):
            found |= _pointers_of(node, pointers)
    return frozenset(found)


def outputs(program: Program) -> dict[str, Location]:
    """The tensor parameters that a run of the program is to store to, and where it first does.

    Not those that atomic operations alone change, or functions of the user's, which may store or not; nor
    where scalars, sizes and types alone leave a store out.
    """
    scalars = {each.name for each in program.parameters if each.kind == "scalar"}
    pointers = _pointers_in_names(program)
    found: dict[str, Location] = {}
    for node in _run_in_any_case(program.body, scalars):
        names: set[str] = set()
        if isinstance(node, Store):
            names = {node.tile.parameter}
        elif isinstance(node, SourceStore):
            names = {node.parameter}
        elif isinstance(node, ast.Call) and is_write(node):
            is_store = not isinstance(node.func, ExternRef) and not is_atomic(called_name(node))
            names = _pointers_of(node, pointers) if is_store else set()
        for name in names:
            found.setdefault(name, location(node))
    return found


def _run_in_any_case(statements: Iterable[ast.stmt], scalars: set[str]) -> Iterator[ast.AST]:
    """The nodes of statements but those in a branch that a call's scalars, sizes and types choose."""
    for statement in statements:
        if isinstance(statement, ast.If):
            yield from walk(statement.test)
            if not _is_of_the_call(statement.test, scalars):
                yield from _run_in_any_case((*statement.body, *statement.orelse), scalars)
        elif isinstance(statement, ast.For | ast.While):
            yield from _run_in_any_case((*statement.body, *statement.orelse), scalars)
        else:
            yield from walk(statement)


def _is_of_the_call(test: ast.expr, scalars: set[str]) -> bool:
    """Whether all programs of a call see the same in a condition, which reads no element."""
    return all(
        node.id in scalars if isinstance(node, ast.Name) else isinstance(node, _OF_THE_CALL)
        for node in walk(test)
    )


_OF_THE_CALL = (
    *(ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Constant, ast.Tuple, ast.Attribute),
    *(ast.cmpop, ast.boolop, ast.unaryop, ast.operator, ElementType, DTypeRef, SymbolValue),
)


def _pointers_in_names(program: Program) -> dict[str, set[str]]:
    """For each local variable the parameters that it may point into."""
    assignments = [
        node
        for node in program.nodes()
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign) and node.value is not None
    ]
    pointers: dict[str, set[str]] = {}
    is_growing = True
    while is_growing:
        is_growing = False
        for node in assignments:
            pointed = _pointers_of(node.value, pointers)  # type: ignore[arg-type]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [n.id for t in targets for n in walk(t) if isinstance(n, ast.Name)]
            for name in names:
                known = pointers.setdefault(name, set())
                is_growing |= not pointed <= known
                known |= pointed
    return pointers


def _pointers_of(node: ast.AST, pointers: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    for child in walk(node):
        if isinstance(child, SourcePointer):
            found.add(child.parameter)
        elif isinstance(child, ast.Name):
            found |= pointers.get(child.id, set())
    return found
