"""What sizes must fulfil where tiles meet, as expressions: for who asks where there is no Python.

`agreement` compares the numbers of a call and says where in the application they meet. Here are those of
its comparisons that expressions can say: two tiles whose positions along a dimension are one sum of the
same terms, and what a call's numbers decide only where it is the same whichever way they do. Whatever
is not among them `agreement` may still refuse; no call is refused that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.decisions import Decision
from ninetoothed.kernels.meetings.limits import Limit, Meeting, Side, lane_of
from ninetoothed.kernels.meetings.walk import meetings
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, constant, maximum
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.requirements import Requirement


def meeting_requirements(kernel: Definition, known: Mapping[Symbol, int]) -> Iterator[Requirement]:
    """What must hold where there is a program at all.

    Args:
        known: the values of the constexpr and meta symbols.
    """
    cases: dict[Symbol, list[frozenset[Decision]]] = {}
    for requirement, decisions in _requirements(kernel, known):
        value = as_symbol(simplify(requirement.expression.substitute(known)))
        found = cases.setdefault(value, [])
        found.append(decisions)
        if _always(found):
            yield requirement


def _always(cases: Sequence[frozenset[Decision]]) -> bool:
    """Whether for all numbers one of the cases comes, in each of which all the decisions are so."""
    if frozenset() in cases:
        return True
    condition = next((d.condition for case in cases for d in case), None)
    return condition is not None and all(
        _always(
            [
                frozenset(d for d in case if d.condition is not condition)
                for case in cases
                if all(d.condition is not condition or d.holds is holds for d in case)
            ]
        )
        for holds in (True, False)
    )


def _requirements(
    kernel: Definition, known: Mapping[Symbol, int]
) -> Iterator[tuple[Requirement, frozenset[Decision]]]:
    """What must hold in calls whose numbers decide so."""
    for meeting in meetings(kernel):
        decisions = frozenset(
            loop.decision for loop in meeting.loops if loop.decision and loop.decision.test
        )
        loops = [loop for loop in meeting.loops if loop.decision not in decisions]
        counts = [loop.count for loop in loops]
        one, other = (_widths(kernel, side, known) for side in meeting.sides)
        if None in counts or None in one or None in other:
            continue
        widths = list(zip(one, other))
        if any(meeting.is_spread(pair) for pair in widths):
            continue
        lasts = dict(zip(kernel.arrangement.programs, (as_symbol(n) - 1 for n in kernel.grid)))
        lasts |= {loop.round: as_symbol(loop.count) - 1 for loop in loops}
        for first, second in _alike(meeting):
            for low, high in ((first, second), (second, first)):
                # Of what is stored there may be more than there is room for.
                if not low.is_by_size or (meeting.is_store and high is first):
                    continue
                reached = _reached(low, widths, lasts, known)
                if reached is None and not low.is_tuned:
                    continue
                room: Expression = low.size - high.size
                if not low.is_tuned and reached is not None:
                    # No program comes to where the two differ.
                    room = maximum(room, low.size - 1 - reached)
                for count in counts:
                    # Nothing meets in a loop without a round.
                    room = maximum(room, 0 - as_symbol(count))
                names = [side.use.parameter for side in meeting.sides]
                text = (
                    f"it meets `{names[1]}`, and they have not the same elements: {low.size} must be "
                    f"no less than {high.size}"
                )
                yield Requirement(names[0], as_symbol(room), 0, None, text), decisions


def _alike(meeting: Meeting) -> Iterator[tuple[Limit, Limit]]:
    """The limits of both sides on one position, where each side has one there."""
    forms: list[dict[tuple[Any, Any], list[Limit]]] = [{}, {}]
    for side, found in zip(meeting.sides, forms):
        for limit in side.limits:
            if not limit.is_of_tile and not limit.is_flattened:
                found.setdefault((limit.factors, limit.shift), []).append(limit)
    for form in sorted(forms[0].keys() & forms[1].keys(), key=str):
        (one, *more), (other, *others) = forms[0][form], forms[1][form]
        if not more and not others:
            yield one, other


def _widths(kernel: Definition, side: Side, known: Mapping[Symbol, int]) -> list[int | None]:
    """The tile's size in each dimension where they meet; None where it is not known."""
    shape = kernel.program.parameter(side.use.parameter).tile_shape
    sizes = (simplify(as_symbol(shape[dim]).substitute(known)) for dim in side.dims)
    return [size if isinstance(size, int) else None for size in sizes]


def _reached(
    limit: Limit,
    widths: list[tuple[int | None, int | None]],
    lasts: Mapping[Symbol, Symbol],
    known: Mapping[Symbol, int],
) -> Symbol | None:
    """The last position that a program comes to, if it comes to all before it; None where that is not known."""
    factors = [
        (leaf, simplify(as_symbol(factor).substitute(known))) for leaf, factor in limit.factors
    ]
    if not all(isinstance(factor, int) and factor > 0 for _, factor in factors):
        return None
    lasts = dict(lasts)
    for place, pair in enumerate(widths):
        lanes = [width for width in pair if width is not None]
        count = next_power_of_2(max(lanes)) if len(factors) == 1 else min(lanes)
        lasts[lane_of(place)] = constant(count - 1)
    reached: Symbol = constant(0)
    for leaf, factor in sorted(factors, key=lambda entry: entry[1]):
        bound = simplify(reached + 1)
        if not isinstance(bound, int) or factor > bound:
            return None
        last = lasts.get(leaf)
        if last is None:
            return None
        reached = as_symbol(simplify(reached + last * factor))
    return reached
