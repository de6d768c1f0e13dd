"""Scans of tiles of any shape, dimensions of size 1 included, and the greatest, against plain NumPy.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import NineToothedError

S = Symbol("S", constexpr=True)


def sum_and_a_half(a, b):
    return a + b + 0.5


def sum_and_product(a, b, c, d):
    return a + c, b * d


def of_a_column(x, y):
    y = ntl.cumsum(ntl.min(x, axis=1, keep_dims=True), axis=0) + ntl.zeros(x.shape, ntl.float32)


def of_a_column_reduced(x, y):
    y = ntl.min(ntl.min(ntl.cumsum(ntl.sum(x, axis=1, keep_dims=True), axis=0), axis=1))


def of_a_column_backwards(x, y):
    y = ntl.min(ntl.cumsum(ntl.max(x, axis=1, keep_dims=True), axis=0, reverse=True))


def of_a_flipped_column(x, y):
    y = ntl.min(ntl.cumsum(ntl.flip(x[:, :1]), axis=0, reverse=True))


def of_one_row(x, y):
    row = ntl.max(x, axis=0, keep_dims=True)
    y = ntl.cumprod(row, axis=0, reverse=True) + ntl.zeros(x.shape, ntl.float32)


def of_ones_own(x, y):
    column = ntl.max(x, axis=1, keep_dims=True)
    y = ntl.min(ntl.associative_scan(column, 0, sum_and_a_half))


def of_several(x, y):
    column = ntl.sum(x, axis=1, keep_dims=True)
    sums, products = ntl.associative_scan((column, column), axis=0, combine_fn=sum_and_product)
    y = ntl.min(sums) + ntl.max(products)


def by_methods(x, y):
    y = ntl.max(x.cumsum(axis=0)) + ntl.max(x.cumprod(1))


def in_a_wider_type(x, y):
    y = ntl.max(ntl.cumsum(ntl.cast(ntl.max(x, axis=1, keep_dims=True) * 50, ntl.int8), axis=1))


def _columns(x, reduced):
    return np.cumsum(reduced(x, axis=1, keepdims=True), axis=0)


EXPECTED = {
    of_a_column: lambda x: _columns(x, np.min) + 0 * x,
    of_a_column_reduced: lambda x: _columns(x, np.sum).min(),
    of_a_column_backwards: lambda x: _columns(x[::-1], np.max).min(),
    of_a_flipped_column: lambda x: np.cumsum(x[::-1, 0]).min(),
    of_one_row: lambda x: x.max(axis=0, keepdims=True) + 0 * x,
    of_ones_own: lambda x: (_columns(x, np.max).T + np.arange(len(x)) / 2).min(),
    of_several: lambda x: (
        _columns(x, np.sum).min() + np.cumprod(x.sum(axis=1, keepdims=True), axis=0).max()
    ),
    by_methods: lambda x: np.cumsum(x, axis=0).max() + np.cumprod(x, axis=1).max(),
    in_a_wider_type: lambda x: np.trunc(x.max(axis=1) * 50).max(),
}


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    "shape", [(8, 8), (4, 8), (5, 3), (2, 40), (16, 2), (1, 6), (6, 1), (1, 1)]
)
@pytest.mark.parametrize("application", EXPECTED, ids=lambda each: each.__name__)
def test_scans_are_what_plain_numpy_says(application, shape, num_warps):
    def arrangement(x, y):
        return x.tile((S, -1)), y.tile((S, -1))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)), num_warps=num_warps)
    x = torch.randint(-8, 9, shape) / 4
    y = torch.full(shape, float("nan"))
    kernel(x, y, S=shape[0])
    expected = np.broadcast_to(EXPECTED[application](x.cpu().numpy()), shape)
    np.testing.assert_allclose(y.cpu().numpy(), expected, rtol=1e-5)


def least_of_the_two_greatest(x, y):
    y[0] = ntl.min(ntl.topk(x, 2))


def least_of_the_two_greatest_of_half(x, y):
    y[0] = ntl.min(ntl.topk(x[: x.shape[0] // 2], 2))


@pytest.mark.parametrize("other", [None, 3])
@pytest.mark.parametrize(
    ("application", "size", "expected"),
    [
        (least_of_the_two_greatest, 1, None),
        (least_of_the_two_greatest, 2, 1),
        (least_of_the_two_greatest, 3, 2),
        (least_of_the_two_greatest_of_half, 2, None),
        (least_of_the_two_greatest_of_half, 3, None),
        (least_of_the_two_greatest_of_half, 5, 1),
        (least_of_the_two_greatest_of_half, 8, 3),
    ],
)
def test_no_more_than_all_are_the_greatest(application, size, expected, other):
    """More were taken from padding where the size is known with the call alone."""
    if other is not None and application is least_of_the_two_greatest and size == 3:
        expected = 3  # what stands beyond the tensor
    x, y = torch.arange(1.0, size + 1), torch.full((4,), float("nan"))
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((-1,)), y.tile((1,)).tile((-1,))),
        application,
        (Tensor(1, other=other), Tensor(1)),
    )
    if expected is None:
        with pytest.raises(Exception, match=r"ntl\.topk`? needs a power of two"):
            kernel(x, y)
        assert y.isnan().all()
        return
    kernel(x, y)
    assert y[0].item() == expected and y[1:].isnan().all()


def of_half_of_all(x, y):
    y = ntl.cast(ntl.topk(x, 4) + ntl.topk(x, 4), ntl.float32)  # noqa: F841


def of_all(x, y):
    y = ntl.cast(ntl.topk(x, 8) + ntl.topk(x, 8), ntl.float32)  # noqa: F841


@pytest.mark.parametrize("tile", [(8,), (-1,)], ids=["known", "unknown"])
@pytest.mark.parametrize(("application", "expected"), [(of_half_of_all, 200), (of_all, -56)])
def test_fewer_than_all_are_in_32_bits(application, expected, tile):
    """As Triton's `topk`, which finds fewer than all by `max`; all are sorted in their own type."""
    kernel = ninetoothed.make(
        lambda x, y: (x.tile(tile), y.tile((4 if application is of_half_of_all else 8,))),
        application,
        (Tensor(1), Tensor(1)),
    )
    x = torch.tensor([1, 100, 2, 3, 4, 5, 6, 7], dtype=torch.int8)
    y = torch.full((8,), float("nan"))
    kernel(x, y[: 4 if application is of_half_of_all else 8])
    assert y[0].item() == expected


