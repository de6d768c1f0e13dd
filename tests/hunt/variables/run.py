"""Runs a program about variables on a backend, and compares what it leaves with what Python left."""

from __future__ import annotations

import re
import time
import warnings

import numpy as np
import torch

from ninetoothed.errors import NineToothedError
from tests.hunt.executions import (
    INTERPRETERS,
    MOST_SECONDS,
    Outcome,
    TooSlow,
    limited,
    loaded,
    on_backend,
)
from tests.hunt.variables.oracle import executed
from tests.hunt.variables.program import Program

BACKENDS = ("numpy", "interpreter", "plain", "options", "cuda")

#: What the language refuses of what is drawn.
EXPECTED: tuple[str, ...] = (
    # Which tuple, list, dictionary or function something is must be known.
    r"is no value of a running kernel: (take one|call it)",
    r"A star needs a tuple whose length is known",
    r"is needed at compile time: (it differs between the ways|a loop assigns it)",
    r"are not gone through one by one",
    # One variable twice, of which a helper assigns one.
    r"gets one variable as",
    # A position that a program does not come to.
    r"is indexed with",
    # Only a parameter's elements are picked by position.
    r"A value that is computed takes `None` and `:` as indices",
    r"is a value that the running kernel has computed: its elements",
    # Which tile a helper assigns, and which variable a later argument assigns too.
    r"and only the running kernel knows which tile is given",
    r"Which value this is only the running kernel knows, and that chooses among numbers, tiles",
    r"gets a variable as it that a later argument assigns",
    r"is needed at compile time: a loop changes what it is",
    # A name that stands for a tile, where the tile is stored to under another one.
    r"so could mean two things|by a name that stands for this tile",
    # A variable that may be taken for the tile that it holds, and is assigned for nothing.
    r"is not read and stored to no tile, so it is lost",
    # What a comparison may not come to.
    r"Python comes to it only where the comparison before it holds",
    # Two functions in one line.
    r"The source of .* was not found",
    # A variable that has two types, or a tuple whose items have.
    r"(gets|this `if` give .*|values of this choice have) different (element types|shapes)",
    r"The loop changes what '\w+' is: ",
    r"A variable that a loop or an if assigns needs a value before it",
)

#: How much of the largest number that a program computes may be lost, in a type.
LOSSES = {"int32": 0.0, "float32": 2.0**-18, "float64": 2.0**-44}


def outcome(program: Program, backend: str) -> Outcome:
    """What becomes of a program."""
    expected = executed(program)
    started = time.perf_counter()
    try:
        with limited(3 * MOST_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore" if backend in INTERPRETERS else "error", RuntimeWarning)
            got = _run(program, backend)
    except TooSlow:
        return Outcome("slow", "still running", time.perf_counter() - started)
    except NineToothedError as error:
        text = f"{type(error).__name__}: {error}"
        is_right = any(re.search(pattern, text) for pattern in EXPECTED)
        kind = "refused" if is_right else "unexpected"
        return Outcome(kind, text, time.perf_counter() - started)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Outcome("internal", text, time.perf_counter() - started)
    seconds = time.perf_counter() - started
    detail = difference(expected, got)
    return Outcome("differs" if detail else "agrees", detail, seconds)


def _run(program: Program, backend: str) -> dict[str, np.ndarray]:
    device = "cuda" if backend == "cuda" else "cpu"
    tensors = {n: torch.from_numpy(a.copy()).to(device) for n, a in program.content().items()}
    with loaded(program.module(), program.seed) as made, on_backend(backend, program.seed):
        made.kernel(*(tensors[name] for name in program.types), *program.numbers.values())
    return {name: tensor.cpu().numpy() for name, tensor in tensors.items()}


def difference(expected: dict[str, np.ndarray], got: dict[str, np.ndarray]) -> str:
    """Where tensors are not as expected; empty where they are."""
    for name, wanted in expected.items():
        loss = LOSSES[wanted.dtype.name] * max(abs(wanted).max(initial=1.0), 64.0)
        if not (abs(got[name].astype(float) - wanted) <= loss).all():
            return f"{name}; expected\n{wanted}\ngot\n{got[name]}"
    return ""
