"""The rounds of a loop by what conditions in it ask of them: ``i < c`` holds in the first ones, ``i == c`` in one.

So a loop is walked in parts, in each of which such a condition is as it is in all of the part's rounds.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping

from ninetoothed.kernels.meetings.limits import linear
from ninetoothed.kernels.meetings.size_expressions import Integers, integer, is_of_sizes
from ninetoothed.program.nodes import walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol, constant, maximum, minimum
from ninetoothed.symbols.simplify import difference, simplify

#: Into how many parts a loop is divided; what more conditions ask is left open.
_MOST_PARTS = 8


@dataclass(frozen=True)
class Part:
    """Some of a loop's rounds that follow each other.

    Attributes:
        first: the number of the first of them.
        end: the number of the round after the last.
        holds: the conditions that are so in all of them or in none.
    """

    first: Symbol
    end: Symbol | None
    holds: Mapping[ast.expr, bool]

    @property
    def count(self) -> Symbol | None:
        return None if self.end is None else as_symbol(simplify(self.end - self.first))


@dataclass(frozen=True)
class _Range:
    first: Symbol
    end: Symbol
    #: By the number of a round: whether all rounds in the range are before it, or none is.
    before: Mapping[Symbol, bool]


def parts(
    body: Iterable[ast.AST], round: Symbol, count: Symbol | None, known: Integers
) -> list[Part]:
    """The parts of a loop, by their rounds' numbers.

    Args:
        round: stands for the number of a round.
        known: integers in all rounds, the variable that counts among them.
    """
    start = constant(0)
    if count is None:
        return [Part(start, None, {})]
    conditions = {
        condition: asked
        for statement in body
        for node in walk(statement)
        if isinstance(node, ast.If | ast.IfExp)
        for condition in walk(node.test)
        if isinstance(condition, ast.Compare) or condition is node.test
        if (asked := _asked(condition, round, known))
    }
    ranges = [_Range(start, as_symbol(simplify(count)), {})]
    for number in {number: None for asked in conditions.values() for number, _ in asked}:
        divided = [part for each in ranges for part in _divided(each, number)]
        if len(divided) > _MOST_PARTS:
            break
        ranges = divided
    return [Part(each.first, each.end, dict(_decided(each, conditions))) for each in ranges]


def outcome(test: ast.expr, holds: Mapping[ast.expr, bool]) -> bool | None:
    """Whether a condition is so, by those that are known; None where they do not say."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        found = outcome(test.operand, holds)
        return None if found is None else not found
    if isinstance(test, ast.BoolOp):
        outcomes = [outcome(part, holds) for part in test.values]
        decides = isinstance(test.op, ast.Or)
        return decides if decides in outcomes else None if None in outcomes else not decides
    return holds.get(test)


def _asked(
    node: ast.expr, round: Symbol, known: Integers
) -> tuple[tuple[Symbol, bool], tuple[Symbol, bool]] | None:
    """What a condition asks: whether the left is less than the right, and whether it is no more.

    Of each: a round, and whether it is so before that one or from it on.
    """
    if isinstance(node, ast.Compare):
        left, right = integer(node.left, known), integer(node.comparators[0], known)
    else:
        left, right = known.get(node.id) if isinstance(node, ast.Name) else None, constant(0)
    if _operator(node) not in _RESULTS or left is None or right is None:
        return None
    found = linear(as_symbol(simplify(left - right)))
    if found is None:
        return None
    factors, rest = found
    by = simplify(factors.pop(round, constant(0)))
    if factors or not isinstance(by, int) or by == 0 or not is_of_sizes(rest):
        return None

    def negative(rest: Symbol) -> tuple[Symbol, bool]:
        number = (by - 1 - rest) // constant(by) if by > 0 else rest // constant(-by) + 1
        return as_symbol(simplify(number)), by > 0

    return negative(rest), negative(rest - 1)


def _divided(rounds: _Range, number: Symbol) -> list[_Range]:
    """Those before a round, and those from it on, as far as there may be any."""
    room = {True: difference(number, rounds.first), False: difference(rounds.end, number)}
    ways = [
        is_before
        for is_before, size in room.items()
        if not (isinstance(size, int) and size <= 0)
        and all(_agree(number, is_before, *entry) for entry in rounds.before.items())
    ]
    middle = as_symbol(simplify(maximum(rounds.first, minimum(rounds.end, number))))
    if len(ways) == 1:
        edges = {ways[0]: (rounds.first, rounds.end)}
    else:
        edges = {True: (rounds.first, middle), False: (middle, rounds.end)}
    return [_Range(*edges[way], {**rounds.before, number: way}) for way in ways]


def _agree(one: Symbol, is_before_one: bool, other: Symbol, is_before_other: bool) -> bool:
    """Whether there may be a round that is so to both."""
    apart = difference(one, other)
    if not isinstance(apart, int) or is_before_one is is_before_other:
        return True
    # Before the one and from the other on: the one is later.
    return apart > 0 if is_before_one else apart < 0


def _decided(
    rounds: _Range, conditions: Mapping[ast.expr, tuple[tuple[Symbol, bool], ...]]
) -> Iterator[tuple[ast.expr, bool]]:
    for node, asked in conditions.items():
        if all(number in rounds.before for number, _ in asked):
            is_less, is_no_more = (rounds.before[number] is before for number, before in asked)
            yield node, _RESULTS[_operator(node)](is_less, is_no_more)


def _operator(node: ast.expr) -> type:
    """Of a condition; a number is one that it is not 0."""
    return type(node.ops[0]) if isinstance(node, ast.Compare) else ast.NotEq


#: Of what is less, and what is no more.
_RESULTS: dict[type, Callable[[bool, bool], bool]] = {
    ast.Lt: lambda is_less, is_no_more: is_less,
    ast.LtE: lambda is_less, is_no_more: is_no_more,
    ast.Gt: lambda is_less, is_no_more: not is_no_more,
    ast.GtE: lambda is_less, is_no_more: not is_less,
    ast.Eq: lambda is_less, is_no_more: is_no_more and not is_less,
    ast.NotEq: lambda is_less, is_no_more: is_less or not is_no_more,
}
