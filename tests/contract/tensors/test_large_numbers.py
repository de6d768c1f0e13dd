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
