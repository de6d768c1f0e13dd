"""The three settings, timed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from benchmarks.common.measure import DoBench, Timer
from benchmarks.option_trials.contenders import Contender, in_peace
from benchmarks.option_trials.tasks import Call

# Timing.


class Cold(DoBench):
    """`triton.testing.do_bench`, marks in the cache taken back before another contender's turn.

    Who times one kernel alone finds none of another's.
    """

    forget_kept = staticmethod(Timer.forget_kept)


def timers() -> dict[str, Timer]:
    """What times each setting."""
    in_a_row = Timer("none")
    return {"do_bench": Cold(), "row": in_a_row, "chain": in_a_row}


def captured(calls: Sequence[Call]) -> Call:
    """The calls as a CUDA graph: no host is waited for between them."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        for call in calls:
            call()
    return graph.replay


def timed(
    contenders: Mapping[str, Contender], rounds: int, launches: str
) -> dict[str, dict[str, list[float]]]:
    """The milliseconds of each contender in each round, by setting."""
    in_peace()
    found = {}
    for setting, timer in timers().items():
        functions: dict[str, Sequence[Call]] = {
            label: contender.calls[setting]
            for label, contender in contenders.items()
            if setting in contender.calls
        }
        if setting != "do_bench" and launches == "graph":
            functions = {label: [captured(calls)] for label, calls in functions.items()}
        if functions:
            found[setting] = timer.rounds(functions, rounds)
    return found
