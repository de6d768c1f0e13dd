"""The tensors of gradients, arranged as those that they are gradients of."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.tensors.level import owner_of, rebuilt
from ninetoothed.tensors.meta_operation import MetaOperation
from ninetoothed.tensors.metaops import Expand
from ninetoothed.tensors.tensor import Tensor

#: What stands for a size in a backward kernel.
Sizes = Mapping[Symbol, Expression]


def like(
    source: Tensor,
    other: Any,
    leading: int = 0,
    absent: Collection[Tensor] = (),
    sizes: Sizes = MappingProxyType({}),
) -> Tensor:
    """A new tensor, declared as another one, with so many leading dimensions more.

    Args:
        other: what its elements out of bounds read as.
        absent: tensors by whose sizes it is not to be declared, for no call has them.
        sizes: what stands for those of others by which it is declared.
    """
    entries: list[Any] = [None] * leading
    options: list[Any] = [None] * leading
    for size in source.shape:
        is_open = _is_of(size, (source, *absent))
        entries.append(None if is_open else as_symbol(size).substitute(sizes) if sizes else size)
        is_leaf = is_open and as_symbol(size).op == "leaf"
        options.append(_declared(size) if is_leaf else None)
    return Tensor(
        shape=tuple(entries), dtype=source.dtype, shape_options=tuple(options), other=other
    )


def sized_by(tensors: Collection[Tensor], parameters: Mapping[str, Any]) -> set[str]:
    """The parameters that are declared by sizes of some tensors."""
    sources = {name: p.source for name, p in parameters.items() if p.source.jagged_dim is None}
    return {name for name, own in sources.items() if any(_is_of(n, tensors) for n in own.shape)}


def _is_of(size: Any, tensors: Collection[Tensor]) -> bool:
    """Whether a size is one of some tensors, or made of theirs."""
    owners = [owner_of(leaf) for leaf in as_symbol(size).leaves()]
    return any(owner is tensor for owner in owners for tensor in tensors)


def gradient_like(source: Tensor, is_zero: bool, absent: Collection[Tensor]) -> Tensor:
    """A new tensor of gradients: what reads as a number that is no element has a gradient of 0.

    Args:
        is_zero: whether it is 0 beyond the end whatever the tensor has there.
        absent: as `like` takes them.
    """
    other = None if source.other is None and not is_zero else 0
    return like(source, other, absent=absent)


def _declared(size: Any) -> dict[str, Any]:
    """The keywords that a size was declared with."""
    leaf = size.leaf
    return {
        key: getattr(leaf, key)
        for key in ("constexpr", "lower_bound", "upper_bound", "power_of_two")
        if getattr(leaf, key)
    }


def sizes_of(one: Tensor, other: Tensor) -> dict[Symbol, Expression]:
    """What stands for the sizes of one tensor where only the other, like it, is there."""
    pairs = zip(one.shape, other.shape)
    return {as_symbol(a): b for a, b in pairs if isinstance(a, Symbol) and owner_of(a) is one}


def strides_of(one: Tensor, other: Tensor) -> dict[Symbol, Expression]:
    """What stands for the strides of one tensor where the other is the same, or a batch of it."""
    return {as_symbol(a): b for a, b in zip(one.strides, other.strides[other.ndim - one.ndim :])}


def arranged_as(
    tensor: Tensor, source: Tensor, sizes: Sizes, start: Tensor | None = None
) -> Tensor:
    """A source in the arrangement of a tensor, with other sizes in it.

    Args:
        start: the level of the source that is arranged; by default the source itself.
    """

    def replaced(expression: Expression) -> Expression:
        return expression.substitute(sizes) if isinstance(expression, Symbol) else expression

    if source is tensor.source and not uses(tensor, sizes):
        return tensor
    return rebuilt(tensor, replaced, source, start=start)


def unexpanded(tensor: Tensor, source: Tensor, sizes: Sizes) -> Tensor:
    """The same, with the dimensions that are repeated as often as they are there: once."""

    def replaced(expression: Expression) -> Expression:
        return expression.substitute(sizes) if isinstance(expression, Symbol) else expression

    def once(operation: MetaOperation) -> MetaOperation:
        if not isinstance(operation, Expand):
            return operation
        pairs = zip(operation.shape, operation.expanded)
        return replace(operation, shape=tuple(1 if expanded else size for size, expanded in pairs))

    return rebuilt(tensor, replaced, source, once)


def uses(tensor: Tensor, symbols: Any) -> bool:
    """Whether an arrangement is made of any of these symbols."""
    return any(symbol in symbols for symbol in symbols_of(tensor))


def symbols_of(tensor: Tensor) -> set[Symbol]:
    """What an arrangement is made of."""
    found: set[Symbol] = set()
    pending: list[Any] = list(tensor.levels)
    while pending:
        level = pending.pop()
        found |= {leaf for size in level.shape for leaf in as_symbol(size).leaves()}
        if level.origin is not None:
            operation = level.origin.operation
            shapes = itertools.chain.from_iterable(operation.operand)
            found |= {leaf for size in shapes for leaf in as_symbol(size).leaves()}
            found |= set(operation.symbols())
            pending += level.origin.operands
    return found
