"""A tile that was stored is not loaded again: the stored value is used, rounded as memory would.

``y = f(x)`` stores to a parameter, and ``z = g(y)`` reads it back. Between the two nothing may have
changed memory, and the tile has to be the same one. Loading after storing would also be wrong on a
GPU, where another thread may hold the element that is loaded.
"""

from __future__ import annotations

import ast

from ninetoothed.passes import rewriting
from ninetoothed.program.nodes import Forwarded, Store, at, clone
from ninetoothed.program.program import Program
from ninetoothed.tensors.sharing import lanes_share


class _Stored:
    """A store whose value may be used in place of a load."""

    def __init__(self, statement: Store) -> None:
        self.statement = statement
        self.names = rewriting.index_names(statement.tile)
        self.name: str | None = None


def run(program: Program) -> Program:
    """The program with loads of stored tiles replaced."""
    if not rewriting.stored_and_loaded(program):
        return program
    draft = rewriting.Draft(program)
    _Pass(draft).block(draft.body, {})
    return draft.finished()


class _Pass:
    def __init__(self, draft: rewriting.Draft) -> None:
        self.draft = draft

    def block(self, body: list[ast.stmt], known: dict[object, _Stored]) -> dict[object, _Stored]:
        """Rewrite a block, knowing what was stored; what is known after it."""
        for statement in body:
            known = self.statement(statement, known)
        return known

    def statement(self, statement: ast.stmt, known: dict[object, _Stored]) -> dict[object, _Stored]:
        if isinstance(statement, ast.For | ast.While):
            known = rewriting.surviving(known, statement)
            self.replace(statement, known)
            self.block(statement.body, known)
            return known
        if rewriting.calls_writer(statement):
            # A call in the expression changes memory; whether before or after a load is not asked.
            return {}
        self.replace(statement, known)
        if isinstance(statement, ast.If):
            self.block(statement.body, known)
            self.block(statement.orelse, known)
            return rewriting.surviving(known, statement)
        known = rewriting.surviving(known, statement)
        if isinstance(statement, Store) and self.gives_it_back(statement):
            known = {rewriting.key_of(statement.tile): _Stored(statement)}
        return known

    def gives_it_back(self, store: Store) -> bool:
        """Whether each element is read as it was stored, no other being stored in its place, and nothing
        else is read where the tile lies outside of its source."""
        parameter = self.draft.program.parameter(store.tile.parameter)
        return parameter.source.other is None and not lanes_share(parameter.tensor)

    def replace(self, statement: ast.stmt, known: dict[object, _Stored]) -> None:
        for site in rewriting.load_sites(statement):
            stored = known.get(rewriting.key_of(site.load.tile))
            if stored is not None:
                site.put(rewriting.read(self.name_of(stored), site.load))

    def name_of(self, stored: _Stored) -> str:
        """The variable that holds what loading would give; made on first use."""
        if stored.name is None:
            store = stored.statement
            parameter = store.tile.parameter
            if not (isinstance(store.value, ast.Name) and self.draft.counts[store.value.id] < 2):
                value = self.draft.fresh(f"{parameter}_value")
                self.draft.insert_before(store, rewriting.assign(value, store.value, store))
                store.value = rewriting.read(value, store)
            stored.name = self.draft.fresh(f"{parameter}_stored")
            forwarded = at(Forwarded(tile=clone(store.tile), value=clone(store.value)), store)
            self.draft.insert_after(store, rewriting.assign(stored.name, forwarded, store))
        return stored.name
