"""The kernels of examples/more on CPU tensors, against float64, and each in the debug mode."""

from __future__ import annotations

import pytest
import torch

from tests.examples.cases import DTYPES, LAYOUTS, Maker
from tests.examples.checking import BY_NAME, check
from tests.examples.more_cases import MORE


@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in MORE for label in example.small]
)
def test_sizes(name: str, label: str) -> None:
    check(name, BY_NAME[name].small[label], Maker(torch.float32))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", [example.name for example in MORE])
def test_layouts(name: str, layout: str) -> None:
    """With an element type each."""
    dtype = DTYPES[LAYOUTS.index(layout)]
    check(name, BY_NAME[name].small["odd"], Maker(dtype, layout=layout))


@pytest.mark.parametrize("name", [example.name for example in MORE])
def test_debug_mode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No stray access, nothing unwritten, nothing written twice."""
    monkeypatch.setenv("NINETOOTHED_DEBUG", "1")
    check(name, BY_NAME[name].small["odd"], Maker(torch.float32))
