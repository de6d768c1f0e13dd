"""Where the pairs of `equal_sizes` are equal, nothing that meets differs: random numbers say so too."""

from __future__ import annotations

import random

import pytest

import ninetoothed
from examples import addmm, bmm, layer_norm, mm, rms_norm, sdpa, softmax
from ninetoothed import Tensor
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.call import Argument, Call, Device
from ninetoothed.kernels.meetings.agreement import compare_all, equal_sizes
from ninetoothed.language import dtypes
from ninetoothed.symbols.expr import as_symbol

_TRIES = 400


def tensor(shape) -> Argument:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Argument(shape, tuple(strides), dtypes.float32, 16)


def evaluated(kernel, shapes):
    """The call with these shapes, the values of all symbols, and the grid."""
    arguments = {name: tensor(shape) for name, shape in shapes.items()}
    call = Call(arguments, device=Device("cpu"))
    environment = {}
    for parameter in kernel.tensor_parameters:
        given = arguments[parameter.name]
        environment |= zip(map(as_symbol, parameter.source.shape), given.shape)
        environment |= zip(map(as_symbol, parameter.source.strides), given.strides)
    environment |= dict.fromkeys(kernel.meta_symbols, 4)
    return call, environment, tuple(int(as_symbol(n).evaluate(environment)) for n in kernel.grid)


def more(x, y):
    y = x + 1  # noqa: F841


def in_flattened_grid(x, y):
    return x.tile((2, 4)).flatten(), y.tile((2, 4)).flatten()


FLATTENED = ninetoothed.make(in_flattened_grid, more, (Tensor(2), Tensor(2)))
EXAMPLES = [module.kernel for module in (softmax, rms_norm, layer_norm, mm, addmm, bmm, sdpa)]


@pytest.mark.parametrize("kernel", [*EXAMPLES, FLATTENED], ids=lambda kernel: kernel.name)
def test_equal_sizes_meet(kernel) -> None:
    kernel = kernel.specializations.shown
    pairs, draw = equal_sizes(kernel), random.Random(7)
    sizes = sorted({size for pair in pairs for size in pair}, key=str)
    assert pairs and all(size.op == "leaf" for size in sizes)
    outcomes = set()
    for _ in range(_TRIES):
        among = draw.choice(((1, 3, 5, 8), (3, 5), (1, 5), (5,)))
        shapes = {
            parameter.name: tuple(draw.choice(among) for _ in parameter.source.shape)
            for parameter in kernel.tensor_parameters
        }
        call, environment, grid = evaluated(kernel, shapes)
        is_equal = all(
            one.evaluate(environment) == size.evaluate(environment) for one, size in pairs
        )
        try:
            compare_all(kernel, call, environment, grid)
            meets = True
        except ArgumentError:
            meets = False
        assert meets or not is_equal, shapes
        outcomes.add((is_equal, meets))
    assert (False, False) in outcomes and (True, True) in outcomes
