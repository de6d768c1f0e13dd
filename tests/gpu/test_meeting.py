"""Sizes that meet are equal, on a device: what is refused on CPUs is refused there, and what runs runs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.errors import ArgumentError  # noqa: E402
from tests.contract import test_meeting as cases  # noqa: E402
from tests.contract import test_meeting_decided as decided  # noqa: E402
from tests.contract import test_meeting_in_flow as flow  # noqa: E402


@pytest.fixture(autouse=True)
def on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "DEVICE", "cuda")
    monkeypatch.setattr(flow, "DEVICE", "cuda")


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


@pytest.mark.parametrize("application", decided.DECIDED, ids=lambda a: a.__name__)
def test_what_a_number_or_data_decide_is_refused(application) -> None:
    decided.test_what_a_number_decides_is_refused_where_it_says_so(application, flow.whole)
    decided.test_what_data_decide_may_be_and_is_refused(application)
    torch.cuda.synchronize()
