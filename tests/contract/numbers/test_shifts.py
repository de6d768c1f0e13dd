"""Numbers in shifts: one that is shifted takes the type of the tile that it meets, and one by which is any."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.contract.numbers.test_literals import result

UNSIGNED = [torch.uint8, torch.uint16, torch.uint32, torch.uint64]


def of_one(a, y):
    y = 1 << a  # noqa: F841


def of_the_greatest_byte(a, y):
    y = 255 << a  # noqa: F841


def of_a_truth(a, y):
    y = True << a  # noqa: F841


def of_numpys(a, y):
    y = np.int8(1) << a  # noqa: F841


def there_and_back(a, y):
    y = (1 << a) >> 3  # noqa: F841


def to_the_right(a, y):
    y = 200 >> a  # noqa: F841


@pytest.mark.parametrize("dtype", UNSIGNED, ids=str)
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (of_one, lambda a, cut: cut(1 << a)),
        (of_the_greatest_byte, lambda a, cut: cut(255 << a)),
        (of_a_truth, lambda a, cut: cut(1 << a)),
        (of_numpys, lambda a, cut: cut(1 << a)),
        (there_and_back, lambda a, cut: cut(1 << a) >> 3),
        (to_the_right, lambda a, cut: 200 >> a),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_number_that_is_shifted_by_unsigned_integers_has_no_sign(application, expected, dtype):
    counts = [0, 7, 3, 31]
    a = torch.tensor(counts).to(dtype)
    bits = 8 * a.itemsize
    found = result(application, a, out=torch.zeros(4, dtype=torch.int64))
    assert found.tolist() == [expected(count, lambda n: n % 2**bits) for count in counts]


def to_the_right_of_a_negative(a, y):
    y = -3 >> a  # noqa: F841


def test_a_number_that_is_shifted_by_signed_integers_has_a_sign():
    for dtype in (torch.int8, torch.int64):
        a = torch.tensor([0, 1, 7, 100]).to(dtype)
        found = result(to_the_right_of_a_negative, a, out=torch.zeros(4, dtype=torch.int64))
        assert found.tolist() == [-3, -2, -1, -1]


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32], ids=str)
@pytest.mark.parametrize("count", [200, np.uint8(200), np.int64(2**40)], ids=repr)
def test_what_a_shift_is_by_need_not_fit_what_is_shifted(dtype, count):
    def both_ways(a, y):
        y = (a << count) + (a >> count)  # noqa: F841

    a = torch.tensor([0, 7, -3, 31]).to(dtype)
    expected = [0, 0, -1 if dtype.is_signed else 0, 0]
    assert result(both_ways, a, out=torch.zeros(4, dtype=torch.int64)).tolist() == expected
