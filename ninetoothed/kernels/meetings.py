"""Where loaded tiles meet in an application: element by element, in a product, or as they are stored.

The program is walked knowing which loads each value is made of; `marks` says how their dimensions
follow it. What stands under a condition of run time may never happen, and is not told of. Pure data:
`ninetoothed.kernels.agreement` compares the sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import Location
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.limits import Limit, Loop, Use, limits_of
from ninetoothed.language.operations import Operation
from ninetoothed.passes import remove_dead
from ninetoothed.passes.marks import (
    SCALAR,
    UNKNOWN,
    Mark,
    Marked,
    Origin,
    joined,
    met,
    with_rank,
)
from ninetoothed.passes.padding_arguments import Arguments
from ninetoothed.passes.padding_calls import RULES
from ninetoothed.passes.padding_values import Values
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.effects import names_assigned, operation_of
from ninetoothed.program.nodes import (
    ElementLoad,
    ElementPlace,
    ElementStore,
    SourceLoad,
    SourceStore,
    Store,
    SymbolValue,
    TileRef,
    location,
)
from ninetoothed.program.types import held_shape
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, index, make
from ninetoothed.symbols.operators import OPERATOR_OF_NODE

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two that meet.

    Attributes:
        use: the tile.
        dim: its dimension; None for the tile as a whole.
        limits: which of the elements exist there.
    """

    use: Use
    dim: int | None
    limits: frozenset[Limit]


@dataclass(frozen=True, eq=False)
class Meeting:
    """Two tiles that meet in a dimension.

    Attributes:
        sides: of a store, what is stored and where to.
        is_store: whether one is stored to the other.
        loops: around the place.
        location: of the place.
    """

    sides: tuple[Side, Side]
    is_store: bool
    loops: tuple[Loop, ...]
    location: Location


@analysis
def meetings(kernel: Definition) -> tuple[Meeting, ...]:
    """The meetings in a kernel whose sides' limits are not the same, whatever the sizes."""
    walk = _Walk(kernel)
    walk.block(walk.draft.body)
    return tuple(walk.found.values())


