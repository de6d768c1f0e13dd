"""CuPy's arrays, on a GPU. CuPy is imported only once an array of it has arrived."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.base import Device
from ninetoothed.errors import DeviceError
from ninetoothed.frontends.base import Frontend, guard_by, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    import cupy

NINETOOTHED_CONTRACT = 1


def _dtypes() -> Mapping[Any, dtypes.DType]:
    """CuPy's element types are NumPy's; those of ``ml_dtypes`` are there in CuPy 14 and later."""
    return {dtypes.by_name(name).numpy: dtypes.by_name(name) for name in dtypes.NAMES}


def _kind() -> str:
    import cupy

    return "hip" if cupy.cuda.runtime.is_hip else "cuda"


def _device_of(index: int) -> Device:
    return Device(_kind(), index)


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> cupy.ndarray:
    import cupy

    if device.kind != _kind():
        raise DeviceError(f"CuPy's arrays are on devices of kind {_kind()}, not on {device}.")
    with cupy.cuda.Device(device.index):
        return cupy.empty(shape, FRONTEND.native_dtype(dtype))


def _device_guard(index: int) -> AbstractContextManager[Any]:
    import cupy

    return cupy.cuda.Device(index)


def _synchronize(index: int) -> None:
    import cupy

    cupy.cuda.Device(index).synchronize()


class _Event:
    """An event of CuPy's with the methods that the core knows events by."""

    def __init__(self) -> None:
        import cupy

        self._event = cupy.cuda.Event()

    def record(self) -> None:
        """The point is reached when the current stream has done what it was given so far."""
        self._event.record()

    def elapsed_time(self, end: _Event) -> float:
        """The milliseconds from here to ``end``, once it is reached."""
        import cupy

        end._event.synchronize()
        return cupy.cuda.get_elapsed_time(self._event, end._event)


@functools.lru_cache(maxsize=4096)
def _element_strides(strides: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """CuPy's are in bytes, and always multiples of an element: it has no structured arrays."""
    return tuple(stride // itemsize for stride in strides)


def _namespace() -> Mapping[str, object]:
    import cupy

    return {"element_strides": _element_strides, "get_current_stream": cupy.cuda.get_current_stream}


FRONTEND = Frontend(
    name="cupy",
    owns=owns_types(("cupy", "ndarray"), ("cupy._core.core", "ndarray")),
    dtypes=_dtypes,
    device_of=_device_of,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=_namespace,
    strides="element_strides({x}.strides, {x}.itemsize)",
    pointer="{x}.data.ptr",
    # The index alone: it costs less to make and to compare than CuPy's object for a device.
    device="{x}.data.device_id",
    stream="get_current_stream({index}).ptr",
    guard=guard_by(_namespace, "{x}.shape", "{x}.strides", "{x}.dtype", "{x}.data.device_id"),
    event=_Event,
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """CuPy."""
    return (FRONTEND,)
