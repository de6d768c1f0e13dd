"""Derived backwards of the examples, against autograd of what they compute."""

from __future__ import annotations

import pytest
import torch

from tests.derivatives.example_cases import CASES
from tests.derivatives.test_programs import ALL
from tests.examples.compare import poisoned_memory
from tests.processes import assert_none, told_by

NARROW = ("silu", "swiglu", "layer_norm", "mm", "rope", "instance_norm")


@pytest.mark.parametrize("name", CASES)
def test_in_float32(name):
    with poisoned_memory():
        CASES[name].check(torch.float32)


@pytest.mark.parametrize("name", NARROW)
def test_in_float16(name):
    with poisoned_memory():
        CASES[name].check(torch.float16)


def test_in_tritons_interpreter():
    pytest.importorskip("triton", reason="needs Triton")
    result = told_by("tests.derivatives.interpreted")
    programs = [each for each in ALL.values() if each.is_interpreted]
    assert result["ran"] == 2 * (len(CASES) + len(programs))
    assert_none(result["failures"])
