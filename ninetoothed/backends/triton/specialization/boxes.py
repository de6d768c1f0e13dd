"""A tile as a box of its source, and what the descriptor of such a source is made of."""

from __future__ import annotations

import math

from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass

#: The widths in bytes that rows in shared memory are swizzled by, and the rows that this takes.
_SWIZZLES = (128, 64, 32)
_LEAST_ROWS = 8


@dataclass(frozen=True)
class Box:
    """A tile as a box of its source.

    Attributes:
        dims: the source's dimensions, contiguous one last.
        tile_dims: for each of them the tile's dimension that runs along it; None where the box has one
            element.
        is_halved: whether the tile is two boxes, one behind the other along the last dimension.
    """

    dims: tuple[int, ...]
    tile_dims: tuple[int | None, ...]
    is_halved: bool = False

    @property
    def kept(self) -> list[int]:
        """The tile's dimensions that run along one of the box's, in the box's order."""
        return [dim for dim in self.tile_dims if dim is not None]


@dataclass(frozen=True)
class Description:
    """What a descriptor is made of besides an address, in elements.

    Attributes:
        shape: the sizes of the source, in the order of the box's dimensions.
        strides: likewise.
        extents: of the box.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extents: tuple[int, ...]

    def signature(self, dtype: DType, has_layout: bool = False) -> str:
        """The type of the kernel's parameter, in Triton's spelling.

        Args:
            has_layout: whether it says how a tile lies in shared memory, as Gluon wants it.
        """
        extents = ",".join(map(str, self.extents))
        layout = f",{self._layout(dtype)}" if has_layout else ""
        return f"tensordesc<{dtype.signature}[{extents}]{layout}>"

    def _layout(self, dtype: DType) -> str:
        """The widest swizzle that a row is a multiple of, as the matrix unit reads it fastest."""
        row = self.extents[-1] * dtype.itemsize
        swizzle = next((width for width in _SWIZZLES if row % width == 0), 0)
        if math.prod(self.extents[:-1]) < _LEAST_ROWS:
            swizzle = 0
        return (
            f"NVMMASharedLayout(swizzle_byte_width={swizzle}, element_bitwidth={dtype.bits}, "
            f"rank={len(self.extents)})"
        )
