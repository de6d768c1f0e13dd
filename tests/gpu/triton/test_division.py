"""Positions counted from an end, on a device, whose division truncates."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.triton.printers import division_cases  # noqa: E402


@pytest.mark.parametrize("case", [c for c in vars(division_cases) if c.startswith("case_")])
def test_division_rounds_down(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(division_cases, "DEVICE", "cuda")
    getattr(division_cases, case)()
