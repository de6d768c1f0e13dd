"""LANGUAGE.md, "Padding"."""

from __future__ import annotations

import re

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.kernels import B, arange, empty, matrices, rows, run, tiles, vectors


def whole(*tensors):
    """Each vector as one tile; tensors of no dimension are as they are."""
    return tuple(t.tile((-1,)) if t.ndim == 1 else t for t in tensors)


def reduced(application, x, y=None, other=None, arrangement=None):
    """A row at a time of a matrix into an element of a vector."""
    y = empty(x.shape[0]) if y is None else y

    def each_row(x, y):
        x = x.tile((1, -1)).squeeze(1)
        x.dtype = x.dtype.squeeze(0)
        return x, y

    kernel = ninetoothed.make(
        arrangement or each_row, application, (Tensor(2, other=other), Tensor(1))
    )
    kernel(x, y)
    return y


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6, 7, 8, 9])
def test_a_tile_is_padded_to_the_next_power_of_two(size):
    """A tile whose size is not a power of two is padded to the next one"""

    def application(x, y):
        value = x
        y = value.shape[0]  # noqa: F841

    padded = 1 << (size - 1).bit_length()
    assert reduced(application, arange(2, size)).tolist() == [padded] * 2


def test_lanes_beyond_the_tile_are_masked_off_stores_drop_them():
    """lanes beyond the tile or the source are masked off: stores drop them"""

    def application(x):
        x = 0  # noqa: F841

    kernel = ninetoothed.make(lambda x: x[:5:2].tile((3,)), application, vectors(1))
    x = arange(8)
    kernel(x)
    assert x.tolist() == [0, 2, 0, 4, 0, 6, 7, 8]


def test_lanes_beyond_the_source_are_masked_off():
    memory = arange(12)

    def application(x):
        x = -x  # noqa: F841

    ninetoothed.make(lambda x: x.tile((8,)), application, vectors(1))(memory[2:7])
    assert memory.tolist() == [1, 2, -3, -4, -5, -6, -7, 8, 9, 10, 11, 12]


def test_a_tile_that_is_no_power_of_two_does_not_read_its_neighbour():
    """loads read `other` in them"""

    def application(x, y):
        y = ntl.max(x)  # noqa: F841

    def arrangement(x, y):
        return x.tile((3,)), y

    y = empty(2)
    ninetoothed.make(arrangement, application, (Tensor(1, other=-5), Tensor(1)))(-arange(6) - 5, y)
    assert y.tolist() == [-5, -5]


def test_a_local_variable_that_holds_a_loaded_tile_has_the_padded_shape():
    """A local variable that holds a loaded tile has the padded shape, on every backend
    (`ntl.arange(0, v.shape[0])` fits it)."""

    def application(x, y):
        v = x
        y = ntl.sum(v * ntl.arange(0, v.shape[0]))  # noqa: F841

    x = arange(2, 5)
    assert torch.equal(reduced(application, x), (x * torch.arange(5)).sum(1))


def test_shapes_made_from_a_tiles_shape_are_padded_alike():
    def application(x, y):
        total = ntl.zeros(x.shape, dtype=ntl.float32) + x
        y = ntl.sum(total + ntl.full((x.shape[0],), 1, ntl.float32))  # noqa: F841

    x = arange(2, 5)
    assert torch.equal(reduced(application, x), x.sum(1) + 5)


@pytest.mark.parametrize("size", [3, 5, 8])
def test_arange_exists_within_the_size_that_is_asked_for(size):
    """`full`, `zeros`, `arange` exist within the size asked for."""

    def application(x, y):
        counted = ntl.arange(0, size) + ntl.arange(2, 2 + x.shape[0])
        y = ntl.sum(counted) + ntl.sum(x * ntl.arange(end=size, start=0))  # noqa: F841

    x, places = arange(2, size), torch.arange(size)
    assert torch.equal(reduced(application, x), (2 * places + 2).sum() + (x * places).sum(1))


