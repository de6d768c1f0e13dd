"""Numbers from outside are what they are in Python, scalars of NumPy's too; beside a tile they are Python's."""

from __future__ import annotations

import enum
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor
from ninetoothed.errors import ApplicationError
from tests.contract.numbers.test_literals import result, tiles

F, D, H = np.float32(0.1), np.float64(0.1), np.float16(0.1)
I, I8, U8, B = np.int64(3), np.int8(100), np.uint8(5), np.bool_(True)
Z, ZF, ARRAY = np.array(3), np.array(0.1, np.float32), np.array([1, 2, 3], np.int32)
LIST, TUPLE, HALF = [7, 8], (7, 8), Fraction(1, 2)


class Level(enum.IntEnum):
    LOW = 2


def kinds():
    one = isinstance(F, np.floating) + 2 * isinstance(F, float) + 4 * isinstance(D, float)
    two = isinstance(I, int) + 2 * isinstance(I, np.integer) + 4 * (type(F) is np.float32)
    three = isinstance(B, bool) + 2 * isinstance(B, np.bool_) + 4 * isinstance(Z, np.ndarray)
    return one + 10 * two + 100 * three + 1000 * (F.dtype == np.float32) + 10_000 * F.itemsize


def sums_and_products():
    return F * 3 + 0.0 * D + (F + F) * H


def behind_a_literal():
    return (0.5 + F) * 1.0 + (0.5 * H) * D + 2.5 / F + 7.5 // F + 7.5 % ZF - (1.5 - F)


def powers_and_quotients():
    return F**2 + I / 2 + (I**2 + I // 2) * 100 + (I % 2) * F


def wrapping():
    return (I8 + I8) * 1.0 + (U8 - np.uint8(7)) * 1e3 + -U8 * 1e6 + ~U8 * 1e9 + (I8 * 3) * 1e12


def truth_values():
    return (B + B) * 1.0 + B * 2 + (B is True) * 10 + (B == True) * 100 + (not B) * 1000  # noqa: E712


def comparisons():
    return (F == 0.1) + 2 * (D == 0.1) + 4 * (F * 3 == 0.3) + 8 * (0 < I < 5) + 16 * (I in (1, 3))


def identities():
    one = (I is I) + 2 * (F is F) + 4 * (LIST is LIST) + 8 * (TUPLE is TUPLE)  # noqa: PLR0124
    return one + 16 * (id(F) == id(F)) + 32 * (hash(I) == hash(3))


def pythons_functions():
    one = round(F, 2) + abs(I8) + max(F, 0.05) + min(I, 5) + sum((I, I)) + pow(I, 2) + math.sqrt(I)
    return one + int(F * 30) + float(F) + bool(B) + divmod(I, 2)[1] + round(2.5) + len(str(F))


def numpys_functions():
    root = np.sqrt(np.float32(2))
    return root * root + np.maximum(I, 5) + I.astype(np.float32) * 0.1 + F.item() + ARRAY.sum()


def arrays():
    return Z * 2 + ZF * 3 + ARRAY[1] * 2 + len(ARRAY) + ARRAY.shape[0] + Z.ndim + (Z + Z)


def places():
    one = (TUPLE * I)[5] + TUPLE[I - 2] + LIST[np.int64(1)] + {3: 7}[I]
    return one + sum(range(I)) + tuple(range(0, 9, I))[2] + sum([k for k in range(Z)])


def other_numbers():
    return Level.LOW * 2 + (HALF * 2 == 1) + float(HALF) + 2**70 // 2**69 + abs(1 + 2j)


ALL = [
    *(
        kinds,
        behind_a_literal,
        sums_and_products,
        powers_and_quotients,
        wrapping,
        truth_values,
        comparisons,
    ),
    *(identities, pythons_functions, numpys_functions, arrays, places, other_numbers),
]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", ALL, ids=lambda value: value.__name__)
def test_what_is_computed_of_them_is_what_python_computes(value):
    def application(x, y):
        y = 0 * x + value()  # noqa: F841

    x = torch.zeros(4, dtype=torch.float64)
    with np.errstate(all="ignore"):
        assert result(application, x, out=x.clone()).tolist() == [float(value())] * 4


def beside_sizes(x, y):
    size = x.source.shape[0]
    y = (
        x * 0
        + F * size
        + size * D
        + (0.5 + F + size)
        + I8 * size
        + size // I
        + (I < size)
        + (size > F)
    )


@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float64], ids=str)
def test_beside_a_size_they_are_numbers_of_pythons(dtype):
    f, d, i, i8, half = float(F), float(D), int(I), int(I8), float(0.5 + F)

    def of_pythons(x, y):
        size = x.source.shape[0]
        y = (
            x * 0
            + f * size
            + size * d
            + (half + size)
            + i8 * size
            + size // i
            + (i < size)
            + (size > f)
        )

    x, y = torch.tensor([1, 2, 3, 4, 5]).to(dtype), torch.zeros(5, dtype=torch.float64)
    expected = result(of_pythons, x, out=y.clone())
    assert result(beside_sizes, x, out=y.clone()).tolist() == expected.tolist()


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.float32, torch.float64, torch.int8, torch.int32, torch.bool],
    ids=str,
)
@pytest.mark.parametrize("number", [F, D, H, I, U8, B, Z, ZF], ids=repr)
def test_beside_a_tile_they_are_numbers_of_pythons(number, dtype):
    plain = number.item()

    def application(x, y):
        y = x * number + number / (x + 0.25) + (x < number) + ntl.maximum(x, number)

    def of_pythons(x, y):
        y = x * plain + plain / (x + 0.25) + (x < plain) + ntl.maximum(x, plain)

    x, y = torch.tensor([0, 1, 1, 0]).to(dtype), torch.zeros(4, dtype=torch.float64)
    expected = result(of_pythons, x, out=y.clone())
    assert result(application, x, out=y.clone()).tolist() == expected.tolist()


