"""A framework of some hundred lines, with a device whose work waits in streams.

Its device is emulated: a launch is put into the queue of the stream that it was given, and is run
by the NumPy backend when that stream is waited for. So work that went to the wrong stream has not
been done when the framework reads, as on a GPU.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import numpy

from ninetoothed.backends.base import Backend, Call, Device, Plan
from ninetoothed.backends.numpy.backend import BACKEND as NUMPY_BACKEND
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

DEVICE = Device("toy", 0)


class Array:
    """A tensor on the toy device. The memory is the host's, and is aligned as a GPU's is."""

    def __init__(self, data: numpy.ndarray) -> None:
        self.data = data

    @property
    def sizes(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides in bytes, as NumPy has them."""
        return self.data.strides

    @property
    def address(self) -> int | None:
        return self.data.ctypes.data if self.data.size else None

    @property
    def kind(self) -> numpy.dtype:
        return self.data.dtype

    place = "toy:0"

    def value(self) -> Any:
        QUEUES.wait(current_stream())
        return self.data.item()

    def __getitem__(self, slices: Any) -> Array:
        return Array(self.data[slices])

    def swapped(self) -> Array:
        return Array(self.data.swapaxes(-1, -2))

    def numpy(self) -> numpy.ndarray:
        """The elements, once the current stream has done its work."""
        QUEUES.wait(current_stream())
        return self.data.copy()


#: The device's memory. What a broken frontend writes to a wrong address stays within, harmless.
_MEMORY = numpy.empty(1 << 28, numpy.uint8)
_PAGE = 1 << 12
_allocating = threading.Lock()
_next_page = 1


def array(values: numpy.ndarray) -> Array:
    """A new array with these elements, at an address that is a multiple of 64."""
    made = empty(values.shape, values.dtype)
    made.data[...] = values
    return made


def empty(shape: tuple[int, ...], dtype: numpy.dtype) -> Array:
    """A new array in pages of its own; they are used again once the whole memory was."""
    global _next_page
    size = int(numpy.prod(shape, dtype=int)) * dtype.itemsize
    pages = size // _PAGE + 1
    with _allocating:
        start = _next_page if (_next_page + pages) * _PAGE < len(_MEMORY) - 64 else 1
        _next_page = start + pages
    first = start * _PAGE + -_MEMORY.ctypes.data % 64
    return Array(_MEMORY[first : first + size].view(dtype).reshape(shape))


class Queues:
    """What was launched and has not run, by stream."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: dict[int, list[Any]] = {}

    def put(self, stream: int, work: Any) -> None:
        with self._lock:
            self._waiting.setdefault(stream, []).append(work)

    def wait(self, stream: int) -> None:
        with self._lock:
            for work in self._waiting.pop(stream, []):
                work()

    def wait_for_all(self) -> None:
        with self._lock:
            for stream in list(self._waiting):
                self.wait(stream)


QUEUES = Queues()

_handles = itertools.count(0x1000, 0x10)
_default_stream = next(_handles)
_current = threading.local()


def current_stream() -> int:
    return getattr(_current, "stream", _default_stream)


@contextlib.contextmanager
def new_stream() -> Iterator[int]:
    """Makes a new stream current."""
    handle = next(_handles)
    with entered(handle):
        yield handle


@contextlib.contextmanager
def entered(handle: int) -> Iterator[None]:
    before = current_stream()
    _current.stream = handle
    try:
        yield
    finally:
        _current.stream = before


class Stream:
    """A stream that can be made current more than once."""

    def __init__(self) -> None:
        self.handle = next(_handles)
        self._entered: list[Any] = []

    def __enter__(self) -> None:
        self._entered.append(entered(self.handle))
        self._entered[-1].__enter__()

    def __exit__(self, *error: Any) -> None:
        self._entered.pop().__exit__(*error)


class ToyBackend(Backend):
    """The NumPy backend, with its work put off."""

    name = "toy"
    device_kinds = ("toy",)

    def plan(self, kernel: Any, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        plan = NUMPY_BACKEND.plan(kernel, call, values)

        def run(stream: int, *values: Any) -> None:
            QUEUES.put(stream, lambda: plan.run(0, *values))

        return Plan(run, plan.details)


def _dtypes() -> Mapping[Any, dtypes.DType]:
    return {dtypes.by_name(name).numpy: dtypes.by_name(name) for name in dtypes.NAMES}


def _device_of(place: str) -> Device:
    kind, _, index = place.partition(":")
    return Device(kind, int(index))


#: What the frontend is made of; the broken ones differ in one of them.
FIELDS: dict[str, Any] = {
    "name": "toy",
    "owns": owns_types((Array.__module__, "Array")),
    "dtypes": _dtypes,
    "device_of": _device_of,
    "empty": lambda shape, dtype, device: empty(shape, dtype.numpy),
    "device_guard": lambda index: contextlib.nullcontext(),
    "synchronize": lambda index: QUEUES.wait_for_all(),
    "namespace": lambda: {"current_stream": current_stream},
    "shape": "{x}.sizes",
    "strides": "tuple(step // {x}.kind.itemsize for step in {x}.steps)",
    "pointer": "({x}.address or 0)",
    "dtype": "{x}.kind",
    "device": "{x}.place",
    "item": "{x}.value()",
    "stream": "current_stream()",
}


class ToyPlugin:
    """A plugin of one frontend, for the toy's arrays, and of the toy's backend."""

    NINETOOTHED_CONTRACT = 1

    def __init__(self, **changes: Any) -> None:
        self.frontend = Frontend(**(FIELDS | changes))

    @hookimpl
    def ninetoothed_frontends(self) -> tuple[Frontend, ...]:
        return (self.frontend,)

    @hookimpl
    def ninetoothed_backends(self) -> tuple[Backend, ...]:
        return (ToyBackend(),)


@contextlib.contextmanager
def registered(**changes: Any) -> Iterator[Frontend]:
    """The toy's frontend, with these fields changed, in this process's plugin manager."""
    from ninetoothed import plugins

    plugin = ToyPlugin(**changes)
    plugins.register(plugin, plugin.frontend.name)
    try:
        yield plugin.frontend
    finally:
        plugins.unregister(plugin)
