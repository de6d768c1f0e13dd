"""The NumPy backend and the emitted source agree, in a process of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "least"), [([], 150), (["0", "40"], 80)], ids=["written", "random"]
)
def test_both_backends(arguments: list[str], least: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.agreement", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["ran"] >= least
    assert not result["failures"], "\n".join(
        f"{case}: {problem}" for case, problem in result["failures"].items()
    )
