"""LANGUAGE.md, "Padding": of what a round makes a lane without an element keeps what it had, of whatever tile that was.

What the variable itself does not have is computed on, as it is outside of a loop. Run in Triton's interpreter too,
and on a device.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

#: What an element is before anything is stored.
OLD = -9.0

# `w[0]` has four elements, `w[1]` two, which come first, `x` three, which come last, `z` four.


def of_elements_in_both_rounds(w, x, z, n, y):
    value = w[1] + 0.0
    for _ in range(n + 1):
        value = ntl.cumsum(x[ntl.arange(0, 4) + 1], 0)
    y = value


def of_the_same_tile(w, x, z, n, y):
    value = x
    for _ in range(n + 1):
        value = ntl.cumsum(x + 1, 0) + 1
    y = value


def of_the_same_tile_under_another_name(w, x, z, n, y):
    value = tile = x
    for _ in range(n + 1):
        value = value * 2 + 3 + 0 * tile
    y = value


def of_itself(w, x, z, n, y):
    value = x
    for _ in range(n + 1):
        value = value * 2 + 3
    y = value


def of_itself_while_an_index_changes(w, x, z, n, y):
    place = 1
    value = w[place] + 0.0
    for _ in range(n + 1):
        place = place * 1
        value = value * 2 + 3
    y = value


def of_a_way_and_the_same_tile(w, x, z, n, y):
    value = w[1] + 1
    for k in range(2):
        if n > 0:
            value = w[1] + 5
        else:
            value = value + 1
    y = value


def of_rounds_within_rounds(w, x, z, n, y):
    value = z + 0.0
    for k in range(n + 1):
        value = w[k] + 0.0
        for _ in range(2):
            value = ntl.sort(x)
    y = value


def of_rounds_within_rounds_of_the_same_tile(w, x, z, n, y):
    value = w[1] + 0.0
    for k in range(n + 1):
        for _ in range(2):
            value = w[1] + 1
        value += w[0]
    y = value


def of_an_index_that_two_loops_count(w, x, z, n, y):
    value, before = x + 0.0, x + 0.0
    for k in range(2):
        value += ntl.maximum((before if n > 0 else w[k]) + w[k], 6)
        before = w[k]
    for k in range(3):
        value = value * 2
    y = value


def of_a_way_that_the_round_goes_on_with(w, x, z, n, y):
    value = z + 0.0
    for k in range(2):
        if n > 0:
            value = w[k] + 0.0
        value = value * 2
    y = value


def of_a_way_that_leaves_them(w, x, z, n, y):
    value = w[1]
    for k in range(3):
        if n > 0:
            value += ntl.full((4,), 1.0, ntl.float32)
        else:
            value = ntl.cumsum(w[1], 0)
        value = value + 0.0
    y = value


def of_a_way_that_the_round_adds_up(w, x, z, n, y):
    value, total = z + 0.0, 0.0
    for k in range(2):
        if n > 0:
            value = w[k] + 0.0
        total += ntl.sum(value)
    y = total + value


def of_itself_with_rows_as_columns(w, x, z, n, y):
    value = ntl.broadcast_to(w[1][None, :], (4, 4))
    for _ in range(n + 1):
        value += ntl.trans(value)
    y = ntl.full((4,), 0.0, ntl.float32) + ntl.sum(value)


#: What is stored where ``n`` is 0, and 1.
CASES = {
    of_elements_in_both_rounds: ([3, 1, 2, 0], [3, 1, 2, 0]),
    of_the_same_tile: ([0, 5, 4, 6], [0, 5, 4, 6]),
    of_the_same_tile_under_another_name: ([0, 9, -1, 5], [0, 21, 1, 13]),
    of_itself: ([3, 9, -1, 5], [9, 21, 1, 13]),
    of_itself_while_an_index_changes: ([-1, -5, 3, 3], [1, -7, 9, 9]),
    of_a_way_and_the_same_tile: ([1, -1, 3, 3], [3, 1, 1, 1]),
    of_rounds_within_rounds: ([-2, 1, 3, 5], [-2, 1, 3, 5]),
    of_rounds_within_rounds_of_the_same_tile: ([0, -6, 0, 0], [0, -6, 0, 0]),
    of_a_way_that_the_round_goes_on_with: ([8, -4, 16, 0], [-4, -8, 4, 10]),
    of_a_way_that_leaves_them: ([-2, -6, 0, 0], [1, -1, 3, 3]),
    of_a_way_that_the_round_adds_up: ([12, 9, 14, 10], [-3, -5, 1, 4]),
    of_itself_with_rows_as_columns: ([-36] * 4, [-60] * 4),
    of_an_index_that_two_loops_count: ([96, 120, 32, 88], [48, 120, 32, 56]),
}


@pytest.mark.parametrize("dtype", [None, ninetoothed.float32])
@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("application", CASES, ids=lambda application: application.__name__)
def test_a_lane_keeps_what_no_element_of_the_round_is_for(application, number, dtype):
    def arrangement(w, x, z, n, y):
        return w.tile((4,)).tile((-1,)), x.pad(((1, 0),)).tile((4,)), z.tile((4,)), n, y.tile((4,))

    w, x = torch.tensor([1.0, -3, 2, 5, -2, -4]), torch.tensor([3.0, -2, 1])
    z, y = torch.tensor([2.0, -1, 4, 0]), torch.full((4,), OLD)
    tensors = [Tensor(1, dtype=dtype) for _ in range(4)]
    tensors.insert(3, Tensor(0))
    ninetoothed.make(arrangement, application, tuple(tensors))(w, x, z, number, y)
    assert y.tolist() == CASES[application][number]


def given_another(x, z, n, y):
    value = x
    for _ in range(n):
        value = z
    y = value


def given_another_while(x, z, n, y):
    value, k = x, 0
    while k < n:
        value = z + 1
        k += 1
    y = value


def made_in_another_size(x, z, n, y):
    value = ntl.full((4,), 7.0, ntl.float32)
    for _ in range(n):
        value = value + z + 1
    y = value


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (given_another, [5, 6, 3, 4]),
        (given_another_while, [6, 7, 3, 4]),
        (made_in_another_size, [19, 21, 7, 7]),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_lane_is_kept_where_the_tensor_stored_to_is_exempt_from_meeting(application, expected):
    """What has ``other`` may have more elements than what is stored to it: no call is checked for that."""

    def arrangement(x, z, n, y):
        return x.tile((4,)), z.tile((4,)), n, y.tile((4,))

    x, z, y = torch.arange(1.0, 5), torch.tensor([5.0, 6.0]), torch.full((4,), OLD)
    tensors = (Tensor(1), Tensor(1), Tensor(0), Tensor(1, other=0))
    ninetoothed.make(arrangement, application, tensors)(x, z, 2, y)
    assert y.tolist() == expected
