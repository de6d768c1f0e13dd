"""Launches of a kernel on a call's own tensors, for timing; what they overwrite is put back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ninetoothed.backends.base import Argument, Call
from ninetoothed.backends.triton.runtime import driver
from ninetoothed.backends.triton.runtime.device_api import Runtime, runtime
from ninetoothed.errors import DeviceError
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import Load, SourceLoad, SourcePointer, SourceStore, Store


class NoRoomError(DeviceError):
    """The device has no memory left for what timing a kernel needs."""


class Benchmark:
    """Times launches of one call.

    Args:
        kernel, call: what is timed.
        values: what a launch is given, stream first.
        names: of the values after the stream.
    """

    def __init__(
        self, kernel: Definition, call: Call, values: tuple[Any, ...], names: list[str]
    ) -> None:
        self._kernel = kernel
        self._call = call
        self._values = values
        self._pointers = dict(zip(names, values[1:]))
        self._kept: list[tuple[int, int, int]] = []

    @contextmanager
    def begun(self) -> Iterator[Benchmark]:
        """Within, `measure` may be called; at the end the arguments are as they were.

        Raises:
            NoRoomError: there is no memory for a copy of what is overwritten, or for the timing.
        """
        index, backend = self._call.device.index, self._call.device.kind
        library, stream = runtime(backend), self._values[0]
        with library.device(index):
            try:
                self._keep(library, index, backend)
                try:
                    yield self
                finally:
                    self._restore()
            finally:
                library.synchronize(stream)
                for _, copy, _ in self._kept:
                    library.free(copy)
                self._kept = []

    def measure(self, run: Callable[..., None], budget_ms: float) -> float:
        """The milliseconds of one launch, the device kept busy for about so many."""
        return driver.measure(
            lambda: run(*self._values),
            self._values[0],
            self._call.device.index,
            backend=self._call.device.kind,
            budget_ms=budget_ms,
            prepare=self._restore if self._kept else None,
        )

    def _keep(self, library: Runtime, index: int, backend: str) -> None:
        stream = self._values[0]
        try:
            library.free(library.allocate(driver.flush_bytes(index, backend)))
            spans = self._spans()
            for name in self._overwritten():
                address, end = spans[name]
                size = end - address
                copy = library.allocate(size)
                self._kept.append((address, copy, size))
                library.copy(copy, address, size, stream)
        except DeviceError as error:
            raise NoRoomError(
                f"kernel `{self._kernel.name}` cannot be tuned: the device has no memory left for a "
                f"copy of what it overwrites and for the timing. {error.message}"
            ) from error

    def _restore(self) -> None:
        library = runtime(self._call.device.kind)
        for address, copy, size in self._kept:
            library.copy(address, copy, size, self._values[0])

    def _overwritten(self) -> list[str]:
        """The tensors that the kernel may both read and write, in one launch or the next."""
        written = {
            node.tile.parameter if isinstance(node, Store) else node.parameter
            for node in self._kernel.optimized.nodes()
            if isinstance(node, (Store, SourceStore, SourcePointer))
        }
        read = {
            node.tile.parameter if isinstance(node, Load) else node.parameter
            for node in self._kernel.optimized.nodes()
            if isinstance(node, (Load, SourceLoad, SourcePointer))
        }
        spans = self._spans()
        return [
            name
            for name in sorted(written)
            if any(
                spans[name][0] < spans[other][1] and spans[other][0] < spans[name][1]
                for other in read
                if other in spans
            )
        ]

    def _spans(self) -> Mapping[str, tuple[int, int]]:
        """Where the memory of each tensor begins and ends."""
        spans = {}
        for name, argument in self._call.arguments.items():
            first, end = _reach(argument)
            spans[name] = self._pointers[name] + first, self._pointers[name] + end
        return spans


def _reach(argument: Argument) -> tuple[int, int]:
    """Where a tensor's memory begins and ends, in bytes from its first element; some strides may be negative."""
    if 0 in argument.shape:
        return 0, 0
    steps = [(size - 1) * stride for size, stride in zip(argument.shape, argument.strides)]
    lowest, highest = (sum(limit(step, 0) for step in steps) for limit in (min, max))
    return lowest * argument.dtype.itemsize, (highest + 1) * argument.dtype.itemsize
