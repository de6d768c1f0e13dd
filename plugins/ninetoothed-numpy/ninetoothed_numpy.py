"""NumPy's arrays, on the CPU. NumPy is imported only once an array of it has arrived."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.frontends.base import Frontend, guard_by, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    import numpy

NINETOOTHED_CONTRACT = 1

_is_array = owns_types(("numpy", "ndarray"))

#: What a launch asks an array for; a class that answers for itself might tell of memory that is not there.
_ASKED = ("shape", "strides", "dtype", "itemsize", "flags")

#: Under either name, by NumPy's version. Its values alone do not say what it holds.
_is_masked = owns_types(("numpy.ma", "MaskedArray"), ("numpy.ma.core", "MaskedArray"))


def _owns(type_: type) -> bool:
    if not _is_array(type_) or _is_masked(type_):
        return False
    array = sys.modules["numpy"].ndarray
    return all(getattr(type_, name) is getattr(array, name) for name in _ASKED)


def _dtypes() -> Mapping[Any, dtypes.DType]:
    return {dtypes.by_name(name).numpy: dtypes.by_name(name) for name in dtypes.NAMES}


def _device_of(device: str) -> Device:
    return Device(device)


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> numpy.ndarray:
    import numpy

    if device.kind != "cpu":
        raise DeviceError(f"NumPy's arrays are on the CPU, not on {device}.")
    return numpy.empty(shape, FRONTEND.native_dtype(dtype))


def _device_guard(index: int) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


def _synchronize(index: int) -> None:
    """Nothing is ever pending: the CPU runs a kernel before its call returns."""


@functools.lru_cache(maxsize=4096)
def _element_strides(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """NumPy's strides are in bytes; those of a kernel's argument are in elements."""
    if any(stride % itemsize for stride in strides):
        raise ArgumentError(
            f"The strides of an array, {strides} bytes, are no multiples of its elements' "
            f"{itemsize} bytes (it is a field of a structured array). Copy it: `array.copy()`."
        )
    return tuple(stride // itemsize for stride in strides)


def _address_of() -> Callable[[numpy.ndarray], int]:
    """What reads the address of an array's first element.

    `array.ctypes.data` takes a microsecond, as long as the rest of a launch. The address is the
    first member of NumPy's array structure, after the head that every Python object has; where that
    is not seen to be so, NumPy is asked.
    """
    import numpy

    head, word_at = object.__basicsize__, ctypes.c_size_t.from_address

    def read(array: numpy.ndarray) -> int:
        return word_at(id(array) + head).value

    samples = [numpy.arange(7), numpy.zeros((3, 4))[1:, ::-1], numpy.ma.zeros(3)]
    if sys.implementation.name == "cpython" and all(read(x) == x.ctypes.data for x in samples):
        return read
    return lambda array: array.ctypes.data


def _namespace() -> Mapping[str, object]:
    return {
        "address_of": _address_of(),
        "element_strides": _element_strides,
        "device_of_array": lambda array: "cpu",
    }


FRONTEND = Frontend(
    name="numpy",
    owns=_owns,
    dtypes=_dtypes,
    device_of=_device_of,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=_namespace,
    strides="element_strides({x}.strides, {x}.itemsize)",
    pointer="address_of({x})",
    device="device_of_array({x})",
    read_only="not {x}.flags.writeable",
    guard=guard_by(_namespace, "{x}.shape", "{x}.strides", "{x}.dtype"),
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """NumPy."""
    return (FRONTEND,)
