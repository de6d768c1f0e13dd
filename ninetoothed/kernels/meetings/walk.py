"""Where loaded tiles meet in an application: element by element, in a product, or as they are stored.

The program is walked knowing which loads each value is made of. An ``if`` is a loop of at most one round,
which sizes, a call's numbers or data decide (`decisions`); one that asks for the round of a loop is so, or not,
in parts of it (`rounds`). One that other positions decide may be there for what does not exist: told of is what
meets in both of its branches. Pure data: `agreement` compares the sizes.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Sequence

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import decisions, loaded_values, size_expressions
from ninetoothed.kernels.meetings.limits import Loop, Meeting, Use
from ninetoothed.kernels.meetings.rounds import Part, outcome, parts
from ninetoothed.kernels.meetings.values import Values
from ninetoothed.passes.padding.validity import UNKNOWN, Known, joined, typed
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import ElementStore, SourceStore, Store, walk
from ninetoothed.program.types import INTEGER, held
from ninetoothed.symbols.expr import Symbol, index, maximum, minimum

Looped = ast.For | ast.While
#: In how many loops one may stand to be walked in parts, and once more with what a round gives to the next.
_DEEPEST = 2


@analysis
def meetings(kernel: Definition) -> tuple[Meeting, ...]:
    """The meetings in a kernel whose sides' limits are not the same, whatever the sizes."""
    walk = _Walk(kernel)
    walk.block(walk.draft.body)
    return tuple(walk.found.values())


