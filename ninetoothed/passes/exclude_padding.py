"""Padding is left out of reductions: the identity stands in its place.

A lane that was loaded from outside of its source (where the tensor has no ``other``) reads as 0 and
is padding; so is an element-wise result of it. `marks` follows that through the program. Where such
a value is reduced, it becomes ``Excluded(value, masks, identity)``, unless it is known to hold the
identity there anyway, as the sum of loaded values does. Where such a value is an index into a source,
it names no element of it: nothing is stored there, and what is loaded is padding again.

After an ``if`` a variable has the marks that it has at the end of both branches, unless each goes on by
itself; in a loop and after it those that it has before it and at the end of each round (a sum over
tiles has none: it holds what was accumulated). What is not followed loses its marks: elements moved
across dimensions, and results of functions unknown.

Afterwards no ``Forwarded`` is left: it is the stored value, rounded and in the tile's shape. And where
a tile of one element stands for a number, as an index, a bound of a range or a condition, its element
does, since the shapes are known here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ninetoothed.passes.marks import (
    OPERATORS,
    SCALAR,
    UNKNOWN,
    Mark,
    Marked,
    accumulated,
    joined,
    met,
)
from ninetoothed.passes.padding_rounds import (
    is_named,
    is_product_onto,
    new_marks,
    on_demand,
    stays_out,
    target_names,
    without_kept,
)
from ninetoothed.passes.padding_values import Values
from ninetoothed.passes.rewriting import (
    Draft,
    assign,
    index_names,
    key_of,
    own_expressions,
    place_of,
    read,
)
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import (
    ElementStore,
    Held,
    Kept,
    LanguageRef,
    Mask,
    SourceStore,
    Store,
    Within,
    at,
    clone,
    walk,
)
from ninetoothed.program.program import Program


def run(program: Program) -> Program:
    """The program with padding excluded from its reductions."""
    needed: frozenset[Any] = frozenset()
    while True:
        draft = Draft(program)
        analysis = _Analysis(draft, needed)
        analysis.block(draft.body)
        if analysis.wanted <= needed:
            return draft.finished(helpers=analysis.helpers)
        needed |= analysis.wanted


class _Analysis(Values):
    """Walks the statements in order, knowing the marks of each variable."""

    def block(self, body: list[ast.stmt]) -> None:
        index = -1
        while (index := index + 1) < len(body):
            statement = self.statement = body[index]
            if chosen := self.choice_within(statement):
                body.insert(index, chosen)
                statement = self.statement = chosen
            if self.differs(statement):
                statement = body[index] = _as_branches(statement)
            if isinstance(statement, ast.If):
                rest = body[index + 1 :]
                if self.branch(statement, rest):
                    del body[index + 1 :]
                    return
            elif isinstance(statement, ast.For | ast.While):
                self.loop(statement)
            else:
                self.simple(statement)

    def differs(self, statement: ast.stmt) -> bool:
        """Whether a value that is chosen has marks that depend on the choice."""
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.IfExp):
            return False
        choice = statement.value
        rehearsal = _Rehearsal(self)
        one, other = (rehearsal.visit(clone(node))[1] for node in (choice.body, choice.orelse))
        return {mark.place for mark in one.marks} != {mark.place for mark in other.marks}

    def choice_within(self, statement: ast.stmt) -> ast.stmt | None:
        """A value that is chosen within a statement as one of its own, where marks depend on it."""
        if isinstance(statement, ast.If | ast.For | ast.While):
            return None
        for owner, _ in own_expressions(statement):
            for node in walk(owner):
                for name in node._fields:
                    child = getattr(node, name, None)
                    listed = child if isinstance(child, list) else [child]
                    for place, part in enumerate(listed):
                        if not isinstance(part, ast.IfExp) or part is statement.__dict__.get(
                            "value"
                        ):
                            continue
                        chosen = at(ast.Assign(targets=[], value=part), part)
                        if not self.differs(chosen):
                            continue
                        held = self.draft.fresh("choice")
                        chosen.targets = [at(ast.Name(id=held, ctx=ast.Store()), part)]
                        if isinstance(child, list):
                            child[place] = read(held, part)
                        else:
                            setattr(node, name, read(held, part))
                        return chosen
        return None

    def simple(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AugAssign):
            statement.value, value = self.visit(statement.value)
            assert isinstance(statement.target, ast.Name)
            name = statement.target.id
            old = self.known.get(name, UNKNOWN)
            if isinstance(statement.op, ast.Add | ast.Sub):
                self.known[name] = accumulated(old, value)
            else:
                zero_of = OPERATORS.get(type(statement.op), "none")
                self.known[name] = joined([old, value], zero_of)
            return
        if isinstance(statement, ast.Assign) and self.adds_to_itself(statement):
            assert isinstance(statement.value, ast.BinOp)
            added = "right" if is_named(statement.value.left, statement.targets[0]) else "left"
            node, value = self.visit(getattr(statement.value, added))
            setattr(statement.value, added, node)
            name = statement.targets[0].id  # type: ignore[attr-defined]
            self.known[name] = accumulated(self.known.get(name, UNKNOWN), value)
            return
        if isinstance(statement, Store):
            value = self.fields(statement)
            self.want(mark for mark in value.marks if not stays_out(mark))
            return
        if isinstance(statement, ElementStore):
            self.elements(statement)
            statement.value = self.stored(statement.value)
            return
        if isinstance(statement, SourceStore):
            self.addressed(statement)
            statement.value, _ = self.visit(statement.value)
            return
        value = self.fields(statement)
        if isinstance(statement, ast.AnnAssign):
            assert isinstance(statement.target, ast.Name)
            self.constants.add(statement.target.id)
            self.known[statement.target.id] = value
        elif isinstance(statement, ast.Assign):
            target = statement.targets[0]
            if isinstance(target, ast.Name):
                if not is_product_onto(statement.value, target.id):
                    value = without_kept(value)
                self.known[target.id] = value
            elif isinstance(target, ast.Tuple):
                items = value.items or (UNKNOWN,) * len(target.elts)
                for element, item in zip(target.elts, items):
                    assert isinstance(element, ast.Name)
                    self.known[element.id] = item

    def adds_to_itself(self, statement: ast.Assign) -> bool:
        """Whether this is ``v = v + x``, ``v = x + v`` or ``v = v - x``."""
        value, target = statement.value, statement.targets[0]
        return (
            isinstance(value, ast.BinOp)
            and isinstance(value.op, ast.Add | ast.Sub)
            and (
                is_named(value.left, target)
                or (isinstance(value.op, ast.Add) and is_named(value.right, target))
            )
        )

    def want(self, marks: Iterable[Mark]) -> None:
        """Masks are needed that can only be had when something is done for them."""
        self.wanted |= {mark.wanted for mark in marks if mark.wanted is not None}

    def meet(
        self, names: set[str], one: Mapping[str, Marked], other: Mapping[str, Marked]
    ) -> dict[str, Marked]:
        """What holds of the variables, which are assigned in between, in both cases."""

        def is_same(mark: Mark, again: Mark) -> bool:
            if mark.origin is again.origin:
                return True
            tile = mark.origin.tile
            if isinstance(tile, Within | Held | ast.Constant):
                return not mark.origin.names & names
            return not index_names(tile) & names and all(map(self.is_stable, tile.indices))

        return {
            name: met(one[name], other[name], is_same)
            for name in names
            if name in one and name in other
        }

    def learn(self, names: set[str], known: Mapping[str, Marked]) -> None:
        """From now on this is known of the variables, and nothing of the rest of them."""
        for name in names:
            self.known.pop(name, None)
        self.known.update(known)

    def lasting(self, statement: ast.For | ast.While, assigned: set[str]) -> dict[str, Marked]:
        """What is known of a loop's variables before each round and after the last."""
        known = {name: self.known[name] for name in assigned if name in self.known}
        for _ in range(_MOST_REHEARSALS):
            rehearsal = _Rehearsal(self)
            rehearsal.learn(assigned, known)
            if isinstance(statement, ast.For):
                assert isinstance(statement.target, ast.Name)
                rehearsal.known[statement.target.id] = SCALAR
            rehearsal.block([clone(item) for item in statement.body])
            rounds = assigned | set(target_names(statement))
            after = {
                name: self.after_round(name, known[name], rehearsal.known[name], rounds)
                for name in known
                if name in rehearsal.known
            }
            met = self.meet(assigned, known, after)
            if met == known:
                return known
            known = met
        return {}

    def after_round(self, name: str, before: Marked, after: Marked, assigned: set[str]) -> Marked:
        """What is known of a variable after a round: where that had no element it keeps what it had.

        It does so by itself where nothing but 0 was added. Elsewhere that is done on demand.
        """
        loop, _ = self.carried[name]
        new = new_marks(before, after)
        rest = tuple(mark for mark in after.marks if mark not in new)
        if new and (loop, name) not in self.needed:
            wanted = any(not stays_out(mark) or mark.origin.names & assigned for mark in new)
            rest += (on_demand((loop, name), new, is_lasting=not wanted),)
        return replace(after, marks=rest)

    def keep(self, name: str, before: Marked, after: Marked, body: list[ast.stmt]) -> None:
        """Has a variable keep what it held before a round, where its value has no element."""
        _, held = self.carried[name]
        new = new_marks(before, after)
        if not new or held is None:
            return
        origin = body[-1]
        masks = self.masks(replace(after, marks=new), origin, but_zero=False)
        kept = at(Kept(value=read(name, origin), before=read(held, origin), masks=masks), origin)
        body.append(assign(name, kept, origin))

    def loop(self, statement: ast.For | ast.While) -> None:
        assigned = names_assigned(statement.body)
        outer, identity = self.carried, place_of(statement)
        before: dict[str, str] = {}
        for name in sorted(assigned & self.known.keys()):
            if (identity, name) in self.needed:
                before[name] = self.draft.fresh(f"{name}_before")
        self.carried = {**outer, **{name: (identity, before.get(name)) for name in assigned}}
        self.rounds |= set(target_names(statement))
        lasting = self.lasting(statement, assigned)
        self.learn(assigned, lasting)
        if isinstance(statement, ast.For):
            assert isinstance(statement.iter, ast.Call) and isinstance(statement.target, ast.Name)
            statement.iter.args = [self.number(item) for item in statement.iter.args]
            self.known[statement.target.id] = SCALAR
            function = getattr(statement.iter, "func", None)
            if isinstance(function, LanguageRef) and function.name == "static_range":
                self.constants.add(statement.target.id)
        else:
            statement.test = self.number(statement.test)
        test = statement.test if isinstance(statement, ast.While) else None
        self.block(statement.body)
        self.kept(statement.body, lasting, before, test)
        self.carried = outer
        self.learn(assigned, lasting)

    def kept(
        self,
        body: list[ast.stmt],
        lasting: Mapping[str, Marked],
        before: Mapping[str, str],
        test: ast.expr | None,
    ) -> None:
        """Statements of a loop's body that have variables keep what they held before a round."""
        # What a loop's condition is then made of stands at its end.
        ends = test.id if isinstance(test, ast.Name) else None
        tail: list[ast.stmt] = []
        while body and ends is not None and ends in names_assigned(body[-1:]):
            tail.insert(0, body.pop())
        for name in before:
            if name in lasting and name in self.known and body:
                self.keep(name, lasting[name], self.known[name], body)
        body += tail
        copies = [assign(held, read(name, body[0]), body[0]) for name, held in before.items()]
        body[:0] = copies

    def branch(self, statement: ast.If, rest: list[ast.stmt]) -> bool:
        """An ``if``; whether the statements after it went into its branches.

        Where the branches leave different marks and it matters, each goes on with its own copy of the
        rest; else the marks that both leave are left.
        """
        constant = is_constant(statement.test, self.constants)
        statement.test, _ = self.visit(statement.test)
        before = dict(self.known)
        assigned = names_assigned([*statement.body, *statement.orelse])
        self.block(statement.body)
        one = self.known
        self.known = dict(before)
        self.block(statement.orelse)
        other = self.known
        for name in sorted(assigned & before.keys() & self.carried.keys()):
            if name in one and name in other:
                ways = (one, statement.body, other), (other, statement.orelse, one)
                for way, block, beside in ways:
                    way[name] = self.after_way(name, before[name], way[name], beside[name], block)
        self.known = other
        met = self.meet(assigned, one, other)
        used = assigned & {name for item in rest for name in names_read(item)}
        differing = {
            name for name in used & met.keys() if _loses(met[name], one[name], other[name])
        }
        if not differing or not (constant or self.matters(differing, rest, one, other, met)):
            self.learn(assigned, met)
            return False
        copied = [clone(item) for item in rest]
        self.known = one
        self.continued(statement.body, rest)
        self.known = other
        self.continued(statement.orelse, copied)
        self.learn(assigned, met)
        return True

    def after_way(
        self, name: str, before: Marked, after: Marked, beside: Marked, block: list[ast.stmt]
    ) -> Marked:
        """What is known after one way of an ``if`` in a loop, of a variable that the loop carries.

        Masks that the other way does not have would be lost: there it keeps what it had.
        """
        loop, held = self.carried[name]
        others = {mark.place for mark in beside.marks}
        lost = tuple(mark for mark in new_marks(before, after) if mark.place not in others)
        if not lost or loop is None:
            return after
        rest = tuple(mark for mark in after.marks if mark not in lost)
        if held is not None and block:
            self.keep(name, before, replace(after, marks=(*lost, *before.marks)), block)
            return replace(after, marks=rest)
        is_lasting = all(map(stays_out, lost)) and not self.loops_over(lost)
        return replace(after, marks=(*rest, on_demand((loop, name), lost, is_lasting)))

    def loops_over(self, marks: Iterable[Mark]) -> bool:
        """Whether masks may differ from round to round."""
        return any(mark.origin.names & {*self.carried, *self.rounds} for mark in marks)

    def matters(
        self, names: set[str], rest: list[ast.stmt], *outcomes: Mapping[str, Marked]
    ) -> bool:
        """Whether the rest becomes another with the marks of one of the outcomes."""
        found = set()
        for known in outcomes:
            rehearsal = _Rehearsal(self)
            rehearsal.learn(names, {n: known[n].changed() for n in names if n in known})
            copied = [clone(item) for item in rest]
            rehearsal.block(copied)
            found.add(key_of(copied))
        return len(found) > 1

    def continued(self, branch: list[ast.stmt], rest: list[ast.stmt]) -> None:
        self.block(rest)
        branch += rest


