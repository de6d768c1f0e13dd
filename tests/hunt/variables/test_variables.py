"""Python means by an application about variables what the language does, and its text can be made smaller."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

from tests.hunt.executions import Outcome  # noqa: E402
from tests.hunt.values import Ambiguous  # noqa: E402
from tests.hunt.variables import generate, oracle, run, shrink  # noqa: E402
from tests.hunt.variables.program import Program  # noqa: E402

ROOT = Path(__file__).parents[3]

TYPES = {"x": "float32", "z": "float32", "w": "float32", "y": "int32", "v": "float32"}


def program(text: str, **more: Any) -> Program:
    return Program(0, text, TYPES, more.pop("size", 5), more.pop("tile", 4), 4, **more)


def left(text: str, **more: Any) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """What is in the tensors before, and what Python leaves."""
    made = program(text, **more)
    return made.content(), oracle.executed(made)


def test_what_is_stored_has_the_type_of_its_tensor() -> None:
    before, after = left("def application():\n    y = x + 0.5\n    v = y\n")
    assert after["y"].dtype == np.int32
    assert after["v"].tolist() == np.trunc(before["x"] + 0.5).tolist()


def test_a_helper_that_returns_nothing_assigns_what_it_is_given() -> None:
    text = "def s(p, q):\n    p += q\n\ndef application():\n    a = x\n    a += 1\n    s(a, z)\n    s(v, a)\n"
    before, after = left(text)
    assert (after["v"] == before["v"] + before["x"] + 1 + before["z"]).all()
    with pytest.raises(Ambiguous):
        left(text.replace("a += 1", "pass"))


def test_what_pad_adds_is_left_out_of_sums_and_reads_as_0() -> None:
    text = "def application():\n    v = x + ntl.sum(x + 1)\n"
    before, after = left(text, size=4, pads={"x": (1, 1)})
    total = (before["x"] + 1).sum()
    assert after["v"].tolist() == [total, *(before["x"] + total), total]
    _, after = left(text, size=4, pads={"x": (1, 1)}, others={"x": 2})
    assert after["v"][0] == 2 + total + 6


def test_a_helper_reads_of_a_parameter_that_it_stores_to_what_its_tensor_has() -> None:
    """Where `pad` adds to it nothing is stored, and in its own type the rest (seeds 1347006070, 1347022128)."""
    text = "def s(p, q):\n    p = q + 0.5\n    q = p\n\ndef application():\n    s(x, v)\n"
    before, after = left(text, size=4, pads={"x": (0, 1)}, others={"x": -1})
    assert after["v"].tolist() == [*(before["v"][:3] + 0.5), -1]
    before, after = left(text.replace("s(x", "s(y"), size=4)
    assert after["v"].tolist() == np.trunc(before["v"] + 0.5).tolist()


def test_a_seed_gives_the_same_program_in_every_process() -> None:
    """Whatever texts' hashes are there, by which sets are in order."""
    told = set()
    for hash_seed in "0", "3":
        printed = "print(*(generate.program(seed).text for seed in range(12)))"
        done = subprocess.run(
            [sys.executable, "-c", f"from tests.hunt.variables import generate; {printed}"],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
        )
        told.add(done.stdout)
    assert len(told) == 1


def test_a_seed_gives_the_same_program_in_which_every_name_is_known() -> None:
    for family in generate.FAMILIES:
        for seed in range(40):
            drawn = generate.program(seed, family)
            assert drawn == generate.program(seed, family)
            assert not shrink.unknown(drawn.text), drawn.text


def test_what_does_not_fail_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "def h(p):\n    return p * 2\n\ndef application():\n    a = x + 1\n"
        "    if n > 1:\n        y = z\n        a = h(a)\n    v = (a, z)[0]\n"
    )

    def outcome(candidate: Program, backend: str) -> Outcome:
        oracle.executed(candidate)
        return Outcome("differs" if "h(" in candidate.text.split("application")[1] else "agrees")

    monkeypatch.setattr(shrink, "outcome", outcome)
    made = program(text, numbers={"n": 2, "m": 1})
    smaller, _ = shrink.minimal(made, "numpy", Outcome("differs"))
    assert smaller.text == ("def h(p):\n    pass\n\ndef application():\n    a = x\n    a = h(a)\n")
    assert not smaller.numbers and list(smaller.types) == ["x"]


def test_a_difference_is_found() -> None:
    wanted = {"x": np.array([1.0, 2.0]), "y": np.array([3], np.int32)}
    assert not run.difference(wanted, {**wanted, "x": wanted["x"] + 1e-14})
    assert "x; expected" in run.difference(wanted, {**wanted, "x": wanted["x"] + 1e-6})
    assert "y; expected" in run.difference(wanted, {**wanted, "y": wanted["y"] + 1})
    assert run.difference(wanted, {**wanted, "x": wanted["x"] * np.nan})
