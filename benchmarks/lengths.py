"""What lengths that change cost: compilations, host time of calls, and device time of what is shared.

    python -m benchmarks.lengths [--kernels softmax,mm] [--count 4096] [--sampled 64] [--output FOLDER]
    python -m benchmarks.lengths --quick      # 256 lengths of one power of two, none tuned for: host times

Each kernel is called with all lengths from 1 to 4096, shuffled, in a process with empty caches that
searches for nothing. Counted are the compilations; timed are the calls once all is warm, and those of
lengths that are new where their classes are known. Then, on sampled lengths, the kernel is set against
one that is made for sizes (``specialize="sizes"``) and tuned for that very length, in turns.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("NINETOOTHED_TUNE", "none")
os.environ.setdefault("NINETOOTHED_CACHE_DIR", tempfile.mkdtemp(prefix="lengths-"))

import torch

import ninetoothed
from benchmarks.common.measure import environment
from benchmarks.common.report import RESULTS, table, write
from examples import mm, rms_norm, sdpa, silu, softmax
from ninetoothed.backends.triton.planning import planner

LONGEST = 4096

#: Calls between two synchronisations: fewer than the device's queue takes.
_IN_A_ROW = 64

#: Launches in a graph, and how often each graph has its turn.
_LAUNCHES, _TURNS = 20, 11


@dataclass(frozen=True)
class Subject:
    """A kernel whose calls have a length.

    Attributes:
        make: makes the kernel anew; takes what `make` does.
        arguments: of a call of this length.
        num_sampled: at most so many lengths are tuned for: searching for some kernels takes long.
        effort: of that search.
    """

    name: str
    make: Callable[..., Any]
    arguments: Callable[[int], tuple[Any, ...]]
    num_sampled: int = 64
    effort: str = "full"


def _tensor(*shape: int) -> torch.Tensor:
    return torch.randn(shape, device="cuda", dtype=torch.float16)


def _made(module: Any) -> Callable[..., Any]:
    return lambda **options: ninetoothed.make(
        module.arrangement, module.application, module.tensors, **options
    )


def _heads(length: int) -> tuple[torch.Tensor, ...]:
    return tuple(_tensor(1, 16, length, 64) for _ in range(3))


def subjects() -> list[Subject]:
    """The five kernels."""
    rows, odd_rows = 2048, 333

    def pair(length: int) -> tuple[torch.Tensor, torch.Tensor]:
        return _tensor(rows, length), torch.empty(rows, length, device="cuda", dtype=torch.float16)

    def flat(length: int) -> tuple[torch.Tensor, torch.Tensor]:
        return _tensor(odd_rows * length), _tensor(odd_rows * length)

    weight = _tensor(LONGEST, LONGEST)
    return [
        Subject("softmax", _made(softmax), pair),
        Subject("rms_norm", _made(rms_norm), lambda n: (pair(n)[0], 1e-6, pair(n)[1])),
        Subject("silu", _made(silu), lambda n: (*flat(n), 1024)),
        Subject(
            "mm",
            _made(mm),
            lambda n: (_tensor(n, LONGEST), weight, _tensor(n, LONGEST)),
            6,
            "quick",
        ),
        Subject("sdpa", _made(sdpa), lambda n: (*_heads(n), 0.125, True, _heads(n)[0]), 6, "quick"),
    ]


class Compilations:
    """Counts what is given to Triton's compiler."""

    def __init__(self) -> None:
        self.count = 0
        self._compile = planner.compiled_for
        planner.compiled_for = self._counted

    def _counted(self, *arguments: Any) -> Any:
        self.count += 1
        return self._compile(*arguments)


def host_times(kernel: Any, subject: Subject, lengths: Sequence[int]) -> list[float]:
    """The microseconds of a call with each of these lengths, on the host."""
    times = []
    for start in range(0, len(lengths), _IN_A_ROW):
        arguments = [subject.arguments(length) for length in lengths[start : start + _IN_A_ROW]]
        torch.cuda.synchronize()
        for given in arguments:
            begin = time.perf_counter_ns()
            kernel(*given)
            times.append((time.perf_counter_ns() - begin) / 1e3)
        torch.cuda.synchronize()
    return times


