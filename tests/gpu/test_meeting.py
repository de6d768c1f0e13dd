"""Sizes that meet are equal, on a device: what is refused on CPUs is refused there, and what runs runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.errors import ArgumentError  # noqa: E402
from tests.contract import test_meeting as cases  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "DEVICE", "cuda")


@pytest.mark.parametrize("case", cases.REFUSED, ids=lambda case: f"{case[0].__name__} {case[2]}")
def test_what_does_not_agree_is_refused(case) -> None:
    application, arrangement, shapes, words = case
    with pytest.raises(ArgumentError) as caught:
        cases.called(application, arrangement, *shapes)

    assert words in caught.value.message


@pytest.mark.parametrize("case", cases.ALLOWED, ids=lambda case: f"{case[0].__name__} {case[2]}")
def test_what_agrees_runs(case) -> None:
    application, arrangement, shapes = case
    cases.called(application, arrangement, *shapes)
    torch.cuda.synchronize()
