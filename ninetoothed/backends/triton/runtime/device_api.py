"""The GPU's own library through ctypes: contexts, limits, events, memory; no framework is needed.

CUDA's driver API and HIP's runtime API have the same shape for what is used here, so one class
serves both and a table holds the names. AMD's table follows HIP's headers and has not run yet.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ninetoothed import threads
from ninetoothed.backends.base import Lent
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.errors import DeviceError
from ninetoothed.tuning.estimate import DeviceLimits

_LIBRARIES = {
    "cuda": ("libcuda.so.1", "libcuda.so", "nvcuda.dll"),
    "hip": ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6"),
}

#: What is done -> the functions that do it, of CUDA and of HIP.
_FUNCTIONS = {
    "initialize": ("cuInit", "hipInit"),
    "device_count": ("cuDeviceGetCount", "hipGetDeviceCount"),
    "device_name": ("cuDeviceGetName", "hipDeviceGetName"),
    "event_create": ("cuEventCreate", "hipEventCreateWithFlags"),
    "event_destroy": ("cuEventDestroy_v2", "hipEventDestroy"),
    "event_record": ("cuEventRecord", "hipEventRecord"),
    "event_synchronize": ("cuEventSynchronize", "hipEventSynchronize"),
    "event_elapsed": ("cuEventElapsedTime", "hipEventElapsedTime"),
    "stream_synchronize": ("cuStreamSynchronize", "hipStreamSynchronize"),
    "stream_is_capturing": ("cuStreamIsCapturing", "hipStreamIsCapturing"),
    "stream_number": ("cuStreamGetId", "hipStreamGetId"),
    "exchange_capture_mode": (
        "cuThreadExchangeStreamCaptureMode",
        "hipThreadExchangeStreamCaptureMode",
    ),
    "allocate": ("cuMemAlloc_v2", "hipMalloc"),
    "free": ("cuMemFree_v2", "hipFree"),
    "allocate_on_stream": ("cuMemAllocAsync", "hipMallocAsync"),
    "free_on_stream": ("cuMemFreeAsync", "hipFreeAsync"),
    "fill_on_stream": ("cuMemsetD8Async", "hipMemsetD8Async"),
    "copy_to_device": ("cuMemcpyHtoD_v2", "hipMemcpyHtoD"),
    "copy_to_host": ("cuMemcpyDtoH_v2", "hipMemcpyDtoH"),
    "copy_on_stream": ("cuMemcpyDtoDAsync_v2", "hipMemcpyDtoDAsync"),
    # AMD's devices have no descriptors.
    "encode_descriptor": ("cuTensorMapEncodeTiled", ""),
}

#: CUdevice_attribute, in cuda.h; its numbers are part of CUDA's binary interface.
_CUDA_ATTRIBUTES = {
    "threads_per_block": 1,
    "warp_size": 10,
    "registers_per_block": 12,
    "clock_khz": 13,
    "multiprocessors": 16,
    "memory_clock_khz": 36,
    "memory_bus_bits": 37,
    "l2_bytes": 38,
    "threads_per_multiprocessor": 39,
    "major": 75,
    "minor": 76,
    "shared_memory_per_multiprocessor": 81,
    "registers_per_multiprocessor": 82,
    "shared_memory_per_block": 97,
}

#: CUfunction_attribute and what else cuda.h has numbers for, of a loaded kernel.
_MOST_THREADS, _STATIC_SHARED_BYTES, _LOCAL_BYTES, _REGISTERS, _MOST_SHARED_BYTES = 0, 1, 3, 4, 8
_PREFER_SHARED = 1

#: So many bytes of shared memory a program has without asking for more.
_PLAIN_SHARED_BYTES = 48 << 10

_CAPTURE_IMPLICIT = 906

#: A thread's mode in which captures of graphs, its own and others', do not forbid it to allocate.
_CAPTURE_MODE_RELAXED = 2
_SIZE = ctypes.c_size_t
_HANDLE = ctypes.c_void_p


class Runtime:
    """The library of one kind of device. Get it from `runtime`; any thread may use it.

    Args:
        backend: ``"cuda"`` or ``"hip"``.

    Raises:
        DeviceError: there is no driver, or it finds no device.
    """

    def __init__(self, backend: str) -> None:
        self.backend = backend
        self._library = _load(backend)
        place = list(_LIBRARIES).index(backend)
        self._names = {what: names[place] for what, names in _FUNCTIONS.items()}
        self._contexts: dict[int, int] = {}
        self._lock = threads.lock()
        self.call("initialize", ctypes.c_uint(0))

    def call(self, what: str, *arguments: object) -> None:
        """Calls one function; `DeviceError` with the driver's own words where it fails."""
        self._check(what, getattr(self._library, self._names[what])(*arguments))

    def has(self, what: str) -> bool:
        """Whether the library, which may be an older one, has a function."""
        return hasattr(self._library, self._names[what])

    def _check(self, what: str, status: int) -> None:
        if status:
            raise DeviceError(
                f"The {self.backend} driver failed to {what.replace('_', ' ')}: "
                f"error {status}{self._error_text(status)}."
            )

    def _error_text(self, status: int) -> str:
        text = ctypes.c_char_p()
        if self.backend == "cuda":
            self._library.cuGetErrorString(ctypes.c_int(status), ctypes.byref(text))
        else:
            self._library.hipGetErrorString.restype = ctypes.c_char_p
            text = ctypes.c_char_p(self._library.hipGetErrorString(ctypes.c_int(status)))
        return f", {text.value.decode()}" if text.value else ""

    def address_of(self, function: str) -> int:
        """Where one of the library's functions is, for code that is not Python's; 0 where it is not."""
        found = getattr(self._library, function, None)
        return 0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0

    def device_count(self) -> int:
        """The number of devices that can be seen."""
        count = ctypes.c_int()
        self.call("device_count", ctypes.byref(count))
        return count.value

    # Contexts. All frameworks work in the device's primary context; so does a kernel of ours.

    @contextmanager
    def device(self, index: int) -> Iterator[None]:
        """The device's primary context is the current one of this thread; then what was before."""
        previous = self._exchange(index)
        try:
            yield
        finally:
            self._restore(index, previous)

    def _exchange(self, index: int) -> int | None:
        if self.backend == "hip":
            before = ctypes.c_int()
            self._check("get the device", self._library.hipGetDevice(ctypes.byref(before)))
            self._check("set the device", self._library.hipSetDevice(ctypes.c_int(index)))
            return before.value
        current = _HANDLE()
        self._check("get the context", self._library.cuCtxGetCurrent(ctypes.byref(current)))
        wanted = self.primary_context(index)
        if current.value != wanted:
            self._check("set the context", self._library.cuCtxSetCurrent(_HANDLE(wanted)))
        return current.value

    def _restore(self, index: int, previous: int | None) -> None:
        if self.backend == "hip":
            self._library.hipSetDevice(ctypes.c_int(previous or 0))
        elif previous != self.primary_context(index):
            self._library.cuCtxSetCurrent(_HANDLE(previous))

    def primary_context(self, index: int) -> int:
        """The handle of the context that all frameworks work in on a CUDA device."""
        with self._lock:
            if index not in self._contexts:
                device, context = self._device(index), _HANDLE()
                # Retained once and never released: kernels are loaded into it.
                self._check(
                    f"open device {index}",
                    self._library.cuDevicePrimaryCtxRetain(ctypes.byref(context), device),
                )
                self._contexts[index] = context.value or 0
            return self._contexts[index]

    def _device(self, index: int) -> ctypes.c_int:
        """CUDA's handle of a device."""
        device = ctypes.c_int()
        status = self._library.cuDeviceGet(ctypes.byref(device), ctypes.c_int(index))
        self._check(f"find device {index}", status)
        return device

    # Limits.

    def limits(self, index: int) -> DeviceLimits:
        """What the device has, as a `DeviceLimits`."""
        name = ctypes.create_string_buffer(256)
        if self.backend == "hip":
            return self._hip_limits(index, name)
        device = self._device(index)
        self.call("device_name", name, ctypes.c_int(len(name)), device)
        value = ctypes.c_int()
        found = {}
        for attribute, number in _CUDA_ATTRIBUTES.items():
            self._check(
                f"tell {attribute}",
                self._library.cuDeviceGetAttribute(ctypes.byref(value), number, device),
            )
            found[attribute] = value.value
        arch = found.pop("major") * 10 + found.pop("minor")
        return DeviceLimits(
            name=name.value.decode(),
            backend="cuda",
            arch=arch,
            # Twice the memory's clock is its rate of transfers.
            memory_bandwidth=2e3 * found.pop("memory_clock_khz") * found.pop("memory_bus_bits") / 8,
            clock_hz=1e3 * found.pop("clock_khz"),
            **found,
        )

    def _hip_limits(self, index: int, name: ctypes.Array[ctypes.c_char]) -> DeviceLimits:
        # HIP renumbered its attributes between releases; Triton's own C code is built against
        # the right header.
        found = versions.utilities().get_device_properties(index)
        self.call("device_name", name, ctypes.c_int(len(name)), ctypes.c_int(index))
        return DeviceLimits(
            name=name.value.decode() or found["arch"],
            backend="hip",
            arch=found["arch"].split(":")[0],
            warp_size=found["warpSize"],
            multiprocessors=found["multiprocessor_count"],
            shared_memory_per_block=found["max_shared_mem"],
            shared_memory_per_multiprocessor=found["max_shared_mem"],
            registers_per_block=found["max_num_regs"],
            registers_per_multiprocessor=found["max_num_regs"],
            memory_bandwidth=2e3 * found["mem_clock_rate"] * found["mem_bus_width"] / 8,
            clock_hz=1e3 * found["sm_clock_rate"],
        )

    # Compiled kernels.

    def loaded(
        self, binary: bytes, name: str, shared_memory: int, index: int
    ) -> tuple[int, int, int, int]:
        """A kernel of a binary in the device's context, which is current, for as long as the process lives.

        Args:
            shared_memory: bytes that a program of it asks for.

        Returns:
            The driver's handle; 32-bit registers and bytes of local memory of a thread; the most threads
            of a program.

        Raises:
            DeviceError, or what Triton raises on AMD's devices: the driver refuses the binary.
        """
        if self.backend == "hip":
            _, handle, registers, spilled, threads = versions.utilities().load_binary(
                name, binary, shared_memory, index
            )
            return handle, registers, 4 * spilled, threads
        library, module, function = self._library, _HANDLE(), _HANDLE()
        self._check("load a binary", library.cuModuleLoadData(ctypes.byref(module), binary))
        status = library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
        self._check("find the kernel in its binary", status)

        def told(attribute: int) -> int:
            value = ctypes.c_int()
            status = library.cuFuncGetAttribute(ctypes.byref(value), attribute, function)
            self._check("tell of a kernel", status)
            return value.value

        if shared_memory > _PLAIN_SHARED_BYTES:
            most = self.limits(index).shared_memory_per_block - told(_STATIC_SHARED_BYTES)
            status = library.cuFuncSetCacheConfig(function, _PREFER_SHARED)
            status = status or library.cuFuncSetAttribute(function, _MOST_SHARED_BYTES, most)
            self._check("give a kernel its shared memory", status)
        return function.value or 0, told(_REGISTERS), told(_LOCAL_BYTES), told(_MOST_THREADS)

    # Memory that follows a stream, and memory for those who have no framework.

    def allocate(self, size: int, stream: int | None = None) -> int:
        """The address of ``size`` bytes of the current device; in a stream's order if one is given."""
        address = ctypes.c_uint64()
        if stream is None:
            self.call("allocate", ctypes.byref(address), _SIZE(size))
        else:
            self.call("allocate_on_stream", ctypes.byref(address), _SIZE(size), _HANDLE(stream))
        return address.value

    def free(self, address: int, stream: int | None = None) -> None:
        """Gives memory back; with a stream once it has done what it was given before."""
        if stream is None:
            self.call("free", ctypes.c_uint64(address))
        else:
            self.call("free_on_stream", ctypes.c_uint64(address), _HANDLE(stream))

    def fill(self, address: int, value: int, size: int, stream: int) -> None:
        """Sets ``size`` bytes to ``value``, in a stream's order."""
        self.call(
            "fill_on_stream",
            ctypes.c_uint64(address),
            ctypes.c_ubyte(value),
            _SIZE(size),
            _HANDLE(stream),
        )

    def copy_to_device(self, address: int, data: bytes) -> None:
        """Copies host bytes to the device, and waits."""
        self.call("copy_to_device", ctypes.c_uint64(address), data, _SIZE(len(data)))

    def copy_to_host(self, address: int, size: int) -> bytes:
        """The ``size`` bytes at an address of the device; waits for the default stream only."""
        data = ctypes.create_string_buffer(size)
        self.call("copy_to_host", data, ctypes.c_uint64(address), _SIZE(size))
        return data.raw

    # Streams and events.

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copies bytes from one address of the device to another, in the stream's order."""
        self.call("copy_on_stream", _HANDLE(target), _HANDLE(source), _SIZE(size), _HANDLE(stream))

    def synchronize(self, stream: int) -> None:
        """Waits until the stream has done everything it was given."""
        self.call("stream_synchronize", _HANDLE(stream))

    def is_capturing(self, stream: int) -> bool:
        """Whether what the stream is given goes into a graph instead of being run."""
        state = ctypes.c_int()
        function = getattr(self._library, self._names["stream_is_capturing"])
        status = function(_HANDLE(stream), ctypes.byref(state))
        if status == _CAPTURE_IMPLICIT:
            # The default stream is asked while another stream that it would wait for is capturing.
            return True
        self._check("stream_is_capturing", status)
        return state.value != 0

    def number_of(self, stream: int) -> int:
        """What no other stream of this process has or had; the handle, where the driver is too old."""
        if not self.has("stream_number"):
            return stream
        number = ctypes.c_uint64()
        self.call("stream_number", _HANDLE(stream), ctypes.byref(number))
        return number.value

    @contextmanager
    def capturing_elsewhere(self) -> Iterator[None]:
        """What is done meanwhile has nothing to do with any graph that is being captured."""
        mode = ctypes.c_int(_CAPTURE_MODE_RELAXED)
        self.call("exchange_capture_mode", ctypes.byref(mode))
        try:
            yield
        finally:
            self.call("exchange_capture_mode", ctypes.byref(mode))


