"""LANGUAGE.md, "Numbers": truth values count; sums of them are integers with a sign, in full tiles and in others."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="needs PyTorch")

import torch  # noqa: E402

import ninetoothed  # noqa: E402
import ninetoothed.language as ntl  # noqa: E402
from ninetoothed import Tensor  # noqa: E402


def balance(x, y):
    y = ntl.sum(x > 0) - ntl.sum(x < 0)


def balance_by_methods(x, y):
    y = (x > 0).sum() - (x < 0).sum(axis=0)


def halved(x, y):
    y = (ntl.sum(x > 0) - 5) // 2


def negated(x, y):
    y = -ntl.sum(not x) - ntl.sum((x > 0) & (x < 5)) * -1


def in_a_variable(x, y):
    count = 0
    count += ntl.sum(x > 0)
    y = count - 5


@pytest.mark.parametrize("size", [4, 5, 8])
@pytest.mark.parametrize(
    ("application", "expected"),
    [
        (balance, lambda t: (t > 0).sum() - (t < 0).sum()),
        (balance_by_methods, lambda t: (t > 0).sum() - (t < 0).sum()),
        (halved, lambda t: ((t > 0).sum() - 5) // 2),
        (negated, lambda t: -(t == 0).sum() + ((t > 0) & (t < 5)).sum()),
        (in_a_variable, lambda t: (t > 0).sum() - 5),
    ],
)
def test_sums_of_truth_values_have_a_sign(application, expected, size):
    x = torch.tensor([-3.5, -1, 0.5, -2.25, 7, 0, 3, -2])[:size]
    tiles = x.split(4)
    y = torch.zeros(len(tiles))
    kernel = ninetoothed.make(
        lambda x, y: (x.tile((4,)), y.tile((1,))), application, (Tensor(1), Tensor(1))
    )
    kernel(x, y)
    assert y.tolist() == [expected(tile).item() for tile in tiles]


def place(x, y):
    y = ntl.cumsum(x > 0, 0) - 1


def place_from_the_end(x, y):
    y = ntl.cumsum(x > 0, 0, reverse=True) - 5


def place_of_truth_values(x, y):
    y = ntl.cumsum(x, 0) - 1


@pytest.mark.parametrize("size", [5, 8])
@pytest.mark.parametrize(
    ("application", "dtype", "expected"),
    [
        (place, torch.float32, lambda t: (t > 0).cumsum(0) - 1),
        (place_from_the_end, torch.float32, lambda t: (t > 0).flip(0).cumsum(0).flip(0) - 5),
        (place_of_truth_values, torch.bool, lambda t: t.cumsum(0) - 1),
    ],
)
def test_counts_of_truth_values_have_a_sign(application, dtype, expected, size):
    x = torch.tensor([-3.5, 0, 0.5, -2.25, 7, 0, 3, -2])[:size].to(dtype)
    y = torch.zeros(size)
    ninetoothed.make(
        lambda x, y: (x.tile((-1,)), y.tile((-1,))), application, (Tensor(1), Tensor(1))
    )(x, y)
    assert y.tolist() == expected(x).tolist()


def of_loaded(x, y):
    y = ntl.sum(x) - 5


def test_a_sum_of_a_tensor_of_truth_values_has_a_sign():
    x, y = torch.tensor([True, False, True]), torch.zeros(1)
    ninetoothed.make(lambda x, y: (x.tile((4,)), y.tile((1,))), of_loaded, (Tensor(1), Tensor(1)))(
        x, y
    )
    assert y.item() == -3
