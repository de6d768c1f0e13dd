"""Checks of devices and streams: a launch goes where the framework's own work goes."""

from __future__ import annotations

import time
from typing import Any

import numpy

from ninetoothed.testing.expectations import Expectations, expect


class StreamChecks(Expectations):
    """What is current before, in and after the contexts."""

    def test_device_guard(self) -> None:
        if self.device.kind == "cpu":
            self.skip("a device guard needs a device that is not the CPU")
        with self.frontend.device_guard(self.device.index):
            made = self.frontend.empty((2,), self.element_types[0], self.device)
            self.frontend.synchronize(self.device.index)
        found = self.frontend.device_of(self.read("device", made))
        expect(found == self.device, f"a tensor made under the device guard is on {found}")

    def test_event(self) -> None:
        if self.frontend.event is None or self.device.kind == "cpu":
            self.skip("events need a device that is not the CPU, and a frontend that has some")
        start, end = self.frontend.event(), self.frontend.event()
        start.record()
        self._busy(self._work_tensor(), 20)
        end.record()
        self.frontend.synchronize(self.device.index)
        milliseconds = start.elapsed_time(end)
        expect(milliseconds > 0, f"events around 20 launches lie {milliseconds!r} ms apart")

    def test_stream_is_a_handle(self) -> None:
        self._needs_streams()
        found = self.frontend.current_stream(self.device.index)
        expect(type(found) is int, f"`stream` is {found!r}; it must be the stream's handle, an int")

    def test_the_current_stream_is_followed(self) -> None:
        self._needs_streams()
        outside = self.frontend.current_stream(self.device.index)
        handles = []
        for stream in self.streams():
            with stream:
                handles.append(self.frontend.current_stream(self.device.index))
        expect(
            len({outside, *handles}) == 3,
            f"`stream` is {outside} outside of two new streams and {handles} in them: the wrong "
            "stream; it must be the one that is current when it is read",
        )
        after = self.frontend.current_stream(self.device.index)
        expect(
            after == outside, f"`stream` was {outside} before other streams, and is {after} after"
        )

    def test_launches_are_in_the_order_of_the_current_stream(self) -> None:
        """A long queue of launches, then the framework reads: it waits for this stream alone."""
        self._needs_streams()
        _, launches = self.stream_work
        for number, stream in enumerate(self.streams()):
            with stream:
                tensor = self._work_tensor()
                self._busy(tensor, launches)
                found = self.found(tensor)
                expect(
                    bool((found == launches).all()),
                    f"in stream {number} the framework read {found.min()} to {found.max()} after "
                    f"{launches} launches that each add 1: they went to the wrong stream, not to "
                    "the one that is current",
                )

    def test_streams_overlap(self) -> None:
        """Work in one stream does not wait for another's."""
        self._needs_streams()
        _, launches = self.stream_work
        first, second = self.streams()
        with second:
            # Planned and compiled before anything is timed.
            small = self.made(numpy.zeros((64,), numpy.float32))
            self._busy(small, 1)
            self.found(small)
        with first:
            tensor = self._work_tensor()
            self._busy(tensor, 1)
            self.found(tensor)
            start = time.perf_counter()
            self._busy(tensor, launches)
        with second:
            self._busy(small, 1)
            found = self.found(small)
            between = time.perf_counter() - start
        with first:
            self.found(tensor)
            total = time.perf_counter() - start
        expect(
            bool((found == 2).all()),
            f"in the second stream the framework read {found[:1]} after 2 launches that each add 1: "
            "the wrong stream",
        )
        expect(
            between < 0.8 * total,
            f"a launch in the second stream was done after {1e3 * between:.1f} ms, and all work in "
            f"the first after {1e3 * total:.1f} ms: the streams do not overlap. Both went to one "
            "stream, or to one that waits for the others",
        )

    def _needs_streams(self) -> None:
        if self.device.kind == "cpu" or len(tuple(self.streams())) != 2:
            self.skip("`streams` gives no two streams on a device that is not the CPU")

    def _work_tensor(self) -> Any:
        elements, _ = self.stream_work
        return self.made(numpy.zeros((elements,), numpy.float32))

    def _busy(self, tensor: Any, launches: int) -> None:
        self.before_launching()
        kernel = self.kernels["increment"]
        for _ in range(launches):
            kernel(tensor, BLOCK_SIZE=self.block_size)
