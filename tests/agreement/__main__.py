"""Runs every application on both backends: ``python -m tests.agreement``; a line of JSON tells.

A program of its own, since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import inspect
import json
import sys

from tests.examples.interpreter import Interpreter  # isort: skip; before Triton is imported

import torch

from ninetoothed import plugins
from tests.agreement.kernels import APPLICATIONS, kernel_of

#: Sizes of the tensors, and of the tiles.
SIZES = [((5, 7), (4, 4)), ((6, 5), (3, 5)), ((8, 4), (4, 4)), ((1, 1), (2, 4))]


def arguments_of(application, shape, generator):
    """Arguments of an application, the same for the same state of the generator."""
    values = {"n": 3, "FLAG": True}
    return [
        values[name] if name in values else torch.randn(shape, generator=generator)
        for name in inspect.signature(application).parameters
    ]


def outcome(application, shape, tile, backend):
    """All tensors after a call on a backend."""
    generator = torch.Generator().manual_seed(0)
    arguments = arguments_of(application, shape, generator)
    original = plugins.backend_for
    if backend is not None:
        plugins.backend_for = lambda kind: backend
    try:
        kernel_of(application)(*arguments, M=tile[0], N=tile[1])
    finally:
        plugins.backend_for = original
    return [argument for argument in arguments if isinstance(argument, torch.Tensor)]


def disagreement(application, shape, tile):
    """What differs between the backends; an empty text where nothing does."""
    ours = outcome(application, shape, tile, None)
    for is_specialised in (False, True):
        theirs = outcome(application, shape, tile, Interpreter(is_specialised))
        for one, other in zip(ours, theirs, strict=True):
            if not torch.allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True):
                return f"NumPy has\n{one}\nTriton has\n{other}"
    return ""


def main(names):
    """Compare the named applications, by default all; whether one disagrees."""
    ran, failures = 0, {}
    for application in APPLICATIONS:
        if names and application.__name__ not in names:
            continue
        for shape, tile in SIZES:
            ran += 1
            try:
                found = disagreement(application, shape, tile)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found:
                failures[f"{application.__name__}, {shape}, {tile}"] = found
    print(json.dumps({"ran": ran, "failures": failures}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
