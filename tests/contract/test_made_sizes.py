"""LANGUAGE.md, "Padding": what `full`, `zeros` and `arange` make exists in the size that was asked for."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from tests.contract.kernels import matrices, vectors


def sorted_and_stored(x, y):
    y = ntl.sort(ntl.full(x.shape, 2.0, ntl.float32))  # noqa: F841


def filled_and_stored(x, y):
    y = ntl.full(x.shape, 2.0, ntl.float32)  # noqa: F841


def counted_and_stored(x, y):
    y = ntl.arange(0, 3) * 0 + 2  # noqa: F841


def summed_and_stored(x, y):
    total = ntl.zeros(x.shape, ntl.float32)
    for _ in range(2):
        total += ntl.full((3,), 1.0, ntl.float32)
    y = total  # noqa: F841


def read_again(x, y):
    y = ntl.full(x.shape, 3.0, ntl.float32)
    y = y - 1


@pytest.mark.parametrize(
    ("application", "beyond"),
    [
        (sorted_and_stored, 7),
        (filled_and_stored, 7),
        (counted_and_stored, 7),
        (summed_and_stored, 7),
        (read_again, 6),
    ],
)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_of_what_is_made_in_a_size_a_wider_tile_is_stored_no_more(application, beyond, size):
    """Stores drop what does not exist."""

    def arrangement(x, y):
        return x.tile((3,)), y.tile((4,))

    y = torch.full((size,), 7.0)
    ninetoothed.make(arrangement, application, vectors(2))(torch.zeros(3), y)
    assert y.tolist() == ([2.0] * 3 + [beyond])[:size]


def test_rows_of_what_is_made_in_a_size_are_stored_to_a_wider_tile():
    def arrangement(x, y):
        return x.tile((4, 3)), y.tile((4, 4))

    def application(x, y):
        y = ntl.sum(ntl.full(x.shape, 1.0, ntl.float32), 0)  # noqa: F841

    y = torch.full((4, 4), 7.0)
    ninetoothed.make(arrangement, application, matrices(2))(torch.zeros(4, 3), y)
    assert y.tolist() == [[4.0, 4.0, 4.0, 7.0]] * 4


def test_of_what_is_made_in_a_size_truth_values_are_stored():
    def arrangement(x, y):
        return x.tile((3,)), y.tile((4,))

    def application(x, y):
        y = ntl.full(x.shape, 2.0, ntl.float32)  # noqa: F841

    def of_elements(x, y):
        y[0:4] = ntl.full(x.shape, 2.0, ntl.float32)

    for each in (application, of_elements):
        y = torch.zeros(4, dtype=torch.bool)
        ninetoothed.make(arrangement, each, vectors(2))(torch.zeros(3), y)
        assert y.tolist() == [True, True, True, False]


def repeated(x, y):
    y = ntl.broadcast_to(x, (5,))  # noqa: F841


def repeated_and_moved(x, y):
    y = ntl.flip(ntl.broadcast_to(x + 0, (5,)), 0)  # noqa: F841


@pytest.mark.parametrize("application", [repeated, repeated_and_moved])
@pytest.mark.parametrize("tile_size", [1, -1, Symbol("SIZE", constexpr=True)])
def test_what_is_repeated_exists_in_the_size_that_is_asked_for(application, tile_size):
    """Though only a call may say that there is one element to be repeated."""

    def arrangement(x, y):
        return x.tile((tile_size,)), y.tile((8,))

    y = torch.full((8,), 7.0)
    sizes = {"SIZE": 1} if isinstance(tile_size, Symbol) else {}
    ninetoothed.make(arrangement, application, vectors(2))(torch.full((1,), 3.0), y, **sizes)
    assert y.tolist() == [3.0] * 5 + [7.0] * 3


def greatest_repeated(x, y):
    y = ntl.max(ntl.broadcast_to(x, (3, 3)), 1)  # noqa: F841


@pytest.mark.parametrize("tile_shape", [(1, 3), (-1, -1)])
def test_rows_of_what_is_repeated_exist_in_the_size_that_is_asked_for(tile_shape):
    def arrangement(x, y):
        return x.tile(tile_shape), y.tile((4,))

    y = torch.full((4,), 7.0)
    ninetoothed.make(arrangement, greatest_repeated, (Tensor(2), Tensor(1)))(-torch.ones(1, 3), y)
    assert y.tolist() == [-1.0] * 3 + [7.0]


def repeated_to_its_own_size(x, y):
    y = ntl.sum(ntl.broadcast_to(x, (3,)))  # noqa: F841


def test_what_is_asked_for_in_its_own_size_is_no_more_either():
    """A tile with `other` has an element in each lane that it is held in; what is asked for in a size has not."""

    def arrangement(x, y):
        return x.tile((3,)), y.tile((1,))

    y = torch.zeros(1)
    tensors = Tensor(1, other=1.0), Tensor(1)
    ninetoothed.make(arrangement, repeated_to_its_own_size, tensors)(torch.full((3,), 2.0), y)
    assert y.tolist() == [6.0]