def test_rows_are_found_by_as_many_positions_as_a_tile_has():
    def application(x, y):
        y = ntl.sum(x.source[y.offsets(0), ntl.arange(0, x.shape[0])])  # noqa: F841

    x = arange(3, 5)
    assert torch.equal(reduced(application, x), x.sum(1))


def test_where_other_is_set_that_value_takes_part():
    """Where `other` is set, that value takes part in whatever follows."""

    def application(x, y):
        y = ntl.sum(x) + ntl.max(x) * 1000  # noqa: F841

    # Five are padded to eight: three lanes read 7.
    assert reduced(application, arange(1, 5), other=7).tolist() == [15 + 21 + 7000]


def test_where_it_is_unset_the_lanes_read_as_zero():
    """Where it is unset the lanes read as 0"""

    def application(x, y):
        y = x + ntl.zeros((4,), dtype=ntl.float32)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y.tile((4,))

    memory = arange(4)
    ninetoothed.make(arrangement, application, vectors(2))(memory[:2], y := empty(2))
    assert y.tolist() == [1, 2]


NEGATIVE = -arange(3, 5) - 3


def as_sum(x, y):
    y = ntl.sum(ntl.exp(x / 16))  # noqa: F841


def as_max(x, y):
    y = ntl.max(x)  # noqa: F841


def as_min(x, y):
    y = ntl.min(-x)  # noqa: F841


def as_argmax(x, y):
    y = ntl.argmax(x - 1, axis=0)  # noqa: F841


def as_argmin(x, y):
    y = ntl.argmin(1 - x, axis=0)  # noqa: F841


def as_largest_of_products(x, y):
    y = ntl.max(x * 2 + ntl.minimum(x, 0.0) - 1, axis=0)  # noqa: F841


def as_a_scan(x, y):
    # A scan from the end: what lies beyond the tile would come first.
    y = ntl.max(ntl.cumsum(ntl.exp(x / 16), axis=0, reverse=True), axis=0)  # noqa: F841


def as_softmax(x, y):
    value = ntl.exp(x - ntl.max(x))
    y = ntl.max(value / ntl.sum(value))  # noqa: F841


def as_a_sum_in_two_steps(x, y):
    matrix = x[:, None] * 0 + ntl.exp(x / 16)[None, :]
    y = ntl.sum(ntl.sum(matrix, axis=0), axis=0)  # noqa: F841


REDUCTIONS = {
    as_sum: lambda x: (x / 16).exp().sum(1),
    as_max: lambda x: x.max(1).values,
    as_min: lambda x: (-x).min(1).values,
    as_argmax: lambda x: x.argmax(1).float(),
    as_argmin: lambda x: x.argmax(1).float(),
    as_largest_of_products: lambda x: (x * 3 - 1).max(1).values,
    as_a_scan: lambda x: (x / 16).exp().sum(1),
    as_softmax: lambda x: x.softmax(1).max(1).values,
    as_a_sum_in_two_steps: lambda x: (x / 16).exp().sum(1) * x.shape[1],
}


@pytest.mark.parametrize("application", REDUCTIONS, ids=lambda a: a.__name__)
def test_a_reduction_over_values_computed_from_such_a_load_leaves_them_out(application):
    """and a reduction (`sum`, `max`, `min`, `argmax`, `dot`, a scan …) over values computed element by
    element from such a load leaves them out: its identity stands in their place."""
    negative = NEGATIVE.to(torch.get_default_device())
    torch.testing.assert_close(reduced(application, negative), REDUCTIONS[application](negative))


def test_dot_leaves_them_out():
    def application(x, y, out):
        out = ntl.dot(x + 1, y + 1)  # noqa: F841

    def arrangement(x, y, out):
        return x.tile((16, -1)), y.tile((-1, 16)), out.tile((16, 16))

    x, y, out = torch.rand(16, 20), torch.rand(20, 16), empty(16, 16)
    ninetoothed.make(arrangement, application, matrices(3))(x, y, out)
    torch.testing.assert_close(out, (x + 1) @ (y + 1))


