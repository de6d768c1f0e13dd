"""Which elements of a loaded tile exist, as far as sizes decide it: what the rule of meeting compares.

A *limit* says that elements exist where a position is below a size, as ``BLOCK_SIZE * k + lane`` below
``input_size_1``. Those of one dimension of a tile are all of its access's conditions that know of no
other lane, and that its lanes are within the tile; those of several dimensions together are the conditions
that know of more than one. How long a sequence is only data tell; up to the longest one's end elements exist.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ninetoothed import threads
from ninetoothed.errors import Location
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import decisions, size_expressions
from ninetoothed.kernels.meetings.decisions import Decision
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, constant, index
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.access import Access, positions, steps
from ninetoothed.tensors.arrange import Parameter

#: A position, the size that it must be below, and whether the size alone decides.
Condition = tuple[Symbol, Symbol, bool]

_LANES: dict[int, Symbol] = {}


def lane_of(place: int) -> Symbol:
    """The lane in one of the dimensions that are asked about: one symbol, whichever thread is first."""
    if place not in _LANES:
        _LANES.setdefault(place, index(f"lane_{place}"))
    return _LANES[place]


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop around a place; each is itself alone.

    Attributes:
        round: the number of the round at hand, from 0.
        count: how many rounds there are; None where no size tells.
        decision: what it depends on whether it has a round.
    """

    round: Symbol
    count: Symbol | None
    decision: Decision | None = None


@dataclass(frozen=True)
class Use:
    """A tile that is loaded.

    Attributes:
        parameter: whose.
        indices: what selects it, over sizes and rounds of loops; None where it is not followed.
        loops: those by whose rounds it is selected, and those without a round of which a value has none of it.
    """

    parameter: str
    indices: tuple[Symbol | None, ...]
    loops: tuple[Loop, ...]

    def within(self, loop: Loop) -> Use:
        """The same where there is a round of a loop."""
        return replace(self, loops=tuple(dict.fromkeys((*self.loops, loop))))


@dataclass(frozen=True)
class Limit:
    """Elements exist where a position is below ``size``.

    Attributes:
        factors: of what the position is the sum of: rounds of loops, `lane_of`, indices of the program,
            and what is made of them otherwise, as ``program // size`` where a level is flattened.
        shift: by how much what selects the tile moves it: of ``x[k + 1]`` a tile.
        size: of the tensor, or of the tile, less what is added to the position.
        is_by_size: whether the size alone decides. A position that `pad` adds, or that a window
            has beyond the end, may be meant to be there.
        total: the size before what is added to the position was taken off.
    """

    factors: frozenset[tuple[Symbol, Expression]]
    shift: Expression
    size: Symbol
    is_by_size: bool
    total: Symbol

    def where(self, chosen: Mapping[Symbol, int]) -> Limit:
        """The limit with what is chosen put in."""
        return Limit(
            frozenset(
                (as_symbol(leaf.substitute(chosen)), simplify(as_symbol(by).substitute(chosen)))
                for leaf, by in self.factors
            ),
            simplify(as_symbol(self.shift).substitute(chosen)),
            as_symbol(simplify(self.size.substitute(chosen))),
            self.is_by_size,
            as_symbol(simplify(self.total.substitute(chosen))),
        )

    @threads.cached_property
    def parts(self) -> frozenset[Symbol]:
        """The indices that it is no sum of, but of what is made of them."""
        made = [leaf for leaf, _ in self.factors if leaf.op != "leaf"]
        return frozenset(leaf for part in made for leaf in _indices(part))

    @property
    def is_flattened(self) -> bool:
        """Whether its position is more than a sum of indices, as where a level was flattened."""
        return bool(self.parts)

    @threads.cached_property
    def indices(self) -> frozenset[Symbol]:
        """All the indices that its position knows of."""
        return frozenset(index for leaf, _ in self.factors for index in _indices(leaf))

    @threads.cached_property
    def is_tuned(self) -> bool:
        """Whether how far it reaches depends on what the tuner chooses."""
        return any(leaf.meta for _, factor in self.factors for leaf in as_symbol(factor).leaves())

    @threads.cached_property
    def is_of_tile(self) -> bool:
        """Whether the size itself is what the tuner chooses."""
        return any(leaf.meta for leaf in self.size.leaves())


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two that meet.

    Attributes:
        use: the tile.
        dims: its dimension, or several that are met together; none for the tile as a whole.
        limits: which of the elements exist there.
    """

    use: Use
    dims: tuple[int, ...]
    limits: frozenset[Limit]

    @threads.cached_property
    def in_order(self) -> list[Limit]:
        """The limits, in one order whatever a set's is: first those by sizes of tensors, which are told of."""
        return sorted(self.limits, key=lambda each: (each.size.op == "const", each.size.sort_key))


