"""Two processes that share a Llama's weights generate what one does, on CPUs through gloo."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist

ROOT = Path(__file__).parents[3]
MODEL = (
    "-m examples.llama --layers 2 --width 256 --tokens 6 --requests 2 --prompt 3 1 4 1 5".split()
)


def tokens(*launcher):
    """The lines of tokens that the command prints; the last line says how long it took."""
    done = subprocess.run(
        [sys.executable, *launcher, *MODEL],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *lines, speed = done.stdout.splitlines()
    assert speed.endswith("tokens/s, the first call included")
    return [[int(token) for token in line.split()] for line in lines]


@pytest.mark.skipif(not dist.is_gloo_available(), reason="needs gloo")
def test_two_processes_generate_what_one_does():
    alone = tokens()
    together = tokens(*"-m torch.distributed.run --standalone --nproc-per-node 2".split())

    assert len(alone) == 2 and all(len(row) == 6 for row in alone)
    assert len({token for row in alone for token in row}) > 1
    assert together == alone
