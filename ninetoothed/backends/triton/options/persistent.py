"""Programs that stay on their multiprocessor and take one element of the grid after another.

A launch has as many programs as the device holds at a time. Triton flattens the loop over a program's
elements together with the product's loop inside it: the pipeline of loads goes on from one tile of
the result to the next, and storing one is hidden behind loading for the next. That pays where all
that the inner loop reads comes by descriptor; with computed addresses the flattened loop is several
times slower, so it is not offered there.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ninetoothed.program.effects import names_assigned, writes_memory
from ninetoothed.program.nodes import LanguageRef, Load, SourceLoad, Store, walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from ninetoothed.kernels.definition import Definition

#: What tells a program which it is: there would be several answers.
_POSITIONS = frozenset({"program_id", "num_programs"})


def is_possible(kernel: Definition, described: Collection[str]) -> bool:
    """Whether a kernel's program may be a loop's body, and the loop be flattened.

    Args:
        described: the tensors that are loaded by descriptor.
    """
    program = kernel.optimized
    loops = [statement for statement in program.body if isinstance(statement, ast.For)]
    if len(loops) != 1 or any(isinstance(s, (ast.If, ast.While)) for s in program.body):
        return False
    inside = [node for statement in loops[0].body for node in walk(statement)]
    if any(isinstance(node, (ast.For, ast.While, ast.If, Store, SourceLoad)) for node in inside):
        return False
    loaded = {node.tile.parameter for node in inside if isinstance(node, Load)}
    if not loaded or not loaded <= set(described):
        return False
    parameters = {parameter.name for parameter in kernel.parameters}
    return not (
        # A value that one round would hand on to the next.
        names_assigned(program.body) & parameters
        or any(isinstance(n, LanguageRef) and n.name in _POSITIONS for n in program.nodes())
        or any(writes_memory(s) for s in program.body if not isinstance(s, Store))
    )


def loop(number: str, total: str, count: ast.expr, body: list[ast.stmt]) -> list[ast.stmt]:
    """The loop over a program's share of the grid.

    Args:
        number: the name of the element's number.
        total: the name of how many there are.
        count: how many there are.
        body: what is done for each.
    """
    rounds = _language(
        "range", _grid("program_id"), ast.Name(total, ast.Load()), _grid("num_programs")
    )
    rounds.keywords.append(ast.keyword("flatten", ast.Constant(True)))
    return [
        ast.Assign([ast.Name(total, ast.Store())], count),
        ast.For(ast.Name(number, ast.Store()), rounds, body, []),
    ]


def _grid(function: str) -> ast.Call:
    return _language(function, ast.Constant(0))


def _language(function: str, *arguments: ast.expr) -> ast.Call:
    attribute = ast.Attribute(ast.Name("tl", ast.Load()), function, ast.Load())
    return ast.Call(attribute, list(arguments), [])
