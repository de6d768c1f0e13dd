"""Where a level was flattened: limits whose positions are no sums of indices, looked at program by program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from ninetoothed.kernels.meetings.limits import Differing, Limit, Side, lane_of
from ninetoothed.symbols.expr import Symbol, evaluated

#: How many values an index is given at most, and how many positions are looked at.
_VALUES, _POSITIONS = 256, 4096

#: The lanes that a position is a sum of, with their factors.
Lanes = frozenset[tuple[Symbol, int]]


def differing(
    sides: Sequence[Side],
    is_store: bool,
    widths: Sequence[int],
    environment: Mapping[Symbol, int],
    counts: Mapping[Symbol, int],
) -> Differing | None:
    """What the two sides differ by, if a program has elements that only one of them has.

    Args:
        sides: of a store, what is stored and where to.
        widths: how many lanes both tiles have, in each dimension that meets.
        environment: the value of every symbol.
        counts: the number of programs along each dimension of the grid.
    """
    lanes = {lane_of(place): width for place, width in enumerate(widths)}
    flattened = [limit for side in sides for limit in side.limits if limit.is_flattened]
    if not flattened:
        return None
    # The lanes that are in no sum are looked at one by one.
    single = set[Symbol]().union(*(limit.parts for limit in flattened)) & lanes.keys()
    summed = {lane: width for lane, width in lanes.items() if lane not in single}
    one, other = (_by_lanes(side, summed, environment) for side in sides)
    for key in (key for key in one if key in other):
        limits = one[key], other[key]
        indices = set[Symbol]().union(*(limit.indices for side in limits for limit in side))
        known = {
            leaf: n for leaf, n in {**counts, **lanes}.items() if leaf in indices - summed.keys()
        }
        is_known = indices <= {*counts, *lanes} and all(by > 0 for _, by in key)
        if not is_known or not any(limit.is_flattened for side in limits for limit in side):
            continue
        room = 1 + sum(by * (summed[lane] - 1) for lane, by in key)
        for position in _positions(known, flattened, environment):
            numbers = {**environment, **dict.fromkeys(summed, 0), **position}
            ends = [[(_end(limit, numbers), limit) for limit in side] for side in limits]
            # Of what is stored there may be more than there is room for.
            for low, high in ((0, 1),) if is_store else ((0, 1), (1, 0)):
                sized = [entry for entry in ends[low] if entry[1].is_by_size]
                if not sized:
                    continue
                (most, lacking), (least, having) = (
                    min(sized, key=_first),
                    min(ends[high], key=_first),
                )
                if max(most, 0) < min(least, room):
                    return low, lacking, having
    return None


def _first(entry: tuple[float, Limit]) -> float:
    return entry[0]


def _by_lanes(
    side: Side, summed: Mapping[Symbol, int], environment: Mapping[Symbol, int]
) -> dict[Lanes, list[Limit]]:
    """The limits of a side, but those of a tile whose size the tuner chooses."""
    found: dict[Lanes, list[Limit]] = {}
    for limit in side.in_order:
        if not limit.is_of_tile:
            factors = [
                (leaf, evaluated(by, environment)) for leaf, by in limit.factors if leaf in summed
            ]
            found.setdefault(frozenset(entry for entry in factors if entry[1]), []).append(limit)
    return found


def _end(limit: Limit, numbers: Mapping[Symbol, int]) -> int:
    """Up to where the sum of a limit's lanes may go, at a position."""
    before = sum(evaluated(by, numbers) * evaluated(leaf, numbers) for leaf, by in limit.factors)
    return evaluated(limit.size, numbers) - before


def _positions(
    counts: Mapping[Symbol, int], limits: Sequence[Limit], environment: Mapping[Symbol, int]
) -> Iterator[dict[Symbol, int]]:
    """Values of indices: all of them where there are few, else the first, the last, and those beside row ends."""
    steps = {
        step
        for limit in limits
        for part, _ in limit.factors
        for node in part.walk()
        if node.op in ("//", "%")
        and not any(leaf.leaf.role == "index" for leaf in node.operands[1].leaves())
        if (step := evaluated(node.operands[1], environment)) > 1
    }
    values = []
    for count in counts.values():
        ends = {
            row * step + beside
            for step in steps
            for row in range(min(count // step + 1, _VALUES // (2 * len(steps))))
            for beside in (-1, 0)
        }
        near = {*range(min(count, _VALUES)), *range(max(0, count - _VALUES), count), *ends}
        values.append(sorted((each for each in near if 0 <= each < count), reverse=True))
    for position in itertools.islice(itertools.product(*values), _POSITIONS):
        yield dict(zip(counts, position))
