"""The tutorial's framework in a file: the page's own text, short, and right."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from ninetoothed import plugins
from ninetoothed.testing import FrontendConformance

DOCS = Path(__file__).resolve().parents[2] / "docs"
FILE = DOCS / "toy_framework.py"
MARK = "# The frontend."

#: What the page promises: some forty lines, and never these many.
MOST_LINES = 60


@pytest.fixture(scope="module", autouse=True)
def toy():
    """The file as an installed package's module would be, registered while these tests run."""
    specification = importlib.util.spec_from_file_location("toy_framework", FILE)
    module = importlib.util.module_from_spec(specification)
    sys.modules["toy_framework"] = module
    specification.loader.exec_module(module)
    plugins.register(module, "toy")
    yield module
    plugins.unregister(module)
    del sys.modules["toy_framework"]


def test_the_page_has_the_files_text() -> None:
    page = (DOCS / "write-a-frontend.md").read_text()
    docstring, _, rest = FILE.read_text().partition("import ctypes")
    framework, frontend = f"import ctypes{rest}".split(MARK)
    assert f"```python\n{framework.strip()}\n```" in page
    assert f"```python\n{frontend.strip()}\n```" in page


def test_the_frontend_is_under_sixty_lines() -> None:
    frontend = FILE.read_text().split(MARK)[1].strip()
    assert len(frontend.splitlines()) < MOST_LINES


class TestToy(FrontendConformance):
    frontend_name = "toy"

    def from_numpy(self, array):
        made = sys.modules["toy_framework"].Array(array.shape, array.dtype.name)
        made.memory[:] = array.tobytes() or bytes(1)
        return made

    def to_numpy(self, tensor):
        numbers = [tensor.number(*place) for place in np.ndindex(tensor.sizes)]
        return np.array(numbers, tensor.kind).reshape(tensor.sizes)

    def transposed(self, tensor):
        return tensor.swapped()
