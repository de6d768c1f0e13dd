"""The space of configurations and the search in it. No device and no framework is known here.

Configurations come ranked by an estimate; a budgeted search compiles several at a time, measures
one at a time, and stores each result as it comes, so that nothing found is lost or found twice.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ninetoothed.cache import Cache
from ninetoothed.errors import CompilationError, DeviceError, NineToothedError, near

Compiled = TypeVar("Compiled")

#: The bounds of a meta symbol that has none.
LOWER_BOUND = 32
UPPER_BOUND = 1024

DEFAULT_NUM_WARPS = (4, 8)
DEFAULT_NUM_STAGES = (2, 3, 4)

#: A space larger than this is thinned whatever was asked for.
_LARGEST_SPACE = 4096

#: A quick measurement that is this much slower than the best is not repeated at length.
_LOSING = 1.15

_EFFORTS = ("none", "quick", "full")


@dataclass(frozen=True)
class Config:
    """One choice for everything that is chosen.

    Attributes:
        values: the meta symbols by name.
        num_warps: warps a program.
        num_stages: stages of a pipelined loop.
        options: what of the backend's options differs from their defaults, by name.
    """

    values: tuple[tuple[str, int], ...]
    num_warps: int
    num_stages: int
    options: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", tuple(sorted(self.values)))
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def __getitem__(self, name: str) -> int:
        return dict(self.values)[name]

    def __str__(self) -> str:
        shown = [f"{name}={value}" for name, value in self.values]
        shown += [f"num_warps={self.num_warps}", f"num_stages={self.num_stages}"]
        return ", ".join([*shown, *(f"{name}={value}" for name, value in self.options)])


@dataclass(frozen=True)
class Effort:
    """How much a search may cost.

    Attributes:
        name: ``"none"``, ``"quick"`` or ``"full"``.
        budget_seconds: after so long no further configuration is begun.
        num_configs: so many of the best ranked are tried.
        patience: so many without a gain end the search.
    """

    name: str
    budget_seconds: float
    num_configs: int
    patience: int


_BUDGETS = {
    "none": Effort("none", 0.0, 1, 1),
    "quick": Effort("quick", 10.0, 24, 10),
    "full": Effort("full", math.inf, sys.maxsize, sys.maxsize),
}


def effort() -> Effort:
    """What ``$NINETOOTHED_TUNE`` says: ``none``, ``quick`` (the default) or ``full``."""
    name = os.environ.get("NINETOOTHED_TUNE") or "quick"
    if name not in _BUDGETS:
        raise NineToothedError(
            f"NINETOOTHED_TUNE={name!r} is unknown; use one of {', '.join(_EFFORTS)}."
            f"{near(name, _EFFORTS)}"
        )
    return _BUDGETS[name]


# The space.


def space(
    symbols: Iterable[Any],
    num_warps: int | Sequence[int] | None = None,
    num_stages: int | Sequence[int] | None = None,
    max_num_configs: int | None = None,
) -> list[Config]:
    """All configurations, or the most promising and a spread of the rest where they are many.

    Args:
        symbols: the meta symbols: ``name``, ``lower_bound``, ``upper_bound``, ``power_of_two``.
        num_warps: one number, several to choose from, or None for the default ones.
        num_stages: likewise.
        max_num_configs: how many there may be, at least 1.
    """
    if max_num_configs is not None and max_num_configs < 1:
        raise NineToothedError(f"max_num_configs must be at least 1, got {max_num_configs}.")
    axes = sorted((symbol.name, candidates(symbol)) for symbol in symbols)
    names = [name for name, _ in axes]
    configs = [
        Config(tuple(zip(names, values, strict=True)), warps, stages)
        for *values, warps, stages in itertools.product(
            *(choices for _, choices in axes),
            _choices(num_warps, DEFAULT_NUM_WARPS),
            _choices(num_stages, DEFAULT_NUM_STAGES),
        )
    ]
    return thin(configs, min(max_num_configs or _LARGEST_SPACE, _LARGEST_SPACE))


def candidates(symbol: Any) -> list[int]:
    """The values to try for a meta symbol: the powers of two between its bounds.

    The bounds themselves are tried too where the symbol need not be a power of two.
    """
    lower = LOWER_BOUND if symbol.lower_bound is None else int(symbol.lower_bound)
    upper = UPPER_BOUND if symbol.upper_bound is None else int(symbol.upper_bound)
    exponents = range(max(lower - 1, 0).bit_length(), max(upper, 1).bit_length())
    values = {1 << exponent for exponent in exponents if lower <= 1 << exponent <= upper}
    if symbol.power_of_two is False:
        values |= {lower, upper} if lower <= upper else set()
    if not values:
        raise NineToothedError(
            f"There is no value for {symbol.name}: no power of two lies between its bounds "
            f"{lower} and {upper}."
        )
    return sorted(values)


def thin(configs: Sequence[Config], count: int) -> list[Config]:
    """At most ``count``: half of them the most promising, half spread evenly over the others.

    What is promising is judged by the configuration alone; the order of the rest is kept.
    """
    if len(configs) <= count:
        return list(configs)
    ordered = sorted(configs, key=lambda config: (_strangeness(config), str(config)))
    best = ordered[: (count + 1) // 2]
    others = ordered[len(best) :]
    spread = [others[i * len(others) // (count - len(best))] for i in range(count - len(best))]
    kept = {*best, *spread}
    return [config for config in configs if config in kept]


def rank(configs: Sequence[Config], estimate: Callable[[Config], float]) -> list[Config]:
    """The configurations by their estimated time; those that cannot fit, infinite, are left out.

    All are kept where none seems to fit: an estimate must not make a kernel impossible.
    """
    costs = [(estimate(config), _strangeness(config), str(config), config) for config in configs]
    fitting = [cost for cost in costs if cost[0] < math.inf]
    return [config for *_, config in sorted(fitting or costs, key=lambda cost: cost[:3])]


def _choices(given: int | Sequence[int] | None, default: Sequence[int]) -> list[int]:
    if given is None:
        return list(default)
    return [given] if isinstance(given, int) else list(dict.fromkeys(given))


def _strangeness(config: Config) -> float:
    """How far a configuration is from what usually does well.

    With several symbols that is a product's tile of 128 × 256 × 64 with 8 warps, or of 128 × 128
    × 64 with 4, in 3 stages; with one, some 8 elements a thread.
    """
    sizes = sorted((value for _, value in config.values), reverse=True)
    threads = 32 * config.num_warps
    stages = abs(config.num_stages - 3) / 2
    if len(sizes) < 2:
        return abs(math.log2(max(math.prod(sizes), 1) / (8 * threads))) + stages
    rows, columns, *depths = sizes
    crowding = abs(math.log2(rows * columns / (128 * threads)))
    slant = max(math.log2(rows / columns) - 1, 0)
    smallness = max(math.log2(128 * 256 / (rows * columns)), 0) / 2
    depth = sum(abs(math.log2(value / 64)) for value in depths)
    return crowding + slant + smallness + depth + stages


# What was found before.


class Results:
    """The measured times of one kernel on one kind of device for one bucket of shapes, on disk.

    Args:
        key: tells the kernel, the device's name and all else that the times depend on.
        store: where they are kept.
    """

    def __init__(self, key: str, store: Cache | None = None) -> None:
        self._key = key
        self._store = Cache("tuning") if store is None else store
        self.times: dict[Config, float] = {}
        self.finished: str | None = None
        self._read()

    def best(self) -> Config | None:
        """The fastest configuration that was measured."""
        return min(self.times, key=lambda config: self.times[config], default=None)

    def record(self, config: Config, time_ms: float) -> None:
        """Keeps a time, here and on disk."""
        self.times[config] = time_ms
        self._write()

    def finish(self, effort_name: str) -> None:
        """Notes that a search of this effort came to its end."""
        self.finished = effort_name
        self._write()

    def serve(self, wanted: str) -> bool:
        """Whether a search of at least this effort was done and found something."""
        if self.finished is None or not self.times:
            return False
        return _EFFORTS.index(self.finished) >= _EFFORTS.index(wanted)

    def _read(self) -> None:
        data = self._store.get(self._key)
        if data is None:
            return
        try:
            content = json.loads(data)
            times = {_from_json(entry): float(found) for entry, found in content["times"]}
            finished = content["finished"]
        except (ValueError, TypeError, KeyError):
            return
        # Another process may have measured others in the meantime; what was measured here wins.
        self.times = {**times, **self.times}
        if finished in _EFFORTS and (
            self.finished is None or _EFFORTS.index(finished) > _EFFORTS.index(self.finished)
        ):
            self.finished = finished

    def _write(self) -> None:
        self._read()
        content = {
            "times": [[_to_json(config), found] for config, found in self.times.items()],
            "finished": self.finished,
        }
        self._store.put(self._key, json.dumps(content).encode())


def _to_json(config: Config) -> list[Any]:
    return [
        [list(value) for value in config.values],
        config.num_warps,
        config.num_stages,
        [list(value) for value in config.options],
    ]


def _from_json(entry: Any) -> Config:
    values, num_warps, num_stages, options = entry
    return Config(_pairs(values), num_warps, num_stages, _pairs(options))


def _pairs(entries: Any) -> tuple[tuple[str, int], ...]:
    return tuple((str(name), int(value)) for name, value in entries)


def bucket(size: int) -> int:
    """The sizes that share what was tuned: the next power of two, so few that most calls find it."""
    return 1 << max(size - 1, 0).bit_length() if size > 0 else 0


# The search.


class _Progress:
    """One line on a terminal; nothing anywhere else."""

    def __init__(self, name: str, total: int) -> None:
        self._shown = sys.stderr is not None and sys.stderr.isatty()
        self._name = name
        self._total = total

    def update(self, done: int, best: float, config: Config | None) -> None:
        if self._shown:
            found = "" if config is None else f", best {best:.4g} ms: {config}"
            line = f"tuning {self._name}: {done} of {self._total}{found}"
            sys.stderr.write(f"\r\033[K{line[:118]}")
            sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


class Search(Generic[Compiled]):
    """A budgeted search for the fastest of ranked configurations.

    Args:
        name: the kernel's, for messages.
        configs: ranked, the most promising first.
        compile_config: makes a configuration ready to launch; several run at a time, in threads.
        measure: the milliseconds of one launch, given about how many the device may be kept busy.
        results: what is known already; each new result is recorded.
        effort: how much may be spent.
        workers: how many compile at a time; by default a few, by the number of cores.
    """

    def __init__(
        self,
        name: str,
        configs: Sequence[Config],
        compile_config: Callable[[Config], Compiled],
        measure: Callable[[Compiled, float], float],
        results: Results,
        effort: Effort,
        workers: int | None = None,
    ) -> None:
        self._name = name
        self._configs = list(configs[: effort.num_configs])
        self._compile = compile_config
        self._measure = measure
        self._results = results
        self._effort = effort
        self._workers = workers or max(1, min(8, (os.cpu_count() or 2) - 1))
        # Not kept on disk: a device that was out of memory once need not be the next time.
        self._failures: dict[Config, str] = {}
        self._best: Config | None = None
        self._best_time = math.inf

    def run(self) -> Config:
        """The fastest configuration that was found; what fails to compile or run is passed over.

        Raises:
            CompilationError: every configuration failed; the reasons are listed.
        """
        if self._results.serve(self._effort.name):
            return self._known_best()
        deadline = time.monotonic() + self._effort.budget_seconds
        progress = _Progress(self._name, len(self._configs))
        pool = ThreadPoolExecutor(self._workers, thread_name_prefix="ninetoothed-compile")
        without_gain = 0
        try:
            for done, (config, compiled) in enumerate(self._compiled(pool), start=1):
                without_gain = 0 if self._try(config, compiled) else without_gain + 1
                progress.update(done, self._best_time, self._best)
                if self._best is not None and (
                    without_gain >= self._effort.patience or time.monotonic() > deadline
                ):
                    break
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            progress.close()
        if self._best is None:
            raise _all_failed(self._name, self._failures)
        self._results.finish(self._effort.name)
        return self._best

    def _known_best(self) -> Config:
        best = self._results.best()
        assert best is not None
        return best

    def _compiled(
        self, pool: ThreadPoolExecutor
    ) -> Iterator[tuple[Config, Future[Compiled] | None]]:
        """Each configuration in order with its compilation, begun ahead of its turn.

        There is none where the time is known.
        """
        ahead = 2 * self._workers
        pending: dict[Config, Future[Compiled]] = {}
        for position, config in enumerate(self._configs):
            for coming in self._configs[position : position + ahead]:
                if coming not in pending and coming not in self._results.times:
                    pending[coming] = pool.submit(self._compile, coming)
            yield config, pending.pop(config, None)

    def _try(self, config: Config, compilation: Future[Compiled] | None) -> bool:
        """Whether the configuration gained on all before."""
        if compilation is None:
            found = self._results.times[config]
        else:
            try:
                found = self._time(compilation.result())
            except (CompilationError, DeviceError) as error:
                self._failures[config] = error.message
                return False
            self._results.record(config, found)
        gained = found < 0.99 * self._best_time
        if found < self._best_time:
            self._best, self._best_time = config, found
        return gained

    def _time(self, compiled: Compiled) -> float:
        quick = self._measure(compiled, 2.0)
        if quick > _LOSING * self._best_time:
            return quick
        return self._measure(compiled, 20.0)


def first_working(
    name: str, configs: Sequence[Config], compile_config: Callable[[Config], Compiled]
) -> tuple[Config, Compiled]:
    """The best ranked configuration that compiles and fits: what is used without a search.

    Raises:
        CompilationError: every configuration failed; the reasons are listed.
    """
    failures = {}
    for config in configs:
        try:
            return config, compile_config(config)
        except (CompilationError, DeviceError) as error:
            failures[config] = error.message
    raise _all_failed(name, failures)


def _all_failed(name: str, failures: Mapping[Config, str]) -> CompilationError:
    listed = "\n".join(f"  {config}: {why.splitlines()[0]}" for config, why in failures.items())
    return CompilationError(
        f"None of the {len(failures)} configurations of {name!r} can be used. "
        f"Narrow the bounds of its block sizes.\n{listed}"
    )
