"""LANGUAGE.md, "The rule of meeting", where two tiles are arranged by other indices of the program, or other lanes."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor, block_size  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402

BLOCK = block_size()


def added(x, z, y):
    y = x + z  # noqa: F841


def in_each_row(x, z, y):
    y = x + z[None, :]  # noqa: F841


def copied(x, y):
    y = x  # noqa: F841


def transposed(x, y):
    y = ntl.trans(x)  # noqa: F841


def by_columns(block):
    def arrangement(x, z, y):
        y = y.tile((block, block))
        return x.tile((block, block)), z.tile((block,)).unsqueeze(0).expand((y.shape[0], -1)), y

    return arrangement


def by_rows(block):
    def arrangement(x, z, y):
        y = y.tile((block, block))
        return x.tile((block, block)), z.tile((block,)).unsqueeze(1).expand((-1, y.shape[1])), y

    return arrangement


def in_each_block(x, z, y):
    y = y.tile((8,))
    return x.tile((8,)), z.tile((8,)).expand((y.shape[0],)), y


def with_lanes_reversed(x, z, y):
    z = z.tile((2,))
    z.dtype = z.dtype[::-1]
    return x.tile((2,)), z, y.tile((2,))


def with_blocks_reversed(x, z, y):
    return x.tile((2,)), z.tile((2,))[::-1], y.tile((2,))


def with_blocks_permuted(x, y):
    return x.tile((2, 2)).permute((1, 0)), y.tile((2, 2))


def called(arrangement, application, *tensors, other=None):
    """What the last tensor holds after a call; ``other`` is that of the one before."""
    symbols = [Tensor(tensor.ndim) for tensor in tensors]
    if other is not None:
        symbols[-2] = Tensor(tensors[-2].ndim, other=other)
    kernel = ninetoothed.make(arrangement, application, tuple(symbols))
    tensors[-1].fill_(torch.nan)
    kernel(*tensors)
    return tensors[-1]


@pytest.mark.parametrize("block, size", [(2, 5), (BLOCK, 40), (BLOCK, 96)])
def test_a_row_that_goes_by_the_index_of_the_rows(block, size):
    x, z = torch.rand(size, size), torch.rand(size)
    found = called(by_columns(block), in_each_row, x, z, torch.empty(size, size))
    torch.testing.assert_close(found, x + z[None, :])
    with pytest.raises(ArgumentError, match=rf"`z` ends, {size} in dim.* elements of `x`"):
        called(by_rows(block), in_each_row, x, z, torch.empty(size, size))


def test_a_block_that_does_not_fit_the_arrangement_refuses_nothing():
    """In blocks of 32 there are two of rows and one of `z`; in larger ones there is one program."""
    x, z = torch.rand(64, 32), torch.rand(32)
    found = called(by_rows(BLOCK), in_each_row, x, z, torch.empty(64, 32))
    torch.testing.assert_close(found, x + z[None, :])


def test_where_nothing_ends_within_a_tile_each_program_has_what_it_is_given():
    x, z = torch.rand(4, 4), torch.rand(4)
    found = called(by_rows(2), in_each_row, x, z, torch.empty(4, 4))
    expected = x.clone()
    expected[:2] += z[:2].repeat(2)
    expected[2:] += z[2:].repeat(2)
    torch.testing.assert_close(found, expected)


def test_what_lies_beyond_an_end_may_be_said():
    x, z = torch.rand(5, 5), torch.rand(5)
    found = called(by_rows(2), in_each_row, x, z, torch.empty(5, 5), other=7)
    torch.testing.assert_close(found[4, 1::2], x[4, 1::2] + 7)
    torch.testing.assert_close(found[:4, 4], x[:4, 4] + z[[0, 0, 2, 2]])


@pytest.mark.parametrize("size", [11, 16])
def test_one_tile_for_all_programs_may_be_longer_than_the_last_ones(size):
    x, z = torch.rand(size), torch.rand(8)
    found = called(in_each_block, added, x, z, torch.empty(size))
    torch.testing.assert_close(found, x + z.repeat(2)[:size])


@pytest.mark.parametrize("size", [1, 5])
def test_it_may_not_be_shorter_than_a_full_one(size):
    with pytest.raises(ArgumentError, match=f"{size} in dimension 0 of `z`"):
        called(in_each_block, added, torch.rand(11), torch.rand(size), torch.empty(11))


@pytest.mark.parametrize("arrangement", [with_lanes_reversed, with_blocks_reversed])
def test_reversed_ones_fit_where_sizes_divide(arrangement):
    x = torch.rand(4)
    found = called(arrangement, added, x, x.clone(), torch.empty(4))
    blocks = x.reshape(2, 2)
    reversed = blocks.flip(1) if arrangement is with_lanes_reversed else blocks.flip(0)
    torch.testing.assert_close(found, x + reversed.reshape(4))
    with pytest.raises(ArgumentError, match="not arranged by the same indices"):
        called(arrangement, added, torch.rand(5), torch.rand(5), torch.empty(5))


def test_blocks_that_are_permuted_and_stored_as_they_are():
    x = torch.rand(5, 5)
    torch.testing.assert_close(called(with_blocks_permuted, transposed, x, torch.empty(5, 5)), x.T)
    with pytest.raises(ArgumentError, match="what is made of `x`.*elements of `y`"):
        called(with_blocks_permuted, copied, x, torch.empty(5, 5))
    square = torch.rand(4, 4)
    found = called(with_blocks_permuted, copied, square, torch.empty(4, 4))
    torch.testing.assert_close(found[:2, 2:], square[2:, :2])


def test_rows_and_columns_of_their_own_do_not_meet():
    def arrangement(x, z, y):
        y = y.tile((2, 2))
        x = x.tile((2,)).unsqueeze(1).expand((-1, y.shape[1]))
        return x, z.tile((2,)).unsqueeze(0).expand((y.shape[0], -1)), y

    def application(x, z, y):
        y = x[:, None] + z[None, :]  # noqa: F841

    x, z = torch.rand(5), torch.rand(3)
    found = called(arrangement, application, x, z, torch.empty(5, 3))
    torch.testing.assert_close(found, x[:, None] + z[None, :])
