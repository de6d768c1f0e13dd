"""Where loaded tiles meet in an application: element by element, in a product, or as they are stored.

The program is walked knowing which loads each value is made of; `validity` says how their dimensions
follow it. An ``if`` is a loop of at most one round, which sizes, a call's numbers or data decide
(`decisions`). One that positions decide may be there for what does not exist: told of is what meets in both
of its branches. Pure data: `ninetoothed.kernels.agreement` compares the sizes.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ninetoothed.kernels import decisions, loaded_values, size_expressions
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.limits import Loop, Meeting, Side, Use, either_way, in_each, limits_of
from ninetoothed.language.operations import Operation
from ninetoothed.passes import custom_reductions, remove_dead
from ninetoothed.passes.padding_arguments import Arguments
from ninetoothed.passes.padding_calls import RULES
from ninetoothed.passes.padding_values import Values
from ninetoothed.passes.rewriting import Draft
from ninetoothed.passes.validity import UNKNOWN, Known, joined, met, typed, with_rank
from ninetoothed.program.effects import called_name, names_assigned, operation_of
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementStore,
    SourceLoad,
    SourcePlace,
    SourceStore,
    Store,
    TileRef,
    at,
    location,
    walk,
)
from ninetoothed.program.tile_masks import Origin, TileMask
from ninetoothed.program.types import INTEGER, held, held_shape
from ninetoothed.symbols.expr import Symbol, index

Looped = ast.For | ast.While
Result = TypeVar("Result")
#: In how many loops one may stand to be walked once more with what a round gives to the next.
_DEEPEST = 2


_Place = tuple[Side, Side, tuple[Loop, ...]]


@analysis
def meetings(kernel: Definition) -> tuple[Meeting, ...]:
    """The meetings in a kernel whose sides' limits are not the same, whatever the sizes."""
    walk = _Walk(kernel)
    walk.block(walk.draft.body)
    return tuple(walk.found.values())


