"""Loops split in two: the rounds in which no element is missing, then the others.

A mask of ``x[k]`` that fails in the last round alone is paid for in every round. So is a comparison
as causal attention has it, which all but the last rounds pass. From the excess (`comparisons`) of
each condition follows how many rounds it holds in, whatever the lane is. The first loop is emitted
for these, without the conditions, and the second one does what is left.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.analysis.comparisons import comparisons_of, is_round_of, round_of
from ninetoothed.backends.triton.ir.split_loop import split_loop
from ninetoothed.backends.triton.printers.addresses import assign, language, name
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.constancy import decided, is_constant
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import TileRef, at, clone, walk
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.symbols.simplify import difference, interval, simplify

if TYPE_CHECKING:
    from ninetoothed.backends.triton.printers.lowering import Lowering
    from ninetoothed.backends.triton.printers.triton import _Emitter
    from ninetoothed.backends.triton.specialization.call_facts import Variant
    from ninetoothed.kernels.definition import Definition

#: A condition of a tile's access: the parameter, the places that the loop's variable selects, and
#: the condition's number.
Condition = tuple[str, tuple[int, ...], int]

#: Compile-time tests that must all pass for a statement to be there.
Guards = tuple[ast.expr, ...]


@dataclass(frozen=True)
class Whole:
    """The first rounds of a loop, in which some conditions hold for every lane.

    Attributes:
        variable: of the loop.
        counts: how many rounds, over the program's position and sizes, and the tests under which a
            condition holds for no more; they may be negative.
        conditions: of accesses.
        comparisons: excesses of the program's comparisons.
    """

    variable: str
    counts: tuple[tuple[Symbol, Guards], ...]
    conditions: frozenset[Condition]
    comparisons: frozenset[Symbol]

    def covers(self, tile: TileRef, number: int) -> bool:
        """Whether a condition of a tile's access holds in these rounds."""
        return (tile.parameter, _places(tile, self.variable), number) in self.conditions


def split(lowering: Lowering, emitter: _Emitter, loop: ast.For, whole: Whole) -> list[ast.stmt]:
    """The statements of a loop's two parts; of both as one where Gluon is written (`ir.split_loop`)."""
    assert isinstance(loop.iter, ast.Call)
    before: list[ast.stmt] = []
    bounds = [ast.Constant(0), *loop.iter.args][-2:]
    for place, label in enumerate(("first", "end")):
        if not isinstance(bounds[place], (ast.Name, ast.Constant)):
            label = emitter.fresh(f"{whole.variable}_{label}")
            before += lowering.statement(at(assign(label, bounds[place]), loop))
            bounds[place] = name(label)
    start, end = bounds
    middle = emitter.fresh(f"{whole.variable}_whole")
    before += lowering.statement(at(assign(middle, clone(end)), loop))
    for count, guards in whole.counts:
        least = language("minimum", name(middle), emitter.position(count))
        statement: ast.stmt = assign(middle, least)
        for guard in reversed(guards):
            statement = ast.If(lowering.visit(clone(guard)), [statement], [])
        before.append(at(statement, loop))
    is_zero = isinstance(start, ast.Constant) and start.value == 0
    if not is_zero or any(interval(count)[0] < 0 for count, _ in whole.counts):
        before.append(at(assign(middle, language("maximum", name(middle), start)), loop))
    if emitter.variant.ring:
        emitter.holding_at_first = whole.comparisons
        *inside, one = lowering.unsplit(_part(loop, start, end))
        emitter.holding_at_first = frozenset()
        assert isinstance(one, ast.For)
        return [*before, *inside, split_loop(one, middle)]
    emitter.whole = whole
    first = lowering.unsplit(_part(loop, start, name(middle)))
    emitter.whole = None
    return [*before, *first, *lowering.unsplit(_part(loop, name(middle), end))]


def _part(loop: ast.For, start: ast.expr, end: ast.expr) -> ast.For:
    part = clone(loop)
    part.iter.args = [clone(start), clone(end)]  # type: ignore[attr-defined]
    return part


def is_worth_it(kernel: Definition, variant: Variant, constants: Mapping[str, Any]) -> bool:
    """Whether some loop of a kernel can be split in a call with these compile-time constants."""
    return any(_met(whole, constants) for whole in _wholes(kernel, variant))


def compares(kernel: Definition, variant: Variant, constants: Mapping[str, Any]) -> bool:
    """Whether, of what splitting leaves out in such a call, some are comparisons."""
    wholes = _wholes(kernel, variant)
    return any(whole.comparisons for whole in wholes if _met(whole, constants))


def _wholes(kernel: Definition, variant: Variant) -> Iterator[Whole]:
    for loop in counted_loops(kernel):
        whole = whole_rounds(kernel, variant, loop)
        if whole is not None:
            yield whole


def _met(whole: Whole, constants: Mapping[str, Any]) -> bool:
    """Whether some condition stands where it is met."""
    return any(
        all(decided(guard, constants) is not False for guard in guards)
        for _, guards in whole.counts
    )


