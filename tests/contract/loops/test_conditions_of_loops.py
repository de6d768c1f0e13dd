"""LANGUAGE.md, "Padding": it has no part in how often a ``while`` goes round.

A lane for which no round has an element keeps what it held, so that no round would end a loop for its sake.
Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on a device.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

#: More rounds than any program here needs: one that does not end by itself ends there.
MANY = 40


def by_bisection(s, q, y, count):
    low = ntl.zeros(q.shape, ntl.int32)
    high = ntl.full(q.shape, s.source.shape[0], ntl.int32)
    n = 0
    while ntl.max((low < high).to(ntl.int32)) > 0 and n < 40:
        middle = (low + high) // 2
        goes_on = low < high
        is_right = s.source[ntl.where(goes_on, middle, 0)] < q
        low = ntl.where(goes_on & is_right, middle + 1, low)
        high = ntl.where(goes_on & ~is_right, middle, high)
        n += 1
    y = low
    count = n


def by_bisection_of_a_pair(s, q, y, count):
    ends = (ntl.zeros(q.shape, ntl.int32), ntl.full(q.shape, s.source.shape[0], ntl.int32))
    n = 0
    while ntl.sum((ends[0] < ends[1]).to(ntl.int32)) != 0 and n < 40:
        middle = (ends[0] + ends[1]) // 2
        goes_on = ends[0] < ends[1]
        is_right = s.source[ntl.where(goes_on, middle, 0)] < q
        ends = (
            ntl.where(goes_on & is_right, middle + 1, ends[0]),
            ntl.where(goes_on & ~is_right, middle, ends[1]),
        )
        n += 1
    y = ends[0]
    count = n


def by_a_condition_that_takes_statements(s, q, y, count):
    low = ntl.zeros(q.shape, ntl.int32)
    high = ntl.full(q.shape, s.source.shape[0], ntl.int32)
    n = 0
    while ntl.max((low < high).to(ntl.int32)) > (0 if s.source[0] < 9 else 40) and n < 40:
        middle = (low + high) // 2
        goes_on = low < high
        is_right = s.source[ntl.where(goes_on, middle, 0)] < q
        low = ntl.where(goes_on & is_right, middle + 1, low)
        high = ntl.where(goes_on & ~is_right, middle, high)
        n += 1
    y = low
    count = n


def one_by_one(s, q, y, count):
    found = ntl.zeros(q.shape, ntl.int32)
    n = 0
    while ntl.min(found) < s.source.shape[0] and n < 40:
        found = ntl.where(q > -1, found + 1, found)
        n += 1
    y = ntl.sum(ntl.where(q[:, None] > s.source[ntl.arange(0, 5)][None, :], 1, 0), axis=1)
    count = n  # noqa: F841


@pytest.mark.parametrize("size", [1, 3, 8])
@pytest.mark.parametrize(
    "application",
    [by_bisection, by_bisection_of_a_pair, by_a_condition_that_takes_statements, one_by_one],
)
def test_a_loop_ends_where_all_that_exists_has_ended(application, size):
    def arrangement(s, q, y, count):
        return s, q.tile((8,)), y.tile((8,)), count.tile((1,))

    s, q = torch.arange(5.0), torch.linspace(0.5, 9, size)
    y, count = torch.zeros(size, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(4)))(s, q, y, count)
    assert y.tolist() == torch.searchsorted(s.cpu(), q.cpu()).tolist()
    assert 0 < int(count[0]) <= 5 < MANY


# What rounds before had counts, where the one at hand has no element.


def till_the_sum_is_large(x, y, count):
    found = ntl.full((4,), 1.0, ntl.float32)
    n = 0
    while ntl.sum(found) < 20 and n < 40:
        found += x[n % x.shape[0]]
        n += 1
    y = found
    count = n


def till_the_greatest_is_large(x, y, count):
    found = ntl.full((4,), -100.0, ntl.float32)
    n = 0
    while ntl.max(found) < 4 and n < 40:
        found = ntl.maximum(found, x[n % x.shape[0]])
        n += 1
    y = found
    count = n


def in_two_loops(x, y, count):
    found = ntl.full((4,), 1.0, ntl.float32)
    for k in range(x.shape[0]):
        found += x[k]
    n = 0
    while ntl.sum(found) < 40 and n < 40:
        found += x[n % x.shape[0]]
        n += 1
    y = found
    count = n  # noqa: F841


def _rounds(x, start, combine, goes_on, before=0):
    """What a loop leaves in four lanes, of which a round has those of its block; how often it goes round."""
    blocks = x.split(4)
    found, reached = torch.full((4,), start), None
    for block in blocks[:before]:
        found[: len(block)] = combine(found[: len(block)], block)
    n = 0
    while goes_on(found if reached is None else found[:reached]):
        block = blocks[n % len(blocks)]
        found[: len(block)] = combine(found[: len(block)], block)
        reached = max(reached or 0, len(block))
        n += 1
    return found, n


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (till_the_sum_is_large, lambda x: _rounds(x, 1.0, torch.add, lambda v: v.sum() < 20)),
        (
            till_the_greatest_is_large,
            lambda x: _rounds(x, -100.0, torch.maximum, lambda v: v.max() < 4),
        ),
        (
            in_two_loops,
            lambda x: _rounds(x, 1.0, torch.add, lambda v: v.sum() < 40, before=len(x.split(4))),
        ),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
@pytest.mark.parametrize("values", [[4.0], [1, 2, 4], [1, 2, 3, 1, 4], [1, 1, 1, 1, 1, 5, 1]])
def test_what_rounds_before_had_is_asked(application, expected, values):
    def arrangement(x, y, count):
        return x.tile((4,)).tile((-1,)), y.tile((4,)), count.tile((1,))

    x, y = torch.tensor(values), torch.zeros(4)
    count = torch.zeros(1, dtype=torch.int32)
    tensors = tuple(Tensor(1) for _ in range(3))
    ninetoothed.make(arrangement, application, tensors)(x, y, count)
    found, n = expected(x)
    assert (y.tolist(), int(count[0])) == (found.tolist(), n)


# A condition of rows: those that the tensor does not have are in no round.


def halved_in_rows(x, y, count):
    found = ntl.full((4, 4), 64.0, ntl.float32)
    n = 0
    while ntl.max(ntl.max(found, axis=1)) > 1 and n < 40:
        found = ntl.where(found > 1, found / 2, found) + 0 * x
        n += 1
    y = found + x
    count = n  # noqa: F841


@pytest.mark.parametrize("shape", [(3, 2), (4, 4), (1, 3)])
def test_rows_and_columns_that_are_not_there_end_no_later(shape):
    def arrangement(x, y, count):
        return x.tile((4, 4)), y.tile((4, 4)), count.tile((1,))

    x, y = torch.ones(shape), torch.zeros(shape)
    count = torch.zeros(1, dtype=torch.int32)
    ninetoothed.make(arrangement, halved_in_rows, (Tensor(2), Tensor(2), Tensor(1)))(x, y, count)
    assert int(count[0]) == 6
    assert y.tolist() == torch.full(shape, 2.0).tolist()