#: What two sides that meet differ by: the place of the one that ends, its limit, and the other one's, None where
#: that is at positions of its own.
Differing = tuple[int, Limit, Limit | None]


@dataclass(frozen=True, eq=False)
class Meeting:
    """Two tiles that meet in a dimension, or in several together.

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

    def is_spread(self, widths: Sequence[int | None]) -> bool:
        """Whether of these sizes of the two, one of 1 is spread over the other: to what is stored, none is."""
        stored, place = widths
        return stored != place and (stored == 1 or (place == 1 and not self.is_store))


def either_way(
    test: ast.expr,
    integers: size_expressions.Integers,
    numbers: decisions.Numbers,
    kinds: decisions.Kinds,
    is_of_loop: bool,
) -> tuple[Loop, Loop] | None:
    """Loops that have a round where a condition holds, and where not; None where positions decide."""
    holds = size_expressions.condition(test, integers)
    if holds is not None:
        return Loop(index("if"), holds), Loop(index("if"), 1 - holds)
    number = decisions.number(test, numbers)
    if number is None and not kinds.is_of_data(test, is_of_loop):
        return None
    # Those that data decide run once or not at all; that of numbers no size tells.
    count = constant(1) if number is None else None
    one, other = (Decision(number, test, holds) for holds in (True, False))
    return Loop(index("if"), count, one), Loop(index("if"), count, other)


def in_each(alternatives: Sequence[Sequence[Meeting]]) -> Iterator[Meeting]:
    """What meets in each of several alternatives, with the loops around all of its places."""
    first, *others = alternatives
    by_sides: list[dict[frozenset[Side], list[Meeting]]] = [{} for _ in others]
    for found, meetings in zip(by_sides, others):
        for meeting in meetings:
            found.setdefault(frozenset(meeting.sides), []).append(meeting)
    for meeting in first:
        alike = [found.get(frozenset(meeting.sides), []) for found in by_sides]
        if all(alike):
            own = {*meeting.loops}
            # Of several places in an alternative, the one that asks the least beside.
            nearest = [min(each, key=lambda one: len({*one.loops} - own)) for each in alike]
            loops = [loop for each in (meeting, *nearest) for loop in each.loops]
            yield replace(meeting, loops=tuple(dict.fromkeys(loops)))


@analysis
def limits_of(kernel: Definition, use: Use, dims: tuple[int, ...]) -> frozenset[Limit]:
    """The limits along a dimension of a tile, along several together, or with none those of the tile as a whole."""
    access = kernel.arrangement.accesses[use.parameter]
    chosen = {leaf: at for leaf, at in zip(access.selections, use.indices) if at is not None}
    shape = kernel.program.parameter(use.parameter).tile_shape
    if [shape[dim] for dim in dims] == [1]:
        one = _limit(lane_of(0), {}, constant(1), True)
        return frozenset() if one is None else frozenset({one})
    found = set()
    for lanes, (position, size, is_by_size) in _limits(kernel, use.parameter):
        known = set(lanes.values())
        is_asked = known == {*dims} if len(dims) < 2 else len(known) > 1 and known <= {*dims}
        if is_asked and chosen.keys() >= set(position.leaves()).intersection(access.selections):
            named = {lane: lane_of(dims.index(dim)) for lane, dim in lanes.items()}
            found.add(_limit(as_symbol(position.substitute(named)), chosen, size, is_by_size))
    return frozenset(limit for limit in found if limit is not None)


@analysis
def _limits(kernel: Definition, name: str) -> list[tuple[dict[Symbol, int], Condition]]:
    """What must hold of a parameter's tiles, over the selections in its levels.

    Each with the lanes that it knows of, and their dimensions.
    """
    parameter: Parameter = kernel.program.parameter(name)
    access = kernel.arrangement.accesses[name]
    lanes = positions("coordinate", parameter.tile_shape)
    only = {lane: 0 for lane, size in zip(lanes, parameter.tile_shape) if size == 1}
    found: list[tuple[dict[Symbol, int], Condition]] = []
    for position, size, is_by_size in _conditions(parameter, access, lanes):
        while position.op == "//":
            # a // s < n is a < n * s.
            position, divisor = position.operands
            size = as_symbol(simplify(size * divisor))
        position = as_symbol(simplify(position.substitute(only)))
        leaves = set(position.leaves())
        dims = {lane: dim for dim, lane in enumerate(lanes) if lane in leaves}
        if dims or leaves & set(access.selections):
            found.append((dims, (position, size, is_by_size)))
    return found


def _conditions(
    parameter: Parameter, access: Access, lanes: tuple[Symbol, ...]
) -> Iterator[Condition]:
    tensor, rest = parameter.tensor, iter(access.selections)
    assert tensor is not None
    middle = [tuple(next(rest) for _ in shape) for shape in parameter.middle_levels]
    tile = [lanes] if len(parameter.levels) > 1 else []
    source = tensor.source
    # Of sequences it is the longest one's end, and data tell which others end before.
    longest = set() if source.jagged_dim is None else {as_symbol(source.shape[source.jagged_dim])}
    for operation, _, operands in steps(tensor, [access.placed, *middle, *tile]):
        decided = operation.conditions_of_sizes(*operands)
        for condition in operation.conditions(*operands):
            if condition.op == "<":
                is_by_size = condition in decided and longest.isdisjoint(
                    condition.operands[1].leaves()
                )
                yield (*condition.operands, is_by_size)
    for lane, size in zip(lanes, parameter.tile_shape):
        yield lane, as_symbol(size), longest.isdisjoint(as_symbol(size).leaves())


def _limit(
    position: Symbol, chosen: Mapping[Symbol, Symbol], size: Symbol, is_by_size: bool
) -> Limit | None:
    """The limit of a position that is a sum of indices times factors.

    Args:
        chosen: what stands for the selections.
    """
    unmoved = as_symbol(simplify(position.substitute(dict.fromkeys(_indices(position), 0))))
    found = linear(as_symbol(simplify(position.substitute(chosen))))
    if found is None:
        return None
    factors, first = found
    simplified = frozenset((leaf, simplify(factor)) for leaf, factor in factors.items())
    return Limit(
        frozenset(entry for entry in simplified if entry[1] != 0),
        difference(first, unmoved),
        as_symbol(difference(size, first)),
        is_by_size,
        size,
    )


def linear(position: Symbol) -> tuple[dict[Symbol, Symbol], Symbol] | None:
    """The factors of what a position is a sum of, indices or made of them, and what is added to them."""
    if not _indices(position):
        return {}, position
    if position.op == "leaf":
        return {position: constant(1)}, constant(0)
    if position.op not in ("+", "-", "*", "neg"):
        return {position: constant(1)}, constant(0)
    parts = [linear(operand) for operand in position.operands]
    if None in parts:
        return None
    (one, first), *others = [part for part in parts if part is not None]
    if not others:
        return {leaf: -factor for leaf, factor in one.items()}, -first
    ((other, last),) = others
    if position.op == "*":
        if one and other:
            return None
        by = first if other else last
        return {leaf: factor * by for leaf, factor in (one or other).items()}, first * last
    if position.op == "-":
        other, last = {leaf: -factor for leaf, factor in other.items()}, -last
    zero = constant(0)
    both = {leaf: one.get(leaf, zero) + other.get(leaf, zero) for leaf in one.keys() | other.keys()}
    return both, first + last


def _indices(position: Symbol) -> list[Symbol]:
    return [leaf for leaf in position.leaves() if leaf.leaf.role == "index"]
