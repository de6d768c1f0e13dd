"""Source-to-target mapping: where the elements of a program's tile lie in their source.

One `Access` is the whole answer for one parameter: an index for each source dimension and the
conditions under which the element exists, over the program's position, the selections in middle
levels (``x[k]``) and the coordinates in the tile. Backends print it, evaluate it or bound it; nothing else
in the compiler computes an address.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ninetoothed.errors import ArrangementError
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import (
    Expression,
    Symbol,
    as_expression,
    as_symbol,
    constant,
    index,
    make,
    padded,
)
from ninetoothed.symbols.simplify import are_equal, difference_interval, simplify
from ninetoothed.tensors.level import Level, identity
from ninetoothed.tensors.meta_operation import Indices, MetaOperation, Shape


@dataclass(frozen=True)
class Access:
    """Where a tile's elements lie.

    Attributes:
        indices: for each dimension of the source, the element's index.
        conditions: comparisons that must all hold for the element to exist.
        offset: the element's distance from the source's first, in elements.
        programs: the program's position, one name for each outermost dimension.
        selections: the position in the middle levels, outermost first.
        coordinates: the position in the tile, one name for each of its dimensions.
        placed: the program's position in the tensor's outermost level.
    """

    indices: Indices
    conditions: tuple[Symbol, ...]
    offset: Symbol
    programs: Indices
    selections: Indices
    coordinates: Indices
    placed: Indices = ()

    def of(self, dim: int | None) -> Symbol:
        """An element's index along a source dimension; None: its offset."""
        return self.offset if dim is None else self.indices[dim]

    def first(self, values: Mapping[Symbol, int]) -> dict[Symbol, int]:
        """These values, and every position 0.

        Where a jagged tensor's sequences begin is not known; one may begin at 0.
        """
        sequences = [node for node in self.offset.walk() if node.op.startswith("sequence_")]
        positions = (*self.programs, *self.selections, *self.coordinates, *sequences)
        return {**values, **dict.fromkeys(positions, 0)}

    def bounds(self, place: int, size: Expression) -> bool:
        """Whether the conditions leave out what is selected beyond a middle level of this size.

        It may be another program's: of ``t.tile((4,)).tile((2,))`` the third tile is the next program's
        first. A tile of one row has no condition but that it is in its level.
        """
        selection = self.selections[place]
        # One of its name that no extent keeps below the size, or it would be said to be by that.
        free = {selection: index(selection.leaf.name)}
        conditions = [as_symbol(condition.substitute(free)) for condition in self.conditions]
        return not needed([free[selection] < as_symbol(size)], conditions)


def access_of(
    tensor: Level, programs: Indices | None = None, placed: Indices | None = None
) -> Access:
    """The access of a program of an arranged tensor.

    Args:
        programs: names of the program's position, to have several tensors share them.
        placed: the position in the tensor's outermost level; by default the program's.

    Raises:
        ArrangementError: the levels do not belong together.
    """
    levels = tensor.levels
    if programs is None:
        programs = positions("program", tensor.shape)
    middle, tile = levels[1:-1], levels[-1]
    tile_shape: Shape = tile.shape if len(levels) > 1 else ()
    if placed is None:
        placed = programs
    # Where the grid is of size 1 there is one position.
    placed = tuple(p.substitute({q: 0 for q in programs if q.leaf.extent == 1}) for p in placed)
    chosen = [positions(f"selection_{depth}", level.shape) for depth, level in enumerate(middle)]
    lanes = positions("coordinate", tile_shape)
    indices_of_levels = [placed, *chosen, *([lanes] if len(levels) > 1 else [])]
    indices, conditions = source_indices(tensor, indices_of_levels)
    facts = [
        position < as_symbol(size)
        for level, shape in zip(indices_of_levels, (level.shape for level in levels))
        for position, size in zip(level, shape)
    ]
    # The only lane of a dimension of size 1 decides nothing.
    only = {lane: 0 for lane, size in zip(lanes, tile_shape) if size == 1}
    known = [as_symbol(simplify(condition.substitute(only))) for condition in conditions]
    conditions = needed(known, facts)
    # A tile is padded to powers of two. So far a lane was taken to lie in the tile; from here on it
    # may lie beyond, or the conditions that see to it would be proved away.
    beyond = positions("coordinate", tuple(map(held_size, tile_shape)))
    is_in_tile = [
        lane < as_symbol(size)
        for lane, size in zip(beyond, tile_shape)
        if not is_power_of_two(size)
    ]
    renamed = dict(zip(lanes, beyond))
    indices = tuple(position.substitute(renamed) for position in indices)
    source = tensor.source
    return Access(
        indices,
        (*is_in_tile, *(condition.substitute(renamed) for condition in conditions)),
        offset_of(source, indices),
        programs,
        tuple(position for level in chosen for position in level),
        beyond,
        placed,
    )


def positions(name: str, shape: Sequence[Expression | None]) -> Indices:
    """A name for the position in each dimension of a level."""
    return tuple(index(f"{name}_{dim}", size) for dim, size in enumerate(shape))


def is_power_of_two(size: Expression) -> bool:
    """Whether a size is known to be a power of two.

    So it is where the tuner chooses it; what a call gives need not be as it was declared.
    """
    if isinstance(size, Symbol):
        return size.op == "leaf" and size.meta and size.power_of_two
    return size > 0 and size & (size - 1) == 0


def held_size(size: Expression) -> Expression:
    """How many elements a dimension of a tile is held in."""
    return size if is_power_of_two(size) else as_expression(padded(size))


