"""What is in order and how often, against plain NumPy: NaN is the greatest, and what is in no bin is not counted.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

NAN, INF = float("nan"), float("inf")

#: Rows of 5, which are padded, and of 8.
ROWS = [
    [
        [0.5, NAN, -1.0, -0.0, 2.0],
        [NAN] * 5,
        [NAN, NAN, INF, -INF, 1.0],
        [3.0, 1.0, 2.0, -INF, INF],
    ],
    [[1.0, NAN, 3.0, 2.0, -1.0, -2.0, INF, -INF], [7.0, 6.0, NAN, 5.0, NAN, 4.0, 3.0, 2.0]],
]


def whole(*tensors):
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def _needs_compiler():
    pytest.importorskip("triton")
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs Triton's compiler, and its interpreter was chosen")


def run(application, x, y):
    ninetoothed.make(whole, application, (Tensor(x.ndim), Tensor(y.ndim)))(x, y)
    return y


def ascending(x, y):
    y = ntl.sort(x)


def descending(x, y):
    y = x.sort(descending=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("rows", ROWS)
def test_nan_is_the_greatest_in_order(rows, dtype):
    dtype = getattr(torch, dtype)
    x = torch.tensor(rows, dtype=dtype)
    in_order = torch.from_numpy(np.sort(x.double().cpu().numpy())).to(x)
    for application, expected in ((ascending, in_order), (descending, in_order.flip(-1))):
        y = run(application, x, torch.full_like(x, 77))
        torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("rows", ROWS)
def test_nan_is_among_the_greatest(rows, dtype, k):
    def application(x, y):
        y = ntl.topk(x, k)  # noqa: F841

    x = torch.tensor(rows, dtype=dtype)
    expected = torch.from_numpy(np.sort(x.double().cpu().numpy())).to(x).flip(-1)[:, :k]
    y = run(application, x, torch.full((len(rows), k), 77).to(dtype))
    torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32])
@pytest.mark.parametrize("shape", [(5,), (1, 5), (1, 1, 8), (1,)])
def test_the_greatest_alone_is_one_of_a_whole_tile(shape, dtype):
    def application(x, y):
        y = ntl.topk(x, 1)  # noqa: F841

    x = torch.tensor([3, 1, 4, -1, -5, 9, 2, 6])[: shape[-1]].reshape(shape).to(dtype)
    y = run(application, x, torch.full((*shape[:-1], 1), 77).to(dtype))
    assert torch.equal(y, x.amax(-1, keepdim=True))


@pytest.mark.parametrize("shape", [(5,), (1, 5)])
def test_the_greatest_alone_is_compiled(shape):
    _needs_compiler()

    def application(x, y):
        y = ntl.topk(x, 1)  # noqa: F841

    kernel = ninetoothed.make(whole, application, (Tensor(len(shape)), Tensor(len(shape))))
    assert kernel.compile(torch.zeros(shape), torch.zeros((*shape[:-1], 1)), target=("cuda", 90))


def counted(x, y):
    y = ntl.histogram(x, 4)


def counted_in_part(x, y):
    y = ntl.histogram(x, 4, mask=x != 1)


#: Types and elements, some of them in no bin though their last bits are.
COUNTED = [
    (torch.int32, [0, 1, 1, 3, 4, 7, -1, -4, 100, 2**31 - 1, -(2**31)]),
    (torch.int64, [0, 1, 1, 3, 4, 7, -1, -4, 2**32 + 1, 2**62, -(2**63)]),
    (torch.int8, [0, 1, 1, 3, 4, 7, -1, -4, 127, -128, 2]),
    (torch.uint8, [0, 1, 1, 3, 4, 7, 255, 252, 127, 128, 2]),
    (torch.bool, [0, 1, 1, 0, 1]),
]


@pytest.mark.parametrize(("dtype", "elements"), COUNTED)
def test_what_is_in_no_bin_is_not_counted(dtype, elements):
    x = torch.tensor(elements).to(dtype)
    for application, left in (
        (counted, elements),
        (counted_in_part, [e for e in elements if e != 1]),
    ):
        y = run(application, x, torch.full((4,), 77, dtype=torch.int32))
        assert y.tolist() == [left.count(number) for number in range(4)]


@pytest.mark.parametrize(("dtype", "elements"), COUNTED)
def test_counts_of_any_integers_are_compiled(dtype, elements):
    _needs_compiler()
    kernel = ninetoothed.make(whole, counted, (Tensor(1), Tensor(1)))
    arguments = torch.tensor(elements).to(dtype), torch.zeros(4, dtype=torch.int32)
    assert kernel.compile(*arguments, target=("cuda", 90)).asm["cubin"]