def test_the_rest_of_the_dimensions_stay_padded_after_a_reduction():
    def application(x, y):
        y = ntl.min(ntl.max(x, axis=1), axis=0)  # noqa: F841

    def arrangement(x, y):
        return x.tile((3, 5)), y.tile((1,)).unsqueeze(0).squeeze(0).unsqueeze(1)

    y = empty(1)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))(arange(3, 5), y)
    assert y.tolist() == [5]


def test_a_sum_over_a_loop_keeps_what_was_accumulated():
    """What a loop carries is no longer a value computed from one padded load."""

    def application(x, y):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(x.shape[0]):
            total += ntl.exp(x[k] - x[k])
        y = ntl.sum(total)  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)).tile((-1,)), y

    y = empty(1)
    ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))(arange(8), y)
    assert y.tolist() == [8]


def scaled_in_a_branch(x, n, y):
    value = x
    if n > 0:
        value = value * 2
    y = ntl.sum(ntl.exp(value))  # noqa: F841


def chosen_by_a_branch(x, n, y):
    if n > 0:
        value = x * 2
    else:
        value = x - 1
    y = ntl.sum(ntl.exp(value))  # noqa: F841


def doubled_or_not(value, n):
    if n > 0:
        return value * 2
    return value


def returned_early(x, n, y):
    y = ntl.sum(ntl.exp(doubled_or_not(x, n)))  # noqa: F841


def scaled_in_a_loop(x, n, y):
    value = x
    for _ in range(n):
        value = value * 2
    y = ntl.sum(ntl.exp(value))  # noqa: F841


def scaled_while(x, n, y):
    value = x
    count = 0
    while count < n:
        value = value * 2
        count += 1
    y = ntl.sum(ntl.exp(value))  # noqa: F841


@pytest.mark.parametrize(
    "application",
    [scaled_in_a_branch, chosen_by_a_branch, returned_early, scaled_in_a_loop, scaled_while],
)
def test_what_is_computed_in_branches_and_loops_stays_padded(application):
    """a reduction over values computed element by element from such a load leaves them out"""
    x = -arange(3, 5)
    y = run(application, x, 1, empty(3), arrangement=rows)
    torch.testing.assert_close(y, torch.exp(x * 2).sum(1))


def test_a_zero_that_becomes_another_number_is_none_in_the_padding():
    def in_a_branch(x, n, y):
        shift = 0.0
        if n > 0:
            shift = 2.0
        y = ntl.sum(x + shift)  # noqa: F841

    def in_a_loop(x, n, y):
        shift = 0.0
        total = 0.0
        for _ in range(n + 1):
            total = ntl.sum(x + shift)
            shift += 2.0
        y = total  # noqa: F841

    for application in (in_a_branch, in_a_loop):
        y = run(application, arange(3, 5), 1, empty(3), arrangement=rows)
        assert torch.equal(y, (arange(3, 5) + 2).sum(1))


def test_padding_as_an_index_names_no_element():
    """lanes beyond the tile or the source are masked off"""

    def scatter(x, index, y):
        y.source[index] = x

    def bag(x, index, y):
        total = ntl.zeros((4,), dtype=ntl.float32)
        for k in range(index.shape[0]):
            total += x.source[index[k]]
        y = ntl.sum(total)  # noqa: F841

    def one_program(x, index, y):
        return x.tile((-1,)), index.tile((4,)).tile((-1,)), y

    index = torch.tensor([3, 2, 1, 0, 4])
    y = empty(6)
    ninetoothed.make(whole, scatter, vectors(3))(arange(5), index, y)
    assert y.tolist() == [4, 3, 2, 1, 5, -99]
    total = empty(1)
    ninetoothed.make(one_program, bag, vectors(3))(arange(5), index, total)
    assert total.tolist() == [15]


