"""Kernels run on random arrangements: what a program is given is what `eval` says.

Both tensors are arranged by the same chain of meta-operations, and each program copies its tiles.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

import ninetoothed
from ninetoothed import Tensor
from tests.tensors.gather import random_chain

CHAINS = 200
GROUP = 50


def copy(x, y):
    y = x  # noqa: F841


def copy_selected(x, y):
    for i in range(x.shape[0]):
        y[i] = x[i]


def copy_selected_in_two(x, y):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            y[i, j] = x[i, j]


def copy_selected_twice(x, y):
    for i in range(x.shape[0]):
        for j in range(x[i].shape[0]):
            y[i][j] = x[i][j]


#: The application for the ranks of the middle levels.
APPLICATIONS = {
    (): copy,
    (1,): copy_selected,
    (2,): copy_selected_in_two,
    (1, 1): copy_selected_twice,
}


def laid_out(seed, shape):
    """A tensor of a shape with some strides, and its elements all different."""
    values = torch.arange(1.0, 1 + int(np.prod(shape, dtype=int))).reshape(shape)
    layout = seed % 3
    if layout == 1 and values.ndim > 1:
        return values.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == 2 and values.ndim:
        spread = torch.full((*shape[:-1], shape[-1] * 2 + 1), -7.0)[..., 1::2]
        spread.copy_(values)
        return spread
    return values


@pytest.mark.parametrize("first", range(0, CHAINS, GROUP))
@pytest.mark.parametrize("sizes", ["symbolic", "known"])
def test_a_program_is_given_what_eval_says(first, sizes):
    ran = 0
    for seed in range(first, first + GROUP):
        shape, steps, expected = random_chain(seed)
        application = APPLICATIONS.get(tuple(expected.ranks[1:-1]))
        if application is None or not shape:
            continue
        ran += 1

        def arranged(tensor, steps=steps):
            for step in steps:
                tensor = step.apply(
                    tensor, (lambda number: number) if sizes == "symbolic" else None
                )
            return tensor

        tensors = [Tensor(len(shape)) if sizes == "symbolic" else Tensor(shape=shape) for _ in "xy"]
        kernel = ninetoothed.make(lambda x, y: (arranged(x), arranged(y)), application, tensors)
        x, y = laid_out(seed, shape), torch.full(shape, -99.0)
        kernel(x, y)

        touched = np.zeros(x.numel(), dtype=bool)
        touched[expected.data[expected.data >= 0]] = True
        is_touched = torch.from_numpy(touched.reshape(shape)).to(x.device)
        wanted = torch.where(is_touched, x, torch.tensor(-99.0))
        chain = f"chain {seed}: Tensor(shape={shape})" + "".join(map(str, steps))
        assert torch.equal(y, wanted), chain
    assert ran >= GROUP // 3


@pytest.mark.parametrize("size", [8, 12])
def test_the_last_tile_of_a_level_whose_size_a_call_gives(size):
    def halves(x, y):
        return x.tile((1,)).tile((x.shape[0] // 2,)), y.tile((1,))

    def last(x, y):
        y = x[-1]  # noqa: F841

    x, y = torch.arange(float(size)), torch.full((2,), float("nan"))
    ninetoothed.make(halves, last, (Tensor(1), Tensor(1)))(x, y)
    assert y.tolist() == [size // 2 - 1, size - 1]
