"""A kernel over a batch: inputs and outputs gain a leading dimension, and the grid with them.

The arrangement of a tensor is that of what its leading dimension leaves, one for each element of the
batch; what has no such dimension is the same for all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Any

from ninetoothed.derivatives.arranging import arranged_as, like, strides_of
from ninetoothed.derivatives.exchange import regrouped
from ninetoothed.derivatives.redefined import redefined
from ninetoothed.derivatives.text import is_written
from ninetoothed.kernels.definition import Definition, Specializations
from ninetoothed.program.effects import asks_for_program, names_read
from ninetoothed.program.frozen import is_exactly
from ninetoothed.program.nodes import (
    Offsets,
    SequenceLength,
    SourceLoad,
    SourcePointer,
    SymbolValue,
    clone,
    walk,
)
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.level import owner_of
from ninetoothed.tensors.tensor import Tensor


@dataclass(frozen=True)
class Batched:
    """A kernel over a batch.

    Attributes:
        specializations: the kernel.
        sources: its symbolic tensors by name.
        sizes: what stands for the sizes of the kernel's tensors.
        count: the size of the batch.
    """

    specializations: Specializations
    sources: dict[str, Tensor]
    sizes: dict[Symbol, Expression]
    count: Expression


def batched(definition: Definition, names: Collection[str], name: str) -> Batched | None:
    """The kernel over a batch of some of its tensors, those that it stores to among them.

    Args:
        names: of the tensors that have a leading dimension.
        name: of the kernel.

    Returns:
        None where the kernel depends on where in its tensors it is in a way that a leading dimension
        would change: it takes pointers, linear offsets, elements by their place in the source, the number
        of the program or of programs, or is jagged.
    """
    body = [clone(statement) for statement in definition.program.body]
    nodes = [node for statement in body for node in walk(statement)]
    parameters = definition.tensor_parameters
    if not all(map(is_written, nodes)) or not all(_may_shift(node, names) for node in nodes):
        return None
    if definition.program.externs or any(p.source.jagged_dim is not None for p in parameters):
        return None
    places = definition.arrangement.places
    if any(places[p.name] is None for p in parameters if p.name not in names):
        return None
    sources, sizes = _sources(parameters, names)
    meant = dict(sizes)
    for p in parameters:
        meant |= strides_of(p.source, sources[p.name])
    count = next(sources[p.name].shape[0] for p in parameters if p.name in names)
    for node in nodes:
        if isinstance(node, SymbolValue):
            node.symbol = as_symbol(node.symbol).substitute(meant)
        elif isinstance(node, Offsets) and node.tile.parameter in names:
            assert node.dim is not None
            node.dim += 1
    read = {each for statement in body for each in names_read(statement)}
    arranged: dict[str, Any] = {}
    for parameter in definition.parameters:
        if parameter.kind == "tensor":
            arranged[parameter.name] = (
                _over(parameter, sources[parameter.name], sizes)
                if parameter.name in names
                else _for_all(parameter, sources[parameter.name], sizes, count)
            )
        elif parameter.name in read:
            arranged[parameter.name] = parameter.given
    about = f"`{definition.name}` over a batch."
    specializations = redefined(definition, name, body, arranged, sources, about)
    return Batched(specializations, sources, sizes, count)


def _sources(
    parameters: Collection[Parameter], names: Collection[str]
) -> tuple[dict[str, Tensor], dict[Symbol, Expression]]:
    """The symbolic tensors by name, those of these names with a leading dimension, and what stands for sizes."""
    sources: dict[str, Tensor] = {}
    sizes: dict[Symbol, Expression] = {}
    pending = [*parameters]
    while pending:
        # First those by whose sizes others are declared.
        waiting = [p.source for p in pending]
        parameter = next(p for p in pending if not _is_sized_by(p.source, waiting))
        pending.remove(parameter)
        own, leading = parameter.source, int(parameter.name in names)
        is_same = not leading and all(
            sizes.keys().isdisjoint(as_symbol(n).leaves()) for n in own.shape
        )
        made = own if is_same else like(own, own.other, leading, sizes=sizes)
        sources[parameter.name] = made
        pairs = [] if is_same else zip(own.shape, made.shape[leading:])
        for old, new in pairs:
            if isinstance(old, Symbol) and owner_of(old) is own:
                sizes[as_symbol(old)] = new
    return sources, sizes


def _is_sized_by(source: Tensor, others: Collection[Tensor]) -> bool:
    """Whether a tensor is declared by the sizes of others."""
    owners = [owner_of(leaf) for size in source.shape for leaf in as_symbol(size).leaves()]
    return any(other is owner for other in others for owner in owners if other is not source)


def _may_shift(node: ast.AST, names: Collection[str]) -> bool:
    """Whether what a node says of a tensor's source can be said of one with a leading dimension."""
    if isinstance(node, SourcePointer | SequenceLength) or asks_for_program(node):
        return False
    if is_exactly(node, SourceLoad):
        return node.parameter not in names
    return not (isinstance(node, Offsets) and node.dim is None and node.tile.parameter in names)


def _over(parameter: Parameter, source: Tensor, sizes: dict[Symbol, Expression]) -> Tensor:
    """What a batch holds of a tensor, arranged as that is, for each element of the batch."""
    rank = source.ndim - 1
    batch = source.tile((1, *[-1] * rank))
    if rank:
        batch = batch.squeeze(tuple(range(1, rank + 1)))
    element = batch.dtype.squeeze(0)

    assert parameter.tensor is not None
    batch.dtype = arranged_as(parameter.tensor, source, sizes, start=element)
    levels = [
        [(depth, dim) for dim in range(level.ndim)] for depth, level in enumerate(batch.levels)
    ]
    outer, first, *rest = levels
    return regrouped(batch, [[*outer, *first], *rest])


def _for_all(
    parameter: Parameter, source: Tensor, sizes: dict[Symbol, Expression], count: Expression
) -> Tensor:
    """A tensor that is the same for all elements of the batch."""
    assert parameter.tensor is not None
    tensor = arranged_as(parameter.tensor, source, sizes).unsqueeze(0)
    return tensor.expand((count, *[-1] * (tensor.ndim - 1)))
