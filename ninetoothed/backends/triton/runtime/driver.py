"""A compiled kernel on a device, ready to launch, with no framework: device and stream are given.

Triton's own driver object imports torch. Of it only C functions are used here, on AMD's devices: one loads
a binary and another launches it. On NVIDIA's, the driver's own functions and `launcher` do, and no Triton is
imported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed import threads
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.runtime.descriptors import Describe, descriptor_maker
from ninetoothed.backends.triton.runtime.device_api import Event, Runtime, runtime
from ninetoothed.backends.triton.runtime.launcher import launcher_of
from ninetoothed.errors import DeviceError
from ninetoothed.tuning.estimate import DeviceLimits

#: Columns of tensor memory a multiprocessor has, on Blackwell.
_TENSOR_MEMORY_COLUMNS = 512

#: Registers are given to a thread so many at a time.
_REGISTER_UNIT = 8

#: Of each program's shared memory the system keeps so much for itself.
_RESERVED_BYTES = 1024

_loading = threads.lock()


class Launchable:
    """A compiled kernel, loaded on one device.

    Args:
        compiled: what `compile.compile_source` gave.
        index: the device's index.

    Attributes:
        metadata: Triton's, of what is compiled.
        function: the driver's handle; it stays valid as long as the process lives.
        run: ``run(grid_x, stream, *arguments)`` launches; the arguments are the run-time
            parameters in order, pointers as ints, and constants are left out; a descriptor is
            followed by the sizes and the strides it was made of. The device's context must be
            current, as it is where a framework's tensors live.
        registers: 32-bit registers a thread.
        spills: bytes a thread keeps in memory for lack of registers.
        shared_memory: bytes of shared memory a program.
        resident: how many programs the whole device holds at a time.
        scratch_size: bytes of global memory that each program needs besides its arguments.
        bind: ``bind(grid_x, count, places, constants)`` gives ``launch(stream, *values)`` for so many
            values: for each parameter its place among them, or -1 for the next of the constants. None
            where the device's launcher has no such thing.

    Raises:
        DeviceError: the kernel does not fit the device, or the driver refused it.
    """

    def __init__(self, compiled: Any, index: int) -> None:
        metadata = self.metadata = compiled.metadata
        self.index = index
        self.bind: Callable[..., Callable[..., None]] | None = None
        self.name: str = compiled.name
        self.backend: str = metadata.target.backend
        self.signature: dict[str, str] = {}
        self._descriptors: list[str] = []
        self._makers: dict[str, Describe] = {}
        for name, type_ in compiled.src.signature.items():
            if type_.startswith("tensordesc"):
                self._descriptors.append(name)
                types = versions.descriptor_types(type_)
                self.signature |= {f"{name}_{place}": each for place, each in enumerate(types)}
            elif type_ != "constexpr":
                self.signature[name] = type_
        self.shared_memory: int = metadata.shared
        self.scratch_size: int = getattr(metadata, "global_scratch_size", 0) * metadata.num_ctas
        self._runtime = runtime(self.backend)
        check_fits(compiled, device_limits(index, self.backend))
        with _loading, self._runtime.device(index):
            self._names = self._load(compiled)
        self.resident = self._resident(metadata.num_warps * metadata.warp_size)
        self.run: Callable[..., None] = self._make_run()

    def _load(self, compiled: Any) -> dict[str, object]:
        metadata = compiled.metadata
        called = _called(self.index, self.backend)
        try:
            loaded = self._runtime.loaded(compiled.kernel, self.name, metadata.shared, self.index)
            self.function, self.registers, self.spills, threads = loaded
            names = self._launching()
        except versions.BUILD_FAILURES as error:
            raise DeviceError(f"{self.name!r} cannot be loaded on {called}: {error}") from error
        wanted = metadata.num_warps * metadata.warp_size
        if wanted > threads:
            raise DeviceError(
                f"{self.name!r} takes {self.registers} registers a thread, so a program of it can "
                f"have {threads} threads on {called}; num_warps="
                f"{metadata.num_warps} asks for {wanted}. Use fewer warps or a smaller tile."
            )
        return {**names, "function": self.function, "metadata": compiled.packed_metadata}

    def _launching(self) -> dict[str, object]:
        if self.backend != "cuda":
            return versions.call_names(self.signature, self.metadata)
        types = self.signature.values()
        launcher = launcher_of(self.name, self.function, self.metadata, types, self.index)
        self.bind = launcher.bind
        return {"launch": launcher}

    def _resident(self, threads: int) -> int:
        limits = device_limits(self.index, self.backend)
        registers = -(-self.registers // _REGISTER_UNIT) * _REGISTER_UNIT * threads
        each = min(
            limits.registers_per_multiprocessor // max(registers, 1),
            limits.shared_memory_per_multiprocessor // (self.shared_memory + _RESERVED_BYTES),
            limits.threads_per_multiprocessor // threads,
        )
        return max(each, 1) * limits.multiprocessors

    @property
    def names(self) -> dict[str, object]:
        """What the names in `call` stand for."""
        return dict(self._names)

    def call(self, grid: str, stream: str, arguments: Sequence[str], scratch: str = "None") -> str:
        """The expression that launches, for a function that is generated: no call of ours is left.

        Args:
            grid: an expression, the number of programs.
            stream: an expression, the stream's handle.
            arguments: an expression for each run-time parameter.
            scratch: an expression, the address of the scratch memory where the kernel needs some.
        """
        # With the comma one argument is a tuple too, and none is an empty argument list.
        listed = "".join(f"{argument}, " for argument in arguments)
        return versions.call_template(self.backend).format(
            grid=grid, stream=stream, scratch=scratch, arguments=listed
        )

    def describing(self, name: str) -> Describe:
        """What makes the descriptors of one of the kernel's parameters.

        It takes the address, the sizes of what is there, contiguous dimension last, and its strides
        likewise, in elements.
        """
        if name not in self._makers:
            place = self._descriptors.index(name)
            wanted = versions.tensor_maps(self.metadata)[place]
            self._makers[name] = descriptor_maker(self._runtime, wanted)
        return self._makers[name]

    def _make_run(self) -> Callable[..., None]:
        if self.bind is not None and not self.scratch_size:
            return self._names["launch"]  # type: ignore[return-value]
        arguments = [f"argument_{position}" for position in range(len(self.signature))]
        head = f"def run({', '.join(['grid', 'stream', *arguments])}):\n"
        if self.scratch_size:
            body = (
                f"    scratch = allocate(grid * {self.scratch_size}, stream)\n"
                "    try:\n"
                f"        {self.call('grid', 'stream', arguments, 'scratch')}\n"
                "    finally:\n"
                "        free(scratch, stream)\n"
            )
            if_empty = "    if not grid:\n        return\n"
            body = if_empty + body
        else:
            body = f"    {self.call('grid', 'stream', arguments)}\n"
        namespace = {**self._names, "allocate": self._runtime.allocate, "free": self._runtime.free}
        exec(compile(head + body, f"<launch of {self.name}>", "exec"), namespace)
        return namespace["run"]  # type: ignore[return-value]


def check_fits(compiled: Any, limits: DeviceLimits) -> None:
    """`DeviceError` where a compiled kernel needs more than the device has."""
    metadata = compiled.metadata
    if metadata.shared > limits.shared_memory_per_block:
        raise DeviceError(
            f"A tile is too large for {limits.name}: {compiled.name!r} needs {metadata.shared} "
            f"bytes of shared memory a program and the device has "
            f"{limits.shared_memory_per_block}. Use smaller block sizes, or fewer stages than "
            f"num_stages={metadata.num_stages}."
        )
    columns = getattr(metadata, "tmem_size", None) or 0
    if columns > _TENSOR_MEMORY_COLUMNS:
        raise DeviceError(
            f"A tile is too large for {limits.name}: {compiled.name!r} needs {columns} columns of "
            f"tensor memory and the device has {_TENSOR_MEMORY_COLUMNS}. Use smaller block sizes."
        )
    threads = metadata.num_warps * metadata.warp_size
    if threads > limits.threads_per_block:
        raise DeviceError(
            f"{compiled.name!r} asks for num_warps={metadata.num_warps}, {threads} threads, and "
            f"{limits.name} has at most {limits.threads_per_block} a program. Use fewer warps."
        )


@functools.lru_cache(maxsize=64)
def device_limits(index: int, backend: str = "cuda") -> DeviceLimits:
    """What the device has, asked of its driver once; `DeviceError` where there is none."""
    return runtime(backend).limits(index)


def _called(index: int, backend: str) -> str:
    return f"{device_limits(index, backend).name} ({backend}:{index})"


def is_capturing(stream: int, backend: str = "cuda") -> bool:
    """Whether a graph is being captured from this stream of the current device."""
    return runtime(backend).is_capturing(stream)


def flush_bytes(index: int, backend: str = "cuda") -> int:
    """The memory that is written to before each launch that is timed: no cache holds it all."""
    return max(2 * device_limits(index, backend).l2_bytes, 1 << 20)


def measure(
    launch: Callable[[], object],
    stream: int,
    index: int,
    *,
    backend: str = "cuda",
    budget_ms: float = 20.0,
    prepare: Callable[[], object] | None = None,
) -> float:
    """The median time of one launch in milliseconds, with the second-level cache cold.

    Args:
        launch: gives work to the stream.
        stream: the stream's handle.
        index: the device's index.
        backend: the kind of device.
        budget_ms: about how long the device may be kept busy.
        prepare: called before each launch, outside of what is timed; it gives its work to the
            same stream (it restores arguments that the kernel overwrites).
    """
    library = runtime(backend)
    size = flush_bytes(index, backend)
    with library.device(index):
        flush = library.allocate(size)
        try:
            before = functools.partial(_before, library, flush, size, stream, prepare)
            # The first launch pays for what is done lazily; the second tells how many to make.
            _times(library, launch, before, stream, 1)
            (first,) = _times(library, launch, before, stream, 1)
            count = min(max(int(budget_ms / max(first, 1e-3)), 3), 100)
            times = sorted(_times(library, launch, before, stream, count))
        finally:
            library.synchronize(stream)
            library.free(flush)
    return times[len(times) // 2]


def _before(
    library: Runtime, flush: int, size: int, stream: int, prepare: Callable[[], object] | None
) -> None:
    if prepare is not None:
        prepare()
    library.fill(flush, 0, size, stream)


def _times(
    library: Runtime,
    launch: Callable[[], object],
    before: Callable[[], object],
    stream: int,
    count: int,
) -> list[float]:
    pairs = [(Event(library), Event(library)) for _ in range(count)]
    try:
        for start, stop in pairs:
            before()
            start.record(stream)
            launch()
            stop.record(stream)
        pairs[-1][1].synchronize()
        return [stop.elapsed_since(start) for start, stop in pairs]
    finally:
        for pair in pairs:
            for event in pair:
                event.close()
