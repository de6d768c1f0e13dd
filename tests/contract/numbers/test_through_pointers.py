"""Numbers that are loaded and stored by pointers, stand beside a tensor, or come from functions with types of their own.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError

TRUTH = [True, False, True, True]


def whole(*tensors):
    return tuple(tensor.tile((-1,) * tensor.ndim) for tensor in tensors)


def made(application, x, y, arrangement=whole, **declared):
    """What is stored to ``y``, which is changed."""
    tensors = Tensor(x.ndim, **declared), Tensor(y.ndim)
    ninetoothed.make(arrangement, application, tensors)(x, y)
    return y.tolist()


def doubled(x, y):
    v = ntl.load(x.data_ptr() + ntl.arange(0, 4))
    y = v + v


def negative(x, y):
    y = -ntl.load(x.data_ptr() + ntl.arange(0, 4))


def one_more(x, y):
    y = ntl.load(x.data_ptr() + ntl.arange(0, 4)) + True


@pytest.mark.parametrize(
    "application, expected",
    [(doubled, [2, 0, 2, 2]), (negative, [-1, 0, -1, -1]), (one_more, [2, 1, 2, 2])],
)
def test_truth_values_by_pointers_count(application, expected):
    assert (
        made(application, torch.tensor(TRUTH), torch.full((4,), 9, dtype=torch.int32)) == expected
    )


def third(x, y):
    y = ntl.load(x.data_ptr() + ntl.arange(0, 4)) / 3


def exchanged_third(x, y):
    y = ntl.atomic_add(x.data_ptr() + ntl.arange(0, 4), 1) / 3


@pytest.mark.parametrize("application", [third, exchanged_third])
def test_integers_by_pointers_give_float64_beside_it(application):
    x = torch.tensor([1, 2, 4, 5], dtype=torch.int32)
    y = torch.full((4,), torch.nan, dtype=torch.float64)
    assert made(application, x, y) == [1 / 3, 2 / 3, 4 / 3, 5 / 3]


def put_half(x, y):
    ntl.store(y.data_ptr() + ntl.arange(0, 4), x * 0.5)


def put_256(x, y):
    ntl.store(y.data_ptr() + ntl.arange(0, 4), 256)


@pytest.mark.parametrize(
    "application, expected", [(put_half, [True, True, False, True]), (put_256, [True] * 4)]
)
def test_a_store_of_truth_values_by_pointers_asks_for_0(application, expected):
    x = torch.tensor([1.0, 3.0, 0.0, -1.0])
    assert made(application, x, torch.zeros(4, dtype=torch.bool)) == expected


def beyond(x, y):
    y = ntl.load(x.data_ptr() + ntl.arange(0, 8), mask=ntl.arange(0, 8) < 4, other=0.5)


def test_what_stands_for_truth_values_by_pointers_asks_for_0():
    y = torch.full((8,), 9, dtype=torch.int32)
    assert made(beyond, torch.tensor(TRUTH), y) == [1, 0, 1, 1, 1, 1, 1, 1]


def put_300(x, y):
    ntl.store(y.data_ptr() + ntl.arange(0, 4), 300)


def got_300(x, y):
    y = ntl.load(x.data_ptr() + ntl.arange(0, 4), mask=ntl.arange(0, 4) < 2, other=300)


@pytest.mark.parametrize("application", [put_300, got_300])
def test_a_number_that_does_not_fit_is_refused(application):
    x, y = torch.zeros(2, 4, dtype=torch.int8)
    with pytest.raises(ApplicationError, match="300 does not fit what the pointer names"):
        made(application, x, y)
    assert y.tolist() == [0] * 4


def copied(x, y):
    y = x * 1


def by_eights(*tensors):
    return tuple(tensor.tile((8,)) for tensor in tensors)


@pytest.mark.parametrize("other", [0.5, 256, 2**40, float("inf"), float("nan"), -1])
def test_what_stands_beside_truth_values_is_true_unless_it_is_0(other):
    x, y = torch.ones(5, dtype=torch.bool), torch.zeros(8, dtype=torch.int32)
    assert made(copied, x, y, by_eights, other=other) == [1] * 8


def test_what_stands_beside_float64_is_not_rounded():
    x, y = torch.ones(5, dtype=torch.float64), torch.zeros(8, dtype=torch.float64)
    assert made(copied, x, y, by_eights, other=0.1) == [1.0] * 5 + [0.1] * 3


def merged(x, y):
    y = ntl.bitonic_merge(x)


def greatest_merged(x, y):
    y = ntl.max(ntl.bitonic_merge(x))


def merged_down(x, y):
    y = ntl.bitonic_merge(x, descending=True)


@pytest.mark.parametrize(
    "application, given, expected",
    [
        (merged, [1, 3, 5, 7, 6], [1, 3, 5, 6, 7]),
        (merged, [1, 3, 7, 6], [1, 3, 6, 7]),
        (merged, [[1, 5, 2], [-1, -5, -7]], [[1, 2, 5], [-7, -5, -1]]),
        (merged_down, [1, 3, -5], [3, 1, -5]),
        (merged, [4], [4]),
        (merged, [[4], [1], [2], [3]], [[4], [1], [2], [3]]),
        (greatest_merged, [-1, -3, -5, -7, -6], [-1]),
    ],
)
def test_what_rises_and_falls_is_merged_without_padding(application, given, expected):
    y = torch.zeros(torch.tensor(expected).shape, dtype=torch.int32)
    assert made(application, torch.tensor(given, dtype=torch.int32), y) == expected


def test_nan_is_merged_as_the_greatest():
    x = torch.tensor([1.0, 3.0, torch.nan, -2.0])
    assert made(merged, x, torch.zeros(4))[:3] == [-2.0, 1.0, 3.0]


def of_bits(x, y):
    v = ntl.bitonic_merge(x)
    y = v + v


def test_merged_truth_values_count():
    x, y = torch.tensor([False, True, True, False]), torch.zeros(4, dtype=torch.int32)
    assert made(of_bits, x, y) == [0, 0, 2, 2]


def product(x, y):
    y = ntl.reduce(x, 0, lambda a, b: a * b)


def least(x, y):
    y = ntl.reduce(x, 0, lambda a, b: ntl.minimum(a, b))


def most(x, y):
    y = x.reduce(0, lambda a, b: max(a, b))


def every(x, y):
    y = ntl.reduce(x, 0, lambda a, b: a & b)


def of_made(x, y):
    twos = ntl.full((x.shape[0],), 2, ntl.int32)
    y = ntl.reduce(twos, 0, lambda a, b: a * b)


@pytest.mark.parametrize(
    "application, of_three", [(product, 30), (least, 2), (most, 5), (every, 0), (of_made, 8)]
)
def test_a_function_makes_0_of_nothing(application, of_three):
    for given, expected in (([], 0), ([2, 3, 5], of_three)):
        x, y = torch.tensor(given, dtype=torch.int32), torch.full((1,), 9, dtype=torch.int32)
        assert made(application, x, y) == [expected]


def product_of_rows(x, y):
    y = ntl.reduce(x, 1, lambda a, b: a * b)


@pytest.mark.parametrize("shape", [(3, 0), (0, 3), (3, 3)])
def test_rows_of_nothing_are_0(shape):
    x, y = torch.full(shape, 2.0), torch.full(shape[:1], torch.nan)
    assert made(product_of_rows, x, y) == [8.0 if shape[1] else 0.0] * shape[0]


def of_libdevice(x, y):
    is_none = ntl.libdevice.isnan(x)
    y = is_none + is_none - ntl.libdevice.finitef(x)


def third_of_libdevice(x, y):
    y = ntl.libdevice.popc(x) / 3


def test_libdevice_tells_truth_that_counts():
    x, y = torch.tensor([torch.nan, 1.0, torch.inf, -3.0]), torch.zeros(4, dtype=torch.int32)
    assert made(of_libdevice, x, y) == [2, -1, 0, -1]


def test_libdevice_counts_bits_that_are_divided_as_float64():
    x, y = torch.tensor([1, 3, 7], dtype=torch.int32), torch.zeros(3, dtype=torch.float64)
    assert made(third_of_libdevice, x, y) == [1 / 3, 2 / 3, 1.0]


def stored(x, y):
    y = x


@pytest.mark.parametrize(
    "dtype, given, expected",
    [
        (torch.float64, [1 + 2**-8 + 2**-40, 1 + 2**-8], [1.0078125, 1.0]),
        (torch.int64, [2**24 + 2**16 + 1, 2**24 + 2**16], [16908288.0, 16777216.0]),
        (torch.int32, [2**24 + 2**16 + 1, 3], [16908288.0, 3.0]),
    ],
)
def test_bfloat16_is_rounded_once(dtype, given, expected):
    x = torch.tensor(given, dtype=dtype)
    assert made(stored, x, torch.zeros(2, dtype=torch.bfloat16)) == expected
