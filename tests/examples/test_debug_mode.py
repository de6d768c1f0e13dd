"""Every example in the NumPy backend's debug mode: no stray access, nothing unwritten or twice."""

from __future__ import annotations

import pytest
import torch

from tests.examples.cases import BY_NAME, EXAMPLES, Maker
from tests.examples.checking import check


@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in EXAMPLES for label in example.small]
)
def test_example(name: str, label: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_DEBUG", "1")
    check(name, BY_NAME[name].small[label], Maker(torch.float32))
