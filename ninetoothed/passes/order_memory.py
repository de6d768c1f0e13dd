"""A load after a store to the same tensor waits for it, and so does a store to elements of a loaded tile.

An application is serial, but the threads of a GPU's program are not: an element that one thread has
stored may be loaded by another, or stored to, where elements are chosen (``y = 0``, ``y[i] = 1``). Where
`forward_stores` could not help, a barrier stands between. Where positions in a tile are selected
(``x[1:] = x[:-1]``), a thread may also store what another one is still to load. As everywhere, tensors
that overlap are the user's business.
"""

from __future__ import annotations

import ast

from ninetoothed.passes import rewriting
from ninetoothed.program import nodes
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.program import Program

#: What was stored and not waited for yet: parameter and tile; None for elements of the source.
Pending = set[tuple[str, object]]


def run(program: Program) -> Program:
    """The program with barriers between stores and the loads that they may concern."""
    both = rewriting.stored_and_loaded(program)
    if not both and not any(isinstance(node, nodes.SourceStore) for node in program.nodes()):
        return program
    draft = rewriting.Draft(program)
    moved = {
        node.parameter
        for node in program.nodes()
        if isinstance(node, nodes.ElementLoad | nodes.ElementStore)
    }
    if moved & both:
        _load_before_storing(draft.body, moved & both, draft)
    _block(draft.body, set(), draft)
    return draft.finished()


def _load_before_storing(body: list[ast.stmt], moved: set[str], draft: rewriting.Draft) -> None:
    """Puts a barrier before the stores to these, after all loads of what they store."""
    for statement in body:
        for block in rewriting.blocks_of(statement):
            _load_before_storing(block, moved, draft)
        if not isinstance(statement, nodes.Store | nodes.SourceStore):
            continue
        tile = statement.tile if isinstance(statement, nodes.Store) else statement
        if tile.parameter not in moved:
            continue
        if _loaded(statement) & moved:
            # What does not exist is left out by the store itself.
            owner = statement.value if isinstance(statement.value, nodes.Masked) else statement
            name = draft.fresh(f"{tile.parameter}_value")
            draft.insert_before(statement, rewriting.assign(name, owner.value, statement))
            owner.value = rewriting.read(name, statement)
        draft.insert_before(statement, _barrier(statement))


def _barrier(place: ast.stmt) -> ast.stmt:
    return nodes.at(ast.Expr(value=rewriting.language("debug_barrier", [], place)), place)


def _block(body: list[ast.stmt], pending: Pending, draft: rewriting.Draft) -> Pending:
    for statement in body:
        pending = _statement(statement, pending, draft)
    return pending


def _statement(statement: ast.stmt, pending: Pending, draft: rewriting.Draft) -> Pending:
    if {parameter for parameter, _ in pending} & _loaded(statement) or _meets(statement, pending):
        draft.insert_before(statement, _barrier(statement))
        pending = set()
    if isinstance(statement, ast.If):
        one = _block(statement.body, set(pending), draft)
        return one | _block(statement.orelse, set(pending), draft)
    if isinstance(statement, ast.For | ast.While):
        return pending | _block(statement.body, pending | _stored_anew(statement), draft)
    if isinstance(statement, nodes.Store):
        return pending | {(statement.tile.parameter, rewriting.key_of(statement.tile))}
    if isinstance(statement, nodes.SourceStore):
        return pending | {(statement.parameter, None)}
    changed = (
        node
        for node in nodes.walk(statement)
        if isinstance(node, nodes.SourcePlace | nodes.ElementPlace)
    )
    return pending | {(node.parameter, None) for node in changed}


def _meets(statement: ast.stmt, pending: Pending) -> bool:
    """Whether a statement stores to elements that another thread may have stored to.

    The elements of one tile are stored by the same threads each time.
    """
    if isinstance(statement, nodes.SourceStore):
        return any(parameter == statement.parameter for parameter, _ in pending)
    return isinstance(statement, nodes.Store) and (statement.tile.parameter, None) in pending


def _loaded(statement: ast.stmt) -> set[str]:
    """The parameters that a statement itself loads from."""
    found = set()
    for owner, field in rewriting.own_expressions(statement):
        value = getattr(owner, field)
        for part in value if isinstance(value, list) else [value]:
            for node in nodes.walk(part):
                if isinstance(node, nodes.Load):
                    found.add(node.tile.parameter)
                elif isinstance(node, nodes.SourceLoad | nodes.SourcePlace | nodes.ElementPlace):
                    found.add(node.parameter)
    return found


def _stored_anew(loop: ast.For | ast.While) -> Pending:
    """What a round of a loop stores and the next one may load.

    Tiles that differ from round to round are taken to be apart.
    """
    assigned = names_assigned([loop])
    pending: Pending = set()
    for node in nodes.walk(loop):
        if isinstance(node, nodes.SourceStore | nodes.SourcePlace | nodes.ElementPlace):
            pending.add((node.parameter, None))
        elif isinstance(node, nodes.Store) and rewriting.index_names(node.tile).isdisjoint(
            assigned
        ):
            pending.add((node.tile.parameter, rewriting.key_of(node.tile)))
    return pending
