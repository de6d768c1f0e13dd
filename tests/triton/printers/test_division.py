"""Division in addresses rounds down, as Python's: on CPUs, in Triton's interpreter, in the text."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from tests.triton.interpreted import failures  # noqa: E402
from tests.triton.printers import division_cases  # noqa: E402

CASES = [name for name in vars(division_cases) if name.startswith("case_")]


@pytest.mark.parametrize("case", CASES)
def test_on_numpy(case: str) -> None:
    getattr(division_cases, case)()


def test_in_the_interpreter() -> None:
    assert failures(division_cases.__name__) == {}


def test_only_a_dividend_that_may_be_negative_costs_more() -> None:
    kernel = division_cases.kernel_of
    assert "floor_" in kernel(lambda t: t[::-1], (3, 5)).source
    assert "floor_" not in kernel(lambda t: t[2:], (3, 5)).source