class _Walk(Values):
    """Follows the loads through a program, statement by statement."""

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.statement = statement
            if isinstance(statement, ast.If):
                self.value(statement.test)
                self.branches(statement)
            elif isinstance(statement, ast.For | ast.While):
                self.loop(statement)
            else:
                self.simple(statement)

    def simple(self, statement: ast.stmt) -> None:
        if isinstance(statement, Store):
            stored = self.value(statement.value)
            self.visit_tile(statement.tile)
            self.pairs(statement, stored, self.loaded(statement.tile, False), is_store=True)
            return
        if isinstance(statement, SourceStore):
            if isinstance(statement, ElementStore):
                places = [self.elements(statement)]
            else:
                places = self.addressed(statement)
            self.meet(statement, [*places, self.value(statement.value)])
            return
        if isinstance(statement, ast.AugAssign):
            assert isinstance(statement.target, ast.Name)
            old, added = self.known.get(statement.target.id, UNKNOWN), self.value(statement.value)
            self.meet(statement, [old, added])
            found = self.types.operated(old.type, statement.op, added.type, statement)
            result = ast.BinOp(statement.target, statement.op, statement.value)
            self.assign(statement.target, typed(joined([old, added]), found), result)
            return
        known = self.fields(statement)
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            (target,) = (
                statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            )
            self.assign(target, known, statement.value)

    def assign(self, target: ast.expr, value: Known, node: ast.expr | None) -> None:
        self.get(target, typed(value, held(value.type)))
        integer, number = self.integer(node), decisions.number(node, self.numbers)
        self.forget(each.id for each in walk(target) if isinstance(each, ast.Name))
        if isinstance(target, ast.Name):
            self.integers |= {} if integer is None else {target.id: integer}
            self.numbers |= {} if number is None else {target.id: number}

    def branches(self, statement: ast.If) -> None:
        is_so = outcome(statement.test, self.holds)
        if is_so is not None:
            self.block(statement.body if is_so else statement.orelse)
            return
        loops = self.decided(statement.test)
        if loops is None:
            self.perhaps(statement.body, statement.orelse)
            return
        outcomes = [
            self.within(loop, functools.partial(self.ended, block))
            for loop, block in zip(loops, (statement.body, statement.orelse))
        ]
        self.unite(statement, outcomes[0], outcomes[1], loops)

    def ended(self, block: Sequence[ast.stmt]) -> dict[str, Known]:
        """What is known after a block."""
        self.block(block)
        return self.known

    def unite(
        self,
        statement: ast.If | Looped,
        one: dict[str, Known],
        other: dict[str, Known],
        loops: tuple[Loop | None, Loop],
    ) -> None:
        """After it, variables are what they are at the end of the one way or of the other."""
        assigned = names_assigned([statement])
        self.known = {
            name: loaded_values.either(one[name], other[name], loops)
            if name in assigned
            else one[name]
            for name in one.keys() & other.keys()
        }
        self.forget(assigned)

    def perhaps(self, *blocks: list[ast.stmt]) -> None:
        """One of the blocks runs, nobody knows which."""
        before, outcomes = dict(self.known), []
        assigned = names_assigned([statement for block in blocks for statement in block])
        self.forget(assigned)

        def run(block: list[ast.stmt]) -> None:
            self.known = dict(before)
            self.block(block)
            self.forget(assigned)
            outcomes.append(self.known)

        self.in_all([functools.partial(run, block) for block in blocks])
        one, other = outcomes
        self.known = {
            name: loaded_values.in_both(one[name], other[name])
            for name in one.keys() & other.keys()
        }

    def forget(self, names: Iterable[str]) -> None:
        """What the variables are is not known any more."""
        for name in names:
            self.integers.pop(name, None)
            self.numbers.pop(name, None)

    def loop(self, statement: Looped) -> None:
        if isinstance(statement, ast.While):
            self.value(statement.test)
        counts, test = size_expressions.rounds(statement, self.integers)
        loops = None if test is None else self.decided(test, is_of_loop=True)
        if loops is None and counts.count is None and isinstance(statement, ast.While):
            self.perhaps(statement.body, [])
            return
        before, first = dict(self.known), None
        rounds = functools.partial(self.rounds_of, statement, counts)
        if loops is not None and counts.count is None:
            # Else the number of rounds says whether there is one.
            first = loops[0]
        after = rounds() if first is None else self.within(first, rounds)
        self.forget(names_assigned([statement]))
        if loops is not None:
            self.unite(statement, after, before, (first, loops[1]))

    def rounds_of(self, statement: Looped, counts: size_expressions.Counting) -> dict[str, Known]:
        """What is known after the rounds of a loop, if there are any."""
        found = self.parts_of(statement, counts)
        outer = self.holds
        for part in reversed(found) if counts.is_down else found:
            before, count = dict(self.known), part.count
            self.holds = {**outer, **part.holds}
            self.part(statement, counts, part)
            if len(found) > 1 and count is not None:
                none = Loop(index("if"), 1 - minimum(1, maximum(0, count)))
                self.unite(statement, self.known, before, (None, none))
        self.holds = outer
        return self.known

    def parts_of(self, statement: Looped, counts: size_expressions.Counting) -> list[Part]:
        """In a ``while``, where the variable that counts is another within a round, there is one part."""
        round, body = index(counts.name), statement.body if isinstance(statement, ast.For) else []
        assigned = names_assigned(statement.body)
        value = None if counts.name in assigned else counts.value(round)
        known = {name: self.integers[name] for name in self.integers.keys() - assigned}
        if value is None or len(self.loops) >= _DEEPEST:
            body = []
        else:
            known[counts.name] = value
        return parts(body, round, counts.count, known)

    def part(self, statement: Looped, counts: size_expressions.Counting, part: Part) -> None:
        """Walks some of the rounds of a loop."""
        before = dict(self.known)
        loop = Loop(index(counts.name), part.count)
        self.repeat(statement, counts, loop, part.first + loop.round)
        ended = dict(self.known)
        again = Loop(index(counts.name), None if loop.count is None else loop.count - 1)
        earlier, later = again.round, again.round + 1
        if counts.is_down:
            earlier, later = later, earlier
        carried = {
            name: loaded_values.given_by(ended[name], loop, again, earlier)
            for name in names_assigned(statement.body) & before.keys() & ended.keys()
            if loaded_values.uses_of(ended[name]) - loaded_values.uses_of(before[name])
        }
        if carried and again.count is not None and len(self.loops) < _DEEPEST:
            # In all rounds but the first, variables hold what the round before left in them.
            was_left = self.left
            self.left = set[Use](was_left or ()).union(
                *map(loaded_values.uses_of, carried.values())
            )
            self.known = {**ended, **carried}
            self.repeat(statement, counts, again, part.first + later)
            self.left = was_left
        self.known = ended
        for assigned in names_assigned(statement.body) & self.known.keys():
            outside = loaded_values.uses_of(before.get(assigned, UNKNOWN))
            self.known[assigned] = loaded_values.after(self.known[assigned], loop, outside)

    def repeat(
        self, statement: Looped, counts: size_expressions.Counting, loop: Loop, number: Symbol
    ) -> None:
        """Walks the body of a loop, of which this is the number of the round."""
        self.forget({counts.name, *names_assigned(statement.body)})
        self.known[counts.name] = Known(INTEGER)
        value = counts.value(number)
        is_moved = isinstance(statement, ast.For) and counts.name in names_assigned(statement.body)
        if value is not None and not is_moved:
            self.integers[counts.name] = value
        self.loops = (*self.loops, loop)
        self.block(statement.body)
        self.loops = self.loops[:-1]
