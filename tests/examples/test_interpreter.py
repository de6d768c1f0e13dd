"""The emitted source of every example in Triton's interpreter, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")

ROOT = Path(__file__).parents[2]


GENERIC = pytest.param("generic", marks=pytest.mark.fixes_options("what is generic has none"))


@pytest.mark.parametrize(("table", "least"), [("examples", 200), ("more", 100)])
@pytest.mark.parametrize("variant", [GENERIC, "specialised"])
def test_every_example(variant: str, table: str, least: int) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.examples.interpreter", variant, table],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["ran"] > least
    assert not result["failures"], "\n".join(
        f"{case}: {error}" for case, error in result["failures"].items()
    )
