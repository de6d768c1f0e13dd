"""Runs applications on both backends and compares: a line of JSON tells.

``python -m tests.agreement`` runs those of `kernels`, ``python -m tests.agreement SEED COUNT`` so
many made at random.

A program of its own, since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import atexit
import importlib.util
import inspect
import json
import os
import sys
import tempfile

from tests.examples.interpreter import Interpreter  # isort: skip; before Triton is imported

import torch

from ninetoothed import plugins
from tests.agreement.kernels import APPLICATIONS, kernel_of
from tests.agreement.random_applications import Maker

#: Sizes of the tensors, and of the tiles.
SIZES = [((5, 7), (4, 4)), ((6, 5), (3, 5)), ((8, 4), (4, 4)), ((1, 1), (2, 4))]

#: Of those that a GPU's units need more of.
LARGER = {"matrix_product": [((5, 18), (4, 16)), ((6, 20), (3, 20)), ((1, 1), (2, 16))]}


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
    # What is not specialised has no options, so it is the same for all that may be fixed.
    for is_specialised in (True,) if os.environ.get("NINETOOTHED_OPTIONS") else (False, True):
        theirs = outcome(application, shape, tile, Interpreter(is_specialised))
        for one, other in zip(ours, theirs, strict=True):
            if not torch.allclose(one, other, rtol=1e-5, atol=1e-5, equal_nan=True):
                return f"NumPy has\n{one}\nTriton has\n{other}"
    return ""


def random_applications(seed, count):
    """Applications made at random, from a file that is there as long as the process."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:
        file.write(Maker(seed).module(count))
    atexit.register(os.unlink, file.name)
    spec = importlib.util.spec_from_file_location("random_applications", file.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, f"application_{number}") for number in range(count)]


def main(seed=None, count=0):
    """Compare all applications, or so many made at random."""
    applications = APPLICATIONS if seed is None else random_applications(int(seed), int(count))
    sizes = SIZES if seed is None else SIZES[:2]
    ran, failures = 0, {}
    for application in applications:
        for shape, tile in LARGER.get(application.__name__, sizes):
            ran += 1
            try:
                found = disagreement(application, shape, tile)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            if found:
                source = "" if seed is None else inspect.getsource(application)
                failures[f"{application.__name__}, {shape}, {tile}"] = f"{source}{found}"
    print(json.dumps({"ran": ran, "failures": failures}))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
