"""Rows and views that begin anywhere, one after the other: each is moved as widely as it lies."""

from __future__ import annotations

import itertools

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

import ninetoothed  # noqa: E402
from examples import mm, softmax  # noqa: E402
from tests.examples.compare import assert_matches  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.triton.options.cases import full_tile_versioning as cases  # noqa: E402

#: Elements before a view's first, and beyond its rows' ends.
OFFSETS = (0, 1, 2, 4, 8)
BEYOND = (0, 1, 4)


def view(rows: int, columns: int, offset: int, beyond: int) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix within a vector, and that vector."""
    step = columns + beyond
    whole = Maker(torch.float16, "cuda")(offset + rows * step + 16)
    return torch.as_strided(whole, (rows, columns), (step, 1), offset), whole


@pytest.mark.parametrize("columns", [1000, 500, 250, 1001, 64, 2])
def test_rows(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing beside what is written to changes."""
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    kernel = ninetoothed.make(softmax.arrangement, softmax.application, softmax.tensors)
    for offset, beyond in itertools.product(OFFSETS, BEYOND):
        given, _ = view(33, columns, offset, beyond)
        output, whole = view(33, columns, offset, beyond)
        before = whole.clone()
        kernel(given, output)
        assert_matches(output, torch.softmax(given.double(), -1), columns)
        torch.as_strided(before, output.shape, output.stride(), offset).copy_(output)
        assert torch.equal(whole, before)


@pytest.mark.parametrize("inner, columns", [(1000, 200), (500, 250), (250, 1001), (100, 36)])
def test_products(inner: int, columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    kernel = ninetoothed.make(mm.arrangement, mm.application, mm.tensors)
    for offset, beyond in itertools.product((0, 1, 4), BEYOND):
        left, _ = view(77, inner, offset, beyond)
        right, _ = view(inner, columns, beyond, offset)
        output = left.new_full((77, columns), torch.nan)
        kernel(left, right, output)
        assert_matches(output, left.double() @ right.double(), inner)


@pytest.mark.parametrize("case", [c for c in vars(cases) if c.startswith("case_")])
def test_programs_within_which_no_tensor_ends(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setattr(cases, "DEVICE", "cuda")
    getattr(cases, case)()
