"""Memory of ours on a device, for what the programs of one launch tell each other (`split_k`).

A stream's launches run one after the other, so they share one workspace: counters, which are 0 between
launches, and after them room for sums. It is made when a stream first needs it and kept as long as the
process; nobody tells when a stream is gone. A launch that goes into a graph, or into a stream that is
not the same in every thread, has one to itself, and so has one of a stream that comes when many have one
already: it is taken and given back in the stream's order; in a graph it is the graph's own, and lives
as long as that.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from ninetoothed import threads
from ninetoothed.backends.triton.ir.nodes import MOST_COUNTERS
from ninetoothed.backends.triton.runtime.device_api import Runtime, runtime
from ninetoothed.symbols.operators import next_power_of_2

#: The bytes of the counters: what stands before the sums.
COUNTER_BYTES = 4 * MOST_COUNTERS

#: So many streams of a device keep a workspace. A framework's pool is smaller: PyTorch's has 32 streams
#: of a priority.
MOST_STREAMS = 64

#: CUDA's handle of each thread's own default stream: one number, many streams.
_STREAM_OF_THREAD = 2

#: The default stream. No graph is captured from it.
_DEFAULT_STREAM = 0


class Workspaces:
    """The workspaces of one device."""

    def __init__(self, library: Runtime, index: int) -> None:
        self._library = library
        self._index = index
        #: Address and room by the stream's number. A handle may be given to a stream again while the
        #: one before that had it still runs.
        self._kept: dict[int, tuple[int, int]] = {}
        self._lock = threads.lock()

    def borrow(self, stream: int, size: int) -> tuple[int, Callable[[int, int], None] | None]:
        """A workspace for the stream's next launch, and what gives it back after that, if anything.

        Args:
            size: how many bytes are needed after the counters.

        Returns:
            its address, and a function of address and stream, or None.
        """
        number = _DEFAULT_STREAM if stream == _DEFAULT_STREAM else self._number_of(stream)
        if number is None:
            return self._made(size, stream), self._library.free
        address, room = self._kept.get(number, (0, -1))
        return (address if room >= size else self._grown(number, stream, size)), None

    def _number_of(self, stream: int) -> int | None:
        """What the stream's workspace is kept under; None where its launches have one each."""
        if stream == _STREAM_OF_THREAD or self._library.is_capturing(stream):
            return None
        number = self._library.number_of(stream)
        return number if number in self._kept or len(self._kept) < MOST_STREAMS else None

    def _made(self, size: int, stream: int) -> int:
        address = self._library.allocate(COUNTER_BYTES + size, stream)
        self._library.fill(address, 0, COUNTER_BYTES, stream)
        return address

    def _grown(self, number: int, stream: int, size: int) -> int:
        with self._lock:
            address, room = self._kept.get(number, (0, -1))
            if room < size:
                # The one before stays: a launch of another thread may be about to be given it. All
                # of a stream together are less than twice as large as the last.
                room = next_power_of_2(size)
                with self._library.device(self._index), self._library.capturing_elsewhere():
                    address = self._library.allocate(COUNTER_BYTES + room)
                    self._library.fill(address, 0, COUNTER_BYTES, stream)
                self._kept[number] = address, room
            return address


@functools.lru_cache(maxsize=64)
def workspaces(index: int, backend: str) -> Workspaces:
    """The workspaces of a device."""
    return Workspaces(runtime(backend), index)
