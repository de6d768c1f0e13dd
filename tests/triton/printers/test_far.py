"""Offsets of 64 bits are computed in as many from the first product on: on CPUs, in Triton's interpreter."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.printers import far_cases  # noqa: E402

CASES = [case for name, case in vars(far_cases).items() if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES)
def test_on_numpy(case: Callable[[], None]) -> None:
    case()


def test_in_the_interpreter() -> None:
    assert failures(far_cases.__name__) == {}
