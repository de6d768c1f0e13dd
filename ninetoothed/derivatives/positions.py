"""Which elements of a tile a position chooses."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.derivatives import rules
from ninetoothed.derivatives.tape import Item, Loop, Operand, Step, name
from ninetoothed.program.nodes import ElementLoad
from ninetoothed.tensors.views import Run, View


def is_at(tile: Operand, positions: Mapping[int, Operand]) -> ast.expr:
    """Whether the elements of a tile are at these positions of its dimensions."""
    assert tile.dims is not None
    made: list[ast.expr] = []
    for axis, position in positions.items():
        text = f"arange(0, t.shape[{axis}]) == p"
        if len(tile.dims) > 1:
            places = ", ".join(":" if each == axis else "None" for each in range(len(tile.dims)))
            text = f"arange(0, t.shape[{axis}])[{places}] == p"
        made.append(rules.template(text, t=tile.expression, p=position.expression))
    test = made[0]
    for each in made[1:]:
        test = ast.BinOp(test, ast.BitAnd(), each)
    return test


def is_of_whole_slices(node: ElementLoad, shape: Sequence[Any]) -> bool:
    """Whether each dimension of a tile of this shape is taken whole or at a position."""
    return all(
        not isinstance(entry, Run) or View((entry,)).is_whole((size,))
        for entry, size in zip(node.view.entries, shape)
    )


def as_they_exist(values: Any, items: list[Item], targets: Collection[str]) -> None:
    """Has elements at positions exist where their tiles have them, as a sum over a tile alone does not.

    Args:
        values: whose tape it is.
        targets: the variables that have these elements.
    """
    for place, item in reversed([*enumerate(items)]):
        if isinstance(item, Loop):
            as_they_exist(values, item.body, targets)
        elif isinstance(item, Step) and item.target in targets:
            total = values.fresh(item.target)
            for facts in (values.dims, values.depths, values.types.known):
                facts[total] = facts[item.target]
            whole = Operand(name(total), item.dims, total)
            element = values.elements[item.target]
            there = rules.template("where(e == e, t, t)", e=element, t=whole.expression)
            found = Step(item.target, there, (whole,), rules.same, item.dims, item.node)
            items[place : place + 1] = [replace(item, target=total), found]
