"""The first rounds of a loop, in which no element is missing.

A mask of ``x[k]`` that fails in the last round alone is paid for in every round. So is a comparison
as causal attention has it, which all but the last rounds pass. From the slack (`comparisons`) of
each condition follows how many rounds it holds in, whatever the lane is. A
loop that is split (`loop_splitting`) does without the conditions in these.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from ninetoothed.backends.triton.specialization.call_facts import CallFacts
from ninetoothed.backends.triton.specialization.comparisons import (
    comparisons_of,
    is_round_of,
    round_of,
)
from ninetoothed.backends.triton.specialization.selections import staying
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.verified_bounds import verified_ranges
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import ElementRef, TileRef, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, index
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.access import reads_sequences

#: A condition of a tile's access: the parameter, the places that the loop's variable selects, and
#: the condition's number.
Condition = tuple[str, tuple[int, ...], int]


@dataclass(frozen=True)
class Holding:
    """What holds where some statements stand, for every lane: it need not be asked for there.

    Attributes:
        conditions: of accesses.
        comparisons: slacks of the program's comparisons.
        variable: of the loop that they stand in; none where a selection does not matter.
    """

    conditions: frozenset[Condition]
    comparisons: frozenset[Symbol] = frozenset()
    variable: str = ""

    def covers(self, tile: TileRef, number: int) -> bool:
        """Whether a condition of a tile's access holds."""
        return (tile.parameter, _places(tile, self.variable), number) in self.conditions


@dataclass(frozen=True)
class FullIterations:
    """The first rounds of a loop, in which some conditions hold for every lane.

    Attributes:
        counts: in how many rounds each holds, over the program's position and sizes; they may be
            negative.
        holding: what holds in them.
    """

    counts: tuple[Symbol, ...]
    holding: Holding


def is_worth_it(kernel: Definition, facts: CallFacts) -> bool:
    """Whether some loop of a kernel can be split."""
    return any(True for _ in _all(kernel, facts))


def compares(kernel: Definition, facts: CallFacts) -> bool:
    """Whether, of what splitting leaves out, some are comparisons."""
    return any(full.holding.comparisons for full in _all(kernel, facts))


def _all(kernel: Definition, facts: CallFacts) -> Iterator[FullIterations]:
    for loop in counted_loops(kernel):
        full = full_iterations(kernel, facts, loop)
        if full is not None:
            yield full


def full_iterations(kernel: Definition, facts: CallFacts, loop: ast.stmt) -> FullIterations | None:
    """The rounds of a loop that need less than the others; None where there are none."""
    if not is_counted(loop):
        return None
    assert isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
    variable = loop.target.id
    counts: list[Symbol] = []
    conditions: set[Condition] = set()
    comparisons: set[Symbol] = set()
    for node in itertools.chain.from_iterable(map(walk, loop.body)):
        if isinstance(node, TileRef) and not isinstance(node, ElementRef):
            for condition, count in _conditions(kernel, facts, node, variable):
                conditions.add(condition)
                counts.append(count)
        elif isinstance(node, ast.Compare):
            comparison = comparisons_of(kernel).of(node)
            if comparison is not None and comparison.slack not in facts.comparisons:
                compared = _count(comparison.slack, variable, kernel)
                if compared is not None:
                    comparisons.add(comparison.slack)
                    counts.append(compared)
    if not counts:
        return None
    holding = Holding(frozenset(conditions), frozenset(comparisons), variable)
    return FullIterations(tuple(dict.fromkeys(counts)), holding)


def is_counted(loop: ast.AST) -> bool:
    """Whether this is an innermost loop over a range with step 1 whose variable nothing changes."""
    if not isinstance(loop, ast.For) or not isinstance(loop.target, ast.Name):
        return False
    call = loop.iter
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    if call.func.id != "range" or len(call.args) > 2 or call.keywords:
        return False
    inner = [node for statement in loop.body for node in walk(statement)]
    if any(isinstance(node, (ast.For, ast.While)) for node in inner):
        return False
    return loop.target.id not in names_assigned(loop.body)


@analysis
def counted_loops(kernel: Definition) -> tuple[ast.stmt, ...]:
    """The loops of a kernel that might be split, in some call."""
    return tuple(n for n in kernel.optimized.nodes() if isinstance(n, ast.stmt) and is_counted(n))


