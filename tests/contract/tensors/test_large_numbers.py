"""Arrangements with numbers that no int32 holds, of small tensors: Triton takes no such number beside an int32.

Run in Triton's interpreter too, by `tests.contract.on_interpreter`, and on devices.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor

MISSING = float("nan")


def copy(x, y):
    y = x  # noqa: F841


@pytest.mark.parametrize("number", [2**30 + 1, 2**31 - 1, 2**31, 2**32 - 1, 2**33])
@pytest.mark.parametrize(
    ("arranged", "expected"),
    [
        (lambda x, n: x[-n:].tile((4,)), [1, 2, 3, 4, 5]),
        (lambda x, n: x[:n].tile((4,)), [1, 2, 3, 4, 5]),
        (lambda x, n: x[::n].tile((4,)), [1, MISSING, MISSING, MISSING, MISSING]),
        (lambda x, n: x.tile((3,), strides=(n,)), [1, 2, 3, MISSING, MISSING]),
        (lambda x, n: x.tile((2,), dilation=(n,)), [MISSING] * 5),
        (lambda x, n: x[-n:].unsqueeze(0).flatten().tile((4,)), [1, 2, 3, 4, 5]),
    ],
)
def test_slices_strides_and_dilations(arranged, expected, number):
    x, y = torch.arange(1.0, 6), torch.full((5,), MISSING)
    ninetoothed.make(
        lambda x, y: (arranged(x, number), arranged(y, number)), copy, (Tensor(1), Tensor(1))
    )(x, y)
    torch.testing.assert_close(y, torch.tensor(expected), equal_nan=True, check_dtype=False)


# Sizes whose neighbours no int32 holds: of one element that stands for all.

MOST = 2**31 - 1

#: Two tiles of four, or of four rows of one, and where there are elements in them.
NEAR_THE_END = {
    "a tile's number": (lambda x: x.tile((4,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "every second": (lambda x: x[::2].tile((4,))[-2:], [1, 1, 1, 1, 1, 1, 1, 1]),
    "every third": (lambda x: x[::3].tile((4,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "from the end": (lambda x: x[::-1].tile((4,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "every third from the end": (lambda x: x[::-3].tile((4,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "padded": (lambda x: x.pad(((3, 5),)).tile((4,))[-2:], [1, 1, 0, 0, 0, 0, 0, 0]),
    "far apart": (lambda x: x.tile((4,), strides=(2**29,))[-2:], [1, 1, 1, 1, 0, 0, 0, 0]),
    "dilated": (lambda x: x.tile((4,), dilation=(2**29,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "a little dilated": (lambda x: x.tile((4,), dilation=(3,))[-2:], [1, 1, 1, 1, 1, 1, 1, 0]),
    "whole": (lambda x: x.tile((4,), floor_mode=True)[-2:], [1, 1, 1, 1, 1, 1, 1, 1]),
    "merged": (
        lambda x: x.unsqueeze(1).pad(((0, 0), (0, 2))).flatten().tile((4,))[-2:],
        [0, 0, 1, 0, 0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize("kind", NEAR_THE_END)
def test_sizes_next_to_which_arithmetic_overflows(kind):
    """arithmetic on shapes cannot overflow"""
    arranged, expected = NEAR_THE_END[kind]
    x, y = torch.ones(1).expand(MOST), torch.full((8,), MISSING)
    kernel = ninetoothed.make(
        lambda x, y: (arranged(x), y.tile((4,))), copy, (Tensor(1, other=0), Tensor(1))
    )
    kernel(x, y)
    assert y.tolist() == expected


def test_a_place_in_a_grid_whose_sizes_overflow_on_the_way():
    x, y = torch.ones(1, 1).expand(3, MOST), torch.full((3, 8), MISSING)
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((1, 4))[:, -2:], y.tile((1, 4))[:, -2:]),
        copy,
        (Tensor(2, other=0), Tensor(2)),
    )
    kernel(x, y)
    assert y.tolist() == [[1] * 7 + [0]] * 3


def test_a_product_of_sizes_that_no_int32_holds():
    """Each index fits, and not the number of elements."""

    def application(x, y):
        y = x.offsets(0)  # noqa: F841

    y = torch.zeros(8, dtype=torch.int64)
    kernel = ninetoothed.make(
        lambda x, y: (x.flatten().tile((4,))[-2:], y.tile((4,))),
        application,
        (Tensor(2), Tensor(1)),
    )
    kernel(torch.ones(1, 1).expand(2**16, 2**16 + 1), y)
    assert y.tolist() == [2**16 - 1] * 8
