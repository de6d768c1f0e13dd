"""Every example on the GPU, at sizes that the CPU tests cannot have, against float64."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.examples.cases import BY_NAME, DTYPES, EXAMPLES, LAYOUTS, Maker  # noqa: E402
from tests.examples.checking import check  # noqa: E402


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in EXAMPLES for label in example.large]
)
def test_sizes(name: str, label: str, dtype: torch.dtype) -> None:
    check(name, BY_NAME[name].large[label], Maker(dtype, "cuda"))


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("name", [example.name for example in EXAMPLES])
def test_layouts(name: str, layout: str) -> None:
    """One element type: the layout decides the addresses, and the type does not."""
    check(name, BY_NAME[name].large["odd"], Maker(torch.float16, "cuda", layout))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", [example.name for example in EXAMPLES])
def test_small_sizes(name: str, dtype: torch.dtype) -> None:
    """The CPU tests' odd sizes, which no power of two and no warp divides."""
    check(name, BY_NAME[name].small["odd"], Maker(dtype, "cuda"))
