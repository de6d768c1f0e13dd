"""A load after a store to the same tensor waits for it.

An application is serial, but the threads of a GPU's program are not: an element that one thread has
stored may be loaded by another. Where `forward_stores` could not help, a barrier stands between. As
everywhere, tensors that overlap are the user's business.
"""

from __future__ import annotations

import ast

from ninetoothed.passes.rewriting import (
    Draft,
    index_names,
    key_of,
    language,
    own_expressions,
    stored_and_loaded,
)
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import Load, SourceLoad, SourceStore, Store, at, walk
from ninetoothed.program.program import Program

#: What was stored and not waited for yet: parameter and tile; None for elements of the source.
Pending = set[tuple[str, object]]


def run(program: Program) -> Program:
    """The program with barriers between stores and the loads that they may concern."""
    if not stored_and_loaded(program):
        return program
    draft = Draft(program)
    _block(draft.body, set(), draft)
    return draft.finished()


def _block(body: list[ast.stmt], pending: Pending, draft: Draft) -> Pending:
    for statement in body:
        pending = _statement(statement, pending, draft)
    return pending


def _statement(statement: ast.stmt, pending: Pending, draft: Draft) -> Pending:
    if {parameter for parameter, _ in pending} & _loaded(statement):
        barrier = at(ast.Expr(value=language("debug_barrier", [], statement)), statement)
        draft.insert_before(statement, barrier)
        pending = set()
    if isinstance(statement, ast.If):
        one = _block(statement.body, set(pending), draft)
        return one | _block(statement.orelse, set(pending), draft)
    if isinstance(statement, ast.For | ast.While):
        return pending | _block(statement.body, pending | _stored_anew(statement), draft)
    if isinstance(statement, Store):
        return pending | {(statement.tile.parameter, key_of(statement.tile))}
    if isinstance(statement, SourceStore):
        return pending | {(statement.parameter, None)}
    return pending


def _loaded(statement: ast.stmt) -> set[str]:
    """The parameters that a statement itself loads from."""
    found = set()
    for owner, field in own_expressions(statement):
        value = getattr(owner, field)
        for part in value if isinstance(value, list) else [value]:
            for node in walk(part):
                if isinstance(node, Load):
                    found.add(node.tile.parameter)
                elif isinstance(node, SourceLoad):
                    found.add(node.parameter)
    return found


def _stored_anew(loop: ast.For | ast.While) -> Pending:
    """What a round of a loop stores and the next one may load.

    Tiles that differ from round to round are taken to be apart.
    """
    assigned = names_assigned([loop])
    pending: Pending = set()
    for node in walk(loop):
        if isinstance(node, SourceStore):
            pending.add((node.parameter, None))
        elif isinstance(node, Store) and index_names(node.tile).isdisjoint(assigned):
            pending.add((node.tile.parameter, key_of(node.tile)))
    return pending
