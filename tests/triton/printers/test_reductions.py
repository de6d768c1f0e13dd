"""Reductions of several tiles over all dimensions, as Triton's compiler has them."""

from __future__ import annotations

import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Tensor

torch = pytest.importorskip("torch")
pytest.importorskip("triton")


def lesser(value, other):
    return ntl.where(value < other, value, other)


def both(value, count, other, more):
    return value + other, count + more


def one_that_may_be_missing(x, y):
    y = ntl.reduce(x, None, lesser)


def several(x, y):
    total, count = ntl.reduce((x, ntl.full(x.shape, 1, ntl.int32)), None, both, keep_dims=True)
    y = total / count


def place_in_one_row(x, y):
    y = ntl.argmax(ntl.ravel(x), axis=0)


@pytest.mark.parametrize("application", [place_in_one_row, one_that_may_be_missing, several])
def test_no_element_meets_another_ones_companion(application):
    """A reshape that may reorder does it as its own operand is laid out, whatever another's is."""

    def arrangement(x, y):
        return x.tile((4, 8)), y.tile((1, 1))

    kernel = ninetoothed.make(arrangement, application, (Tensor(2), Tensor(2)))
    made = kernel.compile(torch.ones(7, 9), torch.ones(2, 2), target=("cuda", 90)).asm
    assert '"tt.reduce"' in made["ttgir"]
    assert "allow_reorder" not in made["ttgir"]
