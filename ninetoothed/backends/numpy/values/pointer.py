"""Tiles of pointers: `x.data_ptr()` is ``PointerTile(memory, 0)``, which `ntl.load` and others take."""

from __future__ import annotations

from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.members import add_members, refuse_members
from ninetoothed.backends.numpy.values.memory import Memory
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse


class PointerTile:
    """Pointers into one memory: ``offsets`` counts elements from its base pointer."""

    __slots__ = ("memory", "offsets", "validity")

    # NumPy must not take over ``array + pointer``.
    __array_ufunc__ = None

    def __init__(self, memory: Memory, offsets: Any = 0, validity: tuple[Any, ...] = ()) -> None:
        self.memory = memory
        #: Where the integers that were added exist; elsewhere a pointer names no element.
        self.validity = validity
        self.offsets = np.asarray(offsets, dtype=np.int64)

    @property
    def dtype(self) -> PointerType:
        """The pointer's type; its ``element_ty`` is what it points to."""
        return PointerType(self.memory.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile of pointers."""
        return self.offsets.shape

    def __add__(self, other: Any) -> PointerTile:
        moved = self.offsets + _integer_offsets(other)
        return PointerTile(self.memory, moved, (*self.validity, *getattr(other, "validity", ())))

    __radd__ = __add__

    def __sub__(self, other: Any) -> PointerTile:
        moved = self.offsets - _integer_offsets(other)
        return PointerTile(self.memory, moved, (*self.validity, *getattr(other, "validity", ())))

    def __getitem__(self, key: Any) -> PointerTile:
        return PointerTile(self.memory, self.offsets[key], tuple(m[key] for m in self.validity))

    def __repr__(self) -> str:
        return f"pointer<{self.memory.dtype}>{list(self.shape)}\n{self.offsets!r}"


add_members(PointerTile, "pointer")
refuse_members(
    PointerTile,
    "tile",
    "a pointer on a CPU points to elements of its tensor's type. Load, and cast what was loaded: "
    "`ntl.load(pointer).to(dtype, bitcast=True)`.",
)


class PointerType:
    """The type of a pointer to elements of ``element_ty``; equal where the elements are."""

    __slots__ = ("element_ty",)

    def __init__(self, element_ty: DType) -> None:
        self.element_ty = element_ty

    def is_ptr(self) -> bool:
        """True: this is a pointer's type."""
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PointerType) and other.element_ty is self.element_ty

    def __hash__(self) -> int:
        return hash((PointerType, self.element_ty))

    def __repr__(self) -> str:
        return f"pointer<{self.element_ty}>"


def _integer_offsets(value: Any) -> Any:
    if isinstance(value, int):
        return value
    dtype = getattr(value, "dtype", None)
    if isinstance(dtype, DType) and dtype.is_int():
        return value.data.astype(np.int64)
    raise refuse(f"A pointer takes integer offsets, but got {dtype or type(value).__name__}.")
