"""Where two tiles that meet lie at positions of their own: a program may have elements of one and none of the other.

Rows of ``x`` by one index of the program and, by mistake, columns of ``b`` by the same one: at the end of ``b`` a
program has columns of ``x`` alone. A tile that is the same for all of an index, as `expand` makes it, lacks
nothing where the other one ends by that index.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Mapping, Sequence

from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.limits import Differing, Limit, Side, lane_of
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated

#: The largest size of a block that is looked at.
_MOST = 1024


def candidates(
    kernel: Definition, sides: Sequence[Side], is_store: bool
) -> Iterator[tuple[Side, Side, Limit]]:
    """A side, the other one, and a limit of that, beyond which the first may have elements: numbers decide.

    Args:
        sides: of a store, what is stored and where to. Of what is stored there may be more.
    """
    one, other = sides
    for having, lacking in [(other, one)] if is_store else [(other, one), (one, other)]:
        for limit in _limits_apart(kernel, having, lacking):
            yield having, lacking, limit


def _limits_apart(kernel: Definition, having: Side, lacking: Side) -> Iterator[Limit]:
    """The limits of one side at positions that are sums of what the other's elements depend on, and not its own."""
    if len(having.dims) > 1 or all(limit.is_of_tile for limit in having.limits):
        return
    access, moved = (kernel.arrangement.accesses[side.use.parameter] for side in (having, lacking))
    parameters = (kernel.program.parameter(side.use.parameter) for side in (having, lacking))
    if moved.selections or any(each.source.jagged_dim is not None for each in parameters):
        # A tile that is selected may be the last one, of which there are some elements. How long a sequence
        # is only the data tell.
        return
    indices = {leaf for position in access.indices for leaf in position.leaves()}
    programs = indices.intersection(access.programs)
    forms = {(limit.factors, limit.shift) for limit in having.limits}
    for limit in lacking.limits:
        if (
            limit.is_by_size
            and not (limit.is_of_tile or limit.is_flattened)
            and limit.indices & programs
            and limit.indices <= programs | {lane_of(0)}
            and (limit.factors, limit.shift) not in forms
        ):
            yield limit


def differing(
    kernel: Definition,
    sides: Sequence[Side],
    is_store: bool,
    tiles: Sequence[tuple[Symbol, Symbol]],
    environment: Mapping[Symbol, int],
) -> Differing | None:
    """What the two sides differ by, if a program has an element of one where the other ends.

    Args:
        sides: see `candidates`.
        tiles: the sizes of both tiles, in each dimension that meets.
    """
    for having, lacking, limit in candidates(kernel, sides, is_store):
        for numbers, grid in _fitting(kernel, environment):
            widths = [{evaluated(size, numbers) for size in pair} for pair in tiles]
            if any(len(width) > 1 for width in widths):
                # The tuner does not choose this, or one is spread over the other.
                continue
            (width,) = widths[0] if widths else (1,)
            if _has_beyond(kernel, having, limit, width, numbers, grid):
                return (0 if lacking is sides[0] else 1), limit, None
    return None


def _fitting(
    kernel: Definition, environment: Mapping[Symbol, int]
) -> Iterator[tuple[Mapping[Symbol, int], Sequence[int]]]:
    """The numbers of a call and its grid, with block sizes from the least on, each twice the last one."""
    chosen = {symbol: symbol.lower_bound or 1 for symbol in kernel.meta_symbols}
    last: dict[Symbol, int] | None = None
    while chosen != last:
        numbers = {**environment, **chosen}
        # Where the sizes do not fit the arrangement the tuner does not choose this.
        with contextlib.suppress(ArgumentError, ArrangementError):
            yield numbers, kernel.verified_grid(numbers)
        last = chosen
        chosen = {s: min(2 * n, s.upper_bound or _MOST, max(n, _MOST)) for s, n in chosen.items()}


def _has_beyond(
    kernel: Definition,
    side: Side,
    limit: Limit,
    width: int,
    environment: Mapping[Symbol, int],
    grid: Sequence[int],
) -> bool:
    """Whether a program has an element of a side at a position from a limit on: looked for at the ends of its indices."""
    access = kernel.arrangement.accesses[side.use.parameter]
    chosen: dict[Symbol, Expression] = {
        leaf: at for leaf, at in zip(access.selections, side.use.indices) if at is not None
    }
    conditions = [as_symbol(condition.substitute(chosen)) for condition in access.conditions]
    used = {leaf for each in conditions for leaf in each.leaves()}
    factors = {leaf: evaluated(by, environment) for leaf, by in limit.factors}
    end, by = evaluated(limit.size, environment), factors.pop(lane_of(0), 0)
    tile_shape = kernel.program.parameter(side.use.parameter).tile_shape
    met = {access.coordinates[dim] for dim in side.dims}
    places = (*kernel.arrangement.programs, *access.coordinates)
    counts = {
        leaf: evaluated(count, environment)
        for leaf, count in zip(places, (*grid, *tile_shape))
        if leaf not in met and (leaf in used or leaf in factors)
    }
    known = {**environment, **{loop.round: 0 for loop in side.use.loops}}
    for values in itertools.product(*({0, count - 1} for count in counts.values())):
        at = {**known, **dict(zip(counts, values))}
        room = end - sum(factor * at[leaf] for leaf, factor in factors.items())
        # The first lane from the end on, or where positions go down the last one.
        lanes = {0, width - 1, *([-(-room // by), room // by] if by else ())}
        for place in lanes.intersection(range(width)):
            numbers = {**at, **dict.fromkeys(met, place)}
            if by * place >= room and used <= numbers.keys():
                if all(evaluated(each, numbers) for each in conditions):
                    return True
    return False
