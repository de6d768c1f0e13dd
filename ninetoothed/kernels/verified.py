"""What `Arrangement.verify` has seen to in every call: tiles, their steps and dilations are 1 or more.

Declared bounds are promises that a call may break, so nothing is proved by them; by this it is.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.constancy import is_constant
from ninetoothed.program.nodes import walk
from ninetoothed.symbols.bounds import Interval
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.level import operations
from ninetoothed.tensors.metaops import Tile

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition


@analysis
def positive_names(kernel: Definition) -> frozenset[Symbol]:
    """The names that are 1 or more in every call: sizes, steps or dilations of tiles."""
    constants = {p.name for p in kernel.parameters if p.kind == "constexpr"}
    touched = _always_touched(kernel.program.body, constants)
    names = [
        value
        for parameter in kernel.tensor_parameters
        if parameter.name in touched and parameter.tensor is not None
        for operation in operations(parameter.tensor)
        if isinstance(operation, Tile)
        for _, _, value in operation.checked()
    ]
    return frozenset(name for name in names if isinstance(name, Symbol) and name.op == "leaf")


@analysis
def verified_ranges(kernel: Definition) -> Mapping[Symbol, Interval]:
    """Between which numbers those names lie."""
    return dict.fromkeys(positive_names(kernel), (1, float("inf")))


def _always_touched(body: Iterable[ast.stmt], constants: Collection[str]) -> set[str]:
    """The parameters that statements touch whatever the compile-time constants are."""
    touched: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If) and is_constant(statement.test, constants):
            branches = (statement.body, statement.orelse)
            touched |= set.intersection(*(_always_touched(b, constants) for b in branches))
        else:
            touched |= {node.parameter for node in walk(statement) if hasattr(node, "parameter")}
    return touched
