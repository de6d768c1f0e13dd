"""Programs of small applications, for the tests of the parser and the passes.

What a parameter is follows from its name:

- ``x``, ``y``, ``z``: one tile (M, N) a program; ``padless``: the same with ``other`` set
- ``rows``: three tiles (M, N), selected with one index; ``many``: a symbolic number of them
- ``grid``: 2 × 3 tiles (M, N); ``deep``: a symbolic number of these; ``odd``: one tile (3, 5)
- ``cell``: a single element a program
- ``windows``: overlapping tiles, selected with one index; ``pairs``: every second element, from 0 and
  from 1; ``spread``: a column that a tile has in all of its columns
- ``n``, ``m``: scalars; upper case: constexpr
"""

from __future__ import annotations

import inspect
import textwrap

from ninetoothed.parsing import parse
from ninetoothed.program.verify import verify
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.tensor import Tensor

M = Symbol("M", constexpr=True)
N = Symbol("N", constexpr=True)


def _squeezed(tensor, dims):
    tensor.dtype = tensor.dtype.squeeze(dims)
    return tensor


def _arranged(name):
    if name == "padless":
        return Tensor(2, name=name, other=1.5).tile((M, N))
    if name == "odd":
        return Tensor(2, name=name).tile((3, 5))
    if name == "cell":
        return Tensor(2, name=name)
    if name == "windows":
        return Tensor(1, name=name).tile((8,), strides=(4,)).tile((-1,))
    if name == "pairs":
        return Tensor(1, name=name).tile((M,), strides=(1,), dilation=(2,)).tile((-1,))
    tiles = Tensor(2, name=name).tile((M, N))
    if name == "spread":
        tiles = Tensor(2, name=name).tile((M, 1))
        tiles.dtype = tiles.dtype.expand((-1, 4))
        return tiles
    if name == "rows":
        return _squeezed(tiles.tile((1, 3)), 0)
    if name == "many":
        return _squeezed(tiles.tile((1, -1)), 0)
    if name == "grid":
        return tiles.tile((2, 3))
    if name == "deep":
        return _squeezed(tiles.tile((2, 3)).tile((1, -1)), 0)
    return tiles


def parameter(name):
    if name in ("n", "m"):
        return Parameter(name, "scalar", Tensor(0, name=name))
    if name.isupper():
        return Parameter(name, "constexpr", Tensor(0, constexpr=True, name=name))
    return Parameter(name, "tensor", _arranged(name))


def program_of(application, **constants):
    """The verified program; ``constants`` are parameters that hold these values."""
    signature = inspect.signature(application).parameters.values()
    parameters = [
        Parameter(item.name, "constant", None, constants[item.name])
        if item.name in constants
        else parameter(item.name)
        for item in signature
        if item.default is inspect.Parameter.empty or item.name in constants
    ]
    program = parse(application, parameters, "kernel")
    verify(program)
    return program


def body_of(program):
    """The text of a program's statements."""
    text = str(program).split("\n\n")[-1] if not program.helpers else str(program)
    return textwrap.dedent(text).strip()


def parsed(application, **constants):
    """The text of an application's program."""
    return body_of(program_of(application, **constants))


def expected(text):
    """A text as it is written in a test, without its indentation."""
    return textwrap.dedent(text).strip()
