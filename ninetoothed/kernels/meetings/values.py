"""What the values in an application are made of, and which of them meet: the expressions' part of `walk`.

`validity` says how the dimensions of a loaded tile follow it through what is made of it.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import decisions, loaded_values, size_expressions
from ninetoothed.kernels.meetings.limits import (
    Loop,
    Meeting,
    Side,
    Use,
    either_way,
    in_each,
    limits_of,
)
from ninetoothed.kernels.meetings.rounds import outcome
from ninetoothed.language.operations import Operation
from ninetoothed.passes import remove_dead
from ninetoothed.passes.padding import custom_reductions
from ninetoothed.passes.padding import values as padding_values
from ninetoothed.passes.padding.arguments import Arguments
from ninetoothed.passes.padding.calls import RULES
from ninetoothed.passes.padding.validity import UNKNOWN, Known, joined, with_rank
from ninetoothed.passes.padding.values import before_slices
from ninetoothed.passes.rewriting import Draft, key_of
from ninetoothed.program.effects import called_name, operation_of, place_changed
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementStore,
    Kept,
    SourceLoad,
    SourcePlace,
    TileRef,
    at,
    location,
)
from ninetoothed.program.tile_masks import Origin, TileMask
from ninetoothed.program.types import held_shape
from ninetoothed.symbols.expr import Symbol

Result = TypeVar("Result")

_Place = tuple[Side, Side, tuple[Loop, ...]]


class Values(padding_values.Values):
    """Follows the loads through a program, statement by statement; the key of a mask is its `Use`.

    Attributes:
        found: by the two that meet, and the loops around the place.
        sides: by tile and dimension.
        loops: around the statement at hand.
        left: in a round that is not a loop's first, what it was given by the one before it.
        integers: the variables that are integers over sizes and rounds of loops.
        numbers: those that a call's numbers decide.
        kinds: what the others follow.
        ways_of: the loops of each condition: where it holds, and where not.
        holds: conditions on the round of a loop that are so in all the rounds at hand, or in none.
    """

    def __init__(self, kernel: Definition) -> None:
        super().__init__(Draft(remove_dead.run(kernel.program)))
        self.kernel = kernel
        self.found: dict[_Place, Meeting] = {}
        self.sides: dict[tuple[Use, tuple[int, ...]], Side] = {}
        self.loops: tuple[Loop, ...] = ()
        self.left: set[Use] | None = None
        self.integers: dict[str, Symbol] = {}
        self.numbers = decisions.scalars(kernel)
        self.ways_of: dict[Any, tuple[Loop, Loop]] = {}
        self.holds: Mapping[ast.expr, bool] = {}
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
                self.pair(node, a, b, list(dims), is_store)

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
        conditions = [loop.decision.condition for loop in loops if loop.decision is not None]
        if len({*conditions}) < len(conditions):
            # One of them would have to hold, and not to.
            return
        # A dimension of size 1 meets all of another.
        shared = [
            (one, other)
            for one, other in dims
            if one is not None and other is not None and not {one, other} & {*loaded_values.HALVES}
        ]
        alone = [(pair,) for pair in shared]
        if is_store:
            # One element is stored to a dimension of size 1: not none.
            alone += (
                ((own, len(other.layout) - behind),)
                for behind, (own, place) in enumerate(dims, 1)
                if own is not None and own >= 0 and place is None
            )
        for met_dims in [(), *alone, *([shared] if len(shared) > 1 else [])]:
            a, b = (
                self.side(use, tuple(pair[place] for pair in met_dims))
                for place, use in enumerate(uses)
            )
            if (a, b, loops) not in self.found and a.limits != b.limits:
                self.found[a, b, loops] = Meeting((a, b), is_store, loops, location(node))

    def elements(self, node: ElementLoad | ElementStore | ElementPlace) -> Known:
        """What is selected exists where its positions do, which meet; they may lie beyond on purpose."""
        places = self.chosen(node)
        self.meet(node, places)
        return before_slices(joined(places), node.view)

    def side(self, use: Use, dims: tuple[int, ...]) -> Side:
        found = self.sides.get((use, dims))
        if found is None:
            found = Side(use, dims, limits_of(self.kernel, use, dims))
            self.sides[use, dims] = found
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
        self.meet(node, [self.elements(place)] + ([] if is_masked else given))
        if is_masked or not place.view.is_whole(self.tensors[place.parameter].tile_shape):
            return UNKNOWN
        tile = TileRef(parameter=place.parameter, indices=place.indices)
        changed = self.loaded(at(tile, place), False)
        for each in given:
            self.pairs(node, each, changed, is_store=True)
        return changed

    # Ways that a program may go.

    def decided(self, test: ast.expr, is_of_loop: bool = False) -> tuple[Loop, Loop] | None:
        """See `either_way`; of the same condition they are the same loops."""
        loops = either_way(test, self.integers, self.numbers, self.kinds, is_of_loop)
        if loops is None:
            return None
        decision = loops[0].decision
        if decision is None:
            return self.ways_of.setdefault(loops[0].count, loops)
        is_of_data = decision.test is None
        condition = decision.condition if is_of_data else key_of(decision.test)
        return self.ways_of.setdefault(condition, loops)

    def within(self, loop: Loop, walk: Callable[[], Result]) -> Result:
        """Walks what stands in a loop alone, and forgets what it made known."""
        loops, known, integers, numbers = self.loops, self.known, self.integers, self.numbers
        self.loops = (*loops, loop)
        self.known, self.integers, self.numbers = dict(known), dict(integers), dict(numbers)
        result = walk()
        self.loops, self.known, self.integers, self.numbers = loops, known, integers, numbers
        return result

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
        indices = tuple(map(self.integer, tile.indices))
        known = {leaf for at in indices if at is not None for leaf in at.leaves()}
        # Those of the others matter where they end, to what has got it: there they are added.
        loops = tuple(loop for loop in self.loops if loop.round in known)
        use = Use(tile.parameter, indices, loops)
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
        is_so = outcome(node.test, self.holds)
        if is_so is not None:
            return self.value(node.body if is_so else node.orelse)
        loops = self.decided(node.test)
        values = [functools.partial(self.value, part) for part in (node.body, node.orelse)]
        if loops is None:
            one, other = self.in_all(values)
            return loaded_values.in_both(one, other)
        one, other = map(self.within, loops, values)
        return loaded_values.either(one, other, loops)

    def visit_kept(self, node: Kept) -> Known:
        """Where a round of an unrolled loop has no element there is what was before it."""
        return loaded_values.in_both(self.value(node.value), self.value(node.before))

    def visit_function(self, node: ast.Call) -> Known:
        if place_changed(node):
            return self.atomic(node)
        operation, arguments = operation_of(node), Arguments(self, node)
        if operation is None or operation.shape == "counted":
            return UNKNOWN
        if operation.takes_function:
            return self.combined(arguments, operation)
        if operation.shape == "product":
            return self.product(node, arguments, operation)
        if operation.shape in ("broadcast", "mapped"):
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
                    self.pair(node, a, b, [(a.layout[-1], b.layout[-2]), *batch])
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
        result = results[0] if value.items is None else Known(items=results)
        if operation.kind == "reduction":
            result = loaded_values.along_halves(arguments, operation, result)
        return loaded_values.of_loads(result)

    def integer(self, node: ast.expr | None) -> Symbol | None:
        return size_expressions.integer(node, self.integers)


_VISITS: dict[type, Callable[[Values, Any], Known]] = {
    ast.BinOp: Values.visit_together,
    ast.Compare: Values.visit_together,
    ast.BoolOp: Values.visit_together,
    ast.IfExp: Values.visit_chosen,
    ast.Call: Values.visit_function,
    SourceLoad: Values.visit_gathered,
    Kept: Values.visit_kept,
}
