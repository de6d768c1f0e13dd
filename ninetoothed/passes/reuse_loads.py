"""A tile is loaded once, and its value is used until a store could have changed it.

A store to any tensor could: a call may be given one tensor twice.
"""

from __future__ import annotations

import ast
from dataclasses import field

from ninetoothed.passes import rewriting
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass


@dataclass
class _Loaded:
    """A tile's first load, and the later ones that give the same."""

    statement: ast.stmt
    first: rewriting.Site
    names: set[str]
    later: list[rewriting.Site] = field(default_factory=list)


#: First loads by what is loaded.
_Known = dict[object, _Loaded]


def run(program: Program) -> Program:
    """The program with repeated loads replaced by the first one's value."""
    draft = rewriting.Draft(program)
    found: list[_Loaded] = []
    _block(draft.body, {}, found)
    for loaded in found:
        if loaded.later:
            name = _name_of(loaded, draft)
            for site in loaded.later:
                site.put(rewriting.read(name, site.load))
    return draft.finished()


def _block(body: list[ast.stmt], known: _Known, found: list[_Loaded]) -> None:
    for statement in body:
        known = _statement(statement, known, found)


def _statement(statement: ast.stmt, known: _Known, found: list[_Loaded]) -> _Known:
    if isinstance(statement, ast.For | ast.While):
        known = rewriting.surviving(known, statement)
    elif rewriting.calls_writer(statement):
        # A call in the expression changes memory; whether before or after a load is not asked.
        return {}
    known = dict(known)
    # A loop's condition is evaluated in each round: a load there is no first one.
    is_repeated = isinstance(statement, ast.While)
    for site in rewriting.load_sites(statement):
        key = rewriting.key_of(site.load.tile)
        if key in known:
            known[key].later.append(site)
        elif not site.is_conditional and not is_repeated:
            known[key] = _Loaded(statement, site, rewriting.index_names(site.load.tile))
            found.append(known[key])
    if isinstance(statement, ast.For | ast.While):
        # What a range is of was loaded before the rounds, which may change it.
        _block(statement.body, rewriting.surviving(known, statement), found)
    elif isinstance(statement, ast.If):
        _block(statement.body, known, found)
        _block(statement.orelse, known, found)
    return rewriting.surviving(known, statement)


def _name_of(loaded: _Loaded, draft: rewriting.Draft) -> str:
    """The variable that holds a tile's value."""
    statement, load = loaded.statement, loaded.first.load
    if isinstance(statement, ast.Assign) and statement.value is load:
        target = statement.targets[0]
        if isinstance(target, ast.Name) and draft.counts[target.id] == 1:
            return target.id
    name = draft.fresh(f"{load.tile.parameter}_tile")
    loaded.first.put(rewriting.read(name, load))
    draft.insert_before(statement, rewriting.assign(name, load, load))
    return name
