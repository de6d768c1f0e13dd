"""LANGUAGE.md, "Padding": positions that `pad` adds are read as 0, and do not exist.

What is computed of them element by element is stored; reductions leave them out, and so does a store of
what moved. Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on a device.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from tests.contract.kernels import vectors

#: What an element is before anything is stored.
OLD = -9.0

# Windows that overlap, and elements of another tile.


def by_an_element(x, w, y):
    y = x[1:5] * w[0]


def of_a_whole_tile_and_an_element(x, w, y):
    y = ntl.where(w[2] > 0, x[:4], 5.0)


def a_convolution(x, w, y):
    found = ntl.zeros((4,), ntl.float32)
    for k in ntl.static_range(3):
        found += x[k : k + 4] * w[k]
    y = found  # noqa: F841


@pytest.mark.parametrize("size", [2, 5, 6, 8])
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (by_an_element, lambda padded, w: padded[1:-1] * w[0]),
        (of_a_whole_tile_and_an_element, lambda padded, w: padded[:-2]),
        (a_convolution, lambda padded, w: padded.unfold(0, 3, 1) @ w),
    ],
)
def test_it_is_stored_beside_an_element_of_another_tile(application, expected, size):
    """The element may not exist, which says nothing of the tile; its own positions were left out as well."""

    def arrangement(x, w, y):
        y = y.tile((4,))
        x = x.pad(((1, 1),)).tile((6,), strides=(4,))
        return x, w.tile((-1,)).expand((y.shape[0],)), y

    x, w, y = torch.arange(1.0, size + 1), torch.tensor([2.0, 3, 5]), torch.full((size,), OLD)
    ninetoothed.make(arrangement, application, vectors(3))(x, w, y)
    padded = torch.nn.functional.pad(x.cpu(), (1, 1))
    torch.testing.assert_close(y.cpu(), expected(padded, w.cpu()))


# A tile of four positions, of which some were added. An expectation is of the positions' elements (0 where
# there is none), whether they exist, and the elements of another tile.


def sums_of_columns(x, w, y):
    y = ntl.sum(w[:, None] + x[None, :], axis=0)  # noqa: F841


def greatest_of_columns(x, w, y):
    y = ntl.max(w[:, None] + x[None, :], axis=0)  # noqa: F841


def added(one, other):
    return one + other


def greater(one, other):
    return ntl.maximum(one, other) + 0 * one


def sums_by_a_function(x, w, y):
    y = ntl.reduce(w[:, None] + x[None, :], 0, added)  # noqa: F841


def greatest_by_a_function(x, w, y):
    y = ntl.reduce(w[:, None] + x[None, :], 0, greater)  # noqa: F841


def scanned_by_a_function(x, w, y):
    y = ntl.associative_scan(x + 1, 0, added)  # noqa: F841


def sums_in_rows(x, w, y):
    y = ntl.sum(ntl.cumsum(w[:, None] * 0 + (x + 1)[None, :], 1), axis=0)  # noqa: F841


def sums_of_rows(x, w, y):
    y = ntl.sum(w[:, None] + x[None, :], axis=1)  # noqa: F841


def one_of_two(x, w, y):
    y = ntl.split(ntl.join(x, x))[1] + 1


def one_beside_another(x, w, y):
    y = ntl.split(ntl.join(w, x))[1] + 1


def sums_of_two(x, w, y):
    y = ntl.sum(ntl.join(x, x), axis=1)  # noqa: F841


def sums_of_two_tiles(x, w, y):
    y = ntl.sum(ntl.join(x, w), axis=1)  # noqa: F841


def in_order(x, w, y):
    y = ntl.sort(x) + 1  # noqa: F841


def in_reverse_order(x, w, y):
    y = ntl.sort(x, descending=True) + w  # noqa: F841


def in_another_shape(x, w, y):
    y = ntl.reshape(ntl.reshape(x, (2, 2)), (4,)) + 1  # noqa: F841


def selected(x, w, y):
    y = ntl.gather(x, 3 - ntl.arange(0, 4), 0) + 1  # noqa: F841


def selected_and_the_tile(x, w, y):
    y = ntl.gather(w, ntl.arange(0, 4), 0) + x  # noqa: F841


def moved_and_the_tile(x, w, y):
    y = ntl.split(ntl.join(w, w))[0] + x


def chosen_by_what_moved(x, w, y):
    y = ntl.where(ntl.maximum(ntl.split(ntl.join(x, x))[1], x) > 0, w, w)  # noqa: F841


def chosen_by_what_was_reduced(x, w, y):
    y = ntl.where(ntl.sum(ntl.join(w, x), axis=1) > 0, w, x)  # noqa: F841


def turned_about(x, w, y):
    y = ntl.flip(x) + w  # noqa: F841


def _sorted(x, there, sign=1):
    found = np.full(4, OLD)
    found[: there.sum()] = sign * np.sort(sign * x[there])
    return found


def _where(there, values):
    return np.where(there, values, OLD)


def _flipped(x, there):
    found = x.copy()
    found[there] = x[there][::-1]
    return found


CASES = {
    sums_of_columns: lambda x, there, w: np.where(there, w.sum() + len(w) * x, 0),
    greatest_of_columns: lambda x, there, w: np.where(there, w.max() + x, -np.inf),
    sums_by_a_function: lambda x, there, w: np.where(there, w.sum() + len(w) * x, 0),
    greatest_by_a_function: lambda x, there, w: np.where(there, w.max() + x, 0),
    scanned_by_a_function: lambda x, there, w: np.cumsum(there * (x + 1)),
    sums_in_rows: lambda x, there, w: np.where(there, len(w) * np.cumsum(there * (x + 1)), 0),
    sums_of_rows: lambda x, there, w: (np.append(w, [0] * 4)[:4] * there.sum()) + x.sum(),
    one_of_two: lambda x, there, w: _where(there, x + 1),
    one_beside_another: lambda x, there, w: _where(there, x + 1),
    sums_of_two: lambda x, there, w: _where(there, 2 * x),
    sums_of_two_tiles: lambda x, there, w: x[: len(w)] + w,
    in_order: lambda x, there, w: _where(np.arange(4) < there.sum(), _sorted(x, there) + 1),
    in_reverse_order: lambda x, there, w: _where(
        np.arange(4) < there.sum(), _sorted(x, there, -1) + np.append(w, [0] * 4)[:4]
    ),
    in_another_shape: lambda x, there, w: _where(there, x + 1),
    selected: lambda x, there, w: _where(there[::-1], x[::-1] + 1),
    selected_and_the_tile: lambda x, there, w: x[: len(w)] + w,
    moved_and_the_tile: lambda x, there, w: x[: len(w)] + w,
    chosen_by_what_moved: lambda x, there, w: _where(there[: len(w)], w),
    chosen_by_what_was_reduced: lambda x, there, w: np.where(x[: len(w)] + w > 0, w, 0),
    turned_about: lambda x, there, w: _flipped(x, there)[: len(w)] + w,
}


@pytest.mark.parametrize("size", [1, 2, 4, 5, 6])
@pytest.mark.parametrize("application", CASES, ids=lambda application: application.__name__)
def test_it_is_left_out_of_what_is_reduced_and_of_what_moved(application, size):
    def arrangement(x, w, y):
        return x.pad(((1, 1),)).tile((4,)), w.tile((4,)), y.tile((4,))

    x, w = torch.arange(1.0, size + 1), torch.arange(2.0, size + 4)
    y = torch.full((size + 2,), OLD)
    ninetoothed.make(arrangement, application, vectors(3))(x, w, y)
    padded, there = (np.zeros(12), np.zeros(12, bool))
    padded[1 : size + 1], there[1 : size + 1] = np.arange(1.0, size + 1), True
    expected = [
        CASES[application](
            padded[k : k + 4], there[k : k + 4], np.arange(2.0, size + 4)[k : k + 4]
        )[: size + 2 - k]
        for k in range(0, size + 2, 4)
    ]
    assert y.tolist() == np.concatenate(expected).tolist()


# Two dimensions.


def sums_of_neighbours(x, y):
    y = ntl.sum(x[:-1] + x[1:], axis=0)  # noqa: F841


def test_the_sums_of_windows_are_stored_where_nothing_is():
    def arrangement(x, y):
        x = x.pad(((0, 0), (1, 1))).tile((-1, 4)).squeeze(0)
        return x, y.tile((4,))

    x, y = torch.arange(1.0, 16).reshape(3, 5), torch.full((7,), OLD)
    ninetoothed.make(arrangement, sums_of_neighbours, (Tensor(2), *vectors(1)))(x, y)
    rows = x.cpu()
    assert y.tolist() == [0, *(rows[:-1] + rows[1:]).sum(0).tolist(), 0]


def stored_sorted(x, y):
    y = ntl.sort(x)  # noqa: F841


def test_rows_and_columns_that_were_added_stay_as_they_were_where_rows_are_sorted():
    def arrangement(x, y):
        return x.pad(((1, 1), (0, 1))).tile((4, 4)), y.tile((4, 4))

    x, y = torch.tensor([[3.0, 1, 2], [6, 5, 4]]), torch.full((4, 4), OLD)
    ninetoothed.make(arrangement, stored_sorted, (Tensor(2), Tensor(2)))(x, y)
    assert y[1:3].tolist() == [[1, 2, 3, OLD], [4, 5, 6, OLD]]
    assert y[0].tolist() == y[3].tolist() == [OLD] * 4


# Another tile of a tensor.


def sums_of_the_next(x, w, y):
    for k in range(y.shape[0]):
        y[k] = ntl.sum(w[:, None] + x[k + 1][None, :], axis=0)


def greatest_of_the_second(x, w, y):
    for k in range(y.shape[0]):
        y[k] = ntl.max(w[:, None] + x[1][None, :], axis=0)


def the_second_in_order(x, w, y):
    for k in range(y.shape[0]):
        y[k] = ntl.sort(x[1])


def the_next_and_one(x, w, y):
    for k in range(y.shape[0]):
        y[k] = x[k + 1] + 1


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (sums_of_the_next, [15, 17, 0, 0, 0, 0]),
        (greatest_of_the_second, [8, 9, -float("inf"), -float("inf"), 8, 9]),
        (the_second_in_order, [5, 6, OLD, OLD, 5, 6]),
        (the_next_and_one, [6, 7, 1, 1, 1, 1]),
    ],
)
def test_what_another_tile_does_not_have_is_treated_alike(application, expected):
    def arrangement(x, w, y):
        return x.tile((4,)).tile((-1,)), w.tile((-1,)), y.tile((4,)).tile((-1,))

    x, w, y = torch.arange(1.0, 7), torch.tensor([2.0, 3]), torch.full((6,), OLD)
    ninetoothed.make(arrangement, application, vectors(3))(x, w, y)
    assert y.tolist() == expected


# One element, which no dimension is left of.


def sums_with_one(x, w, y):
    y = ntl.sum((w * x[2])[:, None] + w[None, :], axis=0)  # noqa: F841


def greatest_sum_with_one(x, w, y):
    y = ntl.maximum(ntl.max(ntl.sum((w * x[2])[:, None] + w[None, :], axis=0), axis=0), 1.0) + w  # noqa: F841


def product_with_one(x, w, y):
    rows = ntl.broadcast_to(w[:, None] * x[2], (4, 16))
    y = ntl.sum(ntl.dot(rows, ntl.full((16, 4), 1.0, ntl.float32)), axis=0)  # noqa: F841


def sum_with_one(x, w, y):
    y = ntl.sum(w * x[2], axis=0) + w  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected", "without"),
    [
        (sums_with_one, lambda w: 3 * w.sum() + len(w) * w, [OLD, OLD]),
        (greatest_sum_with_one, lambda w: (3 * w.sum() + len(w) * w).max() + w, [3, 4]),
        (product_with_one, lambda w: 0 * w + 48 * w.sum(), [OLD, OLD]),
        (sum_with_one, lambda w: 3 * w.sum() + w, [2, 3]),
    ],
)
@pytest.mark.parametrize("size", [2, 3, 4])
def test_an_element_that_is_not_there_is_in_no_sum(application, expected, without, size):
    def arrangement(x, w, y):
        return x.tile((4,)), w.tile((4,)), y.tile((4,))

    w = np.arange(2.0, size + 2)
    x, y = torch.arange(1.0, size + 1), torch.full((size,), OLD)
    kernel = ninetoothed.make(arrangement, application, vectors(3))
    kernel(x, torch.arange(2.0, size + 2), y)
    assert y.tolist() == (without if size == 2 else expected(w).tolist())


# One way of a branch.


def chosen(x, w, n, y):
    value = w if n > 0 else x
    y = ntl.where(value > 0, ntl.sort(w), ntl.sort(w))  # noqa: F841


def chosen_in_a_branch(x, w, n, y):
    value = w + 0
    if n == 0:
        value = x + 0
    y = ntl.where(value + ntl.sum(value) * 0 > 0, ntl.sort(w), ntl.sort(w))  # noqa: F841


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("application", [chosen, chosen_in_a_branch])
def test_what_one_way_does_not_have_is_read_beside_what_moved(application, number):
    def arrangement(x, w, n, y):
        return x.pad(((1, 1),)).tile((4,)), w.tile((4,)), n, y.tile((4,))

    x, w, y = torch.arange(1.0, 5), torch.arange(2.0, 8), torch.full((6,), OLD)
    tensors = (Tensor(1), Tensor(1), Tensor(0), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(x, w, number, y)
    assert y.tolist() == [2, 3, 4, 5, 6, 7]


# Of one way a store does not ask where it was loaded, of the other it does: each is stored as it is by itself.
# `z` is a tile beyond whose end `pad` adds positions, the second tile of `x` ends in two that are not there.


def of_a_choice(x, w, z, n, y):
    found = x[0]
    value = x[1] * w[0] if n > 0 else z[ntl.arange(0, 4) + 1]
    found = value + 0
    y = found  # noqa: F841


def of_a_branch(x, w, z, n, y):
    found = x[0]
    if n > 0:
        value = x[1] * w[0]
    else:
        value = z[ntl.arange(0, 4) + 1]
    found = value + 0
    y = found  # noqa: F841


def of_a_tile_and_what_moved(x, w, z, n, y):
    found = x[0]
    value = x[1] * 3 if n > 0 else ntl.sort(z[ntl.arange(0, 4) + 1])
    found = value + 0
    y = found  # noqa: F841


def of_one_tile_and_what_moved(x, w, z, n, y):
    found = x[0]
    value = x[1] * 3 if n > 0 else ntl.split(ntl.join(x[1], x[1]))[0]
    found = value + 0
    y = found  # noqa: F841


def of_rounds_that_do_nothing(x, w, z, n, y):
    value = z[ntl.arange(0, 4) + 1]
    for k in range(2):
        if n > 0:
            value = x[k] * w[0]
    y = value  # noqa: F841


def of_what_the_rounds_have(x, w, z, n, y):
    value = x[1] * 3
    for _ in range(2):
        if n == 0:
            value = ntl.sort(z[ntl.arange(0, 4) + 1])
    y = value  # noqa: F841


def of_rounds_that_add_what_moved(x, w, z, n, y):
    value = z[ntl.arange(0, 4) + 1]
    for k in range(n + 1):
        value += ntl.split(ntl.join(x[1], x[k]))[1]
    y = value  # noqa: F841


#: By application, what is stored where ``n`` is 1 and `w` has its element, where `w` has none, and where ``n`` is 0.
OF_TWO_WAYS = {
    of_a_choice: ([15, 18, 0, 0], [OLD] * 4, [2, 3, 0, 0]),
    of_a_branch: ([15, 18, 0, 0], [OLD] * 4, [2, 3, 0, 0]),
    of_a_tile_and_what_moved: ([15, 18, 0, 0], [15, 18, 0, 0], [2, 3, OLD, OLD]),
    of_one_tile_and_what_moved: ([15, 18, 0, 0], [15, 18, 0, 0], [5, 6, OLD, OLD]),
    of_rounds_that_do_nothing: ([15, 18, 9, 12], [2, 3, 0, 0], [2, 3, 0, 0]),
    of_rounds_that_add_what_moved: ([8, 11, 3, 4], [8, 11, 3, 4], [3, 5, 3, 4]),
    of_what_the_rounds_have: ([15, 18, 0, 0], [15, 18, 0, 0], [2, 3, 0, 0]),
}


@pytest.mark.parametrize(("number", "count", "place"), [(1, 1, 0), (1, 0, 1), (0, 1, 2), (0, 0, 2)])
@pytest.mark.parametrize("application", OF_TWO_WAYS, ids=lambda application: application.__name__)
def test_each_way_is_stored_as_it_is_by_itself(application, number, count, place):
    def arrangement(x, w, z, n, y):
        z = z.pad(((0, 3),)).tile((6,))
        return x.tile((4,)).tile((-1,)), w.tile((-1,)), z, n, y.tile((4,))

    x, w, z = torch.arange(1.0, 7), torch.full((count,), 3.0), torch.arange(1.0, 4)
    y = torch.full((4,), OLD)
    tensors = (*vectors(3), Tensor(0), Tensor(1))
    ninetoothed.make(arrangement, application, tensors)(x, w, z, number, y)
    assert y.tolist() == OF_TWO_WAYS[application][place]
