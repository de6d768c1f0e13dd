"""Selections beyond their level, on a device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.triton.specialization import selections_cases  # noqa: E402


@pytest.mark.parametrize("case", [c for c in vars(selections_cases) if c.startswith("case_")])
def test_no_access_leaves_its_tensor(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections_cases, "DEVICE", "cuda")
    getattr(selections_cases, case)()
