"""What elements that moved are reduced to: each exists by itself, wherever its tile lies."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

OLD = -77.0


def joined(tile):
    return ntl.sum(ntl.join(tile, tile + 1), 2)


def interleaved(tile):
    first, second = ntl.split(ntl.reshape(ntl.interleave(tile, tile), (tile.shape[0], 4, 2)))
    return first + second


def halved(tile):
    return ntl.split(ntl.broadcast_to(tile[:, :, None], (tile.shape[0], 4, 2)))[0]


def sorted_rows(tile):
    return ntl.sort(tile)


def the_greatest(tile):
    return ntl.topk(tile, 4)


def gathered(tile):
    places = ntl.broadcast_to(3 - ntl.arange(0, 4)[None, :], (tile.shape[0], 4))
    return ntl.gather(tile, places, 1)


def reshaped(tile):
    return ntl.sum(ntl.reshape(tile, (tile.shape[0], 1, 4)), 1)


def kernel_of(moved, rows, axis, count=1):
    """Sums of moved tiles along a dimension; of the first and of `count` behind another one."""

    def application(x, first, second, y):
        total = ntl.sum(moved(x[first, second]), axis) * 1
        for k in range(1, count):
            total += ntl.sum(moved(x[first + k, second]), axis) + 1
        y[0] = total

    def arrangement(x, first, second, y):
        size = rows if axis else 4
        return x.tile((rows, 4)).tile((-1, -1)), first, second, y.tile((size,)).tile((-1,))

    return ninetoothed.make(arrangement, application, (Tensor(2), Tensor(0), Tensor(0), Tensor(1)))


MOVES = [joined, interleaved, halved, sorted_rows, the_greatest, gathered, reshaped]


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("moved", MOVES)
def test_of_nothing_along_a_dimension_nothing_is_stored(moved, rows):
    """A tile beyond its level has no element, and its moved elements do not tell which rows there are."""
    x = torch.arange(30.0).reshape(5, 6)
    for axis, place in ((0, (5, 0)), (1, (0, 2)), (0, (5, 2))):
        y = torch.full((rows if axis else 4,), OLD)
        kernel_of(moved, rows, axis)(x, *place, y)
        assert y.tolist() == [OLD] * len(y), (axis, place)


@pytest.mark.parametrize("moved", MOVES)
def test_of_a_tile_that_is_there_all_is_stored(moved):
    x = torch.ones(5, 6)
    y = torch.full((4,), OLD)
    kernel_of(moved, 4, 0)(x, 0, 0, y)
    factor = 3 if moved is joined else 2 if moved is interleaved else 1
    assert y.tolist() == [4.0 * factor] * 4


@pytest.mark.parametrize("moved", MOVES)
def test_a_round_of_nothing_leaves_what_there_was(moved):
    x = torch.ones(8, 4)
    y = torch.full((4,), OLD)
    kernel_of(moved, 4, 0, count=5)(x, 0, 0, y)
    factor = 3 if moved is joined else 2 if moved is interleaved else 1
    assert y.tolist() == [8.0 * factor + 1] * 4


def test_all_moved_elements_of_nothing_are_summed_to_zero():
    def application(x, y):
        y = ntl.sum(ntl.join(x[2, 0], x[2, 0])) + ntl.sum(ntl.sort(x[2, 0]))  # noqa: F841

    def arrangement(x, y):
        return x.tile((4, 4)).tile((-1, -1)), y.tile((1,))

    y = torch.full((1,), OLD)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))(torch.ones(5, 6), y)
    assert y.tolist() == [0.0]


def test_a_tile_beside_those_that_moved_says_by_itself_where_it_is():
    """That one lies beyond its level is nothing to the elements that moved beside it."""

    def application(x, y):
        y[0] = ntl.sum(ntl.sort(x[0, 0]) + x[2, 0], 0)

    def arrangement(x, y):
        return x.tile((4, 4)).tile((-1, -1)), y.tile((4,)).tile((-1,))

    y = torch.full((4,), OLD)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))(torch.ones(5, 6), y)
    assert y.tolist() == [0.0] * 4


def test_slices_of_two_tiles_say_apart_which_rows_there_are():
    """As their tiles do: of one that has no element the other's columns remain."""

    def application(x, y):
        y[0] = ntl.sum(x[0, 0][:, :3] + x[2, 0][:, :3], 0)

    def arrangement(x, y):
        return x.tile((4, 4)).tile((-1, -1)), y.tile((4,)).tile((-1,))

    y = torch.full((4,), OLD)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))(torch.ones(5, 6), y)
    assert y.tolist() == [0.0, 0.0, 0.0, OLD]
