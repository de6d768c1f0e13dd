"""What `Arrangement.verify` has seen to in every call: tiles, their steps and dilations are 1 or more.

Declared bounds are promises that a call may break, so nothing is proved by them; by this it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.bounds import Interval
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.level import operations
from ninetoothed.tensors.metaops import Tile


@analysis
def positive_names(kernel: Definition) -> frozenset[Symbol]:
    """The names that are 1 or more in every call: sizes, steps or dilations of tiles."""
    touched = kernel.arranged
    names = [
        need.value
        for parameter in kernel.tensor_parameters
        if parameter.name in touched and parameter.tensor is not None
        for operation in operations(parameter.tensor)
        if isinstance(operation, Tile)
        for need in operation.needs
        if need.low == 1
    ]
    return frozenset(name for name in names if isinstance(name, Symbol) and name.op == "leaf")


@analysis
def verified_ranges(kernel: Definition) -> Mapping[Symbol, Interval]:
    """Between which numbers those names lie."""
    return dict.fromkeys(positive_names(kernel), (1, float("inf")))
