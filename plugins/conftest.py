"""The plugins' tests run on the sources beside them, whether the packages are installed or not."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent

#: The names of the entry points, and their modules.
PLUGINS = {
    "numpy-arrays": "ninetoothed_numpy",
    "cupy": "ninetoothed_cupy",
    "jax": "ninetoothed_jax",
}

for _folder in sorted(HERE.glob("ninetoothed-*")):
    sys.path.insert(0, str(_folder))


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    """Registers what no entry point has, while the tests of a module run."""
    from ninetoothed import plugins

    known = {listed.name for listed in plugins.listing()}
    added = []
    for name, module_name in PLUGINS.items():
        if name not in known:
            module = importlib.import_module(module_name)
            plugins.register(module, name)
            added.append(module)
    yield
    for module in added:
        plugins.unregister(module)
