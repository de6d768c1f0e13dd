"""Every variant computes what it must, for calls that a stronger one would take too."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch, for Triton's interpreter")
pytest.importorskip("triton", reason="needs Triton")

from tests.triton.interpreted import failures  # noqa: E402


def test_each_variant_of_the_ten_kernels_in_the_interpreter() -> None:
    assert failures("tests.aot.interpreted_cases") == {}
