"""The elements that pointers point to, read and written where a mask holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.language.promotion import refuse


def load_elements(pointer: PointerTile, mask: Any, fill: Any) -> Any:
    """The elements at ``pointer`` where ``mask`` (None: everywhere), else ``fill`` (None: 0)."""
    memory, offsets = pointer.memory, pointer.offsets
    if mask is None:
        return memory.array[memory.locate(offsets, None, "load")]
    offsets, mask = broadcast_arrays("load", offsets, mask)
    fill = memory.array.dtype.type(0) if fill is None else fill
    if not mask.any():
        return np.broadcast_to(fill, mask.shape)[()]
    located = np.where(mask, memory.locate(offsets, mask, "load"), 0)
    return np.where(mask, memory.array[located], fill)[()]


def load_pointed(pointer: PointerTile, mask: Any, fill: Any) -> Any:
    """`load_elements` where an application says what to point to: none where a type alone is asked for."""
    return load_elements(pointer, False if context.is_beside() else mask, fill)


def broadcast_arrays(function: str, *arrays: Any) -> list[Any]:
    """The arrays in their common shape."""
    try:
        return list(np.broadcast_arrays(*arrays))
    except ValueError as error:
        shapes = ", ".join(str(np.shape(array)) for array in arrays)
        raise refuse(f"ntl.{function} needs shapes that match, but got {shapes}.") from error


def store_elements(pointer: PointerTile, data: Any, mask: Any) -> None:
    """Writes ``data`` to the elements at ``pointer`` where ``mask`` (None: everywhere)."""
    memory = pointer.memory
    offsets, data, mask = in_pointer_shape("store", pointer, data, mask)
    located = memory.locate(offsets, mask, "store")
    if mask is None:
        memory.array[located] = data
    else:
        memory.array[located[mask]] = data[mask]


def in_pointer_shape(
    function: str, pointer: PointerTile, data: Any, mask: Any
) -> tuple[Any, Any, Any]:
    """Offsets, data and mask in the pointer's shape, which must be that of the result."""
    everywhere = mask is None
    offsets, data, mask = broadcast_arrays(
        function, pointer.offsets, data, True if everywhere else mask
    )
    if offsets.shape != pointer.shape:
        raise refuse(
            f"ntl.{function} needs a pointer in the shape of the value, {offsets.shape}, but its "
            f"shape is {pointer.shape}."
        )
    return offsets, data, None if everywhere else mask
