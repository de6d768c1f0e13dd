"""Programs that may be cut: something, a loop that only adds to accumulators, something."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.language.dtypes import bfloat16, float16, float32
from ninetoothed.program import effects
from ninetoothed.program.arguments import Given
from ninetoothed.program.nodes import LanguageRef, Load, SymbolValue, walk
from ninetoothed.program.program import Program
from ninetoothed.program.types import type_of
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2

#: What an accumulator may be: a sum in float32 is as good as the user's.
_FLOATS = (float32, float16, bfloat16)

#: The type of a kept sum, in bytes.
_ITEMSIZE = 4


@dataclass(frozen=True)
class Form:
    """A program that may be cut: something, a loop that only adds, something.

    Attributes:
        place: the loop's place in the program's body.
        shapes: of each accumulator, by name; a dimension is a symbol, not yet padded.
    """

    place: int
    shapes: Mapping[str, tuple[Symbol, ...]]


@analysis
def form_of(kernel: Definition) -> Form | None:
    """How the kernel's program may be cut, or None."""
    return form_in(kernel.optimized)


def workspace_bytes(kernel: Definition, environment: Mapping[Symbol, int], parts: int) -> int:
    """The room that the parts' sums take."""
    form = form_of(kernel)
    if form is None or parts < 2:
        return 0
    return tiles(kernel, environment) * parts * room(form, environment) * _ITEMSIZE


def tiles(kernel: Definition, environment: Mapping[Symbol, int]) -> int:
    """How many elements the grid has."""
    return math.prod(max(evaluated(size, environment), 0) for size in kernel.grid)


def room(form: Form, environment: Mapping[Symbol, int]) -> int:
    """The elements of all accumulators of one program."""
    sizes = [[int(size.evaluate(environment)) for size in shape] for shape in form.shapes.values()]
    return sum(math.prod(map(next_power_of_2, shape)) for shape in sizes)


def rounds_of(kernel: Definition, environment: Mapping[Symbol, int]) -> int:
    """How many rounds the kernel's loop has that only adds; 0 where there is none."""
    form = form_of(kernel)
    if form is None:
        return 0
    loop = kernel.optimized.body[form.place]
    assert isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call)
    count = _integer(loop.iter.args[0])
    assert count is not None
    return max(int(count.evaluate(environment)), 0)


def form_in(program: Program) -> Form | None:
    places = [place for place, node in enumerate(program.body) if isinstance(node, ast.For)]
    if not places:
        return None
    place = places[0]
    before, loop, after = program.body[:place], program.body[place], program.body[place + 1 :]
    assert isinstance(loop, ast.For)
    if not _is_counted(loop) or any(map(effects.has_effect, (*before, *loop.body))):
        return None
    if any(isinstance(node, ast.While | ast.For) for s in before for node in walk(s)):
        return None
    initial = _initial_values(before)
    shapes = {}
    for name in effects.names_assigned(loop.body) & set(initial):
        shape = _zeros_shape(initial[name])
        if shape is None:
            return None
        shapes[name] = shape
    if not shapes or not _only_adds(loop, set(shapes)):
        return None
    passing = effects.names_assigned([loop]) - set(shapes)
    if passing & set().union(*map(effects.names_read, after)):
        return None
    return Form(place, {name: shapes[name] for name in initial if name in shapes})


def _is_counted(loop: ast.For) -> bool:
    call = loop.iter
    return (
        isinstance(loop.target, ast.Name)
        and isinstance(call, ast.Call)
        and (isinstance(call.func, ast.Name) and call.func.id == "range")
        and len(call.args) == 1
        and not call.keywords
        and _integer(call.args[0]) is not None
        and not loop.orelse
    )


def _integer(node: ast.expr) -> Symbol | None:
    """An integer that is known at the call."""
    if isinstance(node, SymbolValue):
        return as_symbol(node.symbol)
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return as_symbol(node.value)
    return None


def _initial_values(before: Sequence[ast.stmt]) -> dict[str, ast.expr | None]:
    """What names are given before the loop; None for what is given more than once, or not plainly."""
    values: dict[str, ast.expr | None] = {}
    for statement in before:
        plain = statement.targets[0] if isinstance(statement, ast.Assign) else None
        for target in (target for node in walk(statement) for target in effects.targets_of(node)):
            is_first = target is plain and target.id not in values
            values[target.id] = statement.value if is_first else None  # type: ignore[attr-defined]
    return values


def _zeros_shape(value: ast.expr | None) -> tuple[Symbol, ...] | None:
    """The shape of ``value`` where it is floating-point zeros."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, LanguageRef):
        return None
    if value.func.name not in ("zeros", "full") or type_of(value).dtype not in _FLOATS:
        return None
    if value.func.name == "full" and Given(value).constant("value", 1) != 0:
        return None
    shape = type_of(value).shape
    return tuple(map(as_symbol, shape)) if shape and None not in shape else None


def _only_adds(loop: ast.For, accumulators: set[str]) -> bool:
    """Whether a round adds to the accumulators, and leaves nothing else to the next."""
    assigned = effects.names_assigned([loop])
    assert isinstance(loop.target, ast.Name)
    ready = {loop.target.id}
    for statement in loop.body:
        read = _read_besides_adding(statement, accumulators)
        if read is None or read & (assigned - ready):
            return False
        ready |= {target.id for target in effects.targets_of(statement)} - accumulators
    return True


def _read_besides_adding(statement: ast.stmt, accumulators: set[str]) -> set[str] | None:
    """The names that a statement of the loop reads; None where it is none that may stand there.

    The accumulator that it adds to does not count.
    """
    if isinstance(statement, ast.Pass):
        return set()
    if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        if statement.target.id not in accumulators:
            return effects.names_read(statement.value) | {statement.target.id}
        return effects.names_read(statement.value) if isinstance(statement.op, _SUMS) else None
    if not isinstance(statement, ast.Assign):
        return None
    target = statement.targets[0]
    if isinstance(target, ast.Name) and target.id in accumulators:
        added = _added(statement.value, target.id)
        return None if added is None else set().union(*map(effects.names_read, added))
    if effects.names_assigned([statement]) & accumulators:
        return None
    return effects.names_read(statement.value)


_SUMS = (ast.Add, ast.Sub)


def _added(value: ast.expr, accumulator: str) -> list[ast.expr] | None:
    """What ``value`` is besides the accumulator, where it is its sum with that."""

    def is_it(node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == accumulator

    if isinstance(value, ast.BinOp) and isinstance(value.op, _SUMS):
        if is_it(value.left):
            return [value.right]
        if is_it(value.right) and isinstance(value.op, ast.Add):
            return [value.left]
    if isinstance(value, ast.Call) and effects.called_name(value) == "dot":
        arguments = [*value.args, *(keyword.value for keyword in value.keywords)]
        third = [keyword.value for keyword in value.keywords if keyword.arg == "acc"]
        if any(map(is_it, [*value.args[2:3], *third])):
            return [argument for argument in arguments if not is_it(argument)]
    return None


def loaded_in_loop(kernel: Definition) -> set[str]:
    """The parameters whose tiles the loop loads; none where there is no loop to cut."""
    form = form_of(kernel)
    if form is None:
        return set()
    nodes = walk(kernel.optimized.body[form.place])
    return {node.tile.parameter for node in nodes if isinstance(node, Load)}