def device_times(calls: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """The microseconds of each call on the device, round by round, launched in a row."""
    graphs = {}
    for name, call in calls.items():
        call()
        torch.cuda.synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for _ in range(_LAUNCHES):
                call()
    events: dict[str, list[tuple[Any, Any]]] = {name: [] for name in calls}
    names = list(calls)
    for turn in range(_TURNS + 1):
        for name in names if turn % 2 else reversed(names):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graphs[name].replay()
            end.record()
            events[name].append((begin, end))
    torch.cuda.synchronize()
    # The first turn warms up.
    return {
        name: [1e3 * begin.elapsed_time(end) / _LAUNCHES for begin, end in pairs[1:]]
        for name, pairs in events.items()
    }


def check_alike(kernel: Any, exact: Any, given: tuple[Any, ...]) -> None:
    """Both kernels give the same, and leave no element unwritten."""
    output = [each for each in given if isinstance(each, torch.Tensor)][-1]
    found = []
    for each in (kernel, exact):
        output.fill_(torch.nan)
        each(*given)
        found.append(output.clone())
    torch.testing.assert_close(*found, rtol=1e-2, atol=1e-3)


def measured(
    subject: Subject, count: int, sampled: int, counter: Compilations, shortest: int = 1
) -> dict[str, Any]:
    """All figures of one kernel."""
    shuffled = random.Random(0).sample(range(shortest, LONGEST + 1), count)
    kernel = subject.make()
    compiled: Counter[int] = Counter()
    longest = 0.0
    start = time.perf_counter()
    for length in shuffled:
        given, before, begin = subject.arguments(length), counter.count, time.perf_counter()
        kernel(*given)
        longest = max(longest, time.perf_counter() - begin)
        compiled[(length - 1).bit_length()] += counter.count - before
        torch.cuda.synchronize()
    cold, before = time.perf_counter() - start, counter.count
    again = random.Random(1).sample(shuffled, count)
    warm = host_times(kernel, subject, again)
    # Its plans are forgotten; what their classes share is not.
    kernel.forget_launches()
    new = host_times(kernel, subject, shuffled)[1:]
    recompiled = counter.count - before
    result = {
        "kernel": subject.name,
        "lengths": count,
        "compilations": dict(sorted(compiled.items())),
        "compilations when warm": recompiled,
        "seconds cold": cold,
        "longest call, s": longest,
        "warm call, µs": _spread(warm),
        "new length, µs": _spread(new),
        "device": [],
    }
    for length in sorted(shuffled[: min(sampled, subject.num_sampled)]):
        exact = subject.make(specialize="sizes")
        given = subject.arguments(length)
        tuned = ninetoothed.tune(exact, *given, effort=subject.effort)
        times = device_times(
            {
                "classes": lambda given=given: kernel(*given),
                "this length": lambda given=given, exact=exact: exact(*given),
            }
        )
        check_alike(kernel, exact, given)
        ratios = [a / b for a, b in zip(times["classes"], times["this length"], strict=True)]
        result["device"].append(
            {
                "length": length,
                "µs": {name: statistics.median(each) for name, each in times.items()},
                "ratio": statistics.median(ratios),
                "tuned": str(tuned.config),
            }
        )
    return result


def _spread(times: Sequence[float]) -> dict[str, float]:
    ordered = sorted(times)
    return {
        "median": statistics.median(ordered),
        "p99": ordered[int(len(ordered) * 0.99)],
        "p99.9": ordered[min(int(len(ordered) * 0.999), len(ordered) - 1)],
        "max": ordered[-1],
    }


def _row(result: dict[str, Any]) -> list[str]:
    ratios = [each["ratio"] for each in result["device"]]
    warm, new = result["warm call, µs"], result["new length, µs"]
    return [
        result["kernel"],
        str(sum(result["compilations"].values())),
        str(max(result["compilations"].values())),
        str(result["compilations when warm"]),
        f"{warm['median']:.1f}",
        f"{warm['p99.9']:.1f}",
        f"{new['median']:.1f}",
        f"{new['p99.9']:.1f}",
        f"{result['longest call, s']:.2f}",
        f"{statistics.geometric_mean(ratios):.3f}" if ratios else "-",
        f"{max(ratios):.3f}" if ratios else "-",
    ]


HEADER = (
    "kernel",
    "compilations",
    "for a power of two",
    "once warm",
    "warm call, µs",
    "P99.9",
    "new length, µs",
    "P99.9",
    "longest call, s",
    "device time over this length's, mean",
    "worst",
)


def main() -> None:
    """Measures, prints a table and writes it with the raw figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernels", default="softmax,rms_norm,silu,mm,sdpa")
    parser.add_argument("--count", type=int, default=LONGEST)
    parser.add_argument("--sampled", type=int, default=64)
    parser.add_argument("--output", type=Path, default=RESULTS / "lengths")
    parser.add_argument("--quick", action="store_true", help="half a minute, for host times")
    options = parser.parse_args()
    shortest = 1
    if options.quick:
        options.count, options.sampled, shortest = 256, 0, LONGEST // 2 + 1
    counter, results = Compilations(), []
    wanted = options.kernels.split(",")
    for subject in subjects():
        if subject.name in wanted:
            results.append(measured(subject, options.count, options.sampled, counter, shortest))
            print(table(HEADER, [_row(results[-1])]), flush=True)
            for each in results[-1]["device"]:
                us = each["µs"]
                print(
                    f"  {each['length']:5} {us['classes']:8.2f} {us['this length']:8.2f} µs "
                    f"{each['ratio']:.3f}  {each['tuned']}",
                    flush=True,
                )
    text = table(HEADER, [_row(result) for result in results])
    label = "lengths-quick" if options.quick else None
    for path in write("lengths", environment(), text, results, options.output, label):
        print(path)


if __name__ == "__main__":
    main()
