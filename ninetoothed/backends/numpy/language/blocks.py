"""Block pointers and tensor descriptors: boxes of a strided tensor, with bounds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.language.creation import integer, tile_shape
from ninetoothed.backends.numpy.language.elements import load_pointed, store_elements
from ninetoothed.backends.numpy.values.memory import Memory
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.tile import Tile, as_tile
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse
from ninetoothed.records import dataclass

_Sizes = tuple[int, ...]


def _integers(values: Any, what: str) -> _Sizes:
    items = values if isinstance(values, Iterable) else (values,)
    return tuple(integer(item, what) for item in items)


@dataclass(frozen=True, eq=False)
class _Box:
    """A box of a strided tensor."""

    memory: Memory
    base: int
    tensor_shape: _Sizes
    strides: _Sizes
    block_shape: _Sizes

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.memory.dtype

    def places(self, offsets: _Sizes, checked: Iterable[int]) -> tuple[PointerTile, Any]:
        """Pointers to the box at ``offsets``, and where it is inside along ``checked`` (or None)."""
        ndim = len(self.block_shape)
        total: Any = np.full(self.block_shape, self.base, dtype=np.int64)
        mask: Any = None
        for dim in range(ndim):
            index: Any = offsets[dim] + np.arange(self.block_shape[dim], dtype=np.int64)
            index = index.reshape([-1 if d == dim else 1 for d in range(ndim)])
            total = total + index * self.strides[dim]
            if dim in checked:
                inside = (index >= 0) & (index < self.tensor_shape[dim])
                mask = inside if mask is None else mask & inside
        if mask is not None:
            mask = np.broadcast_to(mask, self.block_shape)
        return PointerTile(self.memory, total), mask

    def load_box(self, offsets: _Sizes, checked: Iterable[int], fill: float) -> Tile:
        """The box at ``offsets``, ``fill`` where it is outside."""
        pointer, mask = self.places(offsets, checked)
        return Tile(load_pointed(pointer, mask, self.dtype.numpy.type(fill)), self.dtype)

    def store_box(self, offsets: _Sizes, checked: Iterable[int], value: Tile) -> None:
        """Stores to the box at ``offsets``, where it is inside."""
        if value.ndim and value.shape != self.block_shape:
            raise refuse(f"A block of shape {self.block_shape} cannot hold {value.shape}.")
        pointer, mask = self.places(offsets, checked)
        store_elements(pointer, value.to(self.dtype).data, mask)


@dataclass(frozen=True, eq=False)
class BlockPointer(_Box):
    """What `make_block_ptr` makes; immutable, `advance` makes another."""

    offsets: _Sizes

    def advance(self, offsets: Any) -> BlockPointer:
        """The block ``offsets`` further on, an offset a dimension."""
        steps = _integers(offsets, "An offset")
        if len(steps) != len(self.offsets):
            raise refuse(f"advance needs {len(self.offsets)} offsets, but got {len(steps)}.")
        moved = tuple(a + b for a, b in zip(self.offsets, steps, strict=True))
        return replace(self, offsets=moved)

    def load(self, boundary_check: Any, padding_option: str) -> Tile:
        """The block; along the dimensions of ``boundary_check`` it may leave the tensor."""
        if padding_option not in ("", "zero", "nan"):
            raise refuse(f"padding_option is 'zero' or 'nan', but got {padding_option!r}.")
        if padding_option == "nan" and self.dtype.kind != "float":
            raise refuse(f"padding_option 'nan' needs floats, but the elements are {self.dtype}.")
        fill = float("nan") if padding_option == "nan" else 0
        return self.load_box(self.offsets, self._checked(boundary_check), fill)

    def store(self, value: Tile, boundary_check: Any) -> None:
        """Stores the block; along the dimensions of ``boundary_check`` it may leave the tensor."""
        self.store_box(self.offsets, self._checked(boundary_check), value)

    def _checked(self, boundary_check: Any) -> _Sizes:
        dims = _integers(boundary_check, "A dimension of boundary_check")
        ndim = len(self.block_shape)
        if any(not -ndim <= dim < ndim for dim in dims):
            raise refuse(f"boundary_check {dims} is out of range for {ndim} dimensions.")
        return tuple(dim % ndim for dim in dims)


@dataclass(frozen=True, eq=False)
class TensorDescriptor(_Box):
    """What `make_tensor_descriptor` makes: every dimension is checked."""

    fill: float

    def load(self, offsets: Any) -> Tile:
        """The block at ``offsets``."""
        return self.load_box(self._starts(offsets), range(len(self.block_shape)), self.fill)

    def store(self, offsets: Any, value: Any) -> None:
        """Stores a block at ``offsets``."""
        self.store_box(self._starts(offsets), range(len(self.block_shape)), as_tile(value))

    def _starts(self, offsets: Any) -> _Sizes:
        starts = _integers(offsets, "An offset")
        if len(starts) != len(self.block_shape):
            raise refuse(
                f"The descriptor needs {len(self.block_shape)} offsets, but got {len(starts)}."
            )
        return starts


def _checked_base(function: str, base: Any, *lists: Sequence[int]) -> PointerTile:
    if not isinstance(base, PointerTile) or base.shape:
        raise refuse(f"{function} needs one pointer, such as `x.data_ptr()`, as its base.")
    if len({len(values) for values in lists}) > 1:
        raise refuse(
            f"{function} needs as many entries in each of its lists, but got "
            f"{[len(values) for values in lists]}."
        )
    return base


def make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> BlockPointer:
    """A pointer to a block of a tensor: its shape, strides and offsets count elements."""
    sizes, steps = _integers(shape, "A size"), _integers(strides, "A stride")
    starts, block = _integers(offsets, "An offset"), tile_shape(block_shape)
    places = _integers(order, "An entry of order")
    pointer = _checked_base("make_block_ptr", base, sizes, steps, starts, block, places)
    if sorted(places) != list(range(len(places))):
        raise refuse(f"make_block_ptr's order is a permutation, but got {places}.")
    return BlockPointer(pointer.memory, int(pointer.offsets), sizes, steps, block, starts)


def advance(base: Any, offsets: Any) -> BlockPointer:
    """The block pointer ``offsets`` further on."""
    if not isinstance(base, BlockPointer):
        raise refuse("ntl.advance needs a block pointer, as ntl.make_block_ptr makes.")
    return base.advance(offsets)


def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero"
) -> TensorDescriptor:
    """A descriptor of a tensor from which blocks of one shape are loaded and stored."""
    sizes, steps = _integers(shape, "A size"), _integers(strides, "A stride")
    block = tile_shape(block_shape)
    pointer = _checked_base("make_tensor_descriptor", base, sizes, steps, block)
    if steps[-1] != 1:
        raise refuse(f"A tensor descriptor's last stride must be 1, but got {steps[-1]}.")
    if padding_option not in ("zero", "nan"):
        raise refuse(f"padding_option is 'zero' or 'nan', but got {padding_option!r}.")
    fill = float("nan") if padding_option == "nan" else 0.0
    return TensorDescriptor(pointer.memory, int(pointer.offsets), sizes, steps, block, fill)
