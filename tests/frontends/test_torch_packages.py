"""An operator in a package of AOTInductor, which another process loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(command, file):
    done = subprocess.run(
        [sys.executable, "-m", "tests.frontends.package_program", command, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("g++") is None, reason="AOTInductor needs a C++ compiler, g++")
def test_a_package_is_loaded_by_a_fresh_process(tmp_path):
    run("make", tmp_path / "cube.pt2")

    assert run("load", tmp_path / "cube.pt2") == ["2", "33", "100"]
