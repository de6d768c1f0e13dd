"""Reductions of what was reshaped, gathered or flipped, against plain NumPy.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

torch = pytest.importorskip("torch")


def planes(x, y):
    return x.tile((2, 8, 8)), y.tile((2,))


def sum_of_planes(x, y):
    y = ntl.sum(ntl.reshape(x, (2, 64)), axis=1)


def place_in_planes(x, y):
    y = ntl.argmax(ntl.reshape(x, (2, 64)), axis=1)


def least_and_place_in_planes(x, y):
    value, place = ntl.min(ntl.reshape(x, (2, 64)), axis=1, return_indices=True)
    y = value + place


def sum_in_rounds(x, y):
    flat = ntl.reshape(x, (2, 64))
    for _ in range(3):
        flat -= ntl.expand_dims(ntl.sum(flat, axis=1), 1) / 64
    y = ntl.max(flat, axis=1)


def rows(x, y):
    arranged = x.tile((2, 8)).tile((1, -1))
    arranged.dtype = arranged.dtype.squeeze(0)
    return arranged, y.tile((2, 1))


def least_of_flipped(x, y):
    y = ntl.min(ntl.view(ntl.flip(x[1], 1), 16), axis=0, keep_dims=True)


def sum_of_gathered(x, y):
    flat = ntl.reshape(ntl.gather(x[0], ntl.zeros(x[0].shape, ntl.int32), 1), (16,))
    y = ntl.sum(ntl.where(flat > 1000, 0, flat), axis=0, keep_dims=True)


def _less(value, place, other, at):
    is_less = (value < other) | (value == other) & (place < at)
    return ntl.where(is_less, value, other), ntl.where(is_less, place, at)


def place_in_all_of_gathered(x, y):
    other = ntl.gather(x[0], 7 - ntl.arange(0, 8)[None, :] + ntl.zeros(x[0].shape, ntl.int32), 1)
    places = ntl.arange(0, 8)[None, :] + 8 * ntl.arange(0, 2)[:, None]
    y = ntl.reduce((ntl.ravel(other), ntl.ravel(places)), 0, _less)[1]


def place_in_one_row(x, y):
    y = ntl.argmax(ntl.ravel(x), axis=0)


def place_in_columns(x, y):
    y = ntl.argmin(ntl.ravel(ntl.permute(x, (2, 0, 1))), axis=0)


def _thrice(x):
    for _ in range(3):
        x = x - x.sum(axis=1, keepdims=True) / 64
    return x.max(axis=1)


@dataclass(frozen=True)
class Row:
    application: Callable[..., Any]
    arrangement: Callable[..., Any]
    shape: tuple[int, ...]
    result: tuple[int, ...]
    expected: Callable[[np.ndarray], np.ndarray]
    tensors: tuple[Any, ...]


def _of_planes(application, expected):
    shape = (4, 8, 8)
    return Row(
        application,
        planes,
        shape,
        (4,),
        lambda x: np.concatenate(
            [np.broadcast_to(expected(part), (2,)) for part in (x[:2], x[2:])]
        ),
        (Tensor(3), Tensor(1)),
    )


def _of_rows(application, expected):
    return Row(application, rows, (2, 9), (2, 1), expected, (Tensor(2), Tensor(2)))


ROWS = [
    _of_planes(sum_of_planes, lambda x: x.reshape(2, 64).sum(axis=1)),
    _of_planes(place_in_planes, lambda x: x.reshape(2, 64).argmax(axis=1)),
    _of_planes(
        least_and_place_in_planes,
        lambda x: x.reshape(2, 64).min(axis=1) + x.reshape(2, 64).argmin(axis=1),
    ),
    _of_planes(sum_in_rounds, lambda x: _thrice(x.reshape(2, 64))),
    _of_rows(least_of_flipped, lambda x: x[:, 8].min()),
    _of_rows(sum_of_gathered, lambda x: 8 * x[:, 0].sum()),
]

#: Of several tiles, each of which Triton would bring in another order.
IN_ORDER = [
    _of_rows(place_in_all_of_gathered, lambda x: x[:, 7::-1].argmin()),
    _of_planes(place_in_one_row, lambda x: x.argmax()),
    _of_planes(place_in_columns, lambda x: x.transpose(2, 0, 1).argmin()),
]


@pytest.mark.parametrize("num_warps", [1, 2, 4])
@pytest.mark.parametrize("row", [*ROWS, *IN_ORDER], ids=lambda row: row.application.__name__)
def test_what_was_reshaped_is_reduced_as_in_numpy(row, num_warps):
    kernel = ninetoothed.make(row.arrangement, row.application, row.tensors, num_warps=num_warps)
    # Each is another number, and sums of them are exact.
    numbers = np.random.default_rng(5).permutation(math.prod(row.shape)) - 100
    x = torch.tensor(numbers.reshape(row.shape), dtype=torch.float32)
    y = torch.full(row.result, float("nan"))
    kernel(x, y)
    expected = np.broadcast_to(row.expected(x.cpu().numpy()), row.result)
    np.testing.assert_allclose(y.cpu().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3, 5), (3, 5, 7), (2, 3, 5, 4)])
def test_of_more_than_two_dimensions_the_last_two_are_exchanged(shape):
    """Triton's own ``.T`` is of matrices, and its interpreter's turns all dimensions round."""

    def application(x, y):
        y = (x + 1).T * 2 + ntl.sum(x.T, axis=-1, keep_dims=True)  # noqa: F841

    def arrangement(*tensors):
        return tuple(tensor.tile((-1,) * len(shape)) for tensor in tensors)

    x = torch.randn(shape)
    y = torch.full_like(x.mT.contiguous(), float("nan"))
    tensors = Tensor(len(shape)), Tensor(len(shape))
    ninetoothed.make(arrangement, application, tensors)(x, y)
    torch.testing.assert_close(y, (x + 1).mT * 2 + x.mT.sum(-1, keepdim=True))


# What is reshaped, whatever is known of its sizes.


def _of_a_variable(tile):
    variable = tile
    return ntl.reshape(variable, (variable.shape[0] * variable.shape[1],))


def reshaped(x, y):
    y = ntl.reshape(x, (8,))


def reshaped_by_a_variables_sizes(x, y):
    y = _of_a_variable(x)


def reshaped_by_what_is_computed_of_them(x, y):
    v = x + 0
    y = ntl.view(v, 2 * v.shape[1] // 2)  # noqa: F841


def raveled(x, y):
    y = ntl.ravel(x)


@pytest.mark.parametrize(
    "application",
    [reshaped, reshaped_by_a_variables_sizes, reshaped_by_what_is_computed_of_them, raveled],
)
def test_nothing_of_what_is_reshaped_is_stored_where_it_does_not_exist(application):
    """Though only a dimension of size 1 is left out: this may show when the kernel runs alone."""

    def arrangement(x, y):
        return x.pad(((0, 0), (1, 1))).tile((1, 8)), y.tile((1, 8))

    x, y = torch.arange(1.0, 7).reshape(2, 3), torch.full((2, 5), -9.0)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(x, y)
    expected = torch.full((2, 5), -9.0)
    expected[:, 1:4] = x
    assert torch.equal(y, expected)
