"""docs/semantics-in-detail.md: elements that positions select, beside other tiles, reduced along either dimension."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402

NAN = float("nan")

#: Rows of the first tile, and what positions select of them: the second and the third element are of rows 0 and 2.
X = torch.arange(1.0, 36.0).reshape(5, 7)


def arrangement(x, y):
    arranged = y.tile((1, 4))
    arranged.dtype = arranged.dtype.squeeze(0)
    return x.tile((4, 4)).tile((-1, -1)), arranged


def all_rows_beside_one(x, y):
    y = ntl.sum(x[0, 0][ntl.arange(0, 4), :] + x[1, 1], 1)


def some_rows_beside_one(x, y):
    y = ntl.sum(x[0, 0][ntl.arange(0, 4) * 2 - 2, :] + x[1, 1], 1)


def some_rows_beside_none(x, y):
    y = ntl.max(x[0, 0][ntl.arange(0, 4) * 2 - 2, :] + x[2, 0], 1)


def all_rows_added_to_none(x, y):
    y = ntl.sum(x[0, 0][ntl.arange(0, 4), :] + x[2, 0], 0)


def some_rows_added_to_three_columns(x, y):
    y = ntl.sum(x[0, 0][ntl.arange(0, 4) * 2 - 2, :] * x[0, 1], 0)


def some_rows_beside_flipped(x, y):
    y = ntl.sum(x[0, 0][ntl.arange(0, 4) * 2 - 2, :] + ntl.flip(x[1, 0], 0), 1)


@pytest.mark.parametrize(
    ("application", "expected"),
    [
        # Rows that a loaded tile does not have are stored as the sum of nothing, as without positions.
        (all_rows_beside_one, [1.0 + 2 + 3 + 33 + 34 + 35, 0, 0, 0]),
        (some_rows_beside_one, [NAN, 0, 0, NAN]),
        (some_rows_beside_none, [NAN, -float("inf"), -float("inf"), NAN]),
        (all_rows_added_to_none, [NAN, NAN, NAN, NAN]),
        (
            some_rows_added_to_three_columns,
            [1.0 * 12 + 15 * 19, 2 * 13 + 16 * 20, 3 * 14 + 17 * 21, 0],
        ),
        (some_rows_beside_flipped, [NAN, 0, 0, NAN]),
    ],
)
def test_positions_and_tiles_exist_by_themselves(application, expected):
    y = torch.full((1, 4), NAN)
    x = X.to(torch.get_default_device())
    ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))(x, y)
    torch.testing.assert_close(y[0], torch.tensor(expected), equal_nan=True)
