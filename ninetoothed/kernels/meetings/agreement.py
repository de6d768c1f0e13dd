"""Sizes that meet are equal: asked once for each new key, with the numbers of the call.

Two limits are compared where their positions are the same. Where the tuner chooses how far these
reach, the sizes must be equal; else only those elements count that a program comes to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import apart, flattened
from ninetoothed.kernels.meetings.decisions import Decision
from ninetoothed.kernels.meetings.limits import Differing, Limit, Loop, Meeting, Side, lane_of
from ninetoothed.kernels.meetings.walk import meetings
from ninetoothed.parsing.frames import count_text
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, constant, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.symbols.simplify import difference, simplify

#: A position: its factors, numbers or, where the tuner chooses some, symbols; and its shift.
Form = tuple[frozenset[tuple[Symbol, Any]], Expression]


#: Why a number that leaves out a meeting does not help where the tiles are held in shapes that do not meet.
_BOTH_WAYS = (
    "Both ways of a condition on numbers of the running kernel are compiled, whatever they are: a constant, as "
    "of Tensor(0, constexpr=True), leaves one out."
)


def check_meetings(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> list[Refusal]:
    """Checks that where loaded tiles meet the same elements exist in both.

    Args:
        environment: the value of every symbol.
        grid: the number of programs along each dimension.

    Returns:
        What is refused of calls with these sizes whose numbers come to it; see `guarded`.

    Raises:
        ArgumentError: they do not; at the place in the application where they meet.
    """
    pairs = equal_sizes(kernel)
    if 0 in grid or all(evaluated(a, environment) == evaluated(b, environment) for a, b in pairs):
        return []
    return compare_all(kernel, call, environment, grid)


def compare_all(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> list[Refusal]:
    """As `check_meetings`, where some of `equal_sizes` are not equal; each meeting is looked at."""
    refusals: list[Refusal] = []
    numbers = _Numbers(kernel, environment, grid)
    for meeting in meetings(kernel):
        differing = numbers.differing(meeting)
        if differing is not None:
            error = _mismatch(kernel, call, meeting, differing, numbers.value)
            found = [loop.decision for loop in meeting.loops if loop.decision is not None]
            decisions = [decision for decision in found if decision.test is not None]
            if not decisions:
                raise error
            if numbers.fit_nowhere(meeting) and all(
                each.is_left_open(environment) for each in decisions
            ):
                raise ArgumentError(f"{error.message} {_BOTH_WAYS}", error.location)
            refusals.append(Refusal(tuple(decisions), environment, error))
    return refusals


@dataclass(frozen=True)
class Refusal:
    """Calls that are refused.

    Attributes:
        decisions: all of these are so for the numbers of such a call.
        sizes: the value of every symbol.
        error: what is raised.
    """

    decisions: tuple[Decision, ...]
    sizes: Mapping[Symbol, int]
    error: ArgumentError


def guarded(
    kernel: Definition, run: Callable[..., None], refusals: Sequence[Refusal]
) -> Callable[..., None]:
    """A `Plan.run` that refuses such calls; the function itself where there are none."""
    if not refusals:
        return run
    places: dict[str, int] = {}
    count = 0
    for parameter in kernel.parameters:
        if parameter.kind == "scalar":
            places[parameter.name] = count
        count += parameter.kind in ("tensor", "scalar")
        count += parameter.kind == "tensor" and parameter.source.jagged_dim is not None

    def run_if_agreed(stream: int, *values: Any) -> None:
        numbers = {name: values[place] for name, place in places.items()}
        for refusal in refusals:
            if all(decision.is_of(numbers, refusal.sizes) for decision in refusal.decisions):
                raise ArgumentError(refusal.error.message, refusal.error.location)
        run(stream, *values)

    return run_if_agreed


@analysis
def equal_sizes(kernel: Definition) -> tuple[tuple[Symbol, Symbol], ...]:
    """Pairs of sizes: where each are equal, `check_meetings` finds nothing, whatever else the numbers are.

    It compares where elements end, position by position. Positions that are the same expression have
    the same end on both sides then; where the two sides have other positions, all their ends are one.
    Where a level is flattened, positions are of sizes too: equal ones, place by place, make both alike.
    """
    found: dict[tuple[Symbol, Symbol], None] = {}
    for meeting in meetings(kernel):
        if any(limit.is_flattened for side in meeting.sides for limit in side.limits):
            found |= dict.fromkeys(_sizes_of_both(meeting))
            continue
        one, other = map(_sizes_by_form, meeting.sides)
        if not one or not other:
            continue
        if any(True for _ in apart.candidates(kernel, meeting.sides, meeting.is_store)):
            # Only a look at the numbers tells.
            found[constant(0), constant(1)] = None
        together = [[*one[form], *other[form]] for form in one.keys() & other.keys()]
        if one.keys() != other.keys():
            together = [[size for sizes in (*one.values(), *other.values()) for size in sizes]]
        for first, *rest in together:
            found |= dict.fromkeys((first, size) for size in rest if size is not first)
    return tuple(found)


def _sizes_of_both(meeting: Meeting) -> Iterator[tuple[Symbol, Symbol]]:
    """The sizes that decide where the two lie in a flattened level, place by place.

    Where the two are made in other ways, only a look at the numbers says that they agree: 0 is not 1.
    """
    made: list[tuple[str, list[Symbol]]] = []
    for side in meeting.sides:
        limits = []
        for limit in side.limits:
            if not limit.is_of_tile:
                parts = [_together("*", [_made(leaf), _made(by)]) for leaf, by in limit.factors]
                parts.sort(key=lambda each: each[0])
                limits.append(_together("<", [*parts, _made(limit.size)]))
        made.append(_together("and", sorted(limits, key=lambda each: each[0])))
    (one, sizes), (other, others) = made
    yield from zip(sizes, others) if one == other else [(constant(0), constant(1))]


def _made(expression: Expression) -> tuple[str, list[Symbol]]:
    """How an expression is made but for its sizes, and these."""
    node = as_symbol(expression)
    if node.op == "leaf":
        return ("size", [node]) if node.leaf.role != "index" else (f"index {id(node)}", [])
    if node.op == "const":
        return str(node.operands[0]), []
    return _together(node.op, map(_made, node.operands))


def _together(op: str, parts: Iterable[tuple[str, list[Symbol]]]) -> tuple[str, list[Symbol]]:
    made = list(parts)
    return f"{op}({', '.join(how for how, _ in made)})", [size for _, own in made for size in own]


def _sizes_by_form(side: Side) -> dict[Any, list[Symbol]]:
    found: dict[Any, list[Symbol]] = {}
    for limit in sorted(side.limits, key=lambda limit: limit.size.sort_key):
        if not limit.is_of_tile:
            found.setdefault((limit.factors, limit.shift), []).append(limit.size)
    return found


@dataclass(frozen=True)
class _End:
    """Where the elements of a side end.

    Attributes:
        least, most: those before ``least`` exist, and those from ``most`` on do not.
        limits: what the two are of.
    """

    least: float
    most: float
    limits: tuple[Limit | None, Limit | None]


class _Numbers:
    """The numbers of one call."""

    def __init__(
        self, kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...]
    ) -> None:
        self._kernel = kernel
        self._environment = environment
        self._counts = dict(zip(kernel.arrangement.programs, grid))
        # The last of each index's values: of a program's here, of a round's with the loop around it.
        self._last: dict[Symbol, int | None] = {p: count - 1 for p, count in self._counts.items()}
        self._ends: dict[tuple[object, ...], dict[Form, _End]] = {}

    def differing(self, meeting: Meeting) -> Differing | None:
        """What the two sides differ by, if there are elements that only one of them has."""
        if not all(map(self._runs, meeting.loops)):
            return None
        one, other = map(self._tile_sizes, meeting.sides)
        tiles = list(zip(one, other))
        lanes = [[self.value(size) for size in pair] for pair in tiles]
        if any(meeting.is_spread(pair) for pair in lanes):
            return None
        chosen: dict[Symbol, int] = {}
        for sizes, pair in zip(tiles, lanes):
            chosen |= _only_choice(sizes, pair)
        found = self._differing(meeting, {}, lanes)
        if found is None and chosen:
            known = {**self._environment, **chosen}
            same = [[evaluated(size, known) for size in pair] for pair in tiles]
            found = self._differing(meeting, chosen, same)
        asked = meeting.sides, meeting.is_store
        if found is None:
            widths = [min(pair) for pair in lanes]
            found = flattened.differing(*asked, widths, self._environment, self._counts)
        if found is None:
            return apart.differing(self._kernel, *asked, tiles, self._environment)
        return found

    def _differing(
        self, meeting: Meeting, chosen: Mapping[Symbol, int], lanes: Sequence[Sequence[int]]
    ) -> Differing | None:
        one, other = (self._ends_of(side, chosen) for side in meeting.sides)
        for form in (form for form in one if form in other):
            for low, high in ((one[form], other[form]), (other[form], one[form])):
                # Of what is stored there may be more than there is room for.
                is_right = low.most >= high.least or (meeting.is_store and high is one[form])
                if not is_right:
                    more = meeting.sides[high is not one[form]]
                    is_right = self._has_none(more, form, low.most, high.least)
                if not is_right and self._reaches(form, low.most, high.least, lanes):
                    assert low.limits[1] is not None and high.limits[0] is not None
                    return (0 if low is one[form] else 1), low.limits[1], high.limits[0]
        return None

    def value(self, size: Expression) -> int:
        return evaluated(size, self._environment)

    def _runs(self, loop: Loop) -> bool:
        """Whether a loop has a round; one whose number of rounds is not known is taken to."""
        last = None if loop.count is None else self.value(loop.count) - 1
        self._last[loop.round] = last
        return last is None or last >= 0

    def _tile_sizes(self, side: Side) -> list[Symbol]:
        shape = self._kernel.program.parameter(side.use.parameter).tile_shape
        return [as_symbol(shape[dim]) for dim in side.dims]

    def fit_nowhere(self, meeting: Meeting) -> bool:
        """Whether two tiles are held in shapes that do not meet, whatever the tuner chooses."""
        pairs = list(zip(*map(self._tile_sizes, meeting.sides)))
        if any(leaf.meta for pair in pairs for size in pair for leaf in size.leaves()):
            return False
        held = [[next_power_of_2(max(1, self.value(size))) for size in pair] for pair in pairs]
        return any(one != other and not meeting.is_spread((one, other)) for one, other in held)

    def _ends_of(self, side: Side, chosen: Mapping[Symbol, int]) -> dict[Form, _End]:
        key = side, *chosen.items()
        found = self._ends.get(key)
        if found is None:
            found = self._ends[key] = {}
            for limit in side.in_order:
                limit = limit.where(chosen) if chosen else limit
                if limit.is_of_tile or limit.is_flattened:
                    # Of a tile it is another with every choice of the tuner's.
                    continue
                form, value = self._form(limit), self.value(limit.size)
                end = found.get(form, _End(math.inf, math.inf, (None, None)))
                least, most, limits = end.least, end.most, end.limits
                if value < least:
                    least, limits = value, (limit, limits[1])
                if value < most and limit.is_by_size:
                    most, limits = value, (limits[0], limit)
                found[form] = _End(least, most, limits)
        return found

    def _form(self, limit: Limit) -> Form:
        if limit.is_tuned:
            return limit.factors, limit.shift
        factors = [(leaf, self.value(factor)) for leaf, factor in limit.factors]
        moving = frozenset((leaf, by) for leaf, by in factors if by and self._last.get(leaf) != 0)
        return moving, self.value(limit.shift)

    def _has_none(self, side: Side, form: Form, low: float, high: float) -> bool:
        """Whether a tile has no element at positions from ``low`` up to ``high``: `pad` may have added them."""
        access = self._kernel.arrangement.accesses[side.use.parameter]
        chosen: dict[Symbol, Expression] = dict(self._environment)
        chosen |= {
            leaf: as_symbol(at).substitute(self._environment)
            for leaf, at in zip(access.selections, side.use.indices)
            if at is not None
        }
        ranges: dict[Symbol, Interval] = {
            leaf: (low, high - 1) for leaf, factor in form[0] if factor == 1 == len(form[0])
        }
        for place, dim in enumerate(side.dims):
            if lane_of(place) in ranges:
                ranges[access.coordinates[dim]] = ranges[lane_of(place)]
        known = [as_symbol(simplify(c.substitute(chosen))) for c in access.conditions]
        for condition in known:
            # What `pad` puts in front: position - added >= 0.
            for leaf in condition.leaves() if condition.op == ">=" else ():
                added = difference(leaf, difference(*condition.operands))
                if isinstance(added, int):
                    least, most = ranges.get(leaf, (0, math.inf))
                    ranges[leaf] = max(added, least), most
        return any(
            not condition.operands[0]
            if condition.op == "const"
            else condition.op == "<" and interval(difference(*condition.operands), ranges)[0] >= 0
            for condition in known
        )

    def _reaches(self, form: Form, low: float, high: float, lanes: Sequence[Sequence[int]]) -> bool:
        """Whether a program comes to a position from ``low`` up to ``high``; with no index reversed none is below 0."""
        factors, _ = form
        if any(isinstance(factor, Symbol) for _, factor in factors):
            return high > 0
        is_lane_alone = len(factors) == 1
        reached = 0
        is_gapless = True
        last = dict(self._last)
        for place, pair in enumerate(lanes):
            count = next_power_of_2(max(pair)) if is_lane_alone else min(pair)
            last[lane_of(place)] = count - 1
        for leaf, factor in sorted(factors, key=lambda entry: abs(entry[1])):
            end = last[leaf]
            if end is None:
                return False
            if factor < 0:
                # One that goes down comes to the same positions as if it went up to where it begins.
                low, high = low - factor * end, high - factor * end
            is_gapless = is_gapless and abs(factor) <= reached + 1
            reached += abs(factor) * end
        return high > 0 and low <= reached and (is_gapless or reached < high)


def _only_choice(tiles: Sequence[Symbol], lanes: Sequence[int]) -> dict[Symbol, int]:
    """What alone the tuner can choose for a tile's size: that of the tile which it meets, where that is known."""
    for place, size in enumerate(tiles):
        if (
            size.op == "leaf"
            and size.meta
            and not any(leaf.meta for leaf in tiles[1 - place].leaves())
        ):
            return {size: lanes[1 - place]}
    return {}


