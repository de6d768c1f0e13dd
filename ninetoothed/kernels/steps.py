"""Steps of ranges that a call's sizes or numbers make 0: refused before a launch, by every backend.

Of loops to which every program comes, or under conditions that the numbers of a call decide; what the running
kernel computes is not asked.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ninetoothed.errors import ArgumentError, Location
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings.agreement import Refusal
from ninetoothed.kernels.meetings.decisions import Decision, Numbers, number, scalars
from ninetoothed.program.effects import names_assigned, names_read
from ninetoothed.program.nodes import SymbolValue, location, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol

STEP_OF_0 = "The step of this range is 0 in this call, and so the range has no end: give a step that is not 0."


@dataclass(frozen=True)
class Step:
    """The step of a range, over a call's numbers, and what they decide where programs come to it."""

    value: ast.expr
    decisions: tuple[Decision, ...]
    location: Location


def refused_steps(
    kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> list[Refusal]:
    """What is refused of calls whose numbers make a step 0; see `agreement.guarded`.

    Args:
        environment: the value of every symbol.
        grid: the number of programs along each dimension.
    """
    return [
        Refusal(
            (*step.decisions, Decision(step.value, step, False)),
            environment,
            ArgumentError(STEP_OF_0, step.location),
        )
        for step in (steps(kernel) if 0 not in grid else ())
    ]


@analysis
def steps(kernel: Definition) -> tuple[Step, ...]:
    """The steps that a number of the kernel's calls decides."""
    return tuple(_block(kernel.program.body, scalars(kernel), ()))


def _block(
    body: Sequence[ast.stmt], numbers: Numbers, decisions: tuple[Decision, ...]
) -> Iterator[Step]:
    """Those in a block to which programs come where ``decisions`` are so."""
    known = dict(numbers)
    for statement in body:
        if isinstance(statement, ast.If):
            test = number(statement.test, known)
            if test is not None:
                for block, holds in ((statement.body, True), (statement.orelse, False)):
                    yield from _block(block, known, (*decisions, Decision(test, statement, holds)))
        elif isinstance(statement, ast.For):
            step = number(step_of(statement), known)
            if step is not None and names_read(step):
                yield Step(step, decisions, location(statement.iter))
            test = _has_round(statement, known)
            if test is not None:
                inner = {n: v for n, v in known.items() if n not in names_assigned([statement])}
                yield from _block(
                    statement.body, inner, (*decisions, Decision(test, statement, True))
                )
        value = None
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = number(statement.value, known)
        for name in names_assigned([statement]):
            known.pop(name, None)
            if value is not None:
                known[name] = value


def _has_round(loop: ast.For, known: Numbers) -> ast.expr | None:
    """That a loop has a round, of those that count up by 1; None where nobody knows."""
    given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    bounds = [number(item, known) for item in given]
    first, last = [ast.Constant(value=0), *bounds][-2:] if bounds else (None, None)
    if len(bounds) > 2 or first is None or last is None:
        return None
    return ast.copy_location(ast.Compare(first, [ast.Lt()], [last]), loop)


def step_of(loop: ast.For) -> ast.expr | None:
    """The step of a range, that of a loop over its rounds too (`parsing.values.in_rounds`)."""
    given = loop.iter.args if isinstance(loop.iter, ast.Call) else []
    if len(given) != 1:
        return given[2] if len(given) > 2 else None
    item = loop.body[0]
    if not isinstance(item, ast.Assign) or not isinstance(loop.target, ast.Name):
        return None
    match item.value:
        case ast.BinOp(op=ast.Add(), right=ast.BinOp(ast.Name(id=name), ast.Mult(), step)):
            is_divided = any(_divides(part, step) for part in walk(given[0]))
            return step if name == loop.target.id and is_divided else None
    return None


def _divides(node: ast.AST, step: ast.expr) -> bool:
    """Whether a node divides by a step, as the number of rounds does."""
    if isinstance(node, SymbolValue) and isinstance(step, SymbolValue):
        return _has_quotient(as_symbol(node.symbol), as_symbol(step.symbol))
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.FloorDiv):
        return False
    return any(ast.dump(part) == ast.dump(step) for part in walk(node.right))


def _has_quotient(expression: Symbol, divisor: Symbol) -> bool:
    parts = [part for part in expression.operands if isinstance(part, Symbol)]
    is_one = expression.op == "//" and expression.operands[1] is divisor
    return is_one or any(_has_quotient(part, divisor) for part in parts)
