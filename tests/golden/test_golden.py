"""Emitted source: the same in every process, and as the golden files have it.

After a change that is meant, ``python -m tests.golden.kernels --write`` writes them anew; read the
difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.kernels import TEN, golden

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", TEN)
def test_source_is_the_golden_one(name: str) -> None:
    assert TEN[name].source == golden(name).read_text(encoding="utf-8")


def emitted_by_a_fresh_process(hash_seed: str) -> bytes:
    return subprocess.run(
        [sys.executable, "-m", "tests.golden.kernels"],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        check=True,
    ).stdout


def test_two_processes_emit_the_same_bytes() -> None:
    first, second = (emitted_by_a_fresh_process(seed) for seed in ("1", "2"))

    assert first == second
    assert json.loads(first) == {name: golden(name).read_text("utf-8") for name in TEN}


@pytest.mark.parametrize("name", TEN)
def test_source_is_python(name: str) -> None:
    compile(TEN[name].source, name, "exec")
