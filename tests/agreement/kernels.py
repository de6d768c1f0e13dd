"""Small applications that both backends have to agree on, over tiles that reach past the edges.

The NumPy backend executes an application as Python; the Triton backend runs what the parser and the
passes made of it. ``x``, ``y``, ``z`` are one tile a program, ``row`` all tiles of a row of them,
``full`` is as ``x`` with ``other`` set, ``n`` is a scalar, ``FLAG`` a constexpr.
"""

from __future__ import annotations

import inspect

import ninetoothed
from ninetoothed import Symbol, Tensor
from tests.agreement import control_flow, helpers, memory, reductions

M = Symbol("M", constexpr=True)
N = Symbol("N", constexpr=True)


def arrangement_of(names):
    """The arrangement of parameters that are called so."""

    def arrangement(*tensors):
        return tuple(_arranged(name, tensor, tensors[-1]) for name, tensor in zip(names, tensors))

    return arrangement


def _arranged(name, tensor, last):
    if name in ("n", "FLAG"):
        return tensor
    tiles = tensor.tile((M, N))
    if name == "row":
        tiles = tiles.tile((1, -1)).expand((-1, last.tile((M, N)).shape[1]))
        tiles.dtype = tiles.dtype.squeeze(0)
    return tiles


def kernel_of(application):
    """The kernel of an application; its last parameter is a tile that is stored to."""
    names = list(inspect.signature(application).parameters)
    tensors = [
        Tensor(0)
        if name == "n"
        else Tensor(0, constexpr=True)
        if name == "FLAG"
        else Tensor(2, other=-2.5 if name == "full" else None)
        for name in names
    ]
    return ninetoothed.make(
        arrangement_of(names), application, tensors, kernel_name=application.__name__
    )


def applications_of(module):
    """Those of a module: the functions of its own that store to a ``y``."""
    for value in vars(module).values():
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            names = list(inspect.signature(value).parameters)
            if "y" in names and names[-1] in ("y", "n"):
                yield value


APPLICATIONS = [
    application
    for module in (reductions, control_flow, memory, helpers)
    for application in applications_of(module)
]
