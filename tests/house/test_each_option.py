"""The tests' own tool that runs them with each option fixed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ninetoothed.backends.triton.planning.choices import defaults
from tests.with_each_option import all_values

pytest.importorskip("torch", reason="needs PyTorch")

ROOT = Path(__file__).parents[2]

TESTS = """
import os
import subprocess
import sys

import pytest
import torch

from ninetoothed.backends.triton.planning import choices as options
from tests.golden.kernels import TEN

def test_the_variable_is_set():
    code = "import os; print(os.environ['NINETOOTHED_OPTIONS'])"
    started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert started.stdout.strip() == os.environ["NINETOOTHED_OPTIONS"]

@pytest.mark.parametrize("name", ["add", "mm"])
def test_that_chooses(name):
    call = TEN["add"].call_of(*[torch.empty(8)] * 3, BLOCK_SIZE=4)
    values = options.choices(TEN["add"].definition, call, TEN["add"].definition.environment(call))
    assert name == "add" or values == [()], f"{name} got {values}"

@pytest.mark.fixes_options("it is about one")
def test_of_an_option():
    raise AssertionError
"""


@pytest.mark.parametrize(
    "workers", [[], ["-n", "2", "--maxschedchunk=1"]], ids=["alone", "workers"]
)
def test_every_test_runs_with_every_value(tmp_path, workers):
    (tmp_path / "test_some.py").write_text(TESTS)
    plugins = ["-p", "tests.each_option", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    values = ["--each-option", "eviction_policy=1,program_coarsening=4"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rN", "-c", ROOT / "pyproject.toml"]
        + [*plugins, *values, *workers, tmp_path / "test_some.py"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    lines = [line.partition(" (")[0].split(maxsplit=1) for line in done.stdout.splitlines()]
    told = dict(line for line in lines if len(line) == 2)

    assert done.returncode == 1, done.stdout + done.stderr
    assert told["eviction_policy=1"] == "3 passed, taken in 2 of 2 choices"
    assert told["program_coarsening=4"] == "2 passed, 1 FAILED, taken in 2 of 2 choices"
    assert (
        "[mm-program_coarsening=4]: AssertionError: mm got [(('program_coarsening', 4),)]"
        in done.stdout
    )
    assert "\n1 skipped: not where options are fixed: it is about one\n" in done.stdout


def test_all_options_are_fixed_at_their_default_and_at_another_value():
    values: dict[str, set[int]] = {}
    for entry in all_values():
        name, _, value = entry.partition("=")
        values.setdefault(name, set()).add(int(value))

    assert values.keys() == defaults().keys()
    assert all(default in values[name] for name, default in defaults().items())
    assert all(len(found) > 1 for found in values.values())