def of_sizes_and_places(x, y):
    total = ntl.sum(ntl.zeros((I,), ntl.float32) + 1) + x[I] + ntl.sum(x[I - 2 :], axis=I - 3)
    for k in range(0, 7, I):
        total += k * x.shape[I - 3]
    for k in ntl.static_range(I):
        total += k
    y = x + total + ntl.sum(ntl.arange(0, Z)) + x.offsets(I - 3) + x.source[I]


def test_they_are_sizes_and_places():
    x = torch.tensor([1.0, 2.0, 4.0, 8.0])
    wanted = x + (3 + 8 + 14) + 9 * 8 + 3 + 3 + torch.arange(4) + 8
    assert result(of_sizes_and_places, x, out=torch.zeros(4)).tolist() == wanted.tolist()


def test_what_arrays_and_lists_within_lists_hold_later_changes_nothing():
    array, number, nested = np.array([1.0, 2.0]), np.array(3.0), ([1.0], {"a": [2.0]})

    def application(x, y):
        y = x + array[1] + number * 10 + nested[0][0] * 100 + nested[1]["a"][0] * 1000  # noqa: F841

    kernel = ninetoothed.make(tiles, application, (Tensor(1), Tensor(1)))
    array[1], nested[0][0], nested[1]["a"][0] = 7.0, 8.0, 9.0
    number[...] = 6.0
    x, y = torch.zeros(2), torch.zeros(2)
    kernel(x, y)

    assert y.tolist() == [2132.0, 2132.0]


def counted_by_a_fraction(x, y):
    for _ in range(F):
        y = x


def unrolled_by_a_fraction(x, y):
    for _ in ntl.static_range(2.0):
        y = x


def counted_by_a_truth_value(x, y):
    y = x + sum([k for k in range(B)])


def repeated_by_a_truth_value(x, y):
    y = x + ((x, x) * B)[0]


def selected_by_a_truth_value(x, y):
    y = (x, x + 1)[B]


def which_list(x, y):
    y = x + (id(LIST) == id(LIST))


@pytest.mark.parametrize(
    ("application", "message"),
    [
        (counted_by_a_fraction, "A range takes integers, but got .*0.1.*, a float32"),
        (unrolled_by_a_fraction, "A range takes integers, but got 2.0, a float"),
        (counted_by_a_truth_value, "A range takes integers"),
        (repeated_by_a_truth_value, "repeated a number of times"),
        (selected_by_a_truth_value, "indices must be integers"),
        (which_list, "has no `id` in an application"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_python_does_not_count_by_is_refused_with_its_place(application, message):
    with pytest.raises(ApplicationError, match=message) as caught:
        result(application, torch.ones(4))
    assert caught.value.location is not None


def test_an_array_without_dimensions_is_compared_as_its_number():
    def application(x, y):
        y = (x == Z) + 2 * (Z != x) + 4 * (x in (Z, 4)) + 8 * (ntl.max(x) == Z)  # noqa: F841

    x = torch.tensor([1, 2, 3, 3])
    assert result(application, x, out=torch.zeros(4)).tolist() == [10, 10, 13, 13]
