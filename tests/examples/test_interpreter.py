"""The emitted source of every example in Triton's interpreter, in a process of its own."""

from __future__ import annotations

import pytest

from tests.processes import assert_none, told_by

pytest.importorskip("triton", reason="needs Triton")


GENERIC = pytest.param("generic", marks=pytest.mark.fixes_options("what is generic has none"))


@pytest.mark.parametrize(("table", "least"), [("examples", 200), ("more", 100)])
@pytest.mark.parametrize("variant", [GENERIC, "specialised"])
def test_every_example(variant: str, table: str, least: int) -> None:
    result = told_by("tests.examples.interpreter", variant, table)
    assert result["ran"] > least
    assert_none(result["failures"])
