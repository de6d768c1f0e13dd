"""A gradient's parts, added up: each a sum over some of the programs that share an input."""

from __future__ import annotations

import functools

import ninetoothed.language as ntl
from ninetoothed.kernels.definition import Specializations
from ninetoothed.kernels.making import specializations_of
from ninetoothed.tensors.tensor import Tensor

#: How many parts there are at most: so many programs share the work, and as many rows are left.
MOST_PARTS = 256

_COLUMNS = 128


def _arrangement(parts: Tensor, input: Tensor, gradient: Tensor) -> tuple[Tensor, ...]:
    def blocks(tensor: Tensor) -> Tensor:
        flat = tensor.flatten() if tensor.ndim > 1 else tensor
        return flat.tile((_COLUMNS,))

    rows = parts.flatten(start_dim=1) if parts.ndim > 2 else parts
    rows = rows.tile((-1, _COLUMNS)).squeeze(0)
    return rows, blocks(input), blocks(gradient)


def _application(parts, input, gradient):  # type: ignore[no-untyped-def]
    gradient = ntl.sum(parts, axis=0)  # noqa: F841


@functools.cache
def adding_up(rank_of_parts: int, rank: int) -> Specializations:
    """The kernel that adds up parts; ``input`` is what it is the gradient of, and is not read."""
    tensors = (Tensor(rank_of_parts), Tensor(rank), Tensor(rank))
    return specializations_of(_arrangement, _application, tensors, "adding_up")


def _blocks(*tensors: Tensor) -> tuple[Tensor, ...]:
    flat = (tensor.flatten() if tensor.ndim > 1 else tensor for tensor in tensors)
    return tuple(tensor.tile((_COLUMNS,)) for tensor in flat)


def _narrowed(sums, input, gradient):  # type: ignore[no-untyped-def]
    gradient = sums  # noqa: F841


def _zeros(output):  # type: ignore[no-untyped-def]
    output = 0  # noqa: F841


@functools.cache
def narrowing(rank: int) -> Specializations:
    """The kernel that stores sums in the element type of a gradient; ``input`` is as in `adding_up`."""
    tensors = tuple(Tensor(rank) for _ in range(3))
    return specializations_of(_blocks, _narrowed, tensors, "narrowing")


@functools.cache
def zeroing(rank: int) -> Specializations:
    """The kernel that stores zeros."""
    return specializations_of(_blocks, _zeros, (Tensor(rank),), "zeroing")