def source_indices(tensor: Level, indices: Sequence[Indices]) -> tuple[Indices, list[Symbol]]:
    """The source's indices at the given indices of a tensor's levels, and the conditions.

    Follows the chain of meta-operations from the levels back to the source.
    """
    conditions: list[Symbol] = []
    result = tuple(indices[0])
    for operation, _, operands in steps(tensor, indices):
        conditions += operation.conditions(*operands)
        result = operands[0]
    source = tensor.source
    if source.jagged_dim is not None:
        conditions = _jagged_conditions(source, result, conditions)
    return result, conditions


def steps(
    tensor: Level, indices: Sequence[Indices]
) -> Iterator[tuple[MetaOperation, list[Indices], Sequence[Indices]]]:
    """The meta-operations that made a tensor, the last one first.

    Each with the indices of the levels that it made and of those that it was given.
    """
    current: list[tuple[Level, Indices]] = list(zip(tensor.levels, indices))
    while not (len(current) == 1 and current[0][0].origin is None):
        step = _step(current)
        if step is None:
            raise ArrangementError(
                f"the levels of {tensor!r} do not belong together: an inner level was assigned "
                "from another tensor or from before the tile; rearrange the level that is there, "
                "as in `t.dtype = t.dtype.squeeze(0)`"
            )
        start, stop = step
        origin = current[start][0].origin
        assert origin is not None
        taken = [position for _, position in current[start:stop]]
        operands = origin.operation.operand_indices(*taken)
        yield origin.operation, taken, operands
        current[start:stop] = list(zip(origin.operands, operands))


def _step(current: list[tuple[Level, Indices]]) -> tuple[int, int] | None:
    """The levels that one operation made, as a range of ``current``; None if there are none."""
    for start, (level, _) in enumerate(current):
        origin = level.origin
        if origin is None:
            continue
        count = len(origin.operation.shapes)
        made = [entry.origin for entry, _ in current[start : start + count]]
        if len(made) == count and all(
            other is not None and other.operation is origin.operation and other.result == position
            for position, other in enumerate(made)
        ):
            return start, start + count
    return None


def offset_of(source: Level, indices: Indices) -> Symbol:
    """The distance of an element from the source's first, in elements."""
    total = constant(0)
    for dim, (position, stride) in enumerate(zip(indices, source.strides)):
        if source.jagged_dim is not None:
            if dim == 0:
                continue
            if dim == source.jagged_dim:
                position = position + sequence_start(source, indices[0])
        total = total + position * stride if total != 0 else position * as_symbol(stride)
    return total


def sequence_start(source: Level, sequence: Symbol) -> Symbol:
    """Where a jagged tensor's sequence begins in the packed values."""
    return make("sequence_start", identity(source), sequence)


def sequence_length(source: Level, sequence: Symbol) -> Symbol:
    """How long a jagged tensor's sequence is."""
    return make("sequence_length", identity(source), sequence)


def reads_sequences(expression: Symbol) -> bool:
    """Whether an expression depends on where a jagged tensor's sequence begins, or how long it is."""
    return any(part.op in ("sequence_start", "sequence_length") for part in expression.walk())


def sequence_of(access: Access) -> Symbol | None:
    """Which of a jagged tensor's sequences a program's tiles are of; None where of several."""
    chosen = (*access.selections, *access.coordinates)
    only = {position: 0 for position in chosen if position.leaf.extent == 1}
    sequence = as_symbol(simplify(access.indices[0].substitute(only)))
    return None if any(leaf in chosen for leaf in sequence.leaves()) else sequence


def _jagged_conditions(source: Level, indices: Indices, conditions: list[Symbol]) -> list[Symbol]:
    """A sequence's own length bounds it, not that of the longest."""
    jagged = source.jagged_dim
    assert jagged is not None
    longest = as_symbol(source.shape[jagged])
    kept = [
        c for c in conditions if not (c.operands[0] is indices[jagged] and c.operands[1] is longest)
    ]
    return [*kept, indices[jagged] < sequence_length(source, indices[0])]


def needed(conditions: Iterable[Symbol], facts: Iterable[Symbol] = ()) -> list[Symbol]:
    """The conditions, as they are given, without those that always hold and those that others imply.

    Args:
        facts: conditions that are known to hold.
    """
    known = tuple(facts)
    unique: dict[Symbol, Symbol] = {}
    for condition in conditions:
        simplified = as_symbol(simplify(condition))
        if simplified.op == "const" and simplified.operands[0]:
            continue
        unique.setdefault(simplified, condition)
    result = list(unique)
    for condition in list(result):
        others = [other for other in result if other is not condition]
        if any(_implies(other, condition) for other in (*known, *others)):
            result = others
    return [unique[condition] for condition in result]


@functools.lru_cache(maxsize=4096)
def _implies(stronger: Symbol, weaker: Symbol) -> bool:
    """Whether one condition's holding shows that the other holds."""
    if stronger.op != "<" or weaker.op != "<":
        return False
    if not _names(weaker) <= _names(stronger):
        return False
    (a, b), (c, d) = stronger.operands, weaker.operands
    # a < b shows c < d where d - c is at least b - a.
    if difference_interval(d - c, b - a)[0] >= 0:
        return True
    # a < d * s shows a // s < d.
    if c.op == "//" and are_equal(d * c.operands[1], b):
        return difference_interval(a, c.operands[0])[0] >= 0
    # c * s + r < n with r >= 0 shows c < ceil(n / s).
    if d.op == "//":
        total, step = d.operands
        if are_equal(total, b + step - 1):
            return difference_interval(a, c * step)[0] >= 0
    return False


@functools.lru_cache(maxsize=4096)
def _names(condition: Symbol) -> frozenset[Symbol]:
    return frozenset(condition.leaves())
