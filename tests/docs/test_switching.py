"""The Triton kernel on the page for those who switch runs, in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.test_docs import blocks_of

pytest.importorskip("triton", reason="needs Triton")
pytest.importorskip("torch", reason="needs PyTorch")

PAGE = Path(__file__).resolve().parents[2] / "docs/switching.md"
CHECK = """
x = torch.randn(5, 37)
torch.testing.assert_close(softmax(x), torch.softmax(x, 1))
"""


def test_the_triton_kernel_is_right(tmp_path: Path) -> None:
    [block] = [block for block in blocks_of(PAGE.read_text()) if block.kind == "py"]
    program = tmp_path / "softmax.py"
    program.write_text(block.text + CHECK)

    subprocess.run(
        [sys.executable, str(program)], env={**os.environ, "TRITON_INTERPRET": "1"}, check=True
    )
