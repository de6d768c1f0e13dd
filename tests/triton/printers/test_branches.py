"""Branches through Triton's compiler, where no variable may get another type; no device is needed."""

import pytest
import torch

from tests.contract.application.retyped import CASES, kernel_of
from tests.contract.variables import types_after_ways

pytest.importorskip("triton", reason="needs Triton")


@pytest.mark.parametrize("application", [application for application, _ in CASES])
def test_no_branch_gives_a_variable_another_type(application):
    compiled = kernel_of(application).compile(
        torch.zeros(12), torch.zeros(12), 2, -1.5, target=("cuda", 90)
    )

    assert compiled.asm["cubin"]


@pytest.mark.parametrize("application", [application for application, _ in types_after_ways.CASES])
def test_both_branches_may(application):
    kernel = types_after_ways.kernel_of(application)
    compiled = kernel.compile(torch.zeros(5, 3), 2, torch.zeros(5, 3), target=("cuda", 90))

    assert compiled.asm["cubin"]
