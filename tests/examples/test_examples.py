"""Every example on CPU tensors, against float64: element types, sizes and layouts."""

from __future__ import annotations

import pytest
import torch

from tests.examples.cases import BY_NAME, DTYPES, EXAMPLES, LAYOUTS, Maker
from tests.examples.checking import check


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    ("name", "label"), [(example.name, label) for example in EXAMPLES for label in example.small]
)
def test_example(name: str, label: str, dtype: torch.dtype, layout: str) -> None:
    check(name, BY_NAME[name].small[label], Maker(dtype, layout=layout))
