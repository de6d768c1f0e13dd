"""Loads, stores and atomics through pointers."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ninetoothed import threads
from ninetoothed.backends.numpy.language.blocks import BlockPointer, TensorDescriptor
from ninetoothed.backends.numpy.language.elements import (
    in_pointer_shape,
    load_pointed,
    store_elements,
)
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.tile import Tile, as_tile
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import refuse

#: Programs may run in several threads; an atomic operation is one step to all of them.
_atomic = threads.lock()


def _pointer(function: str, value: Any) -> PointerTile:
    if not isinstance(value, PointerTile):
        kind = f"a tile of {value.dtype}" if isinstance(value, Tile) else type(value).__name__
        raise refuse(f"ntl.{function} needs a pointer such as `x.data_ptr()`, but got {kind}.")
    return value


def _mask(mask: Any, *validity: Any) -> Any:
    """Where ``mask`` holds and all of ``validity`` do; None for everywhere."""
    if mask is not None:
        tile = as_tile(mask)
        if tile.dtype is not dtypes.bool:
            raise refuse(f"A mask must be of int1, as a comparison gives, but got {tile.dtype}.")
        validity = (tile.data, *tile.validity, *validity)
    return functools.reduce(operator.and_, validity) if validity else None


def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Tile:
    """The elements that ``pointer`` points to; ``other``, or 0, where ``mask`` does not hold."""
    if isinstance(pointer, BlockPointer):
        if mask is not None or other is not None:
            raise refuse("A block pointer is loaded with boundary_check, not with a mask.")
        return pointer.load(boundary_check, padding_option)
    source = _pointer("load", pointer)
    if boundary_check or padding_option:
        raise refuse("boundary_check and padding_option are for block pointers only.")
    if other is not None and mask is None:
        raise refuse("`other` has a meaning only with a `mask`.")
    dtype = source.memory.dtype
    fill = None if other is None else as_tile(other).to(dtype).data
    return Tile(load_pointed(source, _mask(mask), fill), dtype)


def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> None:
    """Stores ``value``, cast to the element type, where ``mask`` holds."""
    tile = as_tile(value)
    if isinstance(pointer, BlockPointer):
        if mask is not None:
            raise refuse("A block pointer is stored to with boundary_check, not with a mask.")
        pointer.store(tile, boundary_check)
        return
    target = _pointer("store", pointer)
    if boundary_check:
        raise refuse("boundary_check is for block pointers only.")
    store_elements(target, tile.to(target.memory.dtype).data, _mask(mask, *target.validity))


def _check_atomic(name: str, dtype: DType) -> None:
    if dtype.bits < 16 or dtype in (dtypes.int16, dtypes.uint16):
        raise refuse(f"ntl.{name} does not support {dtype}.")
    if dtype in (dtypes.float16, dtypes.bfloat16) and name != "atomic_add":
        raise refuse(f"ntl.{name} does not support {dtype}.")
    if dtype.kind == "float" and name in ("atomic_and", "atomic_or", "atomic_xor"):
        raise refuse(f"ntl.{name} needs integers, but got {dtype}.")


def _read_modify_write(name: str, combine: Callable[[Any, Any], Any]) -> Callable[..., Tile]:
    def operate(
        pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None
    ) -> Tile:
        target = _pointer(name, pointer)
        dtype = target.memory.dtype
        _check_atomic(name, dtype)
        value = as_tile(val).to(dtype)
        where = _mask(mask, *target.validity, *value.validity)
        return Tile(_update(name, target, combine, (value.data,), where), dtype)

    operate.__name__ = operate.__qualname__ = name
    return operate


def _update(
    name: str, pointer: PointerTile, combine: Callable[..., Any], values: tuple[Any, ...], mask: Any
) -> Any:
    """Puts ``combine(old, *values)`` in place of each element; the old elements, 0 where masked."""
    memory = pointer.memory
    offsets, first, mask = in_pointer_shape(name, pointer, values[0], mask)
    values = (first, *(np.broadcast_to(value, offsets.shape) for value in values[1:]))
    is_active = np.ones(offsets.shape, bool) if mask is None else mask
    result = np.zeros(offsets.shape, memory.array.dtype)
    with _atomic:
        located = np.asarray(memory.locate(offsets, mask, "atomic"))[is_active]
        active = [value[is_active] for value in values]
        result[is_active] = _in_order(memory.array, located, combine, active)
    return result[()]


def _in_order(
    array: np.ndarray, located: np.ndarray, combine: Callable[..., Any], values: list[Any]
) -> np.ndarray:
    """The updates as if one lane came after the other: lanes may meet in one element."""
    if np.unique(located).size == located.size:
        old = array[located]
        array[located] = combine(old, *values)
        return old
    old = np.empty(located.shape, array.dtype)
    for lane, place in enumerate(located.tolist()):
        old[lane] = array[place]
        array[place] = combine(array[place], *(value[lane] for value in values))
    return old


def _bits(value: Any) -> np.ndarray:
    """The bits of elements as signed integers."""
    elements = np.asarray(value)
    return elements.view(f"i{elements.itemsize}")


def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Tile:
    """Stores ``val`` where the element has the bits of ``cmp``; the elements as they were."""
    return masked_cas(pointer, cmp, val)


def masked_cas(
    pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None, mask: Any = None
) -> Tile:
    """The same where a mask holds, which Triton's has none of: for an access."""
    target = _pointer("atomic_cas", pointer)
    dtype = target.memory.dtype
    if dtype.bits not in (16, 32, 64):
        raise refuse(f"ntl.atomic_cas takes elements of 16, 32 or 64 bits, but got {dtype}.")
    given = [as_tile(item).to(dtype) for item in (cmp, val)]
    compared, wanted = (tile.data for tile in given)
    where = _mask(mask, *target.validity, *(each for tile in given for each in tile.validity))

    def exchange(old: Any, expected: Any, new: Any) -> Any:
        return np.where(_bits(old) == _bits(expected), new, old)

    return Tile(_update("atomic_cas", target, exchange, (compared, wanted), where), dtype)


def load_tensor_descriptor(desc: TensorDescriptor, offsets: Any) -> Tile:
    """The block at ``offsets`` of a tensor descriptor."""
    return desc.load(offsets)


def store_tensor_descriptor(desc: TensorDescriptor, offsets: Any, value: Any) -> None:
    """Stores a block at ``offsets`` of a tensor descriptor."""
    desc.store(offsets, value)


def _in_order_of_bits(value: Any) -> np.ndarray:
    """Floats as integers in the order in which devices compare them: NaN is beyond infinity, on its sign's side."""
    bits = _bits(value)
    magnitude = np.iinfo(bits.dtype).max
    return np.where(bits < 0, bits ^ magnitude, bits)


def _extremum(ufunc: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def combine(old: Any, new: Any) -> Any:
        if np.asarray(old).dtype.kind != "f":
            return ufunc(old, new)
        ordered = _in_order_of_bits(old)
        return np.where(ufunc(ordered, _in_order_of_bits(new)) == ordered, old, new)

    return combine


_ATOMICS: dict[str, Callable[[Any, Any], Any]] = {
    "atomic_add": np.add,
    "atomic_and": np.bitwise_and,
    "atomic_max": _extremum(np.maximum),
    "atomic_min": _extremum(np.minimum),
    "atomic_or": np.bitwise_or,
    "atomic_xchg": lambda old, new: new,
    "atomic_xor": np.bitwise_xor,
}

FUNCTIONS = {name: _read_modify_write(name, combine) for name, combine in _ATOMICS.items()}
