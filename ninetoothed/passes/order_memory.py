"""A load after a store to the same tensor waits for it, and so does a store to elements of a loaded tile.

An application is serial, but the threads of a GPU's program are not: an element that one thread has
stored may be loaded by another, or stored to, where elements are chosen (``y = 0``, ``y[i] = 1``). Where
`forward_stores` could not help, a barrier stands between. Where positions in a tile are selected
(``x[1:] = x[:-1]``), a thread may also store what another one is still to load. Atomic operations that give
the same in any order wait for none of their kind. As everywhere, tensors that overlap are the user's
business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ninetoothed.passes import rewriting
from ninetoothed.program import nodes
from ninetoothed.program.effects import called_name, names_assigned, statements_of
from ninetoothed.program.program import Program

#: What was stored and not waited for yet: parameter and tile; for elements of the source None, or the
#: name of the operation that changed them.
Pending = set[tuple[str, object]]

#: What atomic operations are given.
_PLACES = nodes.SourcePlace, nodes.ElementPlace

#: Those that give the same in any order, where nobody asks what was there before.
_UNORDERED = frozenset(f"atomic_{each}" for each in ("add", "and", "max", "min", "or", "xor"))


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
    unordered = _unordered(statement)
    waited_for = {parameter for parameter, key in pending if (parameter, key) != unordered}
    if waited_for & _loaded(statement) or _meets(statement, pending):
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
    return pending | _changed(statement)


def _changed(statement: ast.stmt) -> Pending:
    """What the atomic operations change that a statement evaluates itself."""
    if unordered := _unordered(statement):
        return {unordered}
    return {(node.parameter, None) for node in _evaluated(statement) if isinstance(node, _PLACES)}


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of the expressions that a statement evaluates itself."""
    for owner, field in rewriting.own_expressions(statement):
        value = getattr(owner, field)
        for part in value if isinstance(value, list) else [value]:
            yield from nodes.walk(part)


def _unordered(statement: ast.stmt) -> tuple[str, str] | None:
    """The tensor that a statement changes in a way that any order suits, and the operation."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or called_name(call) not in _UNORDERED:
        return None
    place = call.args[0]
    if not isinstance(place, _PLACES):
        return None
    others = (each for each in nodes.walk(call) if each is not place)
    is_asked = any(_source_of(each) == place.parameter for each in others)
    return None if is_asked else (place.parameter, called_name(call))


def _meets(statement: ast.stmt, pending: Pending) -> bool:
    """Whether a statement stores to elements that another thread may have stored to.

    The elements of one tile are stored by the same threads each time.
    """
    if isinstance(statement, nodes.SourceStore):
        return any(parameter == statement.parameter for parameter, _ in pending)
    return isinstance(statement, nodes.Store) and any(
        parameter == statement.tile.parameter and (key is None or key in _UNORDERED)
        for parameter, key in pending
    )


def _loaded(statement: ast.stmt) -> set[str]:
    """The parameters that a statement itself loads from."""
    return {name for node in _evaluated(statement) if (name := _source_of(node))}


def _source_of(node: ast.AST) -> str | None:
    """The parameter that a node loads from, or changes at a place."""
    if isinstance(node, nodes.Load):
        return node.tile.parameter
    if isinstance(node, nodes.SourceLoad | nodes.SourcePlace | nodes.ElementPlace):
        return node.parameter
    return None


def _stored_anew(loop: ast.For | ast.While) -> Pending:
    """What a round of a loop stores and the next one may load.

    Tiles that differ from round to round are taken to be apart.
    """
    assigned = names_assigned([loop])
    pending: Pending = set()
    for node in statements_of(loop):
        if isinstance(node, nodes.SourceStore):
            pending.add((node.parameter, None))
        elif isinstance(node, nodes.Store) and rewriting.index_names(node.tile).isdisjoint(
            assigned
        ):
            pending.add((node.tile.parameter, rewriting.key_of(node.tile)))
        if isinstance(node, ast.stmt):
            pending |= _changed(node)
    return pending
