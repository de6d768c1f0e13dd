"""Derived backwards of the examples, against autograd of what they compute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.derivatives.example_cases import CASES
from tests.examples.compare import poisoned_memory

ROOT = Path(__file__).parents[2]
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
    done = subprocess.run(
        [sys.executable, "-m", "tests.derivatives.interpreted"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["ran"] == 2 * len(CASES)
    assert not result["failures"], "\n".join(
        f"{case}: {error}" for case, error in result["failures"].items()
    )
