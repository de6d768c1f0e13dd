"""Which tensor parameters a program may write to: what a frontend of immutable arrays gives back."""

from __future__ import annotations

import ast

from ninetoothed.program.effects import is_write
from ninetoothed.program.nodes import SourcePointer, SourceStore, Store, walk
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