class _Rehearsal(_Analysis):
    """Finds what is known after statements that are copies; nothing of the program changes."""

    def __init__(self, analysis: _Analysis) -> None:
        self.__dict__.update(analysis.__dict__)
        self.draft = analysis.draft.scratch()
        self.known = dict(analysis.known)
        self.constants = set(analysis.constants)
        self.helpers = dict(analysis.helpers)
        self.wanted = set()
        self.carried = dict(analysis.carried)

    def mask(self, mark: Mark, origin: ast.AST) -> ast.expr:
        if isinstance(mark.origin.tile, Within | Held):
            return super().mask(mark, origin)
        return at(Mask(tile=clone(mark.origin.tile), layout=mark.layout), origin)


#: What is known of a loop's variables settles long before; after so many tries nothing is known.
_MOST_REHEARSALS = 8


def _as_branches(statement: ast.stmt) -> ast.If:
    """``v = a if c else b`` as a statement that chooses."""
    assert isinstance(statement, ast.Assign) and isinstance(statement.value, ast.IfExp)
    choice = statement.value
    blocks: list[list[ast.stmt]] = []
    for value in (choice.body, choice.orelse):
        targets = [clone(target) for target in statement.targets]
        blocks.append([at(ast.Assign(targets=targets, value=value), statement)])
    return at(ast.If(test=choice.test, body=blocks[0], orelse=blocks[1]), statement)


def _loses(met: Marked, *outcomes: Marked) -> bool:
    """Whether one of the outcomes has marks that are not left of them."""
    return any(len(known.marks) > len(met.marks) for known in outcomes)
