"""Where the round of an unrolled loop ends: a variable keeps what it held where its value has no element.

Parsing writes ``before = v`` where a round begins, and ``v = Kept(v, before)`` where it ends, for each variable that
the loop assigns and that had a value before it. What is known of both says here whether there is anything to keep.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence, Set
from dataclasses import replace

from ninetoothed.passes.padding.moves import held_mask
from ninetoothed.passes.padding.rounds import Carried, lost_masks, new_masks
from ninetoothed.passes.padding.validity import Known, with_rank
from ninetoothed.passes.rewriting import assign, blocks_of, language, read
from ninetoothed.program import nodes
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.tile_masks import TileMask, of_kind
from ninetoothed.program.types import differ


def ends_round(statement: ast.stmt) -> bool:
    """Whether a statement ends a round of an unrolled loop, and is not seen to yet."""
    value = getattr(statement, "value", None)
    return isinstance(value, nodes.Kept) and not value.masks


def begun(body: Sequence[ast.stmt]) -> dict[str, str]:
    """The variables of unrolled loops, by the names of what they held where a round began."""
    ends = (node for each in body for node in nodes.walk(each) if isinstance(node, nodes.Kept))
    return {_name(node.before): _name(node.value) for node in ends}


def without(body: list[ast.stmt], held: Set[str]) -> list[ast.stmt]:
    """Statements without those that begin and end the rounds of these names."""
    for block in (block for statement in body for block in blocks_of(statement)):
        block[:] = without(block, held)
    return [each for each in body if held.isdisjoint((*_held_by(each), *names_assigned([each])))]


def _held_by(statement: ast.stmt) -> list[str]:
    value = getattr(statement, "value", None)
    return [_name(value.before)] if isinstance(value, nodes.Kept) else []


def _name(node: ast.expr) -> str:
    """The variable that a value is, or that is cast there."""
    named = node.args[0] if isinstance(node, ast.Call) else node
    assert isinstance(named, ast.Name)
    return named.id


def kept(analysis: Carried, statement: ast.stmt) -> list[ast.stmt]:
    """The statements that stand for the end of a round; what is known of its variable changes with them."""
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, nodes.Kept)
    (target,), value = statement.targets, statement.value
    assert isinstance(target, ast.Name) and isinstance(value.before, ast.Name)
    name, held = target.id, value.before.id
    before, after = analysis.known.get(held), analysis.known.get(name)
    if before is None or after is None or _changes_shape(before, after):
        return []
    before, after = with_rank(before), with_rank(after)
    new, old = new_masks(before, after), {mask.place for mask in before.validity}
    analysis.wanted |= {m.wanted for m in after.validity if m.wanted and m.place not in old}
    lost = lost_masks(before, after)
    made = _either(analysis, statement, held, before, after) if lost else []
    common = [mask for mask in after.validity if mask.place in old]
    validity = [mask for _, mask in made] if lost else common
    analysis.get(target, replace(after, validity=tuple(validity)))
    if not new:
        return [each for each, _ in made]
    if before.type.dtype is None or before.type.dtype is not after.type.dtype:
        dtype = nodes.at(ast.Attribute(read(name, statement), "dtype", ast.Load()), statement)
        value.before = language("cast", [value.before, dtype], statement)
    value.masks = analysis.masks(replace(after, validity=new), statement)
    return [*(each for each, _ in made), statement]


def _changes_shape(before: Known, after: Known) -> bool:
    one, other = before.type.shape, after.type.shape
    return one is None or other is None or bool(differ(one, other))


def _either(
    analysis: Carried, statement: ast.stmt, held: str, before: Known, after: Known
) -> list[tuple[ast.stmt, TileMask]]:
    """Variables that say where there is an element of the value or of what was before, and their masks.

    Where one of the two is loaded, what is not stored alone asks all masks of either: one that moved may be the other.
    """
    made: list[tuple[ast.stmt, TileMask]] = []
    for is_loaded in (False, True):
        masks = [of_kind(known.validity, is_loaded) for known in (before, after)]
        if is_loaded and any(masks):
            masks = [known.validity for known in (before, after)]
        if not all(masks):
            continue
        variable = analysis.draft.fresh(f"{held}_exists")
        ways = [
            analysis.real(held, replace(known, validity=own), statement)
            for known, own in zip((before, after), masks)
        ]
        either = nodes.at(ast.BinOp(left=ways[0], op=ast.BitOr(), right=ways[1]), statement)
        mask = held_mask(variable, after.rank, statement, is_loaded)
        is_moved = any(mask.is_moved for own in masks for mask in own)
        made.append((assign(variable, either, statement), replace(mask, is_moved=is_moved)))
    return made
