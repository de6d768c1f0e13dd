"""The handler in C (``launch.c``): built once, and told what is to be launched for which call.

Only on CUDA devices. It is compiled at the first use by the compiler that Triton builds its own
launchers with, against CUDA's header that comes with Triton, and kept in the cache.
"""

from __future__ import annotations

import ctypes
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ninetoothed.backends.triton.runtime.device_api import runtime
from ninetoothed.backends.triton.runtime.launch_record import Described, LaunchRecord, packed
from ninetoothed.backends.triton.runtime.launcher import built
from ninetoothed.errors import DeviceError

_SOURCE = Path(__file__).with_name("launch.c")

_MOST_BUFFERS = 32
_MOST_PARAMETERS = 96
_MOST_BYTES = 1024
_MOST_NAME = 127

#: A descriptor's alignment, as the driver wants it.
_WIDEST = 64

#: The address as a whole.
_ALL = 2**64 - 1


class _Launch(ctypes.Structure):
    """What ``launch.c`` calls so, where each field is explained."""

    _fields_ = [
        ("bytes", ctypes.c_ubyte * _MOST_BYTES),
        ("next", ctypes.c_void_p),
        ("identity", ctypes.c_int64),
        ("function", ctypes.c_void_p),
        ("masks", ctypes.c_uint64 * _MOST_BUFFERS),
        ("bits", ctypes.c_uint64 * _MOST_BUFFERS),
        ("grid", ctypes.c_uint32),
        ("threads", ctypes.c_uint32),
        ("shared_memory", ctypes.c_uint32),
        ("is_dependent", ctypes.c_uint32),
        ("device", ctypes.c_int32),
        ("buffer_count", ctypes.c_int32),
        ("parameter_count", ctypes.c_int32),
        ("buffers", ctypes.c_int16 * _MOST_PARAMETERS),
        ("offsets", ctypes.c_uint16 * _MOST_PARAMETERS),
        ("name", ctypes.c_char * (_MOST_NAME + 1)),
    ]


class Native:
    """The handler in C.

    Args:
        library: ``launch.c``, loaded; one library is one handler.
        handler: the handler in Python, which serves what C knows nothing of; kept alive.
        launch, error_text: the addresses of the driver's ``cuLaunchKernelEx`` and
            ``cuGetErrorString``.
        only_index: the index of the one device that there is; None has XLA asked each time.

    Attributes:
        handler: for `jax.ffi.register_ffi_target`.
    """

    def __init__(
        self,
        library: Any,
        handler: Any,
        launch: int,
        error_text: int,
        only_index: int | None = None,
    ) -> None:
        library.ninetoothed_size.restype = ctypes.c_size_t
        # C pads to its alignment.
        size = -(-ctypes.sizeof(_Launch) // _WIDEST) * _WIDEST
        if library.ninetoothed_size() != size:
            raise DeviceError(f"{_SOURCE.name} was compiled with structures other than Python's.")
        self._add = library.ninetoothed_add
        self._python = handler
        library.ninetoothed_start(
            handler,
            ctypes.c_void_p(launch),
            ctypes.c_void_p(error_text),
            ctypes.c_int32(-1 if only_index is None else only_index),
        )
        self.handler = library.ninetoothed_handle

    def add(
        self,
        identity: int,
        index: int,
        record: LaunchRecord,
        values: Sequence[tuple[bool, Any]],
        addresses: Sequence[int],
        mask: int,
    ) -> bool:
        """From now on C launches this for a call; whether it can.

        Args:
            identity: the call's.
            index: the device's.
            record: what is launched.
            values: what the plan is called with: places among the buffers (True, place), or fixed
                values (False, value).
            addresses: the buffers', in this execution.
            mask: the bits of an address that the plan depends on. Where a descriptor is made of an
                address, the launch is for that one alone.
        """
        if len(addresses) > _MOST_BUFFERS or len(record.parameters) > _MOST_PARAMETERS:
            return False
        masks, data = [mask] * len(addresses), bytearray()
        buffers, offsets = [], []
        for parameter in record.parameters:
            buffer = -1
            if not isinstance(parameter, bytes):
                is_buffer, value = values[parameter.place]
                if isinstance(parameter, Described):
                    assert is_buffer, "a descriptor is of memory"
                    masks[value] = _ALL
                    parameter = parameter.make(addresses[value])
                elif is_buffer:
                    buffer, parameter = value, b""
                else:
                    parameter = packed(parameter.type, value)
            data += bytes(-len(data) % min(len(parameter) or 1, _WIDEST))
            buffers.append(buffer)
            offsets.append(len(data))
            data += parameter
        if len(data) > _MOST_BYTES:
            return False
        launch = _Launch(
            identity=identity,
            function=record.function,
            grid=record.grid,
            threads=record.threads,
            shared_memory=record.shared_memory,
            is_dependent=record.is_dependent,
            device=index,
            buffer_count=len(addresses),
            parameter_count=len(buffers),
            name=record.name.encode()[:_MOST_NAME],
        )
        launch.bytes[: len(data)] = data
        launch.masks[: len(masks)] = masks
        launch.bits[: len(masks)] = [a & m for a, m in zip(addresses, masks)]
        launch.buffers[: len(buffers)] = buffers
        launch.offsets[: len(offsets)] = offsets
        return bool(self._add(ctypes.byref(launch)))


def load() -> Any:
    """``launch.c`` as a library, each time a new one; compiled where the cache has none.

    Raises:
        DeviceError: it cannot be compiled.
    """
    return built(_SOURCE, ctypes.CDLL)


def start(handler: Any, only_index: int | None) -> Native | None:
    """The handler in C before the one in Python; None, and a warning, where it cannot be had."""
    try:
        driver = runtime("cuda")
        return Native(
            load(),
            handler,
            driver.address_of("cuLaunchKernelEx"),
            driver.address_of("cuGetErrorString"),
            only_index,
        )
    except (DeviceError, AttributeError) as error:
        warnings.warn(
            f"Kernels on JAX's arrays are launched from Python, some microseconds slower: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return None
