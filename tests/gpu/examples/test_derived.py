"""Derived backwards of the examples on a GPU, against autograd of what they compute in float64."""

from __future__ import annotations

import pytest
import torch

from tests.derivatives.example_cases import CASES
from tests.examples.compare import poisoned_memory


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_gradients(name, dtype):
    with poisoned_memory():
        CASES[name].check(dtype, "cuda")
