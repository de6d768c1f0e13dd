"""Operators of truth values, shifts, and numbers that do not fit: Python's, or an error with a place."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed.language as ntl
from ninetoothed.errors import ApplicationError
from tests.contract.kernels import arange, empty, run
from tests.contract.numbers.test_literals import result

TRUTH = torch.tensor([True, False, True, True])
INTEGERS = [torch.int8, torch.int16, torch.int32, torch.int64]
INTEGERS += [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


def divided(b, w, y):
    y = b / w + (w > 0) / w  # noqa: F841


def rounded_down(b, w, y):
    y = b // w + b % w * 10 + w // (w > 0) * 100  # noqa: F841


@pytest.mark.parametrize("dtype", [*INTEGERS, torch.float32], ids=str)
def test_truth_values_count_beside_what_they_are_divided_by(dtype):
    w = torch.tensor([1, 2, 1, 2]).to(dtype)
    b, n = TRUTH.numpy().astype(np.int64), w.cpu().numpy().astype(np.int64)
    found = result(divided, TRUTH, w, out=torch.zeros(4))
    assert found.tolist() == (b / n + 1 / n).astype(np.float32).tolist()
    found = result(rounded_down, TRUTH, w, out=torch.zeros(4, dtype=torch.int32))
    assert (
        found.tolist()
        == ((b // n + b % n * 10).astype(int) + n * 100).astype(w.cpu().numpy().dtype).tolist()
    )


def by_numbers(b, y):
    y = (b / 2) * 100 + b // 2 * 10 + b % 2 + 5 // (b | True) + (b << 9) + (1 << b)  # noqa: F841


def by_sizes(b, y):
    y = b / b.shape[0] + b // b.shape[0] * 10 + b.shape[0] % (b | True)  # noqa: F841


def test_truth_values_count_beside_numbers_and_sizes():
    n = TRUTH.numpy().astype(int)
    expected = n / 2 * 100 + n // 2 * 10 + n % 2 + 5 + (n << 9) + (1 << n)
    assert result(by_numbers, TRUTH, out=torch.zeros(4)).tolist() == expected.tolist()
    # A tile of 4 elements is held in one of 8.
    assert result(by_sizes, TRUTH, out=torch.zeros(4)).tolist() == (n / 8).tolist()


def large_divided(b, y):
    y = 2**40 // b + 2**31 // b + 2**63 % b + ntl.cdiv(2**31, b)  # noqa: F841


def divided_by_large(b, y):
    y = b // 2**40 + b % 2**40 * 10 + ntl.cdiv(b, 2**31) * 100  # noqa: F841


def large_shifted(b, y):
    y = (2**40 << b) + (2**40 >> b)  # noqa: F841


def test_truth_values_count_beside_large_numbers_as_these():
    out = torch.zeros(4, dtype=torch.int64)
    once, shifted = 2**40 + 2 * 2**31, 2**41 + 2**39
    assert result(large_divided, TRUTH, out=out).tolist() == [once, 0, once, once]
    assert result(divided_by_large, TRUTH, out=out).tolist() == [110, 0, 110, 110]
    expected = [shifted, 2 * 2**40, shifted, shifted]
    assert result(large_shifted, TRUTH, out=out).tolist() == expected


def left(v, c, y):
    y = v << c  # noqa: F841


def right(v, c, y):
    y = v >> c  # noqa: F841


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_no_bit_is_left_where_there_are_not_so_many(dtype):
    v = torch.tensor([-3, 1, 100, 127]).to(dtype)
    numbers = v.cpu().numpy()
    bits, unsigned = numbers.dtype.itemsize * 8, f"uint{numbers.dtype.itemsize * 8}"

    def shifted(function):
        wrapped = [function(int(a), int(b)) & (2**bits - 1) for a, b in zip(numbers, counts)]
        return np.array(wrapped, unsigned).view(numbers.dtype).tolist()

    counts = [1, 7, 9, 70]
    c = torch.tensor(counts).to(dtype)
    assert result(left, v, c, out=v.clone()).tolist() == shifted(lambda a, b: a << b)
    assert result(right, v, c, out=v.clone()).tolist() == shifted(lambda a, b: a >> b)
    for count in (3, 15, 40, 64, 300):
        counts = [count] * 4

        def by_a_number(v, y):
            y = v << count  # noqa: F841, B023

        def back_by_a_number(v, y):
            y = v >> count  # noqa: F841, B023

        assert result(by_a_number, v, out=v.clone()).tolist() == shifted(lambda a, b: a << b)
        assert result(back_by_a_number, v, out=v.clone()).tolist() == shifted(lambda a, b: a >> b)


@pytest.mark.parametrize("signed", INTEGERS[:4], ids=str)
@pytest.mark.parametrize("unsigned", INTEGERS[4:], ids=str)
def test_what_a_shift_is_by_leaves_the_sign_of_what_is_shifted(signed, unsigned):
    v = torch.tensor([-3, 1, -100, 127]).to(signed)
    c = torch.tensor([1, 2, 3, 200]).to(unsigned)
    for application, expected in ((right, [-2, 0, -13, 0]), (left, None)):
        found = result(application, v, c, out=torch.zeros(4, dtype=torch.int64)).tolist()
        bits = max(v.itemsize, c.itemsize) * 8
        whole = [-6, 4, (-800 + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1), 0]
        assert found == (expected or whole)


def a_truth_to_the_left(v, y):
    y = True << v  # noqa: F841


def test_a_truth_value_that_is_shifted_is_1():
    for dtype, expected in ((torch.int8, [2, 0, 8, -128]), (torch.int32, [2, 0, 8, 128])):
        v = torch.tensor([1, -2, 3, 7]).to(dtype)
        found = result(a_truth_to_the_left, v, out=torch.zeros(4))
        assert found.tolist() == expected
    assert result(a_truth_to_the_left, TRUTH, out=torch.zeros(4)).tolist() == [2, 1, 2, 2]

    def by_a_truth(b, y):
        y = -3 >> b  # noqa: F841

    assert result(by_a_truth, TRUTH, out=torch.zeros(4)).tolist() == [-2, -3, -2, -2]


def by_less_than_nothing(v, y):
    y = v << -1  # noqa: F841


def too_large(v, y):
    y = v + 2**40  # noqa: F841


def too_large_for_any(v, y):
    y = v * 2**70  # noqa: F841


def negative(v, y):
    y = v * -1  # noqa: F841


def chosen(v, y):
    y = ntl.where(v > 0, v, 2**40)  # noqa: F841


def bits_of_floats(v, y):
    y = v & 1  # noqa: F841


def complement_of_floats(v, y):
    y = ~v  # noqa: F841


def floats_shifted(v, y):
    y = v >> 1  # noqa: F841


@pytest.mark.parametrize(
    ("application", "dtype", "error"),
    [
        (by_less_than_nothing, torch.int32, "<< is by 0 or more, but got -1"),
        (too_large, torch.int32, "1099511627776 does not fit a tile of int32"),
        (too_large_for_any, torch.float32, "fits no 64-bit type; beside floats write it as one"),
        (negative, torch.uint8, "-1 does not fit a tile of uint8"),
        (chosen, torch.int16, "1099511627776 does not fit a tile of int16"),
        (bits_of_floats, torch.float32, "& needs integers, but got float32 and int"),
        (complement_of_floats, torch.float64, "`~` needs integers, but got float64"),
        (floats_shifted, torch.float16, ">> needs integers, but got float16 and int"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_has_no_meaning_is_an_error_with_its_place(application, dtype, error):
    v = torch.ones(4, dtype=dtype)
    with pytest.raises(ApplicationError, match=error) as caught:
        result(application, v, out=v.clone())
    assert caught.value.location is not None


def test_a_number_that_fits_takes_the_type_of_the_tile():
    v = torch.tensor([1, -2, 3, 4])
    assert result(too_large, v, out=v.clone()).tolist() == (v + 2**40).tolist()
    assert result(chosen, v, out=v.clone()).tolist() == [1, 2**40, 3, 4]


def compared(v, w, y):
    y = (v < w) + 2 * (v <= w) + 4 * (v == w) + 8 * (v != w) + 16 * (v > w) + 32 * (v >= w)  # noqa: F841


@pytest.mark.parametrize("signed", INTEGERS[:4], ids=str)
@pytest.mark.parametrize("unsigned", INTEGERS[4:], ids=str)
def test_signed_and_unsigned_integers_are_compared_by_what_they_are(signed, unsigned):
    v = torch.tensor([-1, 5, -100, 127]).to(signed)
    w = torch.tensor([3, 5, 156, 255]).to(unsigned)
    for one, other in ((v, w), (w, v)):
        a, b = (each.cpu().numpy().astype(object) for each in (one, other))
        expected = (
            (a < b) * 1 + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b) + 32 * (a >= b)
        )
        found = result(compared, one, other, out=torch.zeros(4, dtype=torch.int32))
        assert found.tolist() == expected.tolist()


def with_numbers(u, y):
    y = (u > -1) + 2 * (-1 < u) + 4 * (u < ntl.arange(0, 8) - 9) + 8 * (u < u.shape[0] - 20)  # noqa: F841


def with_large_numbers(i, y):
    y = (
        (i < 2**31)
        + 2 * (2**31 > i)
        + 4 * (i < 2**63)
        + 8 * (i == 2**32 - 1)
        + 16 * (-9 < i < 2**31)
    )  # noqa: F841


def test_numbers_are_compared_by_what_they_are():
    for dtype in INTEGERS[4:]:
        u = torch.tensor([0, 1, 100, 200]).to(dtype)
        found = result(with_numbers, u, out=torch.zeros(4, dtype=torch.int32))
        assert found.tolist() == [3] * 4
    i = torch.tensor([-3, 0, -1, 2**31 - 1], dtype=torch.int32)
    found = result(with_large_numbers, i, out=torch.zeros(4, dtype=torch.int32))
    assert found.tolist() == [1 + 2 + 4 + 16] * 4


def lesser(v, w, y):
    y = ntl.minimum(v, w)  # noqa: F841


def either(v, w, y):
    y = ntl.where(v > w, v, w)  # noqa: F841


def of_places(v, w, y):
    y = ntl.maximum(ntl.arange(0, 8), w) + 0 * v  # noqa: F841


def test_signed_and_unsigned_integers_are_not_chosen_of():
    v, w = torch.tensor([-1, 1]), torch.tensor([3, 4]).to(torch.uint64)
    for application in (lesser, either):
        with pytest.raises(
            ApplicationError, match="needs operands of one signedness, but got int64 and uint64"
        ):
            result(application, v, w, out=v.clone())
        assert result(application, v, w.int(), out=v.clone()).tolist() in ([-1, 1], [3, 4])
    assert result(of_places, w, w, out=w.clone()).tolist() == [3, 4]


def an_extremum_of_a_quotient(a, b, y):
    y = ntl.maximum(a / b, ntl.maximum(a, b)) + ntl.minimum(ntl.minimum(b, a), ntl.fma(a, b, a))  # noqa: F841


def test_an_extremum_of_what_is_made_of_the_operands_of_another():
    a, b = torch.tensor([3.0, -8.0, 0.5, -1.0]), torch.tensor([0.5, -2.0, 4.0, 1.0])
    x, z = (np.array(given.tolist()) for given in (a, b))
    expected = np.maximum(x / z, np.maximum(x, z)) + np.minimum(np.minimum(x, z), x * z + x)
    assert result(an_extremum_of_a_quotient, a, b, out=torch.zeros(4)).tolist() == expected.tolist()


def least_of_what_is_not_negative(x, y):
    y = ntl.min(ntl.maximum(ntl.full((8,), 2.5, ntl.float32), x)) // 2 + 0 * x  # noqa: F841


def test_what_may_be_a_float_is_divided_as_one():
    """Though none of it is negative, and it is one number."""
    x = torch.tensor([3.5, 5.0, 7.0, 4.5] * 2)
    assert result(least_of_what_is_not_negative, x, out=torch.zeros(8)).tolist() == [1.0] * 8


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_what_is_shifted_by_a_truth_value_keeps_its_type(dtype):
    def both_ways(v, b, y):
        y = (v << b) - (v >> b)  # noqa: F841

    v = torch.tensor([126, -7, 3, 100]).to(dtype)
    n, by = v.cpu().numpy(), TRUTH.numpy().astype(v.cpu().numpy().dtype)
    found = result(both_ways, v, TRUTH, out=torch.zeros(4, dtype=torch.int64))
    assert found.tolist() == ((n << by) - (n >> by)).astype(np.int64).tolist()


def with_what_does_not_fit(v, y):
    below = (v < 300) + 2 * (70000 > v) + 4 * (v != 2**40) + 8 * (v > -(2**40)) + 16 * (-300 < v)
    y = below + 32 * (v.shape[0] * 100 > v)  # noqa: F841


def the_lesser_of_what_does_not_fit(v, y):
    y = ntl.minimum(v, 300) + ntl.minimum(70000, v)  # noqa: F841


def the_greater_of_what_does_not_fit(v, y):
    y = ntl.maximum(v, -300) + ntl.maximum(y=v, x=-70000)  # noqa: F841


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_numbers_that_do_not_fit_are_compared_and_chosen_among(dtype):
    v = torch.tensor([0, 1, 100, 127]).to(dtype)
    out = torch.zeros(4, dtype=torch.int64)
    assert result(with_what_does_not_fit, v, out=out).tolist() == [63] * 4
    twice = [0, 2, 200, 254]
    assert result(the_lesser_of_what_does_not_fit, v, out=out).tolist() == twice
    if dtype.is_signed:
        assert result(the_greater_of_what_does_not_fit, v, out=out).tolist() == twice


def test_a_power_of_scalars_says_what_to_do():
    def corrected(x, beta, step, y):
        y = x / (1 - beta**step)  # noqa: F841

    with pytest.raises(ApplicationError, match="computed before the call and given as one"):
        run(corrected, arange(4), 0.9, 3, empty(4))


def test_a_power_of_scalars_may_be_computed_as_the_message_says():
    def corrected(x, beta, step, y):
        y = x / (1 - ntl.exp2(step * ntl.log2(beta)))  # noqa: F841

    found = run(corrected, arange(4), 0.9, 3, empty(4)).cpu()
    torch.testing.assert_close(found, arange(4).cpu() / (1 - 0.9**3))
