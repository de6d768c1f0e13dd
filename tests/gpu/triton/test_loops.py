"""Loops that are split and sums that they complete later, on the GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.triton.options.cases import loop_splitting, partial_reduction_sinking  # noqa: E402

pytestmark = pytest.mark.fixes_options("its tests fix those that they are about")

CASES = [
    pytest.param(module, case, id=f"{module.__name__.rpartition('.')[2]}-{case}")
    for module in (loop_splitting, partial_reduction_sinking)
    for case in vars(module)
    if case.startswith("case_")
]


@pytest.mark.parametrize(
    "options",
    [
        "loop_splitting=0,partial_reduction_sinking=0,descriptors=0",
        "loop_splitting=1,partial_reduction_sinking=0,descriptors=0",
        "loop_splitting=0,partial_reduction_sinking=1,descriptors=0",
        "loop_splitting=0,partial_reduction_sinking=0,descriptors=1",
        "loop_splitting=1,partial_reduction_sinking=1,descriptors=1",
    ],
)
@pytest.mark.parametrize(("module", "case"), CASES)
def test_results(module, case: str, options: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setenv("NINETOOTHED_OPTIONS", options)
    monkeypatch.setattr(module, "DEVICE", "cuda")
    for kernel in module.KERNELS.values():
        kernel.forget_launches()

    getattr(module, case)()
