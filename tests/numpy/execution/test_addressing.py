"""Addresses in numbers against `Tensor.eval`, for arrangements of every kind."""

from __future__ import annotations

import itertools
import types

import numpy as np
import pytest

from ninetoothed import Tensor
from ninetoothed.backends.numpy.execution.addressing import Addressing
from ninetoothed.tensors.access import access_of

ARRANGEMENTS = {
    "tile": ((10,), lambda t: t.tile((4,))),
    "odd tile": ((10,), lambda t: t.tile((3,))),
    "elements": ((4, 3), lambda t: t),
    "strides and dilation": ((23,), lambda t: t.tile((3,), strides=(2,), dilation=(4,))),
    "two dimensions": ((5, 7), lambda t: t.tile((2, 4))),
    "levels": ((13, 9), lambda t: t.tile((2, 4)).tile((1, -1))),
    "three levels": ((37,), lambda t: t.tile((2,)).tile((3,)).tile((2,))),
    "expand": ((1, 6), lambda t: t.expand((4, -1)).tile((2, 3))),
    "permute and flatten": ((3, 4, 5), lambda t: t.permute((2, 0, 1)).flatten(0, 2).tile((4, -1))),
    "ravel": ((6, 5), lambda t: t.tile((2, 2)).ravel().flatten(0, 2).flatten(1)),
    "pad": ((5,), lambda t: t.pad(((2, 3),)).tile((4,))),
    "slices": ((9, 8), lambda t: t[1::2, ::-1].tile((2, 3))),
    "inner squeeze": ((4, 6), lambda t: squeezed(t.tile((1, 4)))),
}


def squeezed(tensor):
    tensor.dtype = tensor.dtype.squeeze(0)
    return tensor


@pytest.mark.parametrize(("shape", "arrange"), ARRANGEMENTS.values(), ids=ARRANGEMENTS)
def test_every_lane_is_at_its_element(shape, arrange):
    arranged = arrange(Tensor(shape=shape))
    levels = tuple(level.shape for level in arranged.levels)
    expected = arranged.eval()
    access = access_of(arranged)
    addressing = Addressing(types.SimpleNamespace(levels=levels), access, {})
    strides = np.array([int(np.prod(shape[dim + 1 :])) for dim in range(len(shape))])
    grid = expected.shape[: len(levels[0])]
    tile = tuple(slice(size) for size in addressing.tile)
    for program in np.ndindex(*grid):
        for selection in itertools.product(*map(range, addressing.selectable)):
            indices = addressing.indices(None, program, selection)
            masks = addressing.masks(None, program, selection)
            offsets = sum(index * stride for index, stride in zip(indices, strides, strict=True))
            offsets = np.broadcast_to(offsets, addressing.padded)
            inside = np.ones(addressing.padded, dtype=bool)
            for mask in masks:
                inside = inside & mask
            found = np.where(inside, offsets, -1)
            np.testing.assert_array_equal(found[tile], expected[(*program, *selection)])
            beyond = np.ones(addressing.padded, dtype=bool)
            beyond[tile] = False
            assert (found[beyond] == -1).all()


def test_an_index_depends_on_the_dimensions_that_it_follows():
    arranged = Tensor(shape=(4, 6)).tile((2, 3))
    parameter = types.SimpleNamespace(levels=tuple(level.shape for level in arranged.levels))
    assert Addressing(parameter, access_of(arranged), {}).dependences == ((0,), (1,))
