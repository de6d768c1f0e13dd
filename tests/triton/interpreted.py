"""Runs a module's cases in Triton's interpreter: ``python -m tests.triton.interpreted MODULE``.

A case is a function called ``case_…``, which raises where a kernel is wrong. A process of its own,
since ``TRITON_INTERPRET`` must be set before Triton is imported.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path

from tests.processes import told_by

ROOT = Path(__file__).parents[2]


def failures(module: str, options: str | None = None) -> dict[str, str]:
    """What is wrong by case, with ``$NINETOOTHED_OPTIONS`` set to ``options`` if they are given."""
    fixed = {} if options is None else {"NINETOOTHED_OPTIONS": options}
    result = told_by("tests.triton.interpreted", module, **fixed)
    assert result["ran"] > 0
    return result["failures"]


def _run(name: str) -> dict[str, object]:
    os.environ["TRITON_INTERPRET"] = "1"
    from ninetoothed import plugins
    from tests.examples.interpreter import Interpreter

    backend = Interpreter(True)
    plugins.backend_for = lambda kind: backend
    module = importlib.import_module(name)
    cases = {key: value for key, value in vars(module).items() if key.startswith("case_")}
    found = {}
    for key, case in cases.items():
        try:
            case()
        except Exception as error:
            found[key] = f"{type(error).__name__}: {error}"
    return {"ran": len(cases), "failures": found}


if __name__ == "__main__":
    print(json.dumps(_run(sys.argv[1])))