@pytest.mark.parametrize("count", [0, 3, 8])
def test_how_many_are_the_greatest_is_refused_where_the_tiles_size_is_known(count):
    def application(x, y):
        y = ntl.topk(x, count)  # noqa: F841

    with pytest.raises(NineToothedError, match="needs a power of two from 1 to 4") as raised:
        ninetoothed.make(
            lambda x, y: (x.tile((3,)), y.tile((1,))), application, (Tensor(1), Tensor(1))
        )
    assert __file__ in str(raised.value)


def of_rows(x, y):
    y = ntl.softmax(x, 1)  # noqa: F841


def of_the_last(x, y):
    y = ntl.softmax(x, dim=-1, keep_dims=False)  # noqa: F841


def as_a_method(x, y):
    y = x.softmax(1, False)  # noqa: F841


def of_columns(x, y):
    y = ntl.softmax(x)  # noqa: F841


@pytest.mark.parametrize("application", [of_rows, of_the_last, as_a_method, of_columns])
@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (7, 8), (8, 8), (17, 3)])
def test_softmax_is_along_the_dimension_that_it_is_given(application, shape):
    """As Triton's own is along the first alone: a square of rows went wrong without a word."""

    def whole(*tensors):
        return tuple(tensor.tile((-1, -1)) for tensor in tensors)

    x, y = torch.randn(shape), torch.full(shape, float("nan"))
    ninetoothed.make(whole, application, (Tensor(2), Tensor(2)))(x, y)
    torch.testing.assert_close(y, torch.softmax(x, 0 if application is of_columns else 1))


def by_function(x, y):
    y = ntl.cumsum(x, 1)  # noqa: F841


def by_method(x, y):
    y = x.cumsum(1)  # noqa: F841


def test_a_scan_that_is_called_as_a_method_is_emitted_as_the_functions():
    """Triton's own are wrong or refused along dimensions of size 1, which sizes of -1 may have."""

    def body(application):
        whole = lambda *tensors: tuple(tensor.tile((-1, -1)) for tensor in tensors)  # noqa: E731
        kernel = ninetoothed.make(whole, application, (Tensor(2, name="x"), Tensor(2, name="y")))
        return kernel.source.partition("def by_")[2].partition("(")[2]

    assert body(by_method) == body(by_function)
