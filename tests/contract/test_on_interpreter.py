"""Every sentence of the contract that a kernel can show holds of the emitted source as well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton's interpreter")


GENERAL = pytest.param("general", marks=pytest.mark.fixes_options("what is general has none"))


@pytest.mark.parametrize("variant", [GENERAL, "specialised"])
def test_the_contract_holds_in_tritons_interpreter(variant):
    command = [sys.executable, "-m", "tests.contract.on_interpreter"]
    finished = subprocess.run(
        command + ([variant] if variant == "specialised" else []),
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    assert finished.returncode == 0, finished.stdout[-6000:]
    assert " passed" in finished.stdout
