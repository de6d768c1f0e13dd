"""A program whose loop is cut into parts, each done by a program of its own."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import replace

from ninetoothed.backends.triton.analysis.reduction_form import form_in
from ninetoothed.backends.triton.ir import trees
from ninetoothed.backends.triton.ir.lowered import Lowered, Names
from ninetoothed.backends.triton.ir.nodes import LibraryRef, PartPosition, Workspace
from ninetoothed.program.nodes import at, clone
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Completion:
    """How what follows the loop is done: by the part that arrives last."""

    def __call__(
        self, cut: Cutting, accumulators: Sequence[str], after: list[ast.stmt], loop: ast.For
    ) -> list[ast.stmt]:
        """The statements that take the place of those after the loop.

        Args:
            accumulators: the names of what the loop adds up.
        """
        sums = [
            at(trees.assign(name, cut.sum_of(accumulators, name)), loop) for name in accumulators
        ]
        last = call("is_last_part", counter(), cut.count)
        return [ast.If(last, [*sums, *after], [])]


@dataclass(frozen=True)
class Cut:
    """Cuts a program's loop into parts.

    Attributes:
        count: how many.
        completion: what follows the loop.
    """

    count: int
    completion: Completion = Completion()

    def __call__(self, program: Program, lowered: Lowered) -> Program:
        names = Names(program, lowered.kernel)
        body = Cutting(self.count, names, lowered).body(program, self.completion)
        return replace(program, body=body, names=frozenset(names.taken))


@dataclass(frozen=True)
class Cutting:
    """A program that is being cut."""

    count: int
    names: Names
    lowered: Lowered

    def body(self, program: Program, completion: Completion) -> list[ast.stmt]:
        """The program's body for one part."""
        form = form_in(program)
        assert form is not None
        body = [clone(statement) for statement in program.body]
        before, loop, after = body[: form.place], body[form.place], body[form.place + 1 :]
        assert isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
        rounds = self.names.fresh(f"num_{loop.target.id}")  # type: ignore[attr-defined]
        first = at(trees.assign(rounds, loop.iter.args[0]), loop)
        loop.iter.args = [self._bound(rounds, 0), self._bound(rounds, 1)]
        accumulators = list(form.shapes)
        own = ast.BinOp(self.first(), ast.Add(), PartPosition(what="part"))
        keeps = [
            ast.Expr(call("keep_part", self.room(accumulators, each, own), trees.name(each)))
            for each in accumulators
        ]
        rest = completion(self, accumulators, after, loop)
        return [*before, first, loop, *(at(node, loop) for node in [*keeps, *rest])]

    def _bound(self, rounds: str, more: int) -> ast.expr:
        """The round that this part begins with; with 1, the next one."""
        part: ast.expr = PartPosition(what="part")
        if more:
            part = ast.BinOp(part, ast.Add(), ast.Constant(more))
        whole = ast.BinOp(trees.name(rounds), ast.Mult(), part)
        return ast.BinOp(whole, ast.FloorDiv(), ast.Constant(self.count))

    def first(self) -> ast.expr:
        """The number of the first part of the tile among those of all tiles."""
        return ast.BinOp(PartPosition(what="tile"), ast.Mult(), ast.Constant(self.count))

    def room(self, accumulators: Sequence[str], name: str, part: ast.expr) -> ast.expr:
        """Where the sums of one accumulator of one part stand."""
        place = ast.BinOp(part, ast.Mult(), elements(accumulators))
        place = ast.BinOp(Workspace(what="partials"), ast.Add(), place)
        before = accumulators[: accumulators.index(name)]
        return ast.BinOp(place, ast.Add(), elements(before)) if before else place

    def sum_of(self, accumulators: Sequence[str], name: str) -> ast.expr:
        """The sum of all parts of one accumulator."""
        first = self.room(accumulators, name, self.first())
        return call("sum_of_parts", first, trees.name(name), elements(accumulators), self.count)


def counter() -> ast.expr:
    """Where this program's element of the grid is counted at."""
    return ast.BinOp(Workspace(what="arrivals"), ast.Add(), PartPosition(what="tile"))


def elements(names: Sequence[str]) -> ast.expr:
    """How many elements accumulators have together."""
    sizes: list[ast.expr] = [ast.Attribute(trees.name(n), "numel", ast.Load()) for n in names]
    return functools.reduce(lambda left, right: ast.BinOp(left, ast.Add(), right), sizes)


def call(function: str, *arguments: ast.expr | int) -> ast.expr:
    """A call of a function of the library."""
    trees = [ast.Constant(a) if isinstance(a, int) else a for a in arguments]
    return ast.Call(LibraryRef(name=function), trees, [])
