"""XLA's buffers within a custom call, as tensors of a frontend of their own.

A custom call is handed addresses, which may be read and written as the computation says. So what
runs there is an ordinary launch function, with its checks, its plans and its tuning.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from ninetoothed.backends.base import Device
from ninetoothed.errors import DeviceError
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes


class Buffer:
    """Contiguous memory of XLA's.

    Args:
        shape: the sizes.
        strides: in elements.
        dtype: NumPy's.
        device: where it is.
        pointer: its address; any aligned one where only the description matters.
    """

    __slots__ = ("shape", "strides", "dtype", "device", "pointer")

    def __init__(
        self,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        dtype: Any,
        device: Device,
        pointer: int = 16,
    ) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.device = device
        self.pointer = pointer


class _Current(threading.local):
    """The stream of the custom call that this thread is in."""

    stream = 0


CURRENT = _Current()


#: XLA's names of platforms -> ours of kinds of devices.
KINDS = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "rocm": "hip"}


def device_of(device: Any) -> Device:
    """A device of JAX's in the core's terms."""
    kind = KINDS.get(device.platform, device.platform)
    return Device(kind, 0 if kind == "cpu" else device.local_hardware_id or 0)


def known_dtypes() -> Mapping[Any, dtypes.DType]:
    """JAX's element types are NumPy's."""
    return {dtypes.by_name(name).numpy: dtypes.by_name(name) for name in dtypes.NAMES}


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> Buffer:
    raise DeviceError("Only XLA makes its buffers.")


def _device_guard(index: int) -> AbstractContextManager[Any]:
    """XLA has the device of the computation current while it makes the call."""
    return contextlib.nullcontext()


def _synchronize(index: int) -> None:
    from ninetoothed.backends.triton.runtime.device_api import runtime

    runtime("cuda").synchronize(CURRENT.stream)


BUFFERS = Frontend(
    name="jax_buffers",
    owns=owns_types((__name__, "Buffer")),
    dtypes=known_dtypes,
    device_of=lambda device: device,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=lambda: {"current": CURRENT},
    pointer="{x}.pointer",
    stream="(current.stream, {index})[0]",
)
