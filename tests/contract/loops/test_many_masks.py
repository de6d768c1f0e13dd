"""LANGUAGE.md, "Padding": whose a mask is decides what a loop's variable keeps, of however many tiles a round is made.

Tiles of as many elements have equal masks, which are not the same for it.
"""

from __future__ import annotations

import pytest
import torch

import ninetoothed
from ninetoothed import Tensor


def of_five(v, w, x, y, z, start, output):
    value = start + 1
    for k in range(v.shape[0]):
        value = value * 2 + v[k] + w[k] + x[k] + y[k] + z[k]
    output = value  # noqa: F841


def of_ten(v, w, x, y, z, start, output):
    value = start + 1
    for k in range(v.shape[0]):
        value = value * 2 + v[k] + w[k] + x[k] + y[k] + z[k]
        value = value + v[k] + w[k] + x[k] + y[k] + z[k]
    output = value  # noqa: F841


def of_each_other(v, w, x, y, z, start, output):
    value, other = start + 1, start + 1
    for _ in range(20):
        for k in range(v.shape[0]):
            value, other = other + 0.5 * v[k], value + 0.5 * w[k]
    output = value + other  # noqa: F841


def rows(*tensors):
    """Rows of five elements, with one before and one after that do not exist."""
    *added, start, output = tensors
    tiles = []
    for tensor in added:
        tiles.append(tensor.pad(((0, 0), (1, 1))).tile((1, -1)).tile((-1, 1)))
        tiles[-1].dtype = tiles[-1].dtype.squeeze(1)
        tiles[-1].dtype.dtype = tiles[-1].dtype.dtype.squeeze(0)
    around = start.pad(((1, 1),)).tile((-1,))
    return *tiles, around.unsqueeze(0), output.tile((-1,)).unsqueeze(0)


def five(start, row):
    return start * 2 + 5 * row


def ten(start, row):
    return start * 2 + 10 * row


def each_other(start, row):
    return start + 10 * row


@pytest.mark.parametrize(
    "application, in_a_round, of_all",
    [(of_five, five, 1), (of_ten, ten, 1), (of_each_other, each_other, 2)],
)
def test_lanes_of_other_tiles_keep_what_they_had(application, in_a_round, of_all):
    kernel = ninetoothed.make(
        rows, application, (*(Tensor(2) for _ in range(5)), *map(Tensor, (1, 1)))
    )
    added, start = torch.arange(10.0).reshape(2, 5), torch.arange(5.0)
    output = torch.zeros(7)

    kernel(*[added] * 5, start, output)

    expected = start + 1
    for row in added:
        expected = in_a_round(expected, row)
    alone = torch.tensor([1.0])
    torch.testing.assert_close(output, of_all * torch.cat([alone, expected, alone]))