@pytest.mark.parametrize("tile", [3, 4, -1])
def test_of_a_value_stored_to_a_source_what_does_not_exist_is_left_out(tile):
    """Stores drop what does not exist"""

    def application(x, y):
        y.source[x.offsets(0) + 1] = x

    kernel = ninetoothed.make(lambda x, y: (x.tile((tile,)), y), application, vectors(2))
    y = empty(12)
    kernel(arange(7), y)
    assert y.tolist() == [-99, *arange(7).tolist(), -99, -99, -99, -99]


def masked_accesses(kernel):
    return len(re.findall(r"mask=", kernel.source))


def test_nothing_is_paid_for_this_where_the_sizes_divide():
    """Nothing is paid for this where the sizes divide."""

    def application(x, y):
        y = ntl.max(ntl.exp(x))  # noqa: F841

    def arrangement(x, y):
        return x.tile((4,)), y

    divides = ninetoothed.make(arrangement, application, (Tensor(shape=(8,)), Tensor(shape=(2,))))
    assert masked_accesses(divides) == 0
    assert "exclude" not in divides.source

    does_not = ninetoothed.make(arrangement, application, (Tensor(shape=(7,)), Tensor(shape=(2,))))
    assert masked_accesses(does_not) == 1
    assert "exclude_lowest(" in does_not.source


@pytest.mark.parametrize(("size", "masks"), [(64, 0), (60, 2)])
def test_nor_where_the_sizes_of_a_call_do(size, masks):
    """Sizes that are not known at `make` are looked at in each call."""
    pytest.importorskip("triton")
    from ninetoothed.backends.base import Argument, Call, Device
    from ninetoothed.backends.triton.translation import specialize

    def application(x, y):
        y = ntl.exp(x)  # noqa: F841

    def arrangement(x, y):
        return x.tile((16,)), y.tile((16,))

    kernel = ninetoothed.make(arrangement, application, vectors(2))
    vector = Argument((size,), (1,), ninetoothed.float32)
    call = Call({"x": vector, "y": vector}, device=Device("cuda"))

    assert specialize(kernel.definition, call, None).emitted.text.count("mask=") == masks


@pytest.mark.parametrize("dtype", [torch.int8, torch.int64, torch.float16, torch.bfloat16], ids=str)
def test_padding_is_left_out_whatever_the_element_type(dtype):
    def application(x, y):
        y = ntl.max(x)  # noqa: F841

    x = (-arange(2, 5) - 3).to(dtype)
    assert torch.equal(reduced(application, x, empty(2, dtype=dtype)), x.max(1).values)


def test_rows_that_do_not_divide_and_tiles_that_do_not_either():
    def application(x, y):
        y = x - ntl.max(x)  # noqa: F841

    for columns in (1, 3, 4, 5, 8, 13):
        x = -arange(3, columns)
        y = run(application, x, empty(3, columns), arrangement=rows)
        assert torch.equal(y, x - x.max(1, keepdim=True).values)


def test_a_block_that_is_no_power_of_two_covers_every_element_once():
    def application(x, y):
        y += x

    for block in (1, 3, 4, 5, 7):
        y = arange(11)
        ninetoothed.make(tiles, application, vectors(2))(arange(11), y, B=block)
        assert torch.equal(y, arange(11) * 2)
    assert B.constexpr


@pytest.mark.parametrize(("other", "largest", "count"), [(None, -1, 3), (5, 5, 8)])
def test_positions_that_pad_adds_exist_where_other_is_set(other, largest, count):
    """Where `other` is set, … it exists and takes part; so do positions that `pad` adds."""

    def padded(x, largest, count):
        return x.pad(((2, 3),)).tile((8,)), largest.tile((1,)), count.tile((1,))

    def application(x, largest, count):
        largest = ntl.max(x)  # noqa: F841
        count = ntl.sum(ntl.where(x == x, 1, 0))  # noqa: F841

    tensors = (Tensor(1, other=other), Tensor(1), Tensor(1))
    found = empty(1), empty(1)
    ninetoothed.make(padded, application, tensors)(-arange(3).flip(0), *found)
    assert [each.item() for each in found] == [largest, count]
