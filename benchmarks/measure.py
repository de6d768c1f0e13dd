"""Times functions on a CUDA device, the contenders interleaved, and says on what it ran.

A card's clocks move with its temperature, so a time alone is a hint: the results are ratios taken
round by round between contenders that run in turns.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable, Mapping

import torch

#: Larger than any L2 cache: writing it before a call leaves the call's inputs in memory.
_FLUSH_BYTES = 256 * 2**20


class Timer:
    """Times calls with CUDA events, each with a cold L2 cache."""

    def __init__(self) -> None:
        self._flush = torch.empty(_FLUSH_BYTES // 4, dtype=torch.int32, device="cuda")

    def milliseconds(self, function: Callable[[], object], repetitions: int) -> float:
        """The median time of so many calls."""
        starts, ends = (
            [torch.cuda.Event(enable_timing=True) for _ in range(repetitions)] for _ in range(2)
        )
        for start, end in zip(starts, ends, strict=True):
            # While this runs on the device, the host prepares the launch: what the events measure
            # is the kernel and not its preparation.
            self._flush.zero_()
            start.record()
            function()
            end.record()
        torch.cuda.synchronize()

        return statistics.median(
            start.elapsed_time(end) for start, end in zip(starts, ends, strict=True)
        )

    def repetitions_for(self, function: Callable[[], object], budget: float = 25.0) -> int:
        """How many calls fill a budget in milliseconds, between 10 and 200."""
        return int(min(200, max(10, budget / max(self.milliseconds(function, 5), 1e-3))))

    def rounds(
        self, functions: Mapping[str, Callable[[], object]], rounds: int
    ) -> dict[str, list[float]]:
        """The time of each function in each round, in milliseconds; the order turns with the round."""
        names = list(functions)
        repetitions = {name: self.repetitions_for(functions[name]) for name in names}
        times: dict[str, list[float]] = {name: [] for name in names}

        for index in range(rounds):
            turn = index % len(names)
            for name in names[turn:] + names[:turn]:
                # The clocks follow the load: a call or two of its own before what counts.
                self.milliseconds(functions[name], 3)
                times[name].append(self.milliseconds(functions[name], repetitions[name]))

        return times


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
