"""NumPy's arrays, on the CPU. NumPy is imported only once an array of it has arrived."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed import dtypes
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError, DeviceError
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.hookspecs import hookimpl

if TYPE_CHECKING:
    import numpy

NINETOOTHED_CONTRACT = 1

_is_array = owns_types(("numpy", "ndarray"))

#: Under either name, by NumPy's version. Its values alone do not say what it holds.
_is_masked = owns_types(("numpy.ma", "MaskedArray"), ("numpy.ma.core", "MaskedArray"))


def _owns(type_: type) -> bool:
    return _is_array(type_) and not _is_masked(type_)


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


def _element_strides(array: numpy.ndarray) -> tuple[int, ...]:
    """NumPy's strides are in bytes; those of a kernel's argument are in elements."""
    size = array.itemsize
    if any(stride % size for stride in array.strides):
        raise ArgumentError(
            f"The strides of an array, {array.strides} bytes, are no multiples of its elements' "
            f"{size} bytes (it is a field of a structured array). Copy it: `array.copy()`."
        )
    return tuple(stride // size for stride in array.strides)


def _namespace() -> Mapping[str, object]:
    return {"element_strides": _element_strides, "device_of_array": lambda array: "cpu"}


FRONTEND = Frontend(
    name="numpy",
    owns=_owns,
    dtypes=_dtypes,
    device_of=_device_of,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=_namespace,
    strides="element_strides({x})",
    pointer="{x}.ctypes.data",
    device="device_of_array({x})",
    read_only="not {x}.flags.writeable",
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """NumPy."""
    return (FRONTEND,)
