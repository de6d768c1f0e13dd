"""The kernels of the examples are made in a process that has no framework."""

from __future__ import annotations

from benchmarks.common.fresh import figures

_PROGRAM = """
import importlib, json, pkgutil, sys

for name in ("torch", "paddle", "triton"):
    sys.modules[name] = None  # importing it fails

import examples
from ninetoothed.launch.kernel import Kernel

made = {}
for module in pkgutil.iter_modules(examples.__path__):
    if not module.ispkg:
        names = vars(importlib.import_module("examples." + module.name)).items()
        made[module.name] = [name for name, value in names if isinstance(value, Kernel)]
print(json.dumps(made))
"""


def test_every_example_makes_its_kernel() -> None:
    made = figures(_PROGRAM)
    assert len(made) == 17
    assert all("kernel" in names for names in made.values()), made
