"""What an application asserts of sizes: asked of the numbers of each new kind of call, by every backend.

Of what stands where every program comes to: under conditions that sizes decide, and in loops that have a round
by them. What the running kernel decides it asserts itself; what tuning decides, its compiler.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence

from ninetoothed.errors import (
    ArgumentError,
    Location,
    NineToothedError,
    ShapeError,
    failed_assertion,
)
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.meetings import size_expressions
from ninetoothed.kernels.steps import STEP_OF_0, step_of
from ninetoothed.program.arguments import Given
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.nodes import LanguageRef, location
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated, maximum, minimum
from ninetoothed.tensors.requirements import Requirement

_ASSERTIONS = frozenset({"static_assert", "device_assert", "assume"})


@dataclass(frozen=True)
class Assertion:
    """That an expression over sizes is not 0."""

    holds: Symbol
    message: str
    location: Location
    kind: type[NineToothedError] = ShapeError

    @property
    def requirement(self) -> Requirement:
        """The same, for who asks where there is no Python."""
        text = f"{self.message} ({os.path.basename(self.location.file)}:{self.location.line})"
        return Requirement("", self.holds, 1, None, text)


def check_assertions(
    kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> None:
    """Checks what the application asserts of sizes.

    Args:
        environment: the value of every symbol.
        grid: the number of programs along each dimension.

    Raises:
        ShapeError: it is not so; at the assertion.
        ArgumentError: the step of a range is 0; at the range.
    """
    for assertion in assertions(kernel) if 0 not in grid else ():
        if not evaluated(assertion.holds, environment):
            raise assertion.kind(assertion.message, assertion.location)


@analysis
def assertions(kernel: Definition) -> tuple[Assertion, ...]:
    """What is asserted of sizes, in the order of the program."""
    return tuple(_block(kernel.program.body, {}, as_symbol(1)))


def _block(
    body: Sequence[ast.stmt], known: Mapping[str, Symbol], reached: Symbol
) -> Iterator[Assertion]:
    """The assertions in a block to which programs come where ``reached`` is not 0.

    Args:
        known: the variables that are integers of sizes.
    """
    known = dict(known)
    for statement in body:
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            yield from _of_call(statement.value, known, reached)
        elif isinstance(statement, ast.If):
            holds = _truth(statement.test, known)
            if holds is not None:
                yield from _block(statement.body, known, minimum(reached, holds))
                yield from _block(statement.orelse, known, minimum(reached, 1 - holds))
        elif isinstance(statement, ast.For):
            step = size_expressions.integer(step_of(statement), known)
            if step is not None and size_expressions.is_of_sizes(step) and interval(step)[0] < 1:
                holds = maximum(minimum(1, maximum(step, 0 - step)), 1 - reached)
                yield Assertion(holds, STEP_OF_0, location(statement.iter), ArgumentError)
            inner = {n: v for n, v in known.items() if n not in names_assigned([statement])}
            count = size_expressions.of_range(statement, known).count
            if count is not None and size_expressions.is_of_sizes(count):
                some = minimum(1, maximum(0, count))
                yield from _block(statement.body, inner, minimum(reached, some))
        value = None
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            value = size_expressions.integer(statement.value, known)
        for name in names_assigned([statement]):
            known.pop(name, None)
        if value is not None:
            known |= dict.fromkeys(names_assigned([statement]), value)


def _of_call(node: ast.Call, known: Mapping[str, Symbol], reached: Symbol) -> Iterator[Assertion]:
    if not isinstance(node.func, LanguageRef) or node.func.name not in _ASSERTIONS:
        return
    given = Given(node)
    test, message = given.node_of("cond", 0), given.node_of("msg", 1)
    if test is None or given.node_of("mask", 2) is not None:
        return
    said = failed_assertion(message.value if isinstance(message, ast.Constant) else "")
    if node.func.name == "assume":
        said = "What ntl.assume says does not hold."
    parts = [test]
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        parts = test.values
    for part in parts:
        holds = _truth(part, known)
        if holds is not None:
            holds = maximum(holds, 1 - reached)
            yield Assertion(holds, said, location(node))


def is_of_call(node: ast.Call) -> bool:
    """Whether an assertion asks of sizes what a call alone says, and no compiler."""
    test = Given(node).node_of("cond", 0)
    return test is not None and _truth(test, {}) is not None and not is_constant(test, ())


def _truth(node: ast.expr, known: Mapping[str, Symbol]) -> Symbol | None:
    """Not 0 where a condition of sizes alone holds, or a number of them is not 0."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
        # What a chained comparison is.
        one, other = _truth(node.left, known), _truth(node.right, known)
        return None if one is None or other is None else minimum(one, other)
    number = size_expressions.integer(node, known)
    if number is not None and size_expressions.is_of_sizes(number):
        return minimum(1, maximum(number, 0 - number))
    return size_expressions.condition(node, known)
