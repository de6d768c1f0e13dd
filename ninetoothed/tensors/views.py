"""Elements of a tile: which positions in it are selected, and where those lie in the source.

Each dimension of the tile is gone along (a slice), held at a position that is known now, or given
positions by the running program. Backends read the `Access` of a view as any other: its lanes go along
the slices, and each position that the program gives is one more selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_expression, as_symbol, maximum, minimum
from ninetoothed.symbols.simplify import difference_interval, simplify
from ninetoothed.tensors.access import Access, held_size, is_power_of_two, offset_of, positions
from ninetoothed.tensors.level import Level
from ninetoothed.tensors.meta_operation import Shape


@dataclass(frozen=True)
class Run:
    """A slice: ``count`` positions from ``start`` on, in steps.

    Attributes:
        is_within: whether all of them are known to be positions in the tile.
    """

    start: Expression
    step: int
    count: Expression
    is_within: bool = False


@dataclass(frozen=True)
class Fixed:
    """One position, known now."""

    position: Expression


@dataclass(frozen=True)
class Chosen:
    """A position, or a tile of them, that the running program gives."""


@dataclass(frozen=True)
class View:
    """Elements of a tile, by the tile's dimensions.

    A value of it has a dimension for each slice, and where the first chosen position stands those of
    what is chosen.
    """

    entries: tuple[Run | Fixed | Chosen, ...]

    @property
    def is_by_element(self) -> bool:
        """Whether it is a whole tile, of which a store leaves out what does not exist of its value."""
        return all(isinstance(entry, Run) and entry.is_within for entry in self.entries)

    @property
    def shape(self) -> Shape:
        """How long the slices are."""
        return tuple(entry.count for entry in self.entries if isinstance(entry, Run))

    @property
    def chosen(self) -> int:
        """For how many dimensions the program gives positions."""
        return sum(isinstance(entry, Chosen) for entry in self.entries)

    def is_whole(self, shape: Shape) -> bool:
        """Whether it takes all elements of a tile of this shape, each at its place."""
        return all(
            isinstance(entry, Run) and entry.start == 0 and entry.step == 1 and entry.count == size
            for entry, size in zip(self.entries, shape)
        )

    @property
    def before(self) -> int:
        """How many slices stand before what is chosen; all where nothing is."""
        count = 0
        for entry in self.entries:
            if isinstance(entry, Chosen):
                break
            count += isinstance(entry, Run)
        return count

    @property
    def symbols(self) -> tuple[Symbol, ...]:
        """What its sizes and positions are made of."""
        parts: list[Expression] = []
        for entry in self.entries:
            parts += [entry.start, entry.count] if isinstance(entry, Run) else []
            parts += [entry.position] if isinstance(entry, Fixed) else []
        return tuple(dict.fromkeys(leaf for part in parts for leaf in as_symbol(part).leaves()))


def run_of(bounds: slice, size: Expression) -> Run:
    """A slice of a dimension, as Python reads it.

    Raises:
        ValueError: it is empty, or goes backwards from elsewhere than the end.
    """
    step = 1 if bounds.step is None else bounds.step
    if not isinstance(step, int) or step == 0:
        raise ValueError("a slice's step is an integer that is known, and not 0")
    if step < 0:
        if bounds.start is not None or bounds.stop is not None:
            raise ValueError("a slice backwards takes the whole dimension, as `[::-1]` does")
        start, length = size - 1, size
    else:
        start = _bound(0 if bounds.start is None else bounds.start, size)
        stop = size if bounds.stop is None else _bound(bounds.stop, size)
        length = as_expression(simplify(as_symbol(stop) - start))
    count = as_expression(simplify((as_symbol(length) + (abs(step) - 1)) // abs(step)))
    if interval(count)[1] < 1 or _is_backwards(bounds):
        raise ValueError("it has no element")
    return Run(as_expression(simplify(as_symbol(start))), step, count)


def _is_backwards(bounds: slice) -> bool:
    """Whether a slice ends where it begins or before, whatever the size is."""
    start, stop = 0 if bounds.start is None else bounds.start, bounds.stop
    if not isinstance(start, int) or not isinstance(stop, int):
        return False
    return (start < 0) == (stop < 0) and stop <= start


def _bound(value: Expression, size: Expression) -> Expression:
    """A slice's bound: counted from the end where it is negative, and within the dimension."""
    if isinstance(value, int) and value < 0:
        found = as_expression(as_symbol(size) + value)
        # A tile's sizes are 1 or more.
        is_within = value == -1 or interval(found)[0] >= 0
        return found if is_within else as_expression(maximum(found, 0))
    rest = difference_interval(size, value)
    if rest[0] >= 0 or (isinstance(value, int) and value <= 1):
        return value
    return size if rest[1] <= 0 else as_expression(minimum(value, size))


def viewed(access: Access, tile_shape: Shape, view: View, source: Level) -> Access:
    """The access of a view of the tiles of an access.

    As every index, a chosen position is taken to be never negative: whoever reads the access leaves out
    those that are.

    The tile's own conditions come first, each at its place: what holds of every element of a tile holds
    of those that a view selects.
    """
    lanes = iter(positions("coordinate", tuple(map(held_size, view.shape))))
    chosen = iter(positions("element", (None,) * view.chosen))
    found: dict[Symbol, Symbol] = {}
    more: list[Symbol] = []
    holding: set[Symbol] = set()
    selections, used = [*access.selections], []
    for lane, size, entry in zip(access.coordinates, tile_shape, view.entries):
        if isinstance(entry, Run):
            used.append(next(lanes))
            gone = as_symbol(0) if entry.count == 1 else used[-1] * entry.step
            found[lane] = as_symbol(simplify(gone + entry.start))
            if interval(as_symbol(entry.start))[0] < 0:
                # Made of sizes: what turns out to be before the tile is beyond it.
                more.append(found[lane] >= 0)
            if not is_power_of_two(entry.count):
                more.append(used[-1] < as_symbol(entry.count))
            if entry.is_within:
                holding.add(lane < as_symbol(size))
            continue
        if isinstance(entry, Fixed):
            found[lane] = as_symbol(entry.position)
            more.append(found[lane] >= 0)
        else:
            selections.append(next(chosen))
            found[lane] = selections[-1]
        more.append(found[lane] < as_symbol(size))
    conditions = [
        as_symbol(True) if c in holding else as_symbol(simplify(c.substitute(found)))
        for c in access.conditions
    ]
    return replace(
        access,
        indices=_substituted(access.indices, found),
        conditions=(*conditions, *(as_symbol(simplify(condition)) for condition in more)),
        offset=offset_of(source, _substituted(access.indices, found)),
        selections=tuple(selections),
        coordinates=tuple(used),
    )


def _substituted(indices: Sequence[Symbol], found: dict[Symbol, Symbol]) -> tuple[Symbol, ...]:
    return tuple(as_symbol(simplify(each.substitute(found))) for each in indices)
