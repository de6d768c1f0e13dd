"""Whether a kernel's tiles are of sizes that Triton takes."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ninetoothed.errors import ApplicationError, ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import ElementLoad, ElementPlace, ElementStore, location
from ninetoothed.symbols.expr import Symbol, as_symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.tensors.meta_operation import Shape

#: The most elements of a tile that Triton takes.
_LARGEST_TILE = 2**20


def check_tiles(kernel: Definition, environment: Mapping[Symbol, int]) -> None:
    """`ArgumentError` where a tile that is used has more elements than Triton takes.

    `ApplicationError` where a slice of one has none.
    """
    tiled = _tiled(kernel)
    for parameter in kernel.tensor_parameters:
        if parameter.name in tiled:
            _check(kernel, f"the tile of `{parameter.name}`", parameter.tile_shape, environment)
    for node in _elements(kernel):
        for count in node.view.shape:
            if as_symbol(count).evaluate(environment) < 1:
                raise ApplicationError(
                    f"A slice of `{node.parameter}` has no element in this call: `{count}` is "
                    f"{as_symbol(count).evaluate(environment)}.",
                    location(node),
                )
        _check(kernel, f"a part of the tile of `{node.parameter}`", node.view.shape, environment)


@analysis
def _tiled(kernel: Definition) -> frozenset[str]:
    return kernel.optimized.tiled


@analysis
def _elements(kernel: Definition) -> list[ElementLoad | ElementStore | ElementPlace]:
    kinds = ElementLoad | ElementStore | ElementPlace
    return [node for node in kernel.optimized.nodes() if isinstance(node, kinds)]


def _check(
    kernel: Definition, subject: str, shape: Shape, environment: Mapping[Symbol, int]
) -> None:
    sizes = [evaluated(size, environment) for size in shape]
    count = math.prod(map(next_power_of_2, sizes))
    if count > _LARGEST_TILE:
        raise ArgumentError(
            f"kernel `{kernel.name}`: {subject} is {tuple(sizes)}, {count} elements when padded to "
            f"powers of two; a tile has at most {_LARGEST_TILE}. Tile the dimension and go through it "
            "in a loop, or use a smaller block size."
        )
