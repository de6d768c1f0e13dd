"""Loads that give the same in every round of a loop are made once, before it.

Only out of loops that change no memory, and only what every round loads: a load under an ``if`` may
never be needed.
"""

from __future__ import annotations

import ast

from ninetoothed.passes import rewriting
from ninetoothed.program.effects import names_assigned, reads_memory, statements_of, writes_memory
from ninetoothed.program.program import Program


def run(program: Program) -> Program:
    """The program with invariant loads moved out of its loops."""
    draft = rewriting.Draft(program)
    for outer in draft.body:
        for statement in statements_of(outer):
            if isinstance(statement, ast.For | ast.While) and not writes_memory(statement):
                _hoist(statement, draft)
    return draft.finished()


def _hoist(loop: ast.For | ast.While, draft: rewriting.Draft) -> None:
    assigned = names_assigned([loop])
    names: dict[object, str] = {}
    for site in _every_round(loop):
        tile = site.load.tile
        if not rewriting.index_names(tile).isdisjoint(assigned) or any(
            map(reads_memory, tile.indices)
        ):
            continue
        key = rewriting.key_of(tile)
        if key not in names:
            names[key] = draft.fresh(f"{tile.parameter}_tile")
            draft.insert_before(loop, rewriting.assign(names[key], site.load, site.load))
        site.put(rewriting.read(names[key], site.load))


def _every_round(loop: ast.For | ast.While) -> list[rewriting.Site]:
    """The loads that each round makes for certain, those of inner loops included."""
    sites: list[rewriting.Site] = []
    if isinstance(loop, ast.While):
        sites += rewriting.load_sites(loop)
    for statement in loop.body:
        sites += rewriting.load_sites(statement)
        if isinstance(statement, ast.For | ast.While):
            sites += [site for site in _every_round(statement) if site not in sites]
    return [site for site in sites if not site.is_conditional]
