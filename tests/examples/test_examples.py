"""Every example on CPU tensors, against float64: element types, sizes and layouts."""

from __future__ import annotations

import pytest
import torch

from tests.examples.cases import BY_NAME, DTYPES, EXAMPLES, LAYOUTS, Maker
from tests.examples.checking import check


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "label"),
    [(example.name, label) for example in EXAMPLES for label in example.small],
)
def test_sizes(name: str, label: str, dtype: torch.dtype) -> None:
    check(name, BY_NAME[name].small[label], Maker(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("layout", LAYOUTS[1:])
@pytest.mark.parametrize("name", [example.name for example in EXAMPLES])
def test_layouts(name: str, layout: str, dtype: torch.dtype) -> None:
    check(name, BY_NAME[name].small["odd"], Maker(dtype, layout=layout))
