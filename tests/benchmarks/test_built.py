"""Builds ahead of time are measured in processes of their own, by files of which every byte counts."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from benchmarks.built import as_table, built, each_binary  # noqa: E402
from tests.aot.making import needs_cc  # noqa: E402


@needs_cc
def test_a_kernel_of_ours_and_what_failed_are_in_the_table() -> None:
    ours = built("add", None, 120, "sm_90")
    names = {"narrow", "contiguous", "aligned", "full"}
    binaries = {n: size for n, size in ours["files"].items() if n.endswith(".cubin")}
    assert {name.split(".")[-2] for name in binaries} >= names
    assert 0 < sum(binaries.values()) < ours["linked"]

    result = {"kernel": "add", "ours": ours, "published": {"failed": "no device"}}
    (row,) = as_table([result]).splitlines()[2:]
    assert [cell.strip() for cell in row.split("|")][1:5] == [
        *("add", "1", str(len(binaries)), str(sum(binaries.values())))
    ]
    assert "no device" in row
    assert len(each_binary([result]).splitlines()) == 2 + len(binaries)


def test_a_build_that_takes_too_long_is_said_to() -> None:
    assert built("add", None, 0.01, "sm_90") == {"failed": "more than 0 s, 0 sources by then"}
