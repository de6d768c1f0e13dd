"""Scans of tiles of any shape, dimensions of size 1 included, against plain NumPy.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor

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
