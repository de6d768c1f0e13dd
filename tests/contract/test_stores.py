"""LANGUAGE.md, "Padding": stores drop what does not exist, wherever the elements of a value went.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on a device.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ShapeError
from tests.contract.kernels import vectors

#: What an element is before anything is stored.
OLD = -9.0


def backwards(x):
    return ntl.gather(x, 7 - ntl.arange(0, 8), 0)


def gathered(x, y):
    y = backwards(x) + 3  # noqa: F841


def reshaped(x, y):
    y = ntl.ravel(ntl.reshape(x, (2, 4)) + 3)  # noqa: F841


def viewed(x, y):
    y = ntl.trans(ntl.trans(ntl.view(x, (4, 2)))).reshape((8,)) + 3  # noqa: F841


def concatenated(x, y):
    y = ntl.gather(ntl.cat(x, x, can_reorder=True), ntl.arange(4, 12), 0) + 3  # noqa: F841


def interleaved(x, y):
    y = ntl.gather(ntl.interleave(x, x), ntl.arange(4, 12), 0) + 3  # noqa: F841


def joined(x, y):
    y = ntl.gather(ntl.ravel(ntl.join(x, x)), ntl.arange(4, 12), 0) + 3  # noqa: F841


def halved(x, y):
    _, odd = ntl.split(ntl.reshape(x, (4, 2)))
    y = ntl.join(odd, odd).reshape((8,)) + 3  # noqa: F841


def greatest(x, y):
    y = ntl.topk(x, 8) + 3  # noqa: F841


def in_sorted_rows(x, y):
    y = ntl.sort(ntl.reshape(x, (2, 4)), descending=True).reshape((8,)) + 3  # noqa: F841


def summed(x, y):
    y = ntl.cumsum(backwards(x), 0)  # noqa: F841


def chosen(x, y):
    y = ntl.where(backwards(x) > 3, 1.0, 2.0)  # noqa: F841


def selected(x, y):
    y = x[1:] + 3  # noqa: F841


def selected_by_positions(x, y):
    y = x[7 - ntl.arange(0, 8)] + 3  # noqa: F841


def in_rounds(x, y):
    value = backwards(x)
    for _ in range(2):
        value += 1.5
    y = value  # noqa: F841


def in_a_branch(x, y):
    if x.source.shape[0] > 2:
        y = backwards(x) + 3
    else:
        y = x[1:]


def one_of_two(x, y):
    value = backwards(x) + 3
    if x.source.shape[0] < 2:
        value = backwards(x)
    y = value  # noqa: F841


def read_again(x, y):
    y = backwards(x) + 1
    y = y + 2


def changed_in_place(x, y):
    y += backwards(x) + 3 + 9


def moved_to(destination, value):
    destination = value + 3  # noqa: F841


def by_a_helper(x, y):
    moved_to(y, backwards(x))


def in_the_same(x, y):
    y = x + 3
    y = backwards(y)


BACKWARDS = [OLD, OLD, OLD, 8, 7, 6, 5, 4]
FORWARDS = [4, 5, 6, 7, 8, OLD, OLD, OLD]
CASES = {
    gathered: BACKWARDS,
    reshaped: FORWARDS,
    viewed: FORWARDS,
    concatenated: [8, OLD, OLD, OLD, 4, 5, 6, 7],
    interleaved: [6, 6, 7, 7, 8, 8, OLD, OLD],
    joined: [6, 6, 7, 7, 8, 8, OLD, OLD],
    halved: [5, 5, 7, 7, OLD, OLD, OLD, OLD],
    greatest: [8, 7, 6, 5, 4, OLD, OLD, OLD],
    in_sorted_rows: [7, 6, 5, 4, 8, OLD, OLD, OLD],
    summed: [OLD, OLD, OLD, 5, 9, 12, 14, 15],
    chosen: [OLD, OLD, OLD, 1, 1, 2, 2, 2],
    selected: [5, 6, 7, 8, OLD, OLD, OLD, OLD],
    selected_by_positions: BACKWARDS,
    in_rounds: BACKWARDS,
    in_a_branch: BACKWARDS,
    one_of_two: BACKWARDS,
    read_again: [OLD + 2] * 3 + [8, 7, 6, 5, 4],
    changed_in_place: BACKWARDS,
    by_a_helper: BACKWARDS,
}


def whole(*tensors):
    return tuple(tensor.tile((8,)) for tensor in tensors)


@pytest.mark.parametrize("size", [8, 7, 5])
@pytest.mark.parametrize("application", CASES, ids=lambda application: application.__name__)
def test_of_what_moved_that_alone_is_stored_which_exists(application, size):
    x, y = torch.arange(1.0, 6), torch.full((size,), OLD)
    ninetoothed.make(whole, application, vectors(2))(x, y)
    assert y.tolist() == CASES[application][:size]


def test_truth_values_are_left_as_well():
    x, y = torch.arange(1.0, 6), torch.tensor([True, False] * 4)
    ninetoothed.make(whole, gathered, vectors(2))(x, y)
    assert y.tolist() == [True, False, True, *[True] * 5]


def test_what_is_moved_within_a_tensor_is_read_after_the_store():
    x, y = torch.arange(1.0, 6), torch.full((5,), OLD)
    ninetoothed.make(whole, in_the_same, vectors(2))(x, y)
    # Of a tile of eight the last three come first, and there are none.
    assert y.tolist() == [4, 5, 6, 8, 7]


def reversed_in_place(x, y):
    places = ntl.arange(0, 4096)
    x.source[places] = x.source[4095 - places]
    y = x


def stored_backwards(x, y):
    x.source[4095 - ntl.arange(0, 4096)] = x
    y = x


def overwritten(x, y):
    before = x.source[4095 - ntl.arange(0, 4096)]
    x = 0
    y = before


def added_to(x, y):
    before = x
    ntl.atomic_add(x.source[4095 - ntl.arange(0, 4096)], 1.0)
    y = ntl.flip(before)


def one_stored_and_all_changed(x, y):
    x[4000] = 4000
    x += 0
    y = ntl.flip(x)


@pytest.mark.parametrize(
    "application",
    [reversed_in_place, stored_backwards, overwritten, added_to, one_stored_and_all_changed],
    ids=lambda each: each.__name__,
)
def test_what_threads_are_still_to_load_no_other_stores_to(application):
    def arrangement(x, y):
        return x.tile((4096,)), y.tile((4096,))

    kernel = ninetoothed.make(arrangement, application, vectors(2), num_warps=16)
    for _ in range(10 if torch.empty(0).is_cuda else 1):
        x, y = torch.arange(4096.0), torch.full((4096,), OLD)
        kernel(x, y)
        assert torch.equal(y.cpu(), torch.arange(4096.0, device="cpu").flip(0))


def test_rows_and_columns_of_what_moved():
    def application(x, y):
        y = ntl.reshape(ntl.ravel(x) + 1, (4, 8))  # noqa: F841

    def arrangement(x, y):
        return x.tile((4, 8)), y.tile((4, 8))

    x, y = torch.arange(1.0, 16).reshape(3, 5), torch.full((4, 8), OLD)
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(x, y)
    expected = torch.full((4, 8), OLD)
    expected[:3, :5] = x + 1
    assert torch.equal(y, expected)


def test_what_pad_adds_beside_a_tile_is_there_to_be_read():
    def application(x, y):
        y = x[2:] - x[:-2]  # noqa: F841

    def arrangement(x, y):
        return x.pad(((1, 1),)).tile((6,), strides=(4,)), y.tile((4,))

    x, y = torch.arange(1.0, 9), torch.full((8,), OLD)
    ninetoothed.make(arrangement, application, vectors(2))(x, y)
    assert y.tolist() == [2, 2, 2, 2, 2, 2, 2, -7]


@pytest.mark.parametrize("size", [16, 13])
def test_nothing_is_paid_for_this_where_the_sizes_divide(size):
    tensors = (Tensor(shape=(size,)), Tensor(shape=(size,)))
    source = ninetoothed.make(whole, gathered, tensors).source
    assert (source.count("mask="), "existing(" in source) == (
        (0, False) if size == 16 else (2, True)
    )


def moved_to_each(x, y):
    y[0] = x[0]
    for k in range(y.shape[0]):
        y[k] = ntl.flip(ntl.gather(x[0], 1 - ntl.arange(0, 2), 0))


def elements_of_each(x, y):
    y[0] = x[0]
    for k in range(y.shape[0]):
        y[k][0:1] = x[0][0:1]


def added_to_each(x, y):
    y[0] = x[0]
    for k in range(y.shape[0]):
        ntl.atomic_max(y[k][1:], x[0][:1])


@pytest.mark.parametrize("application", [moved_to_each, elements_of_each, added_to_each])
def test_nothing_is_stored_beyond_the_tensor_by_tiles_that_are_not_there(application):
    def arrangement(x, y):
        return x.tile((2,)).tile((3,)), y.tile((2,)).tile((3,))

    memory = torch.full((8,), OLD)
    ninetoothed.make(arrangement, application, vectors(2))(torch.tensor([1.0, 2.0]), memory[:2])
    assert memory.tolist() == [1, 2, *[OLD] * 6]


def chosen_elements(x, z, n, y):
    y = x[ntl.arange(0, 8) + n] if n > 1 else ntl.full((8,), 7.0, ntl.float32)  # noqa: F841


def chosen_and_interleaved(x, z, n, y):
    y = ntl.interleave(z, z) if n > 1 else ntl.full((8,), 7.0, ntl.float32)  # noqa: F841


def chosen_for_a_part(x, z, n, y):
    y[2:6] = z if n > 1 else ntl.full((4,), 7.0, ntl.float32)


@pytest.mark.parametrize(
    ("application", "one", "other"),
    [
        (chosen_elements, [7] * 7, [3, 4, 5, 6, 7, OLD, OLD]),
        (chosen_and_interleaved, [7] * 7, [2, 2, -3, -3, 1.5, 1.5, OLD]),
        (chosen_for_a_part, [OLD, OLD, 7, 7, 7, 7, OLD], [OLD, OLD, 2, -3, 1.5, OLD, OLD]),
    ],
)
def test_what_does_not_exist_of_a_chosen_value_is_not_stored(application, one, other):
    def arrangement(x, z, n, y):
        return x.tile((8,)), z.tile((4,)), n, y.tile((8,))

    tensors = (Tensor(1), Tensor(1), Tensor(0), Tensor(1))
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, z = torch.arange(1.0, 8), torch.tensor([2.0, -3.0, 1.5])
    for n, expected in ((1, one), (2, other)):
        y = torch.full((7,), OLD)
        kernel(x, z, n, y)
        assert y.tolist() == expected


def larger(a, b):
    return a if a > b else b


def rows_in_order(y):
    y = ntl.sort(ntl.reduce(y, 1, larger), descending=True)  # noqa: F841


def greatest_of_rows_in_order(y):
    y = ntl.sort(ntl.max(y, axis=1), descending=True)  # noqa: F841


@pytest.mark.parametrize("application", [rows_in_order, greatest_of_rows_in_order])
def test_of_rows_that_moved_along_columns_those_alone_that_exist(application):
    kernel = ninetoothed.make(lambda y: (y.tile((4, 4)),), application, (Tensor(2),))
    y = torch.tensor([[1.0, 2, 3], [6, 5, 4]])
    kernel(y)
    assert y.tolist() == [[6, 3, 3], [6, 3, 4]]


def one_tile(*tensors):
    return tuple(tensor.tile((-1,)) for tensor in tensors)


def in_order(x, y):
    y = ntl.sort(x)  # noqa: F841


def test_what_is_stored_may_have_more_elements_in_a_block_of_one_size():
    x, y = torch.tensor([5.0, 2.0, 7.0, 1.0, 6.0, 4.0, 3.0]), torch.full((5,), OLD)
    ninetoothed.make(one_tile, in_order, vectors(2))(x, y)
    assert y.tolist() == [1, 2, 3, 4, 5]


def test_what_is_stored_in_a_wider_block_is_refused_with_its_place():
    x, y = torch.tensor([5.0, 2.0, 7.0, 1.0, 6.0, 4.0, 3.0]), torch.full((3,), OLD)
    with pytest.raises(ShapeError, match=r"(?s)\[8\] cannot be stored to `y`.*test_stores"):
        ninetoothed.make(one_tile, in_order, vectors(2))(x, y)
