"""Runs the kernels of `examples.llama` in Triton's interpreter: ``python -m tests.examples.llama.interpreter``.

``TRITON_INTERPRET`` must be set before Triton is imported, which PyTorch does not do by itself.
"""

from __future__ import annotations

import json
import sys

import torch

from ninetoothed import plugins
from tests.examples.interpreter import Interpreter
from tests.examples.llama.cases import CASES, check


def main() -> None:
    """Print what is wrong by case."""
    backend = Interpreter(sys.argv[1] == "specialised")
    plugins.backend_for = lambda kind: backend
    failures = {}
    for name in CASES:
        try:
            check(name, torch.float16)
        except Exception as error:
            failures[name] = f"{type(error).__name__}: {error}"
    print(json.dumps({"ran": len(CASES), "failures": failures}))


if __name__ == "__main__":
    main()
