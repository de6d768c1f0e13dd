"""LANGUAGE.md, "Application": a tensor of which only `.source` is used need not be tiled."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ArrangementError

NAN = float("nan")


def rows(indices, table, output):
    return indices.tile((4,)), table, output.tile((4, -1)).squeeze(1)


def gathered(indices, table, output):
    output = table.source[indices[:, None], output.offsets(1)[None, :]]  # noqa: F841


@pytest.mark.parametrize("count", [1, 4, 9])
def test_rows_of_a_table_that_is_not_tiled(count):
    kernel = ninetoothed.make(rows, gathered, (Tensor(1), Tensor(2), Tensor(2)))
    indices, table = torch.randint(0, 11, (count,)), torch.randn(11, 7)
    output = torch.full((count, 7), NAN)
    kernel(indices, table, output)
    assert torch.equal(output, table[indices])


def test_rows_of_a_view_of_a_table():
    kernel = ninetoothed.make(rows, gathered, (Tensor(1), Tensor(2), Tensor(2)))
    indices, table = torch.randint(0, 5, (6,)), torch.randn(9, 22)
    view = table[::2, 1::3]
    output = torch.full((6, view.shape[1]), NAN)
    kernel(indices, view, output)
    assert torch.equal(output, view[indices])


def test_a_whole_tile_that_is_never_loaded_has_no_largest_size():
    def arrangement(indices, table, output):
        return indices.tile((4,)), table.tile((-1,)).expand((1,)), output.tile((4,))

    def application(indices, table, output):
        output = table.source[indices]  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(1)))
    table = torch.arange(1.0, (1 << 20) + 10)
    indices, output = torch.tensor([0, 1 << 20, 5]), torch.full((3,), NAN)
    kernel(indices, table, output)
    assert torch.equal(output, table[indices])


def test_its_shape_strides_and_pointer():
    def arrangement(table, output):
        return table, output.tile((4,))

    def application(table, output):
        place = output.offsets(0) % table.source.shape[1]
        pointers = table.data_ptr() + table.stride(0) + place * table.stride(1)
        output = ntl.load(pointers, mask=place >= 0, other=0) + table.source.shape[0]  # noqa: F841

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    table, output = torch.randn(3, 5), torch.full((7,), NAN)
    kernel(table.T.contiguous().T, output)
    torch.testing.assert_close(output, table[1][torch.arange(7) % 5] + 3)


def test_storing_to_what_is_not_tiled():
    def arrangement(values, places, output):
        return values.tile((4,)), places.tile((4,)), output

    def application(values, places, output):
        output.source[places // 3, places % 3] = values

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1), Tensor(2)))
    values, places = torch.randn(10), torch.randperm(12)[:10].to(torch.int32)
    output = torch.zeros(4, 3)
    kernel(values, places, output)
    expected = torch.zeros(12)
    expected[places.long()] = values
    assert torch.equal(output, expected.reshape(4, 3))


def test_a_tile_that_is_touched_takes_part():
    def application(indices, table, output):
        output = table.source[indices[:, None], output.offsets(1)[None, :]] + table  # noqa: F841

    with pytest.raises(ArrangementError, match="outermost shapes"):
        kernel = ninetoothed.make(rows, application, (Tensor(1), Tensor(2), Tensor(2)))
        kernel(torch.zeros(9, dtype=torch.int64), torch.zeros(11, 7), torch.zeros(9, 7))


def test_each_value_of_a_constant_has_a_rule_of_its_own():
    def arrangement(x, bias, output, adds):
        return x.tile((4,)), bias.tile((2,)), output.tile((4,)), adds

    def application(x, bias, output, adds):
        if adds:
            output = x + bias.source[output.offsets(0) % bias.source.shape[0]]
        else:
            output = x  # noqa: F841

    tensors = (Tensor(1), Tensor(1), Tensor(1), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, bias = torch.randn(9), torch.randn(3)
    for adds in (True, False):
        output = torch.full((9,), NAN)
        kernel(x, bias, output, adds)
        torch.testing.assert_close(output, x + bias.repeat(3) if adds else x)


def test_a_tile_that_a_constant_decides_against_does_not_take_part():
    def arrangement(x, bias, output, adds):
        return x.tile((4,)), bias.tile((2,)), output.tile((4,)), adds

    def application(x, bias, output, adds):
        if adds:
            output = x + bias
        else:
            output = x  # noqa: F841

    tensors = (Tensor(1), Tensor(1, shape=(3,)), Tensor(1), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, output = torch.randn(9), torch.full((9,), NAN)
    kernel(x, torch.randn(3), output, False)
    assert torch.equal(output, x)
    with pytest.raises(ArrangementError, match="bias"):
        kernel(x, torch.randn(3), output, True)
