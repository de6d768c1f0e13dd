"""Whether a kernel's tiles are of sizes that Triton takes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ninetoothed.errors import ArgumentError
from ninetoothed.symbols.expr import Symbol, as_symbol

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition

#: The most elements of a tile that Triton takes.
_LARGEST_TILE = 2**20


def check_tiles(kernel: Definition, environment: Mapping[Symbol, int]) -> None:
    """`ArgumentError` where a tile has more elements than Triton takes."""
    for parameter in kernel.touched_parameters:
        sizes = [int(as_symbol(size).evaluate(environment)) for size in parameter.tile_shape]
        count = math.prod(1 << max(size - 1, 0).bit_length() for size in sizes)
        if count > _LARGEST_TILE:
            raise ArgumentError(
                f"kernel `{kernel.name}`: the tile of `{parameter.name}` is {tuple(sizes)}, {count} "
                f"elements when widened to powers of two; a tile has at most {_LARGEST_TILE}. Tile "
                "the dimension and go through it in a loop, or use a smaller block size."
            )
