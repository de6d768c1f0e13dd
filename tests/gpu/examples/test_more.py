"""The kernels of examples/more on the GPU, against float64: large sizes, layouts, odd sizes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")

from tests.examples.cases import DTYPES, LAYOUTS, Maker  # noqa: E402
from tests.examples.checking import BY_NAME, check  # noqa: E402
from tests.examples.more_cases import MORE  # noqa: E402


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in MORE for label in example.large]
)
def test_sizes(name: str, label: str, dtype: torch.dtype) -> None:
    check(name, BY_NAME[name].large[label], Maker(dtype, "cuda"))


@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in MORE for label in example.small]
)
def test_small_sizes(name: str, label: str) -> None:
    """The CPU tests' sizes, which no power of two and no warp divides, and empty tensors."""
    check(name, BY_NAME[name].small[label], Maker(torch.float16, "cuda"))


@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("name", [example.name for example in MORE])
def test_layouts(name: str, layout: str) -> None:
    check(name, BY_NAME[name].small["odd"], Maker(torch.float16, "cuda", layout))
