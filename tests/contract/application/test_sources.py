"""LANGUAGE.md, "Application": a tensor of which only `.source` is used need not be tiled."""

from __future__ import annotations

import os

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor
from ninetoothed.errors import ArgumentError, ArrangementError, NineToothedError
from tests.contract.kernels import arange, empty

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
        return x.tile((4,)), bias.tile((4,)), output.tile((4,)), adds

    def application(x, bias, output, adds):
        if adds:
            output = x + bias
        else:
            output = x  # noqa: F841

    tensors = (Tensor(1), Tensor(1, shape=(5,)), Tensor(1), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, output = torch.randn(9), torch.full((9,), NAN)
    kernel(x, torch.randn(5), output, False)
    assert torch.equal(output, x)
    with pytest.raises(ArrangementError, match="bias"):
        kernel(x, torch.randn(5), output, True)


# None for a tensor that is not touched.


def with_bias(x, bias, output, adds):
    if adds:
        output = x + bias
    else:
        output = x  # noqa: F841


def adding(arrangement=None, bias=None):
    def in_fours(x, bias, output, adds):
        return x.tile((4,)), bias.tile((4,)), output.tile((4,)), adds

    tensors = (Tensor(1), bias or Tensor(1), Tensor(1), Tensor(0, constexpr=True, value=False))
    return ninetoothed.make(arrangement or in_fours, with_bias, tensors)


def test_none_may_be_given_for_a_tensor_that_is_not_touched():
    kernel = adding()
    x, bias = torch.randn(9), torch.randn(9)
    for given, adds in [(None, False), (bias, True), (None, False), (bias, False)] * 2:
        output = torch.full((9,), NAN)
        kernel(x, given, output, adds)
        assert torch.equal(output, x + bias if adds else x)
    output = torch.full((9,), NAN)
    kernel(output=output, x=x, bias=None)
    assert torch.equal(output, x)


def test_none_may_be_given_for_a_tensor_of_any_declaration():
    jagged = Tensor(2, jagged_dim=1)

    def arrangement(x, bias, output, adds):
        return x.tile((4,)), bias.tile((1, -1)), output.tile((4,)), adds

    for bias in (Tensor(2, shape=(3, 3), dtype=torch.int8), jagged):
        x, output = torch.randn(9), torch.full((9,), NAN)
        adding(arrangement, bias)(x, None, output, False)
        assert torch.equal(output, x)


def test_none_for_a_tensor_that_is_touched_is_refused_by_name():
    kernel, x = adding(), torch.randn(9)
    for _ in range(2):
        kernel(x, None, x.clone(), False)
        with pytest.raises(ArgumentError, match="`bias` must be a tensor, not builtins.NoneType"):
            kernel(x, None, x.clone(), True)


@pytest.mark.parametrize("given", [None, torch.ones(9, 9)], ids=["None", "of another rank"])
def test_what_has_not_the_sizes_that_others_need_is_refused(given):
    def arrangement(x, bias, output, adds):
        return x.tile((bias.shape[0],)), bias.tile((-1,)), output.tile((bias.shape[0],)), adds

    kernel, x, output = adding(arrangement), torch.randn(9), torch.full((9,), NAN)
    with pytest.raises(ArgumentError, match="`bias` is given .* its `bias_size_0` is"):
        kernel(x, given, output, False)
    kernel(x, torch.ones(3), output, False)
    assert torch.equal(output, x)


def test_a_size_that_others_have_as_well_is_theirs():
    size = Symbol("size")

    def arrangement(bias, x, output, adds):
        return bias.tile((4,)), x.tile((size,)), output.tile((size,)), adds

    def application(bias, x, output, adds):
        with_bias(x, bias, output, adds)

    tensors = (*(Tensor(shape=(size,)) for _ in range(3)), Tensor(0, constexpr=True))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, output = torch.randn(9), torch.full((9,), NAN)
    for given in (None, torch.ones(4, 4), torch.ones(())):
        kernel(given, x, output, False)
        assert torch.equal(output, x)


@pytest.mark.parametrize("other", [None, 7.0])
def test_outside_of_a_source_is_read_what_stands_for_it_and_counts(other):
    def application(x, total, count):
        values = x.source[ntl.arange(0, 16)]
        total = ntl.sum(values)  # noqa: F841
        count = ntl.sum(ntl.where(values == values, 1.0, 1.0))  # noqa: F841

    def arrangement(x, total, count):
        return x, total.tile((1,)), count.tile((1,))

    tensors = (Tensor(1, other=other), Tensor(1), Tensor(1))
    x, total, count = arange(11), empty(1), empty(1)
    ninetoothed.make(arrangement, application, tensors)(x, total, count)
    assert total.tolist() == [x.sum().item() + 5 * (other or 0)]
    assert count.tolist() == [16]


def loaded(x, y):
    y = x.source[x.offsets(0), x.offsets(1)]  # noqa: F841


def stored(x, y):
    x.source[x.offsets(0), x.offsets(1)] = 1.0


def added_to(x, y):
    ntl.atomic_add(x.source[x.offsets(0), x.offsets(1)], 1.0)


def of_a_tile(x, y):
    y = x[x.offsets(0), x.offsets(1)]  # noqa: F841


def put_in_a_tile(x, y):
    x[x.offsets(0), x.offsets(1)] = 1.0


@pytest.mark.parametrize("application", [loaded, stored, added_to, of_a_tile, put_in_a_tile])
def test_indices_that_do_not_meet_are_refused_with_their_place(application):
    if os.environ.get("TRITON_INTERPRET"):
        pytest.skip("needs a backend with words of its own, and Triton's interpreter was chosen")

    def whole(x, y):
        return x.tile((-1, -1)), y.tile((-1,))

    kernel = ninetoothed.make(whole, application, (Tensor(2), Tensor(1)))
    # On a device the words are Triton's.
    words = r"(?s)(need shapes that match|incompatible dimensions).*File .*test_sources"
    with pytest.raises(NineToothedError, match=words):
        kernel(torch.zeros(5, 17), torch.zeros(5))


def chosen_from_a_tile(x, t, y):
    y = ntl.where(t != -100, x[t], 0)  # noqa: F841


def chosen_from_a_source(x, t, y):
    y = ntl.where(t != -100, x.source[t], 0)  # noqa: F841


@pytest.mark.parametrize(
    ("application", "beyond"), [(chosen_from_a_tile, -9.0), (chosen_from_a_source, 0.0)]
)
def test_a_position_beyond_a_tile_selects_nothing_and_one_beyond_a_tensor_reads_0(
    application, beyond
):
    kernel = ninetoothed.make(
        lambda *tensors: tuple(tensor.tile((-1,)) for tensor in tensors),
        application,
        (Tensor(1), Tensor(1), Tensor(1)),
    )
    y = torch.full((4,), -9.0)
    kernel(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1, -100, 2, -100]), y)
    assert y.tolist() == [2, beyond, 3, beyond]


def a_window(x, y):
    y = x + 1  # noqa: F841


def all_of_a_window(x, y):
    y = x[0:4] + 1  # noqa: F841


@pytest.mark.parametrize(("application", "beyond"), [(a_window, 1.0), (all_of_a_window, -9.0)])
def test_what_a_window_has_beyond_the_end_is_computed_with_and_not_selected(application, beyond):
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,), strides=(3,)), y.tile((4,))), application, (Tensor(1), Tensor(1))
    )
    y = torch.full((8,), -9.0)
    kernel(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]), y)
    assert y.tolist() == [2, 3, 4, 5, 5, 6, beyond, beyond]
