"""Applications run on vectors in blocks, whose accesses are made by hand."""

from __future__ import annotations

import types

import numpy as np

from ninetoothed.backends.numpy.execution.addressing import Addressing
from ninetoothed.backends.numpy.execution.execute import Launch
from ninetoothed.backends.numpy.execution.tensors import Tensor, TensorPlan
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.language import dtypes
from ninetoothed.symbols import expr


def tiled(array, block, middle=(), grid=None, other=None):
    """The plan for a vector in blocks, several of them in a middle level where it is given."""
    program = expr.index("program")
    selections = tuple(expr.index(f"selection_{dim}") for dim in range(len(middle)))
    lane = expr.index("lane")
    number = expr.as_symbol(0)
    for selection, size in zip(selections, middle, strict=True):
        number = number * size + selection
    position = (program * int(np.prod(middle, dtype=int)) + number) * block + lane
    access = types.SimpleNamespace(
        programs=(program,),
        selections=selections,
        coordinates=(lane,),
        indices=(position,),
        conditions=(position < array.size, *([lane < block] if block & (block - 1) else [])),
    )
    levels = ((-1,), *((middle,) if middle else ()), (block,))
    parameter = types.SimpleNamespace(levels=levels)
    strides = (array.strides[0] // array.itemsize,)
    addressing = Addressing(parameter, access, {})
    dtype = dtypes.element_type(array.dtype)
    return TensorPlan("tensor", addressing, array.shape, array.shape, strides, dtype, other, None)


def run(application, *arguments, block=4, programs=None, middle=(), other=None, checked=False):
    """Runs an application on arrays in blocks; anything else is handed through."""
    sizes = [argument.size for argument in arguments if isinstance(argument, np.ndarray)]
    if programs is None:
        programs = -(-max(sizes) // (block * int(np.prod(middle, dtype=int))))
    launch = Launch("kernel", application, (programs,), lambda symbol: {"SYMBOL": 7}[str(symbol)])
    handed = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            plan = tiled(argument, block, middle, other=other)
            argument = Tensor(plan, argument.ctypes.data, None, launch.running, checked)
            argument.memory.observers.append(launch.observe)
        elif isinstance(argument, float):
            argument = Tile.of(argument, dtypes.float32)
        handed.append(argument)
    launch.run(handed)


def floats(count):
    return np.arange(1, count + 1, dtype=np.float32)
