"""LANGUAGE.md, "Padding": a tile of which a size is 0 has no element, in the one lane that it is held in.

What it is reduced to is the identity, nothing of it is stored, and what could be either is refused.
"""

from __future__ import annotations

import math

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError, ArgumentError, CompilationError

OLD = 9.0


def add(one, other):
    return one + other


def filled(x, z, n, y):
    y = ntl.sum(ntl.full(x.shape, 1.0, ntl.float32), 1)


def everything_filled(x, z, n, y):
    y = ntl.sum(ntl.full(x.shape, 1.0, ntl.float32)) + 0 * ntl.sum(x, 1)


def beside_zeros(x, z, n, y):
    y = ntl.sum(ntl.zeros(x.shape, ntl.float32) + x + 1, 1)


def greatest(x, z, n, y):
    y = ntl.max(ntl.zeros(x.shape, ntl.float32), 1)


def first_of_the_greatest(x, z, n, y):
    y = ntl.max(ntl.zeros(x.shape, ntl.float32), 1, return_indices=True)[1].to(ntl.float32)


def counted(x, z, n, y):
    y = ntl.sum(ntl.arange(0, x.shape[1]) + 1, 0).to(ntl.float32) + 0 * ntl.sum(x, 1)


def of_half(x, z, n, y):
    y = ntl.sum(ntl.full((x.shape[1] // 2,), 1.0, ntl.float32), 0) + ntl.sum(x, 1)


def histogram(x, z, n, y):
    y = ntl.sum(ntl.histogram(ntl.arange(0, x.shape[1]), 4), 0).to(ntl.float32)


def spread(x, z, n, y):
    y = ntl.sum(ntl.broadcast_to(ntl.sum(x + 1, 1)[:, None] + 1, (2, x.shape[1])), 1)


def outer(x, z, n, y):
    y = ntl.sum(ntl.sum(ntl.arange(0, x.shape[1])[:, None] + ntl.arange(0, 2)[None, :], 0), 0)


def sorted_in_order(x, z, n, y):
    y = ntl.sum(ntl.sort(x + 1), 1)


def filled_and_sorted(x, z, n, y):
    y = ntl.sum(ntl.sort(ntl.full(x.shape, 1.0, ntl.float32)), 1)


def scanned_and_turned(x, z, n, y):
    y = ntl.sum(ntl.flip(ntl.cumsum(ntl.full(x.shape, 1.0, ntl.float32), 1), 1), 1)


def transposed(x, z, n, y):
    y = ntl.sum(ntl.trans(ntl.full(x.shape, 1.0, ntl.float32)), 0)


def in_a_row(x, z, n, y):
    y = ntl.sum(ntl.interleave(ntl.ravel(x), ntl.ravel(x) + 1), 0) + 0 * ntl.sum(x, 1)


def by_a_function(x, z, n, y):
    y = ntl.reduce(ntl.associative_scan(x + 1, 1, add), 1, add)


def sums_in_order(x, z, n, y):
    y = ntl.sort(ntl.sum(x + 1, 1))


def selected(x, z, n, y):
    y = ntl.sum(z.source[ntl.zeros(x.shape, ntl.int32), 0], 1)


def added_up(x, z, n, y):
    total, sums = ntl.zeros(x.shape, ntl.float32), ntl.zeros((2,), ntl.float32)
    for _ in range(3):
        total = ntl.maximum(total + x, 1.0)
        sums += ntl.sum(x + 1, 1)
    y = ntl.sum(total, 1) + sums


def exchanged(x, z, n, y):
    pair = (x, ntl.zeros(x.shape, ntl.float32))
    for _ in range(2):
        pair = (pair[1] + 1, pair[0] + 2)
    y = ntl.sum(pair[0] + pair[1], 1)


def of_another_tile(x, z, n, y):
    value = z + 0.0
    for _ in range(2):
        if n > 0:
            value = x + 1
        else:
            value = value * 2 + 1
    y = ntl.sum(value, 1)


def while_there_is_none(x, z, n, y):
    count = 0
    while ntl.max(ntl.sum(x, 1), 0) < 1 and count < 3:
        count += 1
    y = ntl.zeros((2,), ntl.float32) + count - 3


#: What is stored for each row: 0 where nothing else is said.
APPLICATIONS = (
    *(filled, everything_filled, beside_zeros, greatest, first_of_the_greatest, counted, of_half),
    *(histogram, spread, outer, sorted_in_order, filled_and_sorted, scanned_and_turned),
    *(transposed, in_a_row, by_a_function, sums_in_order, selected, added_up, exchanged),
    *(of_another_tile, while_there_is_none),
)
OTHERWISE = {greatest: -math.inf}


def in_rows(x, z, n, y):
    return x.tile((2, -1)), z.tile((2, -1)), n, y.tile((2,))


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("application", APPLICATIONS, ids=lambda each: each.__name__)
def test_what_nothing_is_reduced_to_is_the_identity(application, number):
    kernel = ninetoothed.make(in_rows, application, (*map(Tensor, (2, 2, 0, 1)),))
    y = torch.full((3,), OLD)

    kernel(torch.zeros(3, 0), torch.zeros(3, 0), number, y)

    assert y.tolist() == [OTHERWISE.get(application, 0.0)] * 3


def zeros_stored(x, y):
    y = ntl.zeros(x.shape, ntl.float32)


def stored_at_positions(x, y):
    y.source[ntl.zeros(x.shape, ntl.int32), 0] = 1.0


def added_at_positions(x, y):
    ntl.atomic_add(y.source[ntl.arange(0, x.shape[1]), 0], 1.0)


def added_to_it(x, y):
    ntl.atomic_add(x, ntl.full(x.shape, 1.0, ntl.float32))
    y = x + ntl.zeros(x.shape, ntl.float32)


def least_stored(x, y):
    y = ntl.min(x, 0, keep_dims=True) + ntl.zeros(x.shape, ntl.float32)


@pytest.mark.parametrize(
    ("application", "widths"),
    [
        (zeros_stored, (0, 1, 4)),
        (stored_at_positions, (1, 4)),
        (added_at_positions, (1, 4)),
        (added_to_it, (0,)),
        (least_stored, (0,)),
    ],
)
def test_nothing_is_stored_of_it(application, widths):
    def arrangement(x, y):
        return x.tile((1, -1)), y.tile((1, -1))

    for width in widths:
        y = torch.full((3, width), OLD)
        ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(torch.zeros(3, 0), y)
        assert torch.equal(y, torch.full((3, width), OLD))


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_a_size_that_a_call_gives_may_be_0_but_not_less(size):
    def application(x, y):
        y = ntl.sum(ntl.full((x.shape[1] - 3,), 1.0, ntl.float32), 0) + ntl.sum(
            ntl.arange(3, x.shape[1]), 0
        )

    def arrangement(x, y):
        return x.tile((1, -1)), y.tile((1,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    y = torch.full((3,), OLD)
    if size < 3:
        with pytest.raises((ApplicationError, CompilationError), match="0 or more, but .*-1"):
            kernel(torch.zeros(3, size), y)
        return
    kernel(torch.zeros(3, size), y)
    assert y.tolist() == [float(size - 3 + sum(range(3, size)))] * 3


def interleaved(x, y):
    y = ntl.sum(ntl.interleave(x, x + 1), 1)


def side_by_side(x, y):
    y = ntl.sum(ntl.sum(ntl.join(x, x + 1), 2), 1)


def gathered(x, y):
    y = ntl.sum(ntl.gather(x, ntl.zeros((2, 4), ntl.int32), 1), 1)


def the_greatest(x, y):
    y = ntl.sum(ntl.topk(x, 1), 1)


def in_another_shape(x, y):
    y = ntl.sum(ntl.reshape(ntl.full(x.shape, 1.0, ntl.float32), (x.shape[1], 2)), 0)


@pytest.mark.parametrize(
    "application", [interleaved, side_by_side, gathered, the_greatest, in_another_shape]
)
def test_moves_that_leave_open_for_which_rows_there_is_none_are_refused(application):
    def arrangement(x, y):
        return x.tile((2, -1)), y.tile((2,))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(1)))
    with pytest.raises(
        (ApplicationError, CompilationError), match="has none in this call"
    ) as caught:
        kernel(torch.zeros(3, 0), torch.full((3,), OLD))
    assert f"def {application.__name__}" in _line_before(caught.value.location)


def _line_before(location):
    with open(location.file) as file:
        return file.read().splitlines()[location.line - 2]


def plus_one(x, y):
    y = x + 1


def rows_added(x, y):
    y = ntl.sum(x, 0, keep_dims=True)


@pytest.mark.parametrize("application", [plus_one, rows_added])
def test_it_is_not_stored_to_one_element(application):
    def arrangement(x, y):
        return x.tile((1, -1)), y.tile((1, 1))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    y = torch.full((3, 1), OLD)
    kernel(torch.zeros(3, 1), y)
    assert (y != OLD).all()
    with pytest.raises(
        ArgumentError, match="0 in dimension 1 of `x` and 1 in dimension 1 of a tile"
    ):
        kernel(torch.zeros(3, 0), y)


def in_front_of_it(y):
    y[0] = y.source.shape[0]


def test_of_a_flattened_dimension_of_none_no_element_is_found_by_a_number():
    # A quotient by the size of none is asked for where Triton's compiler knows both.
    def arrangement(y):
        return (y.flatten().pad(((1, 3),)).tile((-1,)),)

    kernel = ninetoothed.make(arrangement, in_front_of_it, (Tensor(2),))
    memory = torch.full((4,), OLD)
    kernel(memory[:0].reshape(1, 0))
    assert memory.tolist() == [OLD] * 4


def windows(x, y):
    windows = x.tile((5,), strides=(1,), floor_mode=True)
    return windows.ravel().tile((-1, -1)).squeeze(1), y.tile((1,))


def summed_windows(x, y):
    y = ntl.zeros((1,), ntl.float32) + ntl.sum(x)  # noqa: F841


@pytest.mark.parametrize(("length", "expected"), [(3, None), (4, 0.0), (5, 5.0), (8, 20.0)])
def test_a_count_of_windows_that_do_not_fit_is_refused(length, expected):
    kernel = ninetoothed.make(windows, summed_windows, (Tensor(1), Tensor(1)))
    x, y = torch.ones(length), torch.full((1,), float("nan"))
    if expected is None:
        with pytest.raises(ArgumentError, match="is -1 in this call, as a window is longer than"):
            kernel(x, y)
    else:
        kernel(x, y)
        assert y.item() == expected


@pytest.mark.parametrize(
    ("dtype", "least", "most"),
    [
        (torch.bool, 0, 1),
        (torch.uint8, 0, 255),
        (torch.int8, -128, 127),
        (torch.int16, -(2**15), 2**15 - 1),
        (torch.int32, -(2**31), 2**31 - 1),
        (torch.float32, -math.inf, math.inf),
    ],
    ids=str,
)
def test_the_greatest_of_nothing_is_the_least_of_its_type(dtype, least, most):
    def greatest(x, y):
        y = ntl.max(x)

    def is_any(x, y):
        y = ntl.max(x != x)

    def smallest(x, y):
        y = ntl.min(x)

    def arrangement(x, y):
        return x.tile((-1,)), y.tile((1,))

    for application, expected in ((greatest, least), (smallest, most), (is_any, 0)):
        y = torch.full((1,), OLD, dtype=torch.float64)
        kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)))
        kernel(torch.empty(0, dtype=dtype), y)
        assert y.tolist() == [expected], application.__name__
