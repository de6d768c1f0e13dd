"""The storage behind a tensor's pointer, as NumPy sees it, with bounds.

A pointer is an int and strides count elements; nothing here knows of frameworks, tiles or kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ninetoothed.errors import OutOfBoundsError
from ninetoothed.language.dtypes import DType

#: Told of an access before it happens: the memory, the indices in its array, the mask, the access.
Observer = Callable[["Memory", Any, Any, str], None]


class Memory:
    """One tensor's elements as a flat, writable array.

    Args:
        name: the parameter's name, for messages.
        pointer: the address of the tensor's first element.
        shape: the tensor's sizes.
        strides: its strides in elements; they may be negative or 0.
        dtype: its element type.
    """

    def __init__(
        self, name: str, pointer: int, shape: Sequence[int], strides: Sequence[int], dtype: DType
    ) -> None:
        self.name = name
        self.shape = tuple(shape)
        self.strides = tuple(strides)
        self.dtype = dtype
        self.observers: list[Observer] = []
        low, high = reach(self.shape, self.strides)
        #: Where the tensor's first element is in `array`.
        self.origin = -low
        self.array = flat_view(pointer + low * dtype.itemsize, high - low, dtype)

    def locate(self, offsets: Any, mask: Any, access: str) -> Any:
        """Indices into `array` for ``offsets`` from the first element, in bounds where ``mask``.

        Called once an access, before it happens: observers are told of it.

        Raises:
            OutOfBoundsError: a lane whose mask holds leaves the tensor's memory.
        """
        indices = np.asarray(offsets) + self.origin if self.origin else np.asarray(offsets)
        is_outside = (indices < 0) | (indices >= self.array.size)
        if mask is not None:
            is_outside = is_outside & mask
        if is_outside.any():
            raise self._out_of_bounds(
                np.broadcast_to(indices, is_outside.shape)[is_outside], access
            )
        for observer in self.observers:
            observer(self, indices, mask, access)
        return indices

    def index_of(self, flat: int) -> tuple[int, ...] | None:
        """The tensor's index of the element at ``flat`` in `array`; None where it has none."""
        position = np.flatnonzero(
            element_indices(self.shape, self.strides).ravel() + self.origin == flat
        )
        if not position.size or not self.shape:
            return None
        return tuple(int(index) for index in np.unravel_index(int(position[0]), self.shape))

    def _out_of_bounds(self, outside: Any, access: str) -> OutOfBoundsError:
        offset = int(outside.reshape(-1)[0]) - self.origin
        more = f" and {outside.size - 1} more lanes" if outside.size > 1 else ""
        what = "An atomic operation" if access == "atomic" else f"A {access}"
        return OutOfBoundsError(
            f"{what} leaves `{self.name}`: offset {offset}{more}, but its elements are at "
            f"{-self.origin} to {self.array.size - self.origin - 1} (shape {self.shape}, strides "
            f"{self.strides}). Mask the lanes that lie outside."
        )


def reach(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The offsets that a tensor's elements lie at: from the first, up to but without the second."""
    if 0 in shape:
        return 0, 0
    steps = [(size - 1) * stride for size, stride in zip(shape, strides, strict=True)]
    return sum(step for step in steps if step < 0), sum(step for step in steps if step > 0) + 1


def element_indices(shape: Sequence[int], strides: Sequence[int]) -> np.ndarray:
    """The offset of every element of a tensor, shaped as the tensor."""
    offsets: np.ndarray = np.zeros((), dtype=np.int64)
    for size, stride in zip(shape, strides, strict=True):
        offsets = offsets[..., None] + np.arange(size, dtype=np.int64) * stride
    return offsets


class _Raw:
    """Memory described in NumPy's array protocol."""

    def __init__(self, pointer: int, size: int, typestr: str) -> None:
        self.__array_interface__ = {
            "data": (pointer, False),
            "shape": (size,),
            "typestr": typestr,
            "version": 3,
        }


def flat_view(pointer: int, size: int, dtype: DType) -> np.ndarray:
    """A writable view of ``size`` elements at ``pointer``; of none at 0, which is no address."""
    if size == 0 or pointer == 0:
        return np.empty((0,), dtype=dtype.numpy)
    # The protocol has no name for the types of ml_dtypes, so their bits are viewed as integers.
    typestr = "|b1" if dtype.kind == "bool" else f"<u{dtype.itemsize}"
    return np.asarray(_Raw(pointer, size, typestr)).view(dtype.numpy)
