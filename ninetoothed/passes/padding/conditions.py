"""What a ``while`` asks of variables that its rounds change: for ``mask_padding``.

A lane for which no round has an element keeps what it held before the loop. No round changes it any more,
so that a loop which went on for its sake would never end: the condition is asked without it.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import replace

from ninetoothed.passes.padding.custom_reductions import is_real
from ninetoothed.passes.padding.knowledge import Knowledge
from ninetoothed.passes.padding.moves import held_mask
from ninetoothed.passes.padding.rounds import on_demand
from ninetoothed.passes.padding.validity import Known, with_rank
from ninetoothed.passes.rewriting import assign, place_of, read
from ninetoothed.program import nodes
from ninetoothed.program.effects import names_assigned, names_read


class Condition:
    """A loop's condition, and the variables that say, on demand, where rounds had elements.

    Attributes:
        tail: the statements at the end of a round that the condition is then made of.
    """

    def __init__(self, analysis: Knowledge, loop: ast.For | ast.While) -> None:
        self.analysis, self.loop = analysis, loop
        self.tail: list[ast.stmt] = []
        self.variables: dict[str, str] = {}
        self.is_later = ""
        if isinstance(loop, ast.For):
            self.names: list[str] = []
            return
        body = list(loop.body)
        ends = loop.test.id if isinstance(loop.test, ast.Name) else None
        while body and ends is not None and ends in names_assigned(body[-1:]):
            self.tail.insert(0, body.pop())
        asked = {name for node in (loop.test, *self.tail) for name in names_read(node)}
        self.names = sorted(asked & names_assigned(body) & analysis.known.keys())
        for name in self.names:
            if self.wish(name) in analysis.needed:
                self.variables[name] = self.start(f"{name}_reached", self.real(name, Known()))
        if self.variables:
            self.is_later = self.start("is_later", self.number(0))

    def wish(self, name: str) -> tuple[object, ...]:
        return "reached", place_of(self.loop), name

    def number(self, value: int) -> ast.expr:
        return nodes.at(ast.Constant(value=value), self.loop)

    def real(self, name: str, known: Known) -> ast.expr:
        return is_real(self.analysis, read(name, self.loop), with_rank(known).validity, self.loop)

    def start(self, wish: str, value: ast.expr) -> str:
        """A variable, and what it is before the loop."""
        name = self.analysis.draft.fresh(wish)
        self.analysis.draft.insert_before(self.loop, assign(name, value, self.loop))
        return name

    def asked(self, lasting: Mapping[str, Known], partial: set[str]) -> dict[str, Known]:
        """What the condition knows of the loop's variables.

        Args:
            lasting: what is known of them before and after each round.
            partial: those of which a round may leave lanes without an element.
        """
        result = dict(lasting)
        for name in self.names:
            if name not in partial or name not in lasting:
                continue
            known = with_rank(lasting[name])
            if name in self.variables:
                mask = held_mask(self.variables[name], known.rank, self.loop)
            else:
                mask = replace(on_demand(self.wish(name), ()), layout=tuple(range(known.rank)))
            result[name] = replace(known, validity=(*known.validity, mask))
        return result

    def note(self, body: list[ast.stmt]) -> None:
        """Statements at the end of a round: in which lanes it had elements, or one before had."""
        for name, variable in self.variables.items():
            before = ast.BinOp(
                left=read(variable, self.loop), op=ast.Mult(), right=read(self.is_later, self.loop)
            )
            made = self.real(name, self.analysis.known.get(name, Known()))
            either = ast.BinOp(left=before, op=ast.BitOr(), right=made)
            body.append(assign(variable, nodes.at(either, self.loop), self.loop))
        if self.variables:
            body.append(assign(self.is_later, self.number(1), self.loop))


def is_partial(before: Known, after: Known) -> bool:
    """Whether a round may leave lanes of a variable without an element that it had before."""
    places = {mask.place for mask in with_rank(before).validity}
    return any(mask.place not in places for mask in with_rank(after).validity)
