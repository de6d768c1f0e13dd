"""Whether a value is made of tiles of which one may lack elements where another has them.

Each call is checked for it that tiles which meet have the same elements, as far as sizes decide. What that leaves
alone is told here: positions that `pad` adds or a window has beyond the end, sequences, another tile of a
tensor, an element of a short one, a last tile beside one that all programs share.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import size_expressions
from ninetoothed.kernels.meetings.limits import Limit, Use, lane_of, limits_of
from ninetoothed.kernels.meetings.values import Values
from ninetoothed.passes.padding.validity import Known, joined, typed, with_rank
from ninetoothed.program.effects import operation_of
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.nodes import ElementLoad, ElementPlace, ElementStore, TileRef, clone
from ninetoothed.program.tile_masks import Origin, TileMask
from ninetoothed.program.types import held, held_shape
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, index
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.access import positions, steps
from ninetoothed.tensors.metaops import Pad, Tile
from ninetoothed.tensors.views import Fixed

#: What says which of a value's elements exist: its dimensions, and the limit's position without its size.
Rule = tuple[tuple[int, ...], Any, Any]

#: The kinds of operations after which elements may be where the tile that they came from has none.
_MOVING = frozenset({"movement", "sort", "rearrangement"})


@dataclass(frozen=True)
class Summed(Use):
    """A tile that a loop added to a variable: that has elements where the tile has none."""


@dataclass(frozen=True)
class Moved(Use):
    """A tile of which the elements are in other lanes, or one alone: which exist is not followed."""


@dataclass(frozen=True)
class Element(Moved):
    """An element of a tile, or several, at a position.

    Attributes:
        variable: that has it, whether or not it exists.
    """

    variable: str = ""


class Existing(Values):
    """Follows which tiles the variables of a program are made of, element by element.

    Args:
        inputs: the tensors of which it is told that they have elements where others have none.

    Attributes:
        asked: the variables of elements at positions of which it makes a difference whether they exist.
    """

    def __init__(self, kernel: Definition, inputs: Collection[str]) -> None:
        super().__init__(kernel)
        self.inputs = inputs
        self.asked: set[str] = set()
        self.by_size: set[Symbol] = set()
        self.last: dict[Symbol, Symbol | None] = {}

    # Statements.

    def assign(self, target: str, value: ast.expr) -> None:
        known = self.value(value)
        self.get(ast.Name(id=target, ctx=ast.Store()), typed(known, held(known.type)))
        integer = self.integer(value)
        self.integers.pop(target, None)
        if integer is not None:
            self.integers[target] = integer

    def add(self, target: str, known: Known) -> None:
        """``target += value`` in a loop: where the value has no element, the variable keeps its own."""
        old = self.known[target]
        summed = [
            replace(mask, key=Summed(mask.key.parameter, mask.key.indices, ()))
            for mask in known.validity
        ]
        found = joined([old, replace(known, validity=tuple(summed))])
        self.known[target] = replace(old, validity=found.validity)

    def choose(self, target: str, node: ElementLoad) -> None:
        """A variable has what a tile has at a position."""
        known, there = self.known[target], self.elements(node)
        own = [
            replace(mask, key=Element(node.parameter, (None,), (), target))
            for mask in there.validity
            if isinstance(mask.key, Moved)
        ]
        found = joined([known, replace(there, validity=tuple(own))])
        self.known[target] = replace(known, validity=found.validity)

    def begin(self, variable: str, iterable: ast.expr) -> None:
        """Begins the rounds of a loop."""
        loop = ast.For(ast.Name(id=variable, ctx=ast.Store()), iterable, [], [])
        counts, _ = size_expressions.rounds(loop, self.integers)
        self.get(loop.target, typed(Known(), self.types.of(ast.Constant(0))))
        number = index(counts.name)
        value = counts.value(number)
        if value is not None:
            self.integers[variable] = value
            if counts.count is not None and list(counts.count.leaves()):
                self.by_size.add(number)
            self.last[number] = None if counts.count is None else as_symbol(counts.count - 1)

    # Expressions.

    def pair(self, *given: Any, **named: Any) -> None:
        """Where tiles meet is not asked here."""

    def loaded(self, tile: TileRef, is_zero: bool) -> Known:
        shape = held_shape(self.tensors[tile.parameter].tile_shape)
        use = Use(tile.parameter, tuple(map(self.integer, tile.indices)), ())
        layout = tuple(None if size == 1 else dim for dim, size in enumerate(shape))
        return Known(validity=(TileMask(use, Origin(tile, self.statement), layout),))

    def elements(self, node: ElementLoad | ElementStore | ElementPlace) -> Known:
        found, parameter = super().elements(node), self.tensors[node.parameter]
        places = [each.position if isinstance(each, Fixed) else None for each in node.view.entries]
        if parameter.has_first_elements and all(each == 0 for each in places):
            return found
        shape = self.types.view_shape(node) or ()
        use = Moved(node.parameter, (None,), ())
        layout = tuple(range(len(shape)))
        return joined(
            [found, Known(validity=(TileMask(use, Origin(node, self.statement), layout),))]
        )

    def visited(self, node: ast.expr) -> tuple[ast.expr, Known]:
        method = _VISITS.get(kind_of(node))
        return super().visited(node) if method is None else (node, method(self, node))

    def visit_chosen(self, node: ast.IfExp) -> Known:
        self.value(node.test)
        return joined([self.value(node.body), self.value(node.orelse)])

    def visit_function(self, node: ast.Call) -> Known:
        operation = operation_of(node)
        if operation is None or operation.kind not in _MOVING:
            return super().visit_function(node)
        parts = [*node.args, getattr(node.func, "value", None)]
        # As they are, before the rule for padding makes others of them.
        given = [self.value(clone(each)) for each in parts if isinstance(each, ast.expr)]
        result = super().visit_function(node)
        left = {mask.key.parameter for mask in result.validity}
        lost = [
            replace(mask, key=Moved(mask.key.parameter, (None,), ()), layout=())
            for each in given
            for mask in each.validity
            if mask.key.parameter not in left
        ]
        return replace(result, validity=(*result.validity, *lost))

    # What lacks elements.

    def having_more(self, *values: Known) -> frozenset[str]:
        """The inputs of which a value has elements where it has none of another's."""
        rank = max((value.rank for value in values), default=0)
        masks = [mask for value in values for mask in with_rank(value, rank).validity]
        self.asked |= {mask.key.variable for mask in masks if isinstance(mask.key, Element)}
        return frozenset(
            one.key.parameter
            for one in masks
            if one.key.parameter in self.inputs and any(self.lacks(other, one) for other in masks)
        )

    def having_more_of_factors(self, one: Known, other: Known) -> frozenset[str]:
        """The same of what `dot` is given: along the dimension that it sums over, elements of both meet."""
        along = [
            Known(
                validity=tuple(
                    replace(mask, layout=(mask.layout[place],))
                    for mask in with_rank(each).validity
                    if len(mask.layout) >= -place
                )
            )
            for each, place in ((one, -1), (other, -2))
        ]
        return self.having_more(one) | self.having_more(other) | self.having_more(*along)

    def lacks(self, mask: TileMask, other: TileMask) -> bool:
        """Whether a tile may lack elements where another has them."""
        use, of_other = mask.key, other.key
        if isinstance(use, Summed) or self._has_all(use) or mask.place == other.place:
            return False
        if isinstance(use, Moved) or isinstance(of_other, Moved):
            return True
        dims = {dim for dim, own in enumerate(other.layout) if own is not None}
        if not dims:
            return False
        if self._has_all(of_other) or None in use.indices:
            return True
        parameter = self.tensors[use.parameter]
        if not _are_decided(parameter) and not self._are_alike(mask, other):
            return True
        theirs = {rule for rule, _ in self._rules(other)}
        return any(
            rule not in theirs
            for rule, limit in self._rules(mask)
            if (not rule[0] or not dims.isdisjoint(rule[0])) and not self._always_holds(limit)
        )

    def _has_all(self, use: Use) -> bool:
        return self.tensors[use.parameter].source.other is not None

    def _rules(self, mask: TileMask) -> Iterator[tuple[Rule, Limit]]:
        """What says which elements of a tile exist, in the dimensions of a value."""
        followed = [(dim, own) for dim, own in enumerate(mask.layout) if own is not None]
        own_dims = tuple(own for _, own in followed)
        asked: list[Sequence[tuple[int, int]]] = [(), *([pair] for pair in followed)]
        if len(own_dims) > 1:
            asked.append(followed)
        for pairs in asked:
            place = tuple(dim for dim, _ in pairs)
            for limit in limits_of(self.kernel, mask.key, tuple(own for _, own in pairs)):
                yield (place, limit.factors, limit.shift), limit

    def _always_holds(self, limit: Limit) -> bool:
        """Whether no round of the loops around comes to where a tile is beyond its level.

        A loop over as many rounds as a size says is taken to be over the tiles that it selects.
        """
        leaves = {leaf for leaf, _ in limit.factors}
        if leaves <= self.by_size and limit.shift == 0:
            return all(factor == 1 for _, factor in limit.factors)
        greatest: Any = 0
        for leaf, factor in limit.factors:
            last = self.last.get(leaf)
            if last is None or interval(factor)[0] < 0:
                return False
            greatest = greatest + factor * last
        return interval(difference(limit.size, greatest))[0] > 0

    def _are_alike(self, mask: TileMask, other: TileMask) -> bool:
        pair = mask.key, other.key
        return mask.layout == other.layout and are_alike(self.kernel, *pair)


