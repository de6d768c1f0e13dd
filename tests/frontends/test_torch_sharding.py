"""Operators on tensors that two processes share, by DTensor over gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_two_processes_compute_what_one_does(tmp_path):
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.frontends.sharded_program"]
            + [str(rank), "2", str(tmp_path / "meeting")],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=240) for process in started]
    finally:
        for process in started:
            process.kill()
    for process, (_, errors) in zip(started, said):
        assert process.returncode == 0, errors
    lines = said[0][0].splitlines()
    assert {name: sum(each.startswith(name) for each in lines) for name in NAMES} == NAMES


#: How many cases each has.
NAMES = {"mm": 5, "softmax": 3, "rms_norm": 3, "attention": 8}
