"""Tiles of later products, loaded as soon as a loop's first product is on its way.

Where a round of a loop multiplies more than once, as attention does with keys and then with values,
the second product's tile is loaded right after the first product instead of right before its own:
what is computed between the two need not be waited for before the copies go on.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ninetoothed.kernels.analysis import analysis
from ninetoothed.passes.rewriting import (
    Draft,
    assign,
    blocks_of,
    index_names,
    key_of,
    load_sites,
    read,
)
from ninetoothed.program.effects import called_name, names_assigned, writes_memory
from ninetoothed.program.nodes import walk
from ninetoothed.program.program import Program

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition


def run(program: Program) -> Program:
    """The program with such loads moved; the program itself where it has none."""
    draft = Draft(program)
    moved = [_move(draft, loop) for loop in _loops(draft.body)]
    return draft.finished() if any(moved) else program


@analysis
def applies(kernel: Definition) -> bool:
    """Whether a kernel has such loads."""
    return run(kernel.optimized) is not kernel.optimized


def _loops(body: list[ast.stmt]) -> Iterator[ast.For]:
    for statement in body:
        if isinstance(statement, ast.For):
            yield statement
        for block in blocks_of(statement):
            yield from _loops(block)


def _move(draft: Draft, loop: ast.For) -> bool:
    """Moves the loads of one loop; whether there were any."""
    place = next((n for n, each in enumerate(loop.body) if _multiplies(each)), None)
    if place is None or writes_memory(loop):
        return False
    names: dict[object, str] = {}
    between = loop.body[place + 1 :]
    for position, statement in enumerate(between[1:], start=1):
        assigned = names_assigned(between[:position])
        for site in load_sites(statement) if _multiplies(statement) else ():
            tile = site.load.tile
            if site.is_conditional or not index_names(tile).isdisjoint(assigned):
                continue
            key = key_of(tile)
            if key not in names:
                names[key] = draft.fresh(f"{tile.parameter}_tile")
                draft.insert_before(between[0], assign(names[key], site.load, site.load))
            site.put(read(names[key], site.load))
    return bool(names)


def _multiplies(statement: ast.stmt) -> bool:
    """Whether a simple statement has a product."""
    if blocks_of(statement):
        return False
    return any(isinstance(n, ast.Call) and called_name(n) == "dot" for n in walk(statement))