_VISITS: dict[type, Callable[[Existing, Any], Known]] = {
    ast.IfExp: Existing.visit_chosen,
    ast.Call: Existing.visit_function,
}

_NAMED: dict[str, Symbol] = {}


def named(text: str) -> Symbol:
    """What stands for a size or an index: one symbol for each text, whichever thread is first."""
    if text not in _NAMED:
        _NAMED.setdefault(text, index(text))
    return _NAMED[text]


def are_alike(kernel: Definition, *uses: Use) -> bool:
    """Whether positions were added to tiles in one way, so that sizes alone tell which elements they have."""
    return len({_conditions(kernel, use) for use in uses}) == 1


def _are_decided(parameter: Any, but_for: type | None = None) -> bool:
    """Whether sizes alone decide which elements tiles have, but for those that some operations leave out."""
    if parameter.is_by_size or parameter.source.jagged_dim is not None:
        return bool(parameter.is_by_size)
    taken = [positions(f"level_{depth}", shape) for depth, shape in enumerate(parameter.levels)]
    return all(
        (but_for is not None and isinstance(operation, but_for))
        or operation.conditions(*operands) == operation.conditions_of_sizes(*operands)
        or (isinstance(operation, Tile) and _fits(operation))
        for operation, _, operands in steps(parameter.tensor, taken)
    )


def _fits(tile: Tile) -> bool:
    """Whether windows overlap so that none is beyond the end: each position begins one that fits."""
    sizes = zip(tile.whole, tile.tile_shape, tile.strides, tile.dilation)
    return tile.floor_mode or all(
        whole or stride == 1 or (stride == size and step == 1)
        for whole, size, stride, step in sizes
    )


def _conditions(kernel: Definition, use: Use) -> Any:
    """Which elements a tile has, whatever the sizes are; that of no other where more than sizes decides."""
    parameter = kernel.program.parameter(use.parameter)
    access = kernel.arrangement.accesses[use.parameter]
    if None in use.indices or not _are_decided(parameter, but_for=Pad):
        return use
    sizes = {as_symbol(n): named(f"size_{dim}") for dim, n in enumerate(parameter.source.shape)}
    lanes = {lane: lane_of(dim) for dim, lane in enumerate(access.coordinates)}
    chosen = {leaf: at for leaf, at in zip(access.selections, use.indices) if at is not None}
    known = {**sizes, **lanes, **chosen}
    return frozenset(simplify(condition.substitute(known)) for condition in access.conditions)
