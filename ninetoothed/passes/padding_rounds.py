"""What the rounds of a loop do to the marks of its variables: for ``exclude_padding``."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ninetoothed.passes.marks import NOWHERE, Mark, Marked, with_rank
from ninetoothed.program.effects import called_name, targets_of


def target_names(statement: ast.For | ast.While) -> Iterator[str]:
    """The name of a loop's own variable, if it has one."""
    return (target.id for target in targets_of(statement))


def new_marks(before: Marked, after: Marked) -> tuple[Mark, ...]:
    """The marks that a variable got, but where it holds what it had."""
    old = {mark.place for mark in with_rank(before).marks}
    return tuple(
        mark
        for mark in with_rank(after).marks
        if mark.place not in old and not mark.is_kept and mark.wanted is None
    )


def on_demand(wish: Any, marks: tuple[Mark, ...], is_lasting: bool) -> Mark:
    """One for marks of lanes that hold anything till it is wanted that they keep what they had."""
    followed = zip(*(mark.layout for mark in marks))
    layout = tuple(
        place if any(dim is not None for dim in dims) else None
        for place, dims in enumerate(followed)
    )
    return Mark((wish, is_lasting), NOWHERE, layout, wanted=wish)


def stays_out(mark: Mark) -> bool:
    """Whether lanes that a mark leaves out are left out in every round of a loop."""
    return mark.wanted is None or mark.key == (mark.wanted, True)


def without_kept(value: Marked) -> Marked:
    """A value as it is known in a variable that did not hold what it was added to."""
    return replace(value, marks=tuple(replace(mark, is_kept=False) for mark in value.marks))


def is_named(node: ast.expr, target: ast.expr) -> bool:
    """Whether this reads the variable that is assigned."""
    return isinstance(node, ast.Name) and isinstance(target, ast.Name) and node.id == target.id


def is_product_onto(node: ast.expr, name: str) -> bool:
    """Whether this is a product that is added to a variable."""
    if not isinstance(node, ast.Call) or called_name(node) != "dot":
        return False
    given = [*node.args[2:3], *(item.value for item in node.keywords if item.arg == "acc")]
    return any(isinstance(item, ast.Name) and item.id == name for item in given)
