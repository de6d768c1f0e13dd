"""LANGUAGE.md, "The rule of meeting", where several lanes or a flattened level make a position together."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor, block_size
from ninetoothed.errors import ArgumentError

ROWS, COLUMNS = block_size(), block_size()


def flattened_grid(t):
    return t.tile((2, 4)).flatten()


def flattened_grid_of_permuted(t):
    return t.permute((1, 0)).tile((4, 2)).flatten()


def flattened_grid_that_is_tuned(t):
    return t.tile((ROWS, COLUMNS)).flatten()


def tiles_of_tiles_in_one(t):
    return t.flatten().tile((2,)).tile((4,)).ravel().tile((1, 4, 2))


def flattened_tile(t):
    arranged = t.tile((2, 4))
    arranged.dtype = arranged.dtype.flatten()
    return arranged


ARRANGEMENTS = [
    flattened_grid,
    flattened_grid_of_permuted,
    flattened_grid_that_is_tuned,
    tiles_of_tiles_in_one,
    flattened_tile,
]


def more(x, y):
    y = x + 1  # noqa: F841


def more_in_rounds(x, y):
    total = ntl.full(x.shape, 0.0, ntl.float32)
    for _ in range(3):
        total += ntl.exp(x)
    y = total  # noqa: F841


def made(arranged, application):
    return ninetoothed.make(
        lambda x, y: (arranged(x), arranged(y)), application, (Tensor(2), Tensor(2))
    )


@pytest.mark.parametrize("application", [more, more_in_rounds])
@pytest.mark.parametrize("arranged", ARRANGEMENTS)
def test_there_must_be_as_many_elements(arranged, application):
    kernel = made(arranged, application)
    x, y = torch.zeros(4, 7), torch.full((4, 8), torch.nan)
    with pytest.raises(ArgumentError, match="`x` of shape .4, 7. is stored to `y` of shape .4, 8."):
        kernel(x, y)
    assert y.isnan().all()

    y = torch.full((4, 7), torch.nan)
    kernel(x, y)
    assert torch.equal(y, torch.full((4, 7), 1.0 if application is more else 3.0))


def test_tiles_may_lie_elsewhere():
    """As many tiles, none of which has padding: each is at its number in either tensor."""
    x, y = torch.arange(32.0).reshape(4, 8), torch.full((8, 4), torch.nan)
    made(flattened_grid, more)(x, y)
    tiles = x.reshape(2, 2, 2, 4).swapaxes(1, 2).reshape(8, 4)
    assert torch.equal(y, tiles + 1)


def test_a_product_of_flattened_grids_contracts_what_both_have():
    def arrangement(x, w, y):
        y_arranged = y.tile((4, 4))
        x_arranged = x.tile((4, 4)).tile((1, -1)).expand((-1, y_arranged.shape[1]))
        x_arranged.dtype = x_arranged.dtype.squeeze(0)
        w_arranged = w.tile((4, 4)).tile((-1, 1)).expand((y_arranged.shape[0], -1))
        w_arranged.dtype = w_arranged.dtype.squeeze(1)
        return x_arranged.flatten(), w_arranged.flatten(), y_arranged.flatten()

    def application(x, w, y):
        total = ntl.zeros((4, 4), ntl.float32)
        for k in range(x.shape[0]):
            total += ntl.sum(x[k][:, :, None] * w[k][None, :, :], 1)
        y = total  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, tuple(Tensor(2) for _ in range(3)))
    x, w, y = torch.rand(6, 7), torch.rand(7, 9), torch.full((6, 9), torch.nan)
    kernel(x, w, y)
    torch.testing.assert_close(y, x @ w)
    with pytest.raises(ArgumentError, match="7 in dimension 1 of `x` and 8 in dimension 0 of `w`"):
        kernel(x, torch.rand(8, 9), y)
