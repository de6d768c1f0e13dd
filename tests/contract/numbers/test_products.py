"""The type of `ntl.dot`, which `out_dtype` may ask for: the same on every backend, or an error with its place."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def product_in(out_dtype):
    """A kernel of a product of two matrices that is asked for in a type."""

    def application(a, b, y):
        y = ntl.dot(a, b, out_dtype=out_dtype)  # noqa: F841

    return ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((-1, -1)) for tensor in tensors),
        application,
        (Tensor(2), Tensor(2), Tensor(2)),
    )


def operands(dtype):
    """Two matrices of whose products each is 4096 + 1, which no float16 is; of integers a device wants 32 at once."""
    a = torch.zeros(16, 32)
    a[:, 0], a[:, 1] = 64, 1
    b = torch.zeros(32, 16)
    b[0], b[1] = 64, 1
    return a.to(dtype), b.to(dtype)


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "expected"),
    [
        (torch.float16, ntl.float32, 4097),
        (torch.float16, ntl.float16, 4096),
        (torch.float16, torch.float16, 4096),
        (torch.float32, ntl.float32, 4097),
        (torch.float64, ntl.float64, 4097),
        (torch.float64, ntl.float32, 4097),
        (torch.int8, ntl.int32, 4097),
    ],
    ids=str,
)
def test_a_product_has_the_type_that_is_asked_for(dtype, out_dtype, expected):
    y = torch.zeros(16, 16, dtype=torch.float64)
    product_in(out_dtype)(*operands(dtype), y)
    assert y.tolist() == [[expected] * 16] * 16


@pytest.mark.parametrize(
    ("dtype", "out_dtype", "given"),
    [
        (torch.float16, ntl.int32, "float32 or float16"),
        (torch.float16, torch.float64, "float32 or float16"),
        (torch.float32, ntl.float16, "float32"),
        (torch.float64, ntl.float16, "float64"),
        (torch.int8, ntl.float16, "int32"),
    ],
    ids=str,
)
def test_what_a_product_is_not_given_in_is_refused(dtype, out_dtype, given):
    y = torch.zeros(16, 16)
    with pytest.raises(
        ApplicationError, match=f"of {str(dtype)[6:]} gives {given}, but `out_dtype` is "
    ) as caught:
        product_in(out_dtype)(*operands(dtype), y)
    assert caught.value.location is not None


@pytest.mark.parametrize("out_dtype", [ntl.int8, ntl.int64, ntl.uint32], ids=str)
def test_what_no_product_is_given_in_is_refused_by_make(out_dtype):
    with pytest.raises(ApplicationError, match=f"but `out_dtype` is {out_dtype}") as caught:
        product_in(out_dtype)
    assert caught.value.location is not None
