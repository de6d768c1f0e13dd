"""Arithmetic on sizes and strides cannot overflow, whatever it is made of."""

from __future__ import annotations

import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError


def a_product_with_a_stride(x, y):
    y = x.source.stride(0) * 2  # noqa: F841


def a_stride_in_a_variable(x, y):
    n = x.source.stride(0)
    m = n * 2
    y = m  # noqa: F841


def a_stride_from_all_strides(x, y):
    first, second = x.strides
    y = first * 2 + second  # noqa: F841


def a_sum_of_a_stride_and_a_size(x, y):
    y = x.source.stride(0) + x.source.shape[1]  # noqa: F841


def a_sum_of_extrema_of_sizes(x, y):
    n = x.source.shape[1]
    y = abs(-n) + max(n, 3) + min(n, 3)  # noqa: F841


def a_size_shifted_left(x, y):
    y = x.source.shape[1] << 3  # noqa: F841


def a_half_that_is_multiplied(x, y):
    y = (x.source.shape[1] >> 1) * 8 + x.source.shape[1] // 2 * 8  # noqa: F841


def a_remainder_that_is_multiplied(x, y):
    y = x.source.shape[1] % (2**29 + 1) * 12  # noqa: F841


def a_quotient_rounded_up_that_is_multiplied(x, y):
    y = ntl.cdiv(x.source.shape[1], 3) * 12  # noqa: F841


def an_inverted_size(x, y):
    y = ~x.source.shape[1] * 4  # noqa: F841


def extrema_of_the_language(x, y):
    n = x.source.shape[1]
    y = ntl.maximum(n, 3) * 4 + ntl.minimum(n, 2**30) * 4 + ntl.abs(-n) * 4  # noqa: F841


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (a_product_with_a_stride, 2**31 + 2),
        (a_stride_in_a_variable, 2**31 + 2),
        (a_stride_from_all_strides, 2**31 + 2),
        (a_sum_of_a_stride_and_a_size, 2**31 + 1),
        (a_sum_of_extrema_of_sizes, 2**31 + 3),
        (a_size_shifted_left, 2**33),
        (a_half_that_is_multiplied, 2**33),
        (a_remainder_that_is_multiplied, (2**29 - 1) * 12),
        (a_quotient_rounded_up_that_is_multiplied, (2**30 // 3 + 1) * 12),
        (an_inverted_size, -(2**32) - 4),
        (extrema_of_the_language, 3 * 2**32),
    ],
    ids=lambda item: getattr(item, "__name__", ""),
)
def test_arithmetic_on_strides_and_of_what_is_computed_of_sizes_cannot_overflow(
    application, expected
):
    kernel = ninetoothed.make(lambda x, y: (x, y.tile((1,))), application, (Tensor(2), Tensor(1)))
    x, y = torch.zeros(1).as_strided((1, 2**30), (2**30 + 1, 0)), torch.empty(1, dtype=torch.int64)
    kernel(x, y)
    assert y.tolist() == [expected]


def doubled_in_rounds(x, y):
    n = x.source.shape[0]
    for _ in range(4):
        n = n * 2 + 1
    y = n  # noqa: F841


def added_to_itself_in_rounds(x, y):
    n = x.source.shape[0]
    for _ in range(4):
        n += n
    y = n  # noqa: F841


@pytest.mark.parametrize("application", [doubled_in_rounds, added_to_itself_in_rounds])
def test_a_size_that_each_round_multiplies_is_an_error(application):
    with pytest.raises(ApplicationError, match="Each round multiplies 'n'.*ntl.cast"):
        ninetoothed.make(lambda x, y: (x, y.tile((1,))), application, (Tensor(1), Tensor(1)))


def test_a_size_that_is_cast_may_be_multiplied_in_rounds_and_one_that_a_condition_bounds():
    def application(x, y):
        n = ntl.cast(x.source.shape[0], ntl.int64)
        for _ in range(4):
            n = n * 2
        m = x.source.shape[0]
        while m < 2**20:
            m *= 2
        y = n + m // 2**30  # noqa: F841

    y = torch.empty(1, dtype=torch.int64)
    kernel = ninetoothed.make(lambda x, y: (x, y.tile((1,))), application, (Tensor(1), Tensor(1)))
    kernel(torch.ones(1).expand(2**30), y)
    assert y.tolist() == [2**34 + 1]


def bits_of_a_size(x, y):
    n = x.source.shape[1]
    y = (n & 7) * 100 + (n | 1) * 10 + (n ^ 2)  # noqa: F841


def bits_that_are_multiplied(x, y):
    n = x.source.shape[1]
    y = (n ^ 3) * 4  # noqa: F841


@pytest.mark.parametrize(
    ("application", "size", "expected"),
    [
        (bits_of_a_size, 13, 5 * 100 + 13 * 10 + 15),
        # One of the kernel's numbers: it wraps around in 32 bits.
        (bits_that_are_multiplied, 2**30, 12),
        (bits_that_are_multiplied, 2**31, 4 * (2**31 + 3)),
    ],
)
def test_bits_of_sizes_are_of_the_kernels_numbers(application, size, expected):
    kernel = ninetoothed.make(lambda x, y: (x, y.tile((1,))), application, (Tensor(2), Tensor(1)))
    x, y = torch.zeros(1).as_strided((1, size), (1, 0)), torch.empty(1, dtype=torch.int64)
    kernel(x, y)
    assert y.tolist() == [expected]


@pytest.mark.parametrize("is_reassigned", [False, True])
def test_a_size_of_a_value_takes_the_type_that_it_meets_by_a_name_too(is_reassigned):
    def application(x, again, y):
        v = x + 1
        if again:
            v = v + 1
        count = v.shape[0]
        y = x * count  # noqa: F841

    def arrangement(x, again, y):
        return x.tile((8,)), again, y.tile((8,))

    tensors = Tensor(1), Tensor(0, constexpr=True), Tensor(1)
    kernel = ninetoothed.make(arrangement, application, tensors)
    x, y = torch.arange(20, dtype=torch.int8), torch.empty(20, dtype=torch.int32)
    kernel(x, is_reassigned, y)
    assert y.tolist() == (x * 8).tolist()
