"""The search for the fastest configuration: within a budget, interruptible, nothing found twice.

It begins with what the estimate ranks first and goes on with the neighbours of the best that was
measured, until none of them is better. Several configurations compile at a time, in threads; one at
a time is measured, briefly at first, at length where it may win. Each time is kept as it comes.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

from ninetoothed import threads
from ninetoothed.errors import CompilationError, DeviceError, NineToothedError
from ninetoothed.tuning.results import Results
from ninetoothed.tuning.space import Config, Effort, Space

Compiled = TypeVar("Compiled")

#: A brief measurement that is this much slower than the best is not repeated at length.
_LOSING = 1.15


#: About how many milliseconds the device is kept busy by a brief and by a long measurement, and by
#: one of the rounds in which the finalists are compared.
_BRIEF, _LONG, _ROUND = 1.5, 8.0, 4.0

#: The finalists: as slow as this compared with the best, at most so many, in so many rounds. Those
#: whose times differ by less than a tie are ranked by the estimate.
_CLOSE, _MOST_FINALISTS, _ROUNDS, _TIE = 1.04, 5, 5, 1.01

#: Neighbours that are tried at a time, and how much slower than the best they may be estimated.
_MOST_NEIGHBOURS, _HOPELESS = 12, 2.0

#: So many that are tried together, the most promising ones, are measured again in peace.
_MOST_AGAIN = 16

#: So many failures are told of where all failed.
_MOST_TOLD = 24

#: So many of the best that were measured have their neighbours tried.
_MOST_CENTRES = 2


class Search(Generic[Compiled]):
    """A budgeted search for the fastest configuration of a space.

    Args:
        name: the kernel's, for messages.
        space: what there is to choose from.
        compile_config: makes a configuration ready to launch; several run at a time, in threads.
        measure: the milliseconds of one launch, given about how many the device may be kept busy.
        results: what is known already; each new result is recorded.
        effort: how much may be spent.
        workers: how many compile at a time; by default as many as there are cores but one.
        clock: the seconds of a clock that only goes forward.
    """

    def __init__(
        self,
        name: str,
        space: Space,
        compile_config: Callable[[Config], Compiled],
        measure: Callable[[Compiled, float], float],
        results: Results,
        effort: Effort,
        workers: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._space = space
        self._compile = compile_config
        self._measure = measure
        self._results = results
        self._effort = effort
        self._clock = clock
        self._name = name
        self._pool = ThreadPoolExecutor(
            workers or max(1, min(16, (os.cpu_count() or 2) - 1)),
            thread_name_prefix="ninetoothed-compile",
        )
        self._deadline = math.inf
        self._times: dict[Config, float] = {}
        self._compiled: dict[Config, Compiled] = {}
        self._pending: dict[Config, Future[Compiled]] = {}
        # Not kept on disk: a device that was out of memory once need not be the next time.
        self._failures: dict[Config, NineToothedError] = {}
        self._progress = _Progress(name)

    def run(self) -> Config:
        """The fastest configuration that was found; what fails to compile or run is passed over.

        Raises:
            CompilationError: every configuration failed; the reasons are listed.
        """
        self._deadline = self._clock() + self._effort.budget_seconds
        try:
            self._explore()
            if not self._times:
                raise all_failed(self._name, self._failures)
            chosen = self._decide()
        finally:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._progress.close()
            # What an interrupt leaves is there for the next search.
            self._results.write()
        self._results.finish(self._effort.name, chosen)
        return chosen

    def _explore(self) -> None:
        remaining = self._space.ranked
        count = self._effort.num_starts
        while remaining and not self._times:
            # Where all of the first fail, the next are tried, whatever it takes.
            self._try_all(self._space.starts(count) if not self._failures else remaining[:count])
            remaining = [config for config in remaining if config not in self._failures]
        if not self._times:
            for config in self._space.instead(self._failures):
                self._try_all([config])
                if self._times:
                    break
        centres: set[Config] = set()
        while not self._is_over() and len(centres) < len(self._times):
            ranked = sorted(self._times, key=self._ranking)
            centre = next(config for config in ranked if config not in centres)
            if ranked.index(centre) >= _MOST_CENTRES:
                break
            centres.add(centre)
            self._try_all(self._promising(self._space.neighbours(centre), centre))

    def _promising(self, neighbours: Iterable[Config], centre: Config) -> list[Config]:
        costs = self._space.costs
        most = _HOPELESS * costs[centre]
        fresh = [
            config
            for config in neighbours
            if config not in self._times and config not in self._failures and costs[config] <= most
        ]
        return fresh[:_MOST_NEIGHBOURS]

    def _ranking(self, config: Config) -> tuple[float, float]:
        return self._times[config], self._space.costs[config]

    def _is_over(self) -> bool:
        return self._clock() >= self._deadline

    def _try_all(self, configs: Sequence[Config]) -> None:
        """Measures configurations in order, until the time is over and something was found."""
        promising, disturbed = set(configs[:_MOST_AGAIN]), []
        for config, compilation in self._compilations(configs):
            if self._times and self._is_over():
                break
            self._try(config, compilation)
            if config in promising and config in self._compiled and self._is_compiling():
                disturbed.append(config)
            self._forget_losers(disturbed)
            self._progress.update(self._times, self._failures)
        self._try_again(disturbed)

    def _try_again(self, configs: Sequence[Config]) -> None:
        """Measures in peace what was measured while others compiled; the lesser time counts.

        Compilers hold Python's lock for milliseconds, in which a launch waits for its turn.
        """
        for config in configs:
            if self._is_over():
                break
            try:
                found = self._time(self._compiled[config])
            except DeviceError:
                # It has its time.
                continue
            if found < self._times[config]:
                self._times[config] = found
                self._results.record(config, found)
        self._forget_losers()

    def _compilations(
        self, configs: Sequence[Config]
    ) -> Iterator[tuple[Config, Future[Compiled] | None]]:
        """Each with its compilation, all begun at once; None where its time is known already."""
        self._pending = {
            config: self._pool.submit(self._compile, config)
            for config in configs
            if config not in self._results.times
        }
        try:
            for config in configs:
                yield config, self._pending.pop(config, None)
        finally:
            for future in self._pending.values():
                future.cancel()
            self._pending = {}

    def _is_compiling(self) -> bool:
        return not all(future.done() for future in self._pending.values())

    def _try(self, config: Config, compilation: Future[Compiled] | None) -> None:
        if compilation is None:
            self._times[config] = self._results.times[config]
            return
        if not self._is_compiled_in_time(compilation):
            return
        try:
            compiled = compilation.result()
            found = self._time(compiled)
        except (CompilationError, DeviceError) as error:
            self._failures[config] = error.with_traceback(None)
            return
        self._times[config], self._compiled[config] = found, compiled
        self._results.record(config, found)

    def _is_compiled_in_time(self, compilation: Future[Compiled]) -> bool:
        """Whether a compilation ends before the search has to, where something was found already."""
        rest = self._deadline - self._clock()
        if self._times and rest < math.inf:
            wait([compilation], max(rest, 0.0))
            return compilation.done()
        return True

    def _forget_losers(self, kept: Sequence[Config] = ()) -> None:
        """Drops slow kernels, but for some: a loaded one takes memory of the device."""
        least = min(self._times.values(), default=math.inf)
        for loser in [c for c in self._compiled if self._times[c] > _LOSING * least]:
            if loser not in kept:
                del self._compiled[loser]

    def _time(self, compiled: Compiled) -> float:
        best = min(self._times.values(), default=math.inf)
        brief = self._measure(compiled, _BRIEF)
        return brief if brief > _LOSING * best else self._measure(compiled, _LONG)

    def _decide(self) -> Config:
        """The fastest of those that are close, measured in turns: clocks move with the heat."""
        ranked = sorted(self._times, key=self._ranking)
        close = [c for c in ranked if self._times[c] <= _CLOSE * self._times[ranked[0]]]
        finalists = [config for config in close[:_MOST_FINALISTS] if self._is_ready(config)]
        if not finalists:
            # What was measured by another process may fail in this one.
            finalists = [next((config for config in ranked if self._is_ready(config)), ranked[0])]
        if len(finalists) > 1:
            rounds: dict[Config, list[float]] = {config: [] for config in finalists}
            for turn in range(_ROUNDS):
                first = turn % len(finalists)
                for config in finalists[first:] + finalists[:first]:
                    rounds[config].append(self._measure(self._compiled[config], _ROUND))
            for config, found in rounds.items():
                self._times[config] = self._results.times[config] = statistics.median(found)
        least = min(self._times[config] for config in finalists)
        ties = [config for config in finalists if self._times[config] <= _TIE * least]
        return min(ties, key=lambda config: (self._space.costs[config], str(config)))

    def _is_ready(self, config: Config) -> bool:
        """Whether a configuration is compiled; one whose time was known from before is now."""
        if config not in self._compiled:
            try:
                self._compiled[config] = self._compile(config)
            except (CompilationError, DeviceError) as error:
                self._failures[config] = error.with_traceback(None)
                return False
        return True


def first_working(
    name: str, space: Space, compile_config: Callable[[Config], Compiled]
) -> tuple[Config, Compiled]:
    """The best ranked configuration that compiles and fits: what is used without a search.

    Raises:
        CompilationError: every configuration failed; the reasons are listed.
    """
    failures: dict[Config, NineToothedError] = {}
    first = space.first
    others = (config for config in space.ranked if config != first)
    for config in itertools.chain([first], others, space.instead(failures)):
        try:
            return config, compile_config(config)
        except (CompilationError, DeviceError) as error:
            failures[config] = error.with_traceback(None)
    raise all_failed(name, failures)


def all_failed(name: str, failures: Mapping[Config, NineToothedError]) -> CompilationError:
    """The error that says why no configuration can be used, at their place if they have the same one.

    Where they have the same reason there too, it is the application's, and no block sizes'; where they are of
    one class, that is the error's.
    """
    told = list(failures.items())
    places = {error.location for error in failures.values()}
    place = places.pop() if len(places) == 1 else None
    # What follows the first line may quote the generated text, which is another with each option.
    reasons = {error.message.splitlines()[0] for error in failures.values()}
    if place is not None and len(reasons) == 1:
        classes, first = {type(error) for error in failures.values()}, told[0][1]
        is_one = len(classes) == 1 and isinstance(first, CompilationError)
        return (type(first) if is_one else CompilationError)(first.message, place)  # type: ignore[return-value]
    listed = "\n".join(
        f"  {config}: {error.message.splitlines()[0]}" for config, error in told[:_MOST_TOLD]
    )
    if len(told) > _MOST_TOLD:
        listed += f"\n  and {len(told) - _MOST_TOLD} more"
    return CompilationError(
        f"None of the {len(failures)} configurations of {name!r} can be used. "
        f"Narrow the bounds of its block sizes.\n{listed}",
        place,
    )


class Budget:
    """The seconds that this process has spent on searches nobody asked for."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._refused = False
        self._lock = threads.lock()

    def has(self, allowance: float) -> bool:
        """Whether less than this was spent."""
        return self._spent < allowance

    def is_first_refusal(self) -> bool:
        """Whether nobody has been told before that it is empty."""
        with self._lock:
            was_refused, self._refused = self._refused, True
        return not was_refused

    def pay(self, seconds: float) -> None:
        """Notes what was spent."""
        with self._lock:
            self._spent += seconds


class _Progress:
    """One line on a terminal; nothing anywhere else."""

    def __init__(self, name: str) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._name = name

    def update(
        self, times: Mapping[Config, float], failures: Mapping[Config, NineToothedError]
    ) -> None:
        if not self._shown:
            return
        line = f"tuning {self._name}: {len(times)} measured"
        if failures:
            line += f", {len(failures)} failed"
        if times:
            best = min(times, key=lambda config: times[config])
            line += f", best {times[best]:.4g} ms: {best}"
        sys.stderr.write(f"\r\033[K{line[:118]}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()
