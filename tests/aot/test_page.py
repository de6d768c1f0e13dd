"""docs/aot.md: its kernel is built, its program compiled as the page says, and prints what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="needs Triton")

from tests.aot.making import HERE, driver, environment, needs_cc, run  # noqa: E402
from tests.docs.test_docs import blocks_of, check_output, run_page  # noqa: E402

PAGE = (HERE.parents[1] / "docs" / "aot.md").read_text()


@needs_cc
def test_the_page_s_program_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_page(PAGE, tmp_path / "page.py") == 2
    blocks = {block.kind: block.text for block in blocks_of(PAGE)}
    Path("main.c").write_text(blocks["c"])
    command = [part if "*" not in part else None for part in shlex.split(blocks["sh"])]
    sources = sorted(str(path) for path in Path("scaled").glob("*.c"))
    run(*(each for part in command for each in (sources if part is None else [part])))
    check_output(
        blocks["text program"], run("./program", env=environment(driver(tmp_path / "driver")))
    )
