"""The hunt finds nothing in some hundreds of programs, and knows every operation of the table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

from ninetoothed.language import operations  # noqa: E402
from tests.hunt import generate, reference  # noqa: E402
from tests.hunt.broken_rules import MUTANTS  # noqa: E402
from tests.hunt.forms import FORMS  # noqa: E402
from tests.hunt.left_out import LEFT_OUT  # noqa: E402

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("backends", "programs", "seed", "families"),
    [
        ("numpy", 200, 0, ""),
        ("interpreter,plain", 60, 10**6, ""),
        # A sum of all elements that no number of the type holds.
        ("interpreter", 1, 33000056, ""),
        # A float beside a tensor of float64 of which only the shape is used; what a float16 rounds to 0.
        ("numpy", 1, 44022805, ""),
        ("numpy", 1, 44027609, ""),
        # The first has a number that a store to a tile broadcasts.
        ("numpy,interpreter,plain", 20, 30000023, "biased-chains"),
    ],
)
def test_nothing_is_found(
    tmp_path: Path, backends: str, programs: int, seed: int, families: str
) -> None:
    kept = tmp_path / "hunt.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.hunt", "--backend", backends, "--json", str(kept)),
            *("--programs", str(programs), "--seed", str(seed), "--families", families),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert json.loads(kept.read_text())["programs"] == programs


def test_every_operation_is_drawn_or_left_out_for_a_reason() -> None:
    drawn = {row for form in FORMS.values() for row in form.rows}
    # Statements and expressions of their own.
    drawn |= {"full", "range", "zeros"}
    names = set(operations.TABLE)
    libdevice = {name for name in names if name.startswith("libdevice.")}
    assert drawn <= names
    assert names - drawn - libdevice == set(LEFT_OUT)


def test_each_broken_rule_is_one_of_the_package() -> None:
    counts = {
        name: (ROOT / mutant.file).read_text().count(mutant.before)
        for name, mutant in MUTANTS.items()
    }
    assert counts == dict.fromkeys(MUTANTS, 1)


def test_a_seed_gives_the_same_program() -> None:
    assert generate.program(7) == generate.program(7)


def test_the_reference_executes_what_is_drawn() -> None:
    for seed in range(20):
        assert reference.executed(generate.program(seed)).memory.buffers