def _mismatch(
    kernel: Definition,
    call: Call,
    meeting: Meeting,
    differing: Differing,
    value: Callable[[Symbol], int],
) -> ArgumentError:
    names = [side.use.parameter for side in meeting.sides]
    shapes = [call.arguments[name].shape for name in names]
    made, what = ("what is made of ", "is stored to") if meeting.is_store else ("", "meets")
    met = f"{made}`{names[0]}` of shape {shapes[0]} {what} `{names[1]}` of shape {shapes[1]}"
    place, *limits = differing
    lacking, having = names[place], names[1 - place]
    ends = [
        _described(kernel, side, limit.total, value(limit.total))
        for side, limit in zip(meeting.sides, limits[::-1] if place else limits)
        if limit is not None
    ]
    if len(ends) == 1:
        found = (
            f"`{lacking}` ends, {ends[0]}, where a program still has elements of `{having}`: they are "
            "not arranged by the same indices. Arrange them alike"
        )
    else:
        found = f"{' and '.join(ends)}. Make them equal"
    return ArgumentError(
        f"kernel `{kernel.name}`: {met} here, and they have not the same elements: {found}, or say what "
        f"`{lacking}` has beyond its end, as in Tensor(…, other=0).",
        meeting.location,
    )


def _described(kernel: Definition, side: Side, size: Symbol, value: int) -> str:
    """Which dimensions of a tensor a size is of, and the size."""
    name, leaves = side.use.parameter, set(size.leaves())
    source = kernel.program.parameter(name).source
    dims = [d for d, own in enumerate(source.shape) if leaves & set(as_symbol(own).leaves())]
    if len(dims) == 1:
        return f"{value} in dimension {dims[0]} of `{name}`"
    if dims:
        return f"{value} in dimensions {', '.join(map(str, dims))} of `{name}` together"
    if not side.dims:
        return f"{count_text(value, 'tile', 'tiles')} of `{name}`"
    lanes = " and ".join(map(str, side.dims))
    return f"{value} in dimension {lanes} of a tile of `{name}`"
