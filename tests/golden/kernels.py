"""The examples' kernels by name, and ``python -m tests.golden.kernels``: emit them all.

Run as a program it prints the ten kernels' sources as JSON, or with ``--write`` it rewrites the
golden files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from examples import add, addmm, bmm, conv2d, mm, rms_norm, rope, sdpa, silu, softmax

#: The kernels of the paper.
TEN = {
    "add": add.kernel,
    "addmm": addmm.kernel,
    "bmm": bmm.kernel,
    "conv2d": conv2d.kernel,
    "mm": mm.kernel,
    "rms_norm": rms_norm.kernel,
    "rope": rope.kernel,
    "sdpa": sdpa.kernel,
    "silu": silu.kernel,
    "softmax": softmax.kernel,
}

FOLDER = Path(__file__).parent / "sources"


def golden(name: str) -> Path:
    """The file with the expected source of a kernel."""
    return FOLDER / f"{name}.txt"


if __name__ == "__main__":
    if "--write" in sys.argv:
        for name, kernel in TEN.items():
            golden(name).write_text(kernel.source, encoding="utf-8")
    else:
        print(json.dumps({name: kernel.source for name, kernel in TEN.items()}))