class _Walk(Values):
    """Follows the loads through a program, statement by statement; the key of a mark is its `Use`.

    Attributes:
        found: by the two that meet.
        sides: by tile and dimension.
        loops: around the statement at hand.
        is_certain: whether it runs, whatever the data.
        integers: the variables that are integers over sizes and rounds of loops.
    """

    def __init__(self, kernel: Definition) -> None:
        super().__init__(Draft(remove_dead.run(kernel.program)))
        self.kernel = kernel
        self.found: dict[tuple[Side, Side], Meeting] = {}
        self.sides: dict[tuple[Use, int | None], Side] = {}
        self.loops: tuple[Loop, ...] = ()
        self.is_certain = True
        self.integers: dict[str, Symbol] = {}

    # What is met.

    def meet(self, node: ast.AST, values: Sequence[Marked]) -> None:
        """Values whose lanes are combined one by one."""
        for place, one in enumerate(values):
            for other in values[place + 1 :]:
                self.pairs(node, one, other)

    def pairs(self, node: ast.AST, one: Marked, other: Marked, is_store: bool = False) -> None:
        for a in with_rank(one).marks:
            for b in with_rank(other).marks:
                dims = zip(reversed(a.layout), reversed(b.layout))
                self.pair(node, a, b, [(None, None), *dims], is_store)

    def pair(
        self,
        node: ast.AST,
        one: Mark,
        other: Mark,
        dims: Sequence[tuple[int | None, int | None]],
        is_store: bool = False,
    ) -> None:
        uses = one.key, other.key
        sources = [self.tensors[use.parameter].source for use in uses]
        if not self.is_certain or sources[0] is sources[1]:
            return
        for place, pair in enumerate(dims):
            if place and None in pair:
                # A dimension of size 1 meets all of another.
                continue
            a, b = (self.side(use, dim) for use, dim in zip(uses, pair))
            if (a, b) not in self.found and a.limits != b.limits:
                loops = tuple(dict.fromkeys((*self.loops, *uses[0].loops, *uses[1].loops)))
                self.found[a, b] = Meeting((a, b), is_store, loops, location(node))

    def elements(self, node: ElementLoad | ElementStore | ElementPlace) -> Marked:
        """Positions that a program selects may lie beyond on purpose: they are told nothing of."""
        return Marked(super().elements(node).shape)

    def side(self, use: Use, dim: int | None) -> Side:
        found = self.sides.get((use, dim))
        if found is None:
            found = Side(use, dim, limits_of(self.kernel, use, dim))
            self.sides[use, dim] = found
        return found

    # Statements.

    def block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            self.statement = statement
            if isinstance(statement, ast.If):
                self.value(statement.test)
                self.perhaps(statement.body, statement.orelse)
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
            operands = [self.known.get(statement.target.id, UNKNOWN), self.value(statement.value)]
            self.meet(statement, operands)
            self.assign(statement.target, joined(operands), None)
            return
        known = self.fields(statement)
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign):
            self.assign(statement.targets[0], known, self.integer(value))
        elif isinstance(statement, ast.AnnAssign):
            self.assign(statement.target, known, self.integer(value))

    def assign(self, target: ast.expr, value: Marked, number: Symbol | None) -> None:
        if isinstance(target, ast.Tuple):
            items = value.items or (UNKNOWN,) * len(target.elts)
            for element, item in zip(target.elts, items):
                self.assign(element, item, None)
        elif isinstance(target, ast.Name):
            self.known[target.id] = value
            self.integers.pop(target.id, None)
            if number is not None:
                self.integers[target.id] = number

    def perhaps(self, *blocks: list[ast.stmt]) -> None:
        """One of the blocks runs, nobody knows which."""
        before, was_certain, outcomes = dict(self.known), self.is_certain, []
        self.is_certain = False
        self.forget_integers(blocks)
        for block in blocks:
            self.known = dict(before)
            self.block(block)
            self.forget_integers(blocks)
            outcomes.append(self.known)
        one, other = outcomes
        self.known = {
            name: met(one[name], other[name], lambda a, b: True)
            for name in one.keys() & other.keys()
        }
        self.is_certain = was_certain

    def forget_integers(self, blocks: Sequence[Sequence[ast.stmt]]) -> None:
        for name in names_assigned([statement for block in blocks for statement in block]):
            self.integers.pop(name, None)

    def loop(self, statement: ast.For | ast.While) -> None:
        if isinstance(statement, ast.While):
            self.value(statement.test)
            self.perhaps(statement.body, [])
            return
        assert isinstance(statement.target, ast.Name) and isinstance(statement.iter, ast.Call)
        numbers = [self.integer(item) for item in statement.iter.args]
        name, outer = statement.target.id, self.loops
        self.forget_integers([statement.body])
        loop = Loop(index(name), _count(numbers))
        self.known[name] = SCALAR
        first, step = _first_and_step(numbers)
        if first is None or step is None or name in names_assigned(statement.body):
            self.integers.pop(name, None)
        else:
            self.integers[name] = first + step * loop.round
        self.loops = (*outer, loop)
        self.block(statement.body)
        self.loops = outer
        self.forget_integers([[statement]])
        for assigned in names_assigned(statement.body) & self.known.keys():
            self.known[assigned] = _after(self.known[assigned], loop)

    # Expressions.

    def value(self, node: ast.expr) -> Marked:
        return self.visit(node)[1]

    def visited(self, node: ast.expr) -> tuple[ast.expr, Marked]:
        method = _VISITS.get(type(node))
        return super().visited(node) if method is None else (node, method(self, node))

    def loaded(self, tile: TileRef, is_zero: bool) -> Marked:
        parameter = self.tensors[tile.parameter]
        shape = held_shape(parameter.tile_shape)
        if parameter.source.other is not None:
            return Marked(shape)
        use = Use(tile.parameter, tuple(map(self.integer, tile.indices)), self.loops)
        layout = tuple(None if size == 1 else dim for dim, size in enumerate(shape))
        return Marked(shape, (Mark(use, Origin(tile, self.statement), layout),))

    def masks(self, value: Marked, origin: ast.AST, but_zero: bool) -> list[ast.expr]:
        """None: nothing is put into the program."""
        return []

    def visit_together(self, node: ast.BinOp | ast.Compare) -> Marked:
        right = node.right if isinstance(node, ast.BinOp) else node.comparators[0]
        operands = [self.value(node.left), self.value(right)]
        self.meet(node, operands)
        return joined(operands)

    def visit_gathered(self, node: SourceLoad) -> Marked:
        operands = self.addressed(node)
        self.meet(node, operands)
        return joined(operands)

    def visit_chosen(self, node: ast.IfExp) -> Marked:
        self.value(node.test)
        was_certain, self.is_certain = self.is_certain, False
        one, other = self.value(node.body), self.value(node.orelse)
        self.is_certain = was_certain
        return met(one, other, lambda a, b: True)

    def visit_function(self, node: ast.Call) -> Marked:
        operation, arguments = operation_of(node), Arguments(self, node)
        if operation is None or operation.takes_function or operation.shape == "counted":
            return UNKNOWN
        if operation.shape == "product":
            return self.product(node, arguments, operation)
        if operation.shape == "broadcast":
            self.meet(node, [*arguments.values.values(), *arguments.named.values()])
        rule = RULES.get(operation.shape)
        return UNKNOWN if rule is None else _of_loads(rule(arguments, operation))

    def product(self, node: ast.Call, arguments: Arguments, operation: Operation) -> Marked:
        """The last dimension of one meets the last but one of the other, and both are gone."""
        one, other = with_rank(arguments.known(0)), with_rank(arguments.known(1))
        for a in one.marks:
            for b in other.marks:
                if len(a.layout) >= 2 and len(b.layout) >= 2:
                    batch = zip(a.layout[:-2], b.layout[:-2])
                    self.pair(node, a, b, [(None, None), (a.layout[-1], b.layout[-2]), *batch])
        shape = RULES["product"](arguments, operation).shape
        marks = [replace(a, layout=(*a.layout[:-1], None)) for a in one.marks if a.layout]
        marks += [
            replace(b, layout=(*b.layout[:-2], None, b.layout[-1]))
            for b in other.marks
            if len(b.layout) >= 2
        ]
        result = Marked(shape, tuple(marks))
        added = arguments.named.get("acc", arguments.known(2))
        self.meet(node, [result, added])
        return joined([result, added])

    def integer(self, node: ast.expr | None) -> Symbol | None:
        """An integer over sizes and rounds of loops; None of anything else."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return constant(int(node.value))
        if isinstance(node, SymbolValue):
            return as_symbol(node.symbol)
        if isinstance(node, ast.Name):
            return self.integers.get(node.id)
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATOR_OF_NODE:
            left, right = self.integer(node.left), self.integer(node.right)
            if left is not None and right is not None:
                return make(OPERATOR_OF_NODE[type(node.op)], left, right)
        return None


_VISITS: dict[type, Callable[[_Walk, Any], Marked]] = {
    ast.BinOp: _Walk.visit_together,
    ast.Compare: _Walk.visit_together,
    ast.IfExp: _Walk.visit_chosen,
    ast.Call: _Walk.visit_function,
    SourceLoad: _Walk.visit_gathered,
}


def _first_and_step(numbers: Sequence[Symbol | None]) -> tuple[Symbol | None, Symbol | None]:
    """Of what ``range`` is given."""
    first = constant(0) if len(numbers) == 1 else numbers[0]
    return first, numbers[2] if len(numbers) > 2 else constant(1)


def _count(numbers: Sequence[Symbol | None]) -> Symbol | None:
    """How many rounds there are; None where that is not known, or not the same for all programs."""
    first, step = _first_and_step(numbers)
    last = numbers[0] if len(numbers) == 1 else numbers[1]
    if first is None or last is None or step is None or step.op != "const" or step == 0:
        return None
    if any(leaf.leaf.role == "index" for bound in (first, last) for leaf in bound.leaves()):
        return None
    size = step.operands[0]
    span = last - first if size > 0 else first - last
    return (span + (abs(size) - 1)) // constant(abs(size))


def _of_loads(value: Marked) -> Marked:
    """A value with the marks alone that loads left, and not what was made or moved."""
    items = None if value.items is None else tuple(map(_of_loads, value.items))
    marks = tuple(mark for mark in value.marks if isinstance(mark.key, Use))
    return replace(value, marks=marks, items=items)


def _after(value: Marked, loop: Loop) -> Marked:
    """What is known after a loop: which round a tile was of is not."""

    def left(mark: Mark) -> Mark:
        use: Use = mark.key
        indices = tuple(
            None if at is None or loop.round in set(at.leaves()) else at for at in use.indices
        )
        return replace(mark, key=replace(use, indices=indices))

    items = None if value.items is None else tuple(_after(item, loop) for item in value.items)
    return replace(value, marks=tuple(map(left, value.marks)), items=items)
