"""Every `for` is a loop, however its rounds are written: a lane without an element keeps what it had."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

TWICE = 2
RANGES = {"counted": range}


def blocks(x, y):
    return x.tile((4,)).tile((-1,)), y.tile((4,))


def zeros():
    return ntl.zeros((4,), ntl.float32)


def backwards(x, y):
    total = zeros()
    for k in reversed(range(x.shape[0])):
        total = 0.5 * total + x[k]
    y = total


def of_a_name(x, y):
    total, rounds = zeros(), range(x.shape[0])
    for k in rounds:
        total = 0.5 * total + x[k]
    y = total


def of_a_dictionary(x, y):
    total = zeros()
    for k in RANGES["counted"](x.shape[0]):
        total = 0.5 * total + x[k]
    y = total


def of_a_helpers_parameter(x, y):
    y = over(range(x.shape[0]), x, zeros())


def over(rounds, x, total):
    for k in rounds:
        total = 0.5 * total + x[k]
    return total


def static(x, y):
    total = zeros()
    for k in ntl.static_range(2):
        total = 0.5 * total + x[k]
    y = total


def static_of_a_local(x, y):
    count = 2
    total = zeros()
    for k in ntl.static_range(count):
        total = 0.5 * total + x[k]
    y = total


def static_of_a_global(x, y):
    total = zeros()
    for k in ntl.static_range(TWICE):
        total = 0.5 * total + x[k]
    y = total


def static_of_a_size(x, y):
    total = zeros()
    for k in ntl.static_range(x.shape[0]):
        total = 0.5 * total + x[k]
    y = total


def of_a_tuple(x, y):
    total = zeros()
    for k in (0, 1):
        total = 0.5 * total + x[k]
    y = total


def of_tiles(x, y):
    total = zeros()
    for tile in (x[0], x[1]):
        total = 0.5 * total + tile
    y = total


def of_tiles_to_a_helper(x, y):
    y = over((0, 1), x, zeros())


def in_a_tuple(x, y):
    both = zeros(), zeros()
    for k in (0, 1):
        both = both[0] + 1, 0.5 * both[1] + x[k]
    y = both[1]


def in_another_loop(x, y):
    total = zeros()
    for _ in range(y.shape[0] // 4):
        for k in (0, 1):
            total = 0.5 * total + x[k]
    y = total


def by_branches(x, y):
    total = zeros()
    for k in (0, 1):
        if ntl.sum(x[k]) > 100:
            total = total * 7
        else:
            total = 0.5 * total + x[k]
    y = total


def returned_from_within(x, y):
    y = scanned(x, zeros())


def scanned(x, total):
    for k in (0, 1):
        if ntl.max(x[k]) > 100:
            return total
        total = 0.5 * total + x[k]
    return total


def of_another_tile(x, y):
    value = x[0]
    for k in ntl.static_range(1, 2):
        value = x[k] * 2
    y = ntl.sum(value) + zeros()


def greatest(x, y):
    best = ntl.full((4,), 0, ntl.float32)
    for k in (0, 1):
        best = ntl.maximum(best, x[k])
    y = best


def online(x, y):
    most, total = ntl.full((4,), float("-inf"), ntl.float32), zeros()
    for k in ntl.static_range(2):
        larger = ntl.maximum(most, x[k])
        total = total * ntl.exp(most - larger) + ntl.exp(x[k] - larger)
        most = larger
    whole = ntl.max(most)
    y = whole + ntl.log(ntl.sum(total * ntl.exp(most - whole))) + zeros()


def in_wider_shape(x, y):
    value = x[1]
    for _ in (0, 1):
        value = ntl.join(value, value)
    y = ntl.sum(value) + zeros()


def of_another_type(x, y):
    count = ntl.zeros((4,), ntl.int32)
    for k in (0, 1):
        count = count + x[k] + 1
    y = count


def of_another_type_at_first(x, y):
    count = ntl.zeros((4,), ntl.int32)
    for k in (1, 0):
        count = count + x[k] + 1
    y = count


def of_truth_at_first(x, y):
    seen = ntl.full((4,), 2, ntl.int32)
    for k in (1, 0):
        seen = (x[k] > 1) & (seen > 0)
    y = seen


APPLICATIONS = (
    *(backwards, of_a_name, of_a_dictionary, of_a_helpers_parameter, static, static_of_a_local),
    *(static_of_a_global, static_of_a_size, of_a_tuple, of_tiles, of_tiles_to_a_helper),
    *(in_a_tuple, in_another_loop, by_branches, returned_from_within),
)


def called(application):
    x, y = torch.arange(1.0, 7.0), torch.full((4,), torch.nan)
    ninetoothed.make(blocks, application, (Tensor(1), Tensor(1)))(x, y)
    return y.cpu()


@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.__name__)
def test_a_lane_without_an_element_keeps_what_it_had(application):
    rows = [[1, 2, 3, 4], [5, 6, np.nan, np.nan]]
    total = np.zeros(4)
    for row in reversed(rows) if application is backwards else rows:
        total = np.where(np.isnan(row), total, 0.5 * total + row)
    np.testing.assert_allclose(called(application), total)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (of_another_tile, [29.0] * 4),
        (greatest, [5.0, 6.0, 3.0, 4.0]),
        (online, [float(np.log(np.exp(np.arange(1.0, 7.0)).sum()))] * 4),
        (in_wider_shape, [44.0] * 4),
        (of_another_type, [8.0, 10.0, 4.0, 5.0]),
        (of_another_type_at_first, [8.0, 10.0, 4.0, 5.0]),
        (of_truth_at_first, [0.0, 1.0, 1.0, 1.0]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_of_whatever_the_round_makes(application, expected):
    np.testing.assert_allclose(called(application), expected, rtol=1e-6)


def of_tiles_that_end_apart(x, z, y):
    value = x
    for tile in (z,):
        value = tile
    y = ntl.sum(value) + 0 * y


def padded(x, z, y):
    """The element of `x` before one that `pad` adds, that of `z` after it."""
    sides = ((0, 1), (1, 0), (0, 1))
    return tuple(t.pad((side,)).tile((-1,)) for t, side in zip((x, z, y), sides))


def test_what_was_a_tile_before_is_kept_where_another_has_no_element():
    x, z, y = torch.tensor([-2.0]), torch.tensor([-3.0]), torch.zeros(1)
    ninetoothed.make(padded, of_tiles_that_end_apart, (Tensor(1), Tensor(1), Tensor(1)))(x, z, y)
    assert y.tolist() == [-5.0]


def of_moved_elements(x, y):
    value = x + 1
    for _ in ntl.static_range(1):
        half = ntl.sum(ntl.reshape(value, 2, 4), 0)
        value = ntl.reshape(ntl.join(half, half), 8)
    y = ntl.sum(value) + 0 * x


def test_of_what_was_loaded_before_and_moved_in_the_round_none_counts_that_neither_has():
    def arrangement(x, y):
        return x.tile((8,)), y.tile((8,))

    x, y = torch.tensor([10.0, 20, 30]), torch.zeros(3)
    ninetoothed.make(arrangement, of_moved_elements, (Tensor(1), Tensor(1)))(x, y)
    assert y.tolist() == [2.0 * (11 + 21 + 31)] * 3