class Event:
    """A point in a stream. Made, used and dropped with its device's context current."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._handle = _HANDLE()
        runtime.call("event_create", ctypes.byref(self._handle), ctypes.c_uint(0))

    def record(self, stream: int) -> None:
        """The point is reached when the stream has done what it was given so far."""
        self._runtime.call("event_record", self._handle, _HANDLE(stream))

    def synchronize(self) -> None:
        """Waits until the point is reached."""
        self._runtime.call("event_synchronize", self._handle)

    def elapsed_since(self, start: Event) -> float:
        """The milliseconds from ``start`` to this event; both must have been reached."""
        milliseconds = ctypes.c_float()
        self._runtime.call("event_elapsed", ctypes.byref(milliseconds), start._handle, self._handle)
        return milliseconds.value

    def close(self) -> None:
        """Gives the event back."""
        if self._handle.value:
            self._runtime.call("event_destroy", self._handle)
            self._handle = _HANDLE()


@functools.lru_cache(maxsize=2)
def runtime(backend: str) -> Runtime:
    """The `Runtime` of ``"cuda"`` or ``"hip"``; `DeviceError` where there is none."""
    return Runtime(backend)


@contextmanager
def lent(backend: str, contents: Sequence[bytes]) -> Iterator[Lent]:
    """Memory of the first device that holds these bytes; its context is current meanwhile."""
    library = runtime(backend)
    if library.device_count() == 0:
        raise DeviceError(f"There is no {backend} device here to compare with.")
    with library.device(0):
        starts = [library.allocate(max(len(content), 1)) for content in contents]
        try:
            for start, content in zip(starts, contents):
                library.copy_to_device(start, content)
            sizes = [len(content) for content in contents]
            yield starts, lambda: [library.copy_to_host(*each) for each in zip(starts, sizes)]
        finally:
            for start in starts:
                library.free(start)


def _load(backend: str) -> ctypes.CDLL:
    for name in _LIBRARIES[backend]:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(
        f"There is no {backend} driver on this machine: none of {', '.join(_LIBRARIES[backend])} "
        "can be loaded. Kernels run on CPU tensors here."
    )
