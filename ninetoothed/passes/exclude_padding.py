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
from collections.abc import Mapping

from ninetoothed.passes.marks import OPERATORS, SCALAR, UNKNOWN, Mark, Marked, joined, met
from ninetoothed.passes.padding_values import Values
from ninetoothed.passes.rewriting import Draft, index_names, key_of
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import ElementStore, LanguageRef, Mask, SourceStore, at, clone
from ninetoothed.program.program import Program


def run(program: Program) -> Program:
    """The program with padding excluded from its reductions."""
    draft = Draft(program)
    analysis = _Analysis(draft)
    analysis.block(draft.body)
    return draft.finished(helpers=analysis.helpers)


class _Analysis(Values):
    """Walks the statements in order, knowing the marks of each variable."""

    def block(self, body: list[ast.stmt]) -> None:
        for index, statement in enumerate(body):
            self.statement = statement
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

    def simple(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.AugAssign):
            statement.value, value = self.visit(statement.value)
            assert isinstance(statement.target, ast.Name)
            name = statement.target.id
            zero_of = OPERATORS.get(type(statement.op), "none")
            self.known[name] = joined([self.known.get(name, UNKNOWN), value], zero_of)
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
                self.known[target.id] = value
            elif isinstance(target, ast.Tuple):
                items = value.items or (UNKNOWN,) * len(target.elts)
                for element, item in zip(target.elts, items):
                    assert isinstance(element, ast.Name)
                    self.known[element.id] = item

    def meet(
        self, names: set[str], one: Mapping[str, Marked], other: Mapping[str, Marked]
    ) -> dict[str, Marked]:
        """What holds of the variables, which are assigned in between, in both cases."""

        def is_same(mark: Mark, again: Mark) -> bool:
            if mark.origin is again.origin:
                return True
            tile = mark.origin.tile
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
        while True:
            rehearsal = _Rehearsal(self)
            rehearsal.learn(assigned, known)
            if isinstance(statement, ast.For):
                assert isinstance(statement.target, ast.Name)
                rehearsal.known[statement.target.id] = SCALAR
            rehearsal.block([clone(item) for item in statement.body])
            met = self.meet(assigned, known, rehearsal.known)
            if met == known:
                return known
            known = met

    def loop(self, statement: ast.For | ast.While) -> None:
        assigned = names_assigned(statement.body)
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
        self.block(statement.body)
        self.learn(assigned, lasting)

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

    def mask(self, mark: Mark, origin: ast.AST) -> Mask:
        return at(Mask(tile=clone(mark.origin.tile), layout=mark.layout), origin)


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
