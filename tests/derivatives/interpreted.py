"""Runs derived backwards' emitted source in Triton's interpreter: ``python -m tests.derivatives.interpreted``.

A program of its own, since importing the interpreter sets ``TRITON_INTERPRET``.
"""

from __future__ import annotations

import functools
import json
from typing import Any

from tests.derivatives.example_cases import CASES
from tests.derivatives.test_programs import ALL
from tests.examples.interpreter import Interpreter, plugins, torch


def results() -> dict[str, Any]:
    """How many cases ran, and what is wrong by case."""
    ran, failures = 0, {}
    for is_specialised in (False, True):
        backend = Interpreter(is_specialised)
        plugins.backend_for = lambda kind, backend=backend: backend
        for case in CASES.values():
            case.__dict__.pop("operator", None)
        checks = {
            name: functools.partial(case.check, torch.float32) for name, case in CASES.items()
        }
        checks |= {
            f"program {name}": program.check
            for name, program in ALL.items()
            if program.is_interpreted
        }
        for name, check in checks.items():
            ran += 1
            try:
                check()
            except Exception as error:
                failures[f"{name}, {is_specialised}"] = f"{type(error).__name__}: {error}"
    return {"ran": ran, "failures": failures}


if __name__ == "__main__":
    print(json.dumps(results()))
