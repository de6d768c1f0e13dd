"""Which tensor parameters a program may write to: what a frontend of immutable arrays gives back."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from ninetoothed.errors import Location
from ninetoothed.program.effects import called_name, effect_of, is_atomic, is_write, targets_of
from ninetoothed.program.nodes import (
    DTypeRef,
    ElementType,
    ExternRef,
    Load,
    SourceLoad,
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
    where scalars, sizes and types alone leave a store out; nor those that it loads from too and stores to in
    branches that data decide alone: what no branch changes is as it was.
    """
    pointers = _pointers_in_names(program)
    loaded = _loaded(program, pointers)
    found: dict[str, Location] = {}
    for node, is_in_branch in _run_in_any_case(program.body, _scalars(program)):
        names: set[str] = set()
        if isinstance(node, Store):
            names = {node.tile.parameter}
        elif isinstance(node, SourceStore):
            names = {node.parameter}
        elif isinstance(node, ast.Call) and is_write(node):
            is_store = not isinstance(node.func, ExternRef) and not is_atomic(called_name(node))
            names = _pointers_of(node, pointers) if is_store else set()
        for name in names - loaded if is_in_branch else names:
            found.setdefault(name, location(node))
    return found


def _loaded(program: Program, pointers: dict[str, set[str]]) -> set[str]:
    """The tensor parameters that a program loads from."""
    found: set[str] = set()
    for node in program.nodes():
        if isinstance(node, Load):
            found.add(node.tile.parameter)
        elif isinstance(node, SourceLoad):
            found.add(node.parameter)
        elif isinstance(node, ast.Call) and effect_of(node) == "reads":
            found |= _pointers_of(node, pointers)
    return found


def _scalars(program: Program) -> set[str]:
    """The names of scalar parameters, and of variables that are made of them and of sizes alone."""
    scalars = {each.name for each in program.parameters if each.kind == "scalar"}
    while True:
        assigned: dict[str, list[ast.expr | None]] = {}
        for name, value in _assigned(program.body, scalars):
            assigned.setdefault(name, []).append(value)
        more = {
            name
            for name, values in assigned.items()
            if all(value is not None and _is_of_the_call(value, scalars) for value in values)
        }
        if more <= scalars:
            return scalars
        scalars |= more


def _assigned(
    statements: Iterable[ast.stmt], scalars: set[str], is_certain: bool = True
) -> Iterator[tuple[str, ast.expr | None]]:
    """The names that statements assign, and what; None where data or the rounds of a loop may decide it."""
    for statement in statements:
        is_plain = is_certain and isinstance(statement, ast.Assign)
        value = statement.value if is_plain else None  # type: ignore[attr-defined]
        yield from ((target.id, value) for target in targets_of(statement))
        if isinstance(statement, ast.If | ast.For | ast.While):
            is_chosen = isinstance(statement, ast.If) and _is_of_the_call(statement.test, scalars)
            inner = *statement.body, *statement.orelse
            yield from _assigned(inner, scalars, is_certain and is_chosen)


def _run_in_any_case(
    statements: Iterable[ast.stmt], scalars: set[str], is_in_branch: bool = False
) -> Iterator[tuple[ast.AST, bool]]:
    """The nodes of statements but those in a branch that a call's scalars, sizes and types choose.

    With each whether it is in a branch that data choose.
    """
    for statement in statements:
        if isinstance(statement, ast.If):
            yield from ((node, is_in_branch) for node in walk(statement.test))
            if not _is_of_the_call(statement.test, scalars):
                yield from _run_in_any_case((*statement.body, *statement.orelse), scalars, True)
        elif isinstance(statement, ast.For | ast.While):
            inner = *statement.body, *statement.orelse
            yield from _run_in_any_case(inner, scalars, is_in_branch)
        else:
            yield from ((node, is_in_branch) for node in walk(statement))


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
