"""8-bit floats in tiles that reach beyond their tensor."""

from __future__ import annotations

import pytest

import ninetoothed
from ninetoothed import Tensor

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")


def copy(x, y):
    y = x  # noqa: F841


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_a_masked_load_compiles(dtype):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((64,)), y.tile((64,))), copy, (Tensor(1), Tensor(1))
    )
    x, y = (torch.zeros(100, dtype=dtype) for _ in range(2))

    assert kernel.compile(x, y, target=("cuda", 90)).asm["cubin"]


@pytest.mark.parametrize("other", [7, True, -0.5])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2], ids=str)
def test_what_stands_for_an_element_out_of_bounds_may_be_an_integer(dtype, other):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((64,)), y.tile((64,))), copy, (Tensor(1, other=other), Tensor(1))
    )
    x, y = (torch.zeros(100, dtype=dtype) for _ in range(2))

    assert kernel.compile(x, y, target=("cuda", 90)).asm["cubin"]
