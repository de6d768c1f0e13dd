"""Times functions on a CUDA device, the contenders interleaved, and says on what it ran.

A card's clocks move with its temperature, so a time alone is a hint: the results are ratios taken
round by round between contenders that run in turns.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence

import torch
from triton.testing import do_bench

#: Larger than any L2 cache: writing it before a call leaves the call's inputs in memory.
_FLUSH_BYTES = 256 * 2**20


#: Sets of arguments that are used in turns come to so many bytes, several times the L2 cache.
_TURNS_BYTES = 512 * 2**20
_MOST_TURNS = 8

#: So many milliseconds of calls and flushes make one time with `do_bench`.
_DO_BENCH = 20


def _head_start(repetitions: int) -> int:
    """How many buffers to write before so many calls: meanwhile the host gets ahead of the device.

    A buffer takes 65 µs, and a call of Triton's launcher up to 30 µs more than what it launches.
    """
    return 2 + repetitions // 2


def num_turns(num_bytes: int) -> int:
    """How many sets of arguments of this size to use in turns.

    Lines of the L2 cache that a kernel marked to stay (``evict_last``) survive a flush, so that the
    same arguments must not come again soon.
    """
    return max(1, min(_MOST_TURNS, -(-_TURNS_BYTES // max(num_bytes, 1))))


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("libcuda.so.1")


class Timer:
    """Times calls with CUDA events, each by itself with a cold L2 cache, or in a row.

    Args:
        flush: how the cache is made cold: ``"write"`` leaves it full of lines that must be written
            back, as `triton.testing.do_bench` does, ``"read"`` full of clean ones. With ``"none"``
            calls follow one another as in a program, and share what lies between two kernels.
    """

    def __init__(self, flush: str = "write") -> None:
        buffer = torch.zeros(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")
        self._flush = {"write": buffer.zero_, "read": buffer.sum, "none": None}[flush]
        self._busy = buffer.zero_

    @staticmethod
    def forget_kept() -> None:
        """Takes back what kernels marked to stay in the L2 cache, before another contender's turn.

        Such lines survive a flush, and leave less of the cache to be filled with what must be written.
        """
        torch.cuda.synchronize()
        if error := _driver().cuCtxResetPersistingL2Cache():
            raise RuntimeError(f"cuCtxResetPersistingL2Cache failed with error {error}")

    def milliseconds(self, turns: Sequence[Callable[[], object]], repetitions: int) -> float:
        """The median time of so many calls of these functions, in turns; in a row, the mean."""
        if self._flush is None:
            return self._in_a_row(turns, repetitions)
        starts, ends = (
            [torch.cuda.Event(enable_timing=True) for _ in range(repetitions)] for _ in range(2)
        )
        for _ in range(_head_start(repetitions)):
            self._busy()
        for function, start, end in zip(itertools.cycle(turns), starts, ends):
            # While this runs on the device, the host prepares the launch: what the events measure
            # is the kernel and not its preparation.
            self._flush()
            start.record()
            function()
            end.record()
        torch.cuda.synchronize()

        return statistics.median(
            start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)
        )

    def _in_a_row(self, turns: Sequence[Callable[[], object]], repetitions: int) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        for _ in range(_head_start(repetitions)):
            self._busy()
        start.record()
        for function in itertools.islice(itertools.cycle(turns), repetitions):
            function()
        end.record()
        torch.cuda.synchronize()

        return start.elapsed_time(end) / repetitions

    def repetitions_for(self, turns: Sequence[Callable[[], object]], budget: float = 25.0) -> int:
        """How many calls fill a budget in milliseconds, between 10 and 200."""
        return int(min(200, max(10, budget / max(self.milliseconds(turns, 5), 1e-3))))

    def rounds(
        self,
        functions: Mapping[str, Sequence[Callable[[], object]]],
        rounds: int,
        budget: float = 25.0,
    ) -> dict[str, list[float]]:
        """The time of each function in each round, in milliseconds.

        A round goes through the functions and then back, and takes the mean of both times: on an
        H200 every second turn was 2% slower in a cold cache, whoever's it was. The order turns with
        the round. Each function is given several times, with arguments of its own, which are used in
        turns.
        """
        names = list(functions)
        repetitions = {name: self.repetitions_for(functions[name], budget) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}

        for index in range(rounds):
            turn = index % len(names)
            order = names[turn:] + names[:turn]
            found: dict[str, list[float]] = {name: [] for name in names}
            for name in order + order[::-1]:
                self.forget_kept()
                # The clocks follow the load: a call or two of its own before what counts.
                self.milliseconds(functions[name], 3)
                half = -(-repetitions[name] // 2)
                found[name].append(self.milliseconds(functions[name], half))
            for name in names:
                times[name].append(statistics.mean(found[name]))

        return times


class DoBench(Timer):
    """Times calls with `triton.testing.do_bench`, always with the first set of arguments."""

    def __init__(self) -> None:
        # It flushes the cache itself.
        super().__init__("none")

    @staticmethod
    def forget_kept() -> None:
        """Takes nothing back, as others who time with this function do not."""

    def milliseconds(self, turns: Sequence[Callable[[], object]], repetitions: int) -> float:
        """The median time of calls; how many there are is the function's own choice."""
        return float(do_bench(turns[0], warmup=5, rep=_DO_BENCH, return_mode="median"))


def first_call(function: Callable[[], object]) -> float:
    """The seconds a call takes to its end on the device: compiling and tuning, if it is the first."""
    start = time.perf_counter()
    function()
    torch.cuda.synchronize()

    return time.perf_counter() - start


def environment() -> dict[str, str]:
    """The machine, the versions and the date."""
    import triton

    import ninetoothed

    return {
        "device": torch.cuda.get_device_name(),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "cuda": str(torch.version.cuda),
        "ninetoothed": getattr(ninetoothed, "__version__", "unknown"),
    }
