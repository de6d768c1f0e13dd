"""What the contract's tests share: kernels over vectors and matrices, run on CPU tensors."""

from __future__ import annotations

from typing import Any

import torch

import ninetoothed
from ninetoothed import Symbol, Tensor

#: The block size of most kernels here, given at the call.
B = Symbol("B", constexpr=True)


def tiles(*tensors: Any) -> tuple[Any, ...]:
    """Each tensor of one or more dimensions in blocks of B along its last; scalars as they are."""
    return tuple(
        t.tile((1,) * (t.ndim - 1) + (B,)) if isinstance(t, Tensor) and t.ndim else t
        for t in tensors
    )


def rows(*tensors: Any) -> tuple[Any, ...]:
    """Each matrix in rows, one a program; vectors one element a program; scalars as they are."""

    def row(tensor: Any) -> Any:
        if not isinstance(tensor, Tensor) or tensor.ndim != 2:
            return tensor
        arranged = tensor.tile((1, -1)).squeeze(1)
        arranged.dtype = arranged.dtype.squeeze(0)
        return arranged

    return tuple(map(row, tensors))


def blocks_of_rows(*tensors: Any) -> tuple[Any, ...]:
    """Each vector as a row of blocks of B, all in one program."""
    arranged = tuple(t.tile((B,)).tile((-1,)) if t.ndim else t for t in tensors)
    return arranged


def vectors(count: int, **keywords: Any) -> tuple[Tensor, ...]:
    return tuple(Tensor(1, **keywords) for _ in range(count))


def matrices(count: int, **keywords: Any) -> tuple[Tensor, ...]:
    return tuple(Tensor(2, **keywords) for _ in range(count))


def run(
    application: Any, *arguments: Any, arrangement: Any = tiles, tensors: Any = None, **given: Any
):
    """Makes a kernel of an application and calls it; gives the last argument that is a tensor."""
    if tensors is None:
        tensors = tuple(
            Tensor(a.ndim) if isinstance(a, torch.Tensor) else Tensor(0) for a in arguments
        )
    kernel = ninetoothed.make(arrangement, application, tensors)
    if arrangement in (tiles, blocks_of_rows):
        given.setdefault("B", 4)
    assert kernel(*arguments, **given) is None
    return [a for a in arguments if isinstance(a, torch.Tensor)][-1]


def arange(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """1, 2, 3, … in a shape."""
    return torch.arange(1, torch.Size(shape).numel() + 1).reshape(shape).to(dtype)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """A tensor of a number that nothing here computes."""
    return torch.full(shape, -99).to(dtype)