def whole_rounds(kernel: Definition, variant: Variant, loop: ast.stmt) -> Whole | None:
    """The rounds of a loop that need less than the others; None where there are none."""
    if not is_counted(loop):
        return None
    assert isinstance(loop, ast.For) and isinstance(loop.target, ast.Name)
    variable = loop.target.id
    counts: dict[Any, tuple[Symbol, Guards]] = {}
    conditions: set[Condition] = set()
    comparisons: set[Symbol] = set()
    constants = {p.name for p in kernel.parameters if p.kind == "constexpr"}
    for node, guards in _guarded(loop.body, constants):
        found: list[Symbol] = []
        if isinstance(node, TileRef):
            for condition, count in _conditions(kernel, variant, node, variable):
                conditions.add(condition)
                found.append(count)
        elif isinstance(node, ast.Compare):
            comparison = comparisons_of(kernel).of(node)
            if comparison is not None and comparison.excess not in variant.comparisons:
                compared = _count(comparison.excess, variable, kernel)
                if compared is not None:
                    comparisons.add(comparison.excess)
                    found.append(compared)
        for count in found:
            counts.setdefault((count, *map(ast.dump, guards)), (count, guards))
    if not counts:
        return None
    always = {count for count, guards in counts.values() if not guards}
    needed = [(c, guards) for c, guards in counts.values() if not guards or c not in always]
    return Whole(variable, tuple(needed), frozenset(conditions), frozenset(comparisons))


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


def _guarded(
    body: Iterable[ast.stmt], constants: Collection[str], guards: Guards = ()
) -> Iterator[tuple[ast.AST, Guards]]:
    """All nodes, each with the compile-time tests that it stands under."""
    for statement in body:
        if isinstance(statement, ast.If) and is_constant(statement.test, constants):
            yield from _guarded(statement.body, constants, (*guards, statement.test))
            otherwise = ast.UnaryOp(ast.Not(), statement.test)
            yield from _guarded(statement.orelse, constants, (*guards, otherwise))
        else:
            for node in walk(statement):
                yield node, guards


def _conditions(
    kernel: Definition, variant: Variant, tile: TileRef, variable: str
) -> Iterator[tuple[Condition, Symbol]]:
    """The conditions of a tile that hold in the first rounds, and in how many."""
    places = _places(tile, variable)
    if not places:
        return
    access = kernel.arrangement.accesses[tile.parameter]
    levels = kernel.program.parameter(tile.parameter).middle_levels
    sizes = [size for level in levels for size in level]
    renamed: dict[Symbol, Expression] = {
        access.selections[place]: round_of(variable, sizes[place]) for place in places
    }
    for number, condition in enumerate(access.conditions):
        excess = _excess_of(condition)
        if excess is None or (tile.parameter, number) in variant.holding:
            continue
        count = _count(as_symbol(excess.substitute(renamed)), variable, kernel)
        if count is not None:
            yield (tile.parameter, places, number), count


def _places(tile: TileRef, variable: str) -> tuple[int, ...]:
    """The middle dimensions in which the variable selects."""
    return tuple(
        place
        for place, index in enumerate(tile.indices)
        if isinstance(index, ast.Name) and index.id == variable
    )


def _excess_of(condition: Symbol) -> Symbol | None:
    """What is negative exactly where a condition of an access holds."""
    if condition.op not in ("<", ">="):
        return None
    left, right = condition.operands
    return left - right if condition.op == "<" else right - left - 1


def greatest_excess(condition: Symbol, programs: Collection[Symbol]) -> Symbol | None:
    """What is negative exactly where a condition of an access holds for all lanes and selections."""
    excess = _excess_of(condition)
    if excess is None or _reads_sequences(excess):
        return None
    return _greatest(as_symbol(simplify(_multiplied_out(excess))), programs)


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


def _reads_sequences(expression: Symbol) -> bool:
    return any(part.op in ("sequence_start", "sequence_length") for part in expression.walk())


def _count(excess: Symbol, variable: str, kernel: Definition) -> Symbol | None:
    """How many rounds from the first on have a negative excess, whatever the lane is.

    None where it does not grow steadily from round to round.
    """
    if _reads_sequences(excess):
        return None
    excess = as_symbol(simplify(excess))
    rounds = {name for name in excess.leaves() if is_round_of(name, variable)}
    if len(rounds) != 1:
        return None
    (current,) = rounds
    step = _slope(excess, current)
    if step is None or interval(step)[0] < 1:
        return None
    greatest = _greatest(excess.substitute({current: 0}), kernel.arrangement.programs)
    if greatest is None:
        return None
    # step * round + greatest < 0
    return as_symbol(simplify((step - 1 - greatest) // step))


def _greatest(expression: Symbol, programs: Collection[Symbol]) -> Symbol | None:
    """The greatest value over all lanes and selections; None where it is not affine in them."""
    for leaf in dict.fromkeys(expression.leaves()):
        if not _is_index(leaf) or leaf in programs:
            continue
        slope = _slope(expression, leaf)
        if slope is None:
            return None
        low, high = interval(slope)
        if low < 0 < high:
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