class _Walk(Values):
    """Follows the loads through a program, statement by statement; the key of a mask is its `Use`.

    Attributes:
        found: by the two that meet, and the loops around the place.
        sides: by tile and dimension.
        loops: around the statement at hand.
        left: in a round that is not a loop's first, what it was given by the one before it.
        integers: the variables that are integers over sizes and rounds of loops.
        numbers: those that a call's numbers decide.
        kinds: what the others follow.
    """

    def __init__(self, kernel: Definition) -> None:
        super().__init__(Draft(remove_dead.run(kernel.program)))
        self.kernel = kernel
        self.found: dict[_Place, Meeting] = {}
        self.sides: dict[tuple[Use, int | None], Side] = {}
        self.loops: tuple[Loop, ...] = ()
        self.left: set[Use] | None = None
        self.integers: dict[str, Symbol] = {}
        self.numbers = decisions.scalars(kernel)
        self.kinds = decisions.kinds_of(self.draft.body, self.numbers)

    # What is met.

    def meet(self, node: ast.AST, values: Sequence[Known]) -> None:
        """Values whose lanes are combined one by one."""
        for place, one in enumerate(values):
            for other in values[place + 1 :]:
                self.pairs(node, one, other)

    def pairs(self, node: ast.AST, one: Known, other: Known, is_store: bool = False) -> None:
        for a in with_rank(one).validity:
            for b in with_rank(other).validity:
                dims = zip(reversed(a.layout), reversed(b.layout))
                self.pair(node, a, b, [(None, None), *dims], is_store)

    def pair(
        self,
        node: ast.AST,
        one: TileMask,
        other: TileMask,
        dims: Sequence[tuple[int | None, int | None]],
        is_store: bool = False,
    ) -> None:
        uses = one.key, other.key
        sources = [self.tensors[use.parameter].source for use in uses]
        if sources[0] is sources[1]:
            return
        if self.left is not None and self.left.isdisjoint(uses):
            return
        if any({*pair} == {*loaded_values.HALVES} for pair in dims):
            # They are beside each other.
            return
        loops = tuple(dict.fromkeys((*self.loops, *uses[0].loops, *uses[1].loops)))
        taken = {loop.decision for loop in loops if loop.decision is not None}
        if any(replace(decision, holds=not decision.holds) in taken for decision in taken):
            return
        for place, pair in enumerate(dims):
            if place and (None in pair or {*pair} & {*loaded_values.HALVES}):
                # A dimension of size 1 meets all of another.
                continue
            a, b = (self.side(use, dim) for use, dim in zip(uses, pair))
            if (a, b, loops) not in self.found and a.limits != b.limits:
                self.found[a, b, loops] = Meeting((a, b), is_store, loops, location(node))

    def elements(self, node: ElementLoad | ElementStore | ElementPlace) -> Known:
        """Positions that a program selects may lie beyond on purpose: they are told nothing of."""
        super().elements(node)
        return UNKNOWN

    def side(self, use: Use, dim: int | None) -> Side:
        found = self.sides.get((use, dim))
        if found is None:
            found = Side(use, dim, limits_of(self.kernel, use, dim))
            self.sides[use, dim] = found
        return found

    def atomic(self, node: ast.Call) -> Known:
        """As a store to each element of a tile; where it has a mask, that says to which."""
        place, *values = node.args
        known = [self.value(each) for each in values]
        named = {each.arg: self.value(each.value) for each in node.keywords}
        is_compared = called_name(node) == "atomic_cas"
        given = known[: 1 + is_compared] + [named[each] for each in ("cmp", "val") if each in named]
        is_masked = "mask" in named or len(known) > 1 + is_compared
        if not isinstance(place, ElementPlace):
            assert isinstance(place, SourcePlace)
            self.meet(node, self.addressed(place) + ([] if is_masked else given))
            return UNKNOWN
        self.elements(place)
        if is_masked or not place.view.is_whole(self.tensors[place.parameter].tile_shape):
            return UNKNOWN
        tile = TileRef(parameter=place.parameter, indices=place.indices)
        changed = self.loaded(at(tile, place), False)
        for each in given:
            self.pairs(node, each, changed, is_store=True)
        return changed

    # Statements.

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
            self.meet(statement, [*self.addressed(statement), self.value(statement.value)])
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

    def decided(self, test: ast.expr, is_of_loop: bool = False) -> tuple[Loop, Loop] | None:
        """See `either_way`."""
        return either_way(test, self.integers, self.numbers, self.kinds, is_of_loop)

    def within(self, loop: Loop, walk: Callable[[], Result]) -> Result:
        """Walks what stands in a loop alone, and forgets what it made known."""
        loops, known, integers, numbers = self.loops, self.known, self.integers, self.numbers
        self.loops = (*loops, loop)
        self.known, self.integers, self.numbers = dict(known), dict(integers), dict(numbers)
        result = walk()
        self.loops, self.known, self.integers, self.numbers = loops, known, integers, numbers
        return result

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
            name: met(one[name], other[name], lambda a, b: True)
            for name in one.keys() & other.keys()
        }

    def in_all(self, alternatives: Sequence[Callable[[], Any]]) -> list[Any]:
        """Walks alternatives; found is what meets in each of them."""
        outer, results, founds = self.found, [], list[list[Meeting]]()
        for alternative in alternatives:
            self.found = {}
            results.append(alternative())
            founds.append([*self.found.values()])
        self.found = outer
        for meeting in in_each(founds):
            outer.setdefault((*meeting.sides, meeting.loops), meeting)
        return results

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
        before = dict(self.known)
        loop = Loop(index(counts.name), counts.count)
        self.repeat(statement, counts, loop, loop.round)
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
            self.repeat(statement, counts, again, later)
            self.left = was_left
        self.known = ended
        for assigned in names_assigned(statement.body) & self.known.keys():
            self.known[assigned] = loaded_values.after(self.known[assigned], loop)
        return self.known

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

    # Expressions.

    def value(self, node: ast.expr) -> Known:
        return self.visit(node)[1]

    def visited(self, node: ast.expr) -> tuple[ast.expr, Known]:
        method = _VISITS.get(kind_of(node))
        return super().visited(node) if method is None else (node, method(self, node))

    def loaded(self, tile: TileRef, is_zero: bool) -> Known:
        parameter = self.tensors[tile.parameter]
        shape = held_shape(parameter.tile_shape)
        if parameter.source.other is not None:
            return UNKNOWN
        use = Use(tile.parameter, tuple(map(self.integer, tile.indices)), self.loops)
        layout = tuple(None if size == 1 else dim for dim, size in enumerate(shape))
        return Known(validity=(TileMask(use, Origin(tile, self.statement), layout),))

    def masks(self, value: Known, origin: ast.AST) -> list[ast.expr]:
        """None: nothing is put into the program."""
        return []

    def visit_together(self, node: ast.BinOp | ast.BoolOp | ast.Compare) -> Known:
        if isinstance(node, ast.BoolOp):
            parts = node.values
        else:
            parts = [node.left, node.right if isinstance(node, ast.BinOp) else node.comparators[0]]
        operands = [self.value(part) for part in parts]
        self.meet(node, operands)
        return joined(operands)

    def visit_gathered(self, node: SourceLoad) -> Known:
        operands = self.addressed(node)
        self.meet(node, operands)
        return joined(operands)

    def visit_chosen(self, node: ast.IfExp) -> Known:
        self.value(node.test)
        loops = self.decided(node.test)
        values = [functools.partial(self.value, part) for part in (node.body, node.orelse)]
        if loops is None:
            one, other = self.in_all(values)
            return met(one, other, lambda a, b: True)
        one, other = map(self.within, loops, values)
        return loaded_values.either(one, other, loops)

    def visit_function(self, node: ast.Call) -> Known:
        if node.args and isinstance(node.args[0], ElementPlace | SourcePlace):
            return self.atomic(node)
        operation, arguments = operation_of(node), Arguments(self, node)
        if operation is None or operation.shape == "counted":
            return UNKNOWN
        if operation.takes_function:
            return self.combined(arguments, operation)
        if operation.shape == "product":
            return self.product(node, arguments, operation)
        if operation.shape == "broadcast":
            self.meet(node, [*arguments.values.values(), *arguments.named.values()])
        rule = loaded_values.MOVES.get(operation.shape) or RULES.get(operation.shape)
        return UNKNOWN if rule is None else loaded_values.of_loads(rule(arguments, operation))

    def product(self, node: ast.Call, arguments: Arguments, operation: Operation) -> Known:
        """The last dimension of one meets the last but one of the other, and both are gone."""
        one, other = with_rank(arguments.known(0)), with_rank(arguments.known(1))
        for a in one.validity:
            for b in other.validity:
                if len(a.layout) >= 2 and len(b.layout) >= 2:
                    batch = zip(a.layout[:-2], b.layout[:-2])
                    self.pair(node, a, b, [(None, None), (a.layout[-1], b.layout[-2]), *batch])
        result = loaded_values.of_product(arguments.type, one, other)
        added = arguments.named.get("acc", arguments.known(2))
        self.meet(node, [result, added])
        return joined([result, added])

    def combined(self, arguments: Arguments, operation: Operation) -> Known:
        """What a function of the user's combines: the elements of several values meet."""
        value = arguments.known(0)
        values = (value,) if value.items is None else value.items
        self.meet(arguments.node, values)
        results = custom_reductions.results(arguments, operation, values)
        if operation.kind == "scan":
            results = tuple(map(loaded_values.in_either_half, results))
        return loaded_values.of_loads(results[0] if value.items is None else Known(items=results))

    def integer(self, node: ast.expr | None) -> Symbol | None:
        return size_expressions.integer(node, self.integers)


_VISITS: dict[type, Callable[[_Walk, Any], Known]] = {
    ast.BinOp: _Walk.visit_together,
    ast.Compare: _Walk.visit_together,
    ast.BoolOp: _Walk.visit_together,
    ast.IfExp: _Walk.visit_chosen,
    ast.Call: _Walk.visit_function,
    SourceLoad: _Walk.visit_gathered,
}