def _conditions(
    kernel: Definition, facts: CallFacts, tile: TileRef, variable: str
) -> Iterator[tuple[Condition, Symbol]]:
    """The conditions of a tile that hold in the first rounds, and in how many."""
    places = _places(tile, variable)
    if not places:
        return
    access = kernel.arrangement.accesses[tile.parameter]
    sizes = kernel.program.parameter(tile.parameter).middle_sizes
    renamed = _free(kernel, tile.parameter)
    renamed |= {access.selections[place]: round_of(variable, sizes[place]) for place in places}
    for number, condition in enumerate(access.conditions):
        slack = _slack_of(condition)
        if slack is None or (tile.parameter, number) in facts.holding:
            continue
        count = _count(as_symbol(slack.substitute(renamed)), variable, kernel)
        if count is not None:
            yield (tile.parameter, places, number), count


def _free(kernel: Definition, parameter: str) -> dict[Symbol, Expression]:
    """Selections that may leave their level, as positions of which no end is known."""
    selections = kernel.arrangement.accesses[parameter].selections
    loose = [leaf for n, leaf in enumerate(selections) if (parameter, n) not in staying(kernel)]
    return {leaf: index(leaf.leaf.name) for leaf in loose}


def _places(tile: TileRef, variable: str) -> tuple[int, ...]:
    """The middle dimensions in which the variable selects."""
    return tuple(
        place
        for place, index in enumerate(tile.indices)
        if isinstance(index, ast.Name) and index.id == variable
    )


def _slack_of(condition: Symbol) -> Symbol | None:
    """What is negative exactly where a condition of an access holds."""
    if condition.op not in ("<", ">="):
        return None
    left, right = condition.operands
    return left - right if condition.op == "<" else right - left - 1


def greatest_slack(condition: Symbol, parameter: str, kernel: Definition) -> Symbol | None:
    """What is negative exactly where a condition of an access holds for all lanes and selections."""
    slack = _slack_of(as_symbol(condition.substitute(_free(kernel, parameter))))
    if slack is None or reads_sequences(slack):
        return None
    return _greatest(as_symbol(simplify(_multiplied_out(slack))), kernel)


def _multiplied_out(expression: Symbol) -> Symbol:
    """The same, no sum being a factor: it is affine in what the sums' terms are affine in."""
    if expression.op not in ("+", "-", "*"):
        return expression
    left, right = map(_multiplied_out, expression.operands)
    if expression.op != "*":
        return left + right if expression.op == "+" else left - right
    for sum_, factor in ((left, right), (right, left)):
        if sum_.op in ("+", "-"):
            terms = [_multiplied_out(term * factor) for term in sum_.operands]
            return terms[0] + terms[1] if sum_.op == "+" else terms[0] - terms[1]
    return left * right


def _count(slack: Symbol, variable: str, kernel: Definition) -> Symbol | None:
    """How many rounds from the first on have a negative slack, whatever the lane is.

    None where it does not grow steadily from round to round.
    """
    if reads_sequences(slack):
        return None
    slack = as_symbol(simplify(_multiplied_out(slack)))
    rounds = {name for name in slack.leaves() if is_round_of(name, variable)}
    if len(rounds) != 1:
        return None
    (current,) = rounds
    step = _slope(slack, current)
    if step is None or interval(step, verified_ranges(kernel))[0] < 1:
        return None
    greatest = _greatest(slack.substitute({current: 0}), kernel)
    if greatest is None:
        return None
    # step * round + greatest < 0
    return as_symbol(simplify((step - 1 - greatest) // step))


def _greatest(expression: Symbol, kernel: Definition) -> Symbol | None:
    """The greatest value over all lanes and selections; None where it is not affine in them."""
    for leaf in dict.fromkeys(expression.leaves()):
        if not _is_index(leaf) or leaf in kernel.arrangement.programs:
            continue
        slope = _slope(expression, leaf)
        if slope is None:
            return None
        low, high = interval(slope, verified_ranges(kernel))
        if low < 0 < high or leaf.leaf.extent is None:
            return None
        last = as_symbol(leaf.leaf.extent) - 1
        expression = as_symbol(expression.substitute({leaf: last if low >= 0 else 0}))
    return expression


def _slope(expression: Symbol, leaf: Symbol) -> Symbol | None:
    """By how much an expression grows with a leaf; None where that is not always the same."""
    at_zero, at_one = (expression.substitute({leaf: value}) for value in (0, 1))
    slope = as_symbol(difference(at_one, at_zero))
    is_affine = difference(expression, at_zero + leaf * slope) == 0
    return slope if is_affine and not any(map(_is_index, slope.leaves())) else None


def _is_index(leaf: Symbol) -> bool:
    return leaf.leaf.role == "index"
