"""Operators with derived backwards, for the tests here."""

from __future__ import annotations

import itertools

import ninetoothed
from ninetoothed import Tensor, like

NUMBERS = itertools.count()
MATRIX = {"shape_options": (None, {"constexpr": True})}


def blocks(*tensors):
    """Vectors in blocks; scalars as they are."""
    return tuple(tensor.tile((16,)) if tensor.ndim else tensor for tensor in tensors)


def rows(*tensors):
    """A row of each matrix a program; scalars as they are."""
    return tuple(tensor.tile((1, -1)) if tensor.ndim else tensor for tensor in tensors)


def matrices(count):
    return tuple(Tensor(2, **MATRIX) for _ in range(count))


def made(application, arrangement=blocks, tensors=None, outputs=None, **options):
    """An operator under a name of its own; the last tensor is the output, and like the first."""
    names = application.__code__.co_varnames[: application.__code__.co_argcount]
    if tensors is None:
        tensors = tuple(Tensor(1) for _ in names)
    if outputs is None:
        outputs = {names[-1]: like(names[0])}
    kernel = ninetoothed.make(arrangement, application, tensors)
    name = f"derived::{application.__name__}_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, outputs, **{"backward": "derive", **options})
