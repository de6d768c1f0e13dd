"""The NumPy backend and the emitted source agree, in a process of their own."""

from __future__ import annotations

import pytest

from tests.processes import assert_none, told_by

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")


@pytest.mark.parametrize(
    ("arguments", "least"), [([], 150), (["0", "40"], 80)], ids=["written", "random"]
)
def test_both_backends(arguments: list[str], least: int) -> None:
    result = told_by("tests.agreement", *arguments)
    assert result["ran"] >= least
    assert_none(result["failures"])
