"""Selections beyond their level, on a device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.triton.specialization import loose_selections_cases, selections_cases  # noqa: E402

MODULES = (selections_cases, loose_selections_cases)
CASES = [
    getattr(module, name) for module in MODULES for name in vars(module) if name.startswith("case_")
]


@pytest.mark.parametrize("case", CASES)
def test_no_access_leaves_its_tensor(
    case: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in MODULES:
        monkeypatch.setattr(module, "DEVICE", "cuda")
    case()
