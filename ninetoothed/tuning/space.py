"""Configurations: what may be chosen, in what order, and how much choosing may cost.

No device and no framework is known here. `search` looks for the fastest of a `Space`; `results`
keeps what was measured.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninetoothed.errors import NineToothedError, near
from ninetoothed.kernels.definition import Definition
from ninetoothed.records import dataclass
from ninetoothed.symbols.operators import next_power_of_2

#: The bounds of a meta symbol that has none.
LOWER_BOUND = 32
UPPER_BOUND = 1024

DEFAULT_NUM_WARPS = (4, 8)
DEFAULT_NUM_STAGES = (2, 3, 4, 5)

#: So many configurations are listed where none fits a call.
_MOST_SHOWN = 12

#: Estimates that differ by less tell nothing; the warps that most kernels have.
_NO_DIFFERENCE, _USUAL_WARPS = 1.006, 4

#: A space larger than this is thinned whatever was asked for.
_LARGEST_SPACE = 4096

#: How much a search may cost, the least first.
EFFORTS = ("none", "quick", "full")

#: The seconds that one process may spend on quick searches, where nothing else is said.
_ALLOWANCE = 300.0


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
        name: one of `EFFORTS`.
        budget_seconds: after so long no further configuration is begun.
        num_starts: so many of the most promising are tried before the best one's neighbours.
    """

    name: str
    budget_seconds: float
    num_starts: int


_BUDGETS = {
    "none": Effort("none", 0.0, 1),
    "quick": Effort("quick", 10.0, 16),
    "full": Effort("full", math.inf, sys.maxsize),
}


def effort(name: str | None = None) -> Effort:
    """An effort by name; by default what ``$NINETOOTHED_TUNE`` says, or ``none``.

    A call is made to wait for no search that nobody asked for. A number is a quick search of at most so
    many seconds.
    """
    subject = "NINETOOTHED_TUNE" if name is None else "effort"
    name = name or os.environ.get("NINETOOTHED_TUNE") or "none"
    if name in _BUDGETS:
        return _BUDGETS[name]
    try:
        seconds = float(name)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < math.inf:
        raise NineToothedError(
            f"{subject}={name!r} is unknown; use one of {', '.join(EFFORTS)}, or the seconds that a "
            f"search may take.{near(name, EFFORTS)}"
        )
    return replace(_BUDGETS["quick"], budget_seconds=seconds)


def allowance() -> float:
    """The seconds that a process may spend on quick searches: ``$NINETOOTHED_TUNE_SECONDS``."""
    given = os.environ.get("NINETOOTHED_TUNE_SECONDS")
    if not given:
        return _ALLOWANCE
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise NineToothedError(
            f"NINETOOTHED_TUNE_SECONDS={given!r} is no number of seconds; give one of at least 0, "
            "or inf."
        )
    return seconds


# The space.


@dataclass(frozen=True)
class _MetaSymbol:
    """A meta symbol under the name that it has in a kernel."""

    name: str
    lower_bound: int
    upper_bound: int
    power_of_two: bool


def values_of(kernel: Definition) -> list[Config]:
    """What a kernel's meta symbols may be, the least first, whatever the call; see `space`."""
    symbols = [
        _MetaSymbol(kernel.names[s], s.lower_bound or 1, s.upper_bound or 1, s.power_of_two)
        for s in kernel.meta_symbols
    ]
    return space(symbols)


def fitting(configs: Iterable[Config], check: Callable[[Config], object]) -> list[Config]:
    """Those that fit a call.

    Args:
        check: raises an error of ours for one that does not.

    Raises:
        NineToothedError: none does. It is what the first one raised, and says which were looked at.
    """
    found, errors = [], {}
    for config in configs:
        try:
            check(config)
        except NineToothedError as error:
            errors[config] = error
        else:
            found.append(config)
    if errors and not found:
        raise _none_fits(errors)
    return found


def _none_fits(errors: Mapping[Config, NineToothedError]) -> NineToothedError:
    first = next(iter(errors.values()))
    if all(error.message == first.message for error in errors.values()):
        return first
    listed = ["  " + ", ".join(f"{n}={value}" for n, value in config.values) for config in errors]
    shown = listed[:_MOST_SHOWN]
    if len(listed) > len(shown):
        shown.append(f"  and {len(listed) - len(shown)} more, to{listed[-1][1:]}")
    lines = "\n".join(shown)
    message = f"{first.message}\nSo it is, or alike, in each configuration. These were looked at:\n{lines}"
    return type(first)(message, first.location)


def space(symbols: Iterable[Any]) -> list[Config]:
    """All values, or the most promising and a spread of the rest where they are many; for one warp.

    Args:
        symbols: the meta symbols: ``name``, ``lower_bound``, ``upper_bound``, ``power_of_two``.
    """
    axes = sorted((symbol.name, candidates(symbol)) for symbol in symbols)
    names = [name for name, _ in axes]
    configs = [
        Config(tuple(zip(names, values, strict=True)), 1, 1)
        for values in itertools.product(*(choices for _, choices in axes))
    ]
    return thin(configs, _LARGEST_SPACE)


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


def bucket(size: int) -> int:
    """The sizes that share what was tuned: the next power of two, so few that most calls find it."""
    return next_power_of_2(size) if size > 0 else 0


class Space:
    """The configurations that may be chosen, ranked, and which of them are neighbours.

    Args:
        costs: what each is estimated to take; infinite where it cannot fit. Those are left out,
            unless none seems to fit: an estimate must not make a kernel impossible.
        largest: at most so many, the most promising; at least 1.
        others: those that are of no interest unless all of these fail.
    """

    def __init__(
        self,
        costs: Mapping[Config, float],
        largest: int | None = None,
        others: Mapping[Config, float] | None = None,
    ) -> None:
        if largest is not None and largest < 1:
            raise NineToothedError(f"max_num_configs must be at least 1, got {largest}.")
        self.costs = {**(others or {}), **costs}
        order = sorted(self.costs, key=self._ranking)
        wanted = [config for config in order if config in costs]
        suited = [config for config in wanted if costs[config] < math.inf]
        self.ranked = (suited or wanted)[:largest]
        taken = set(self.ranked)
        self._others = [config for config in order if config not in taken]
        self._alike: dict[Config | None, list[Config]] = {}
        axes: dict[str, set[int]] = {}
        for config in self.ranked:
            self._alike.setdefault(replace(config, options=()), []).append(config)
            for name, value in _coordinates(config).items():
                axes.setdefault(name, set()).add(value)
        self._axes = {name: sorted(values) for name, values in axes.items()}

    def _ranking(self, config: Config) -> tuple[float, float, str]:
        return self.costs[config], _strangeness(config), str(config)

    def __len__(self) -> int:
        return len(self.ranked)

    @property
    def first(self) -> Config:
        """What is taken unmeasured: the best ranked, with the usual number of warps where the estimate
        tells no difference, so that sizes share what is compiled."""
        best = self.ranked[0]
        most = _NO_DIFFERENCE * self.costs[best]
        alike = [
            config
            for config in self.ranked
            if replace(config, num_warps=best.num_warps) == best and self.costs[config] <= most
        ]
        return min(alike, key=lambda config: abs(math.log2(config.num_warps / _USUAL_WARPS)))

    def instead(self, failed: Collection[Config]) -> Iterator[Config]:
        """What is tried where all that were ranked failed: smaller ones, the most promising first.

        Args:
            failed: grows as more fail.
        """
        others = list(self._others)
        while others:
            least = min(map(_size, failed))
            chosen = next((config for config in others if _size(config) < least), others[0])
            others.remove(chosen)
            yield chosen

    def starts(self, count: int) -> list[Config]:
        """The most promising, but of those that differ in warps, stages and options alone a few."""
        if len(self.ranked) <= count:
            return list(self.ranked)
        kinds = len({config.values for config in self.ranked})
        most = max(math.ceil(count / kinds), 3)
        taken: dict[tuple[tuple[str, int], ...], int] = {}
        result = []
        for config in self.ranked:
            if taken.get(config.values, 0) < most:
                taken[config.values] = taken.get(config.values, 0) + 1
                result.append(config)
        return result[:count]

    def neighbours(self, config: Config) -> list[Config]:
        """Those that differ by one step, or by a step forth in one respect and back in another.

        A step is the next smaller or larger value of a symbol, of the warps or of the stages, or
        another set of options. The most promising come first.
        """
        steps = [(name, by) for name in self._axes for by in (-1, 1)]
        pairs = itertools.combinations(steps, 2)
        moves = [(step,) for step in steps] + [pair for pair in pairs if pair[0][0] != pair[1][0]]
        # In the same place: other options. Elsewhere the same ones, though their values may differ:
        # into how many parts a reduction is split depends on the tiles.
        found = set(self._alike.get(replace(config, options=()), ())) - {config}
        names = [name for name, _ in config.options]
        for move in moves:
            for other in self._alike.get(self._moved(config, move), ()):
                if [name for name, _ in other.options] == names:
                    found.add(other)
        return sorted(found, key=lambda other: (self.costs[other], str(other)))

    def _moved(self, config: Config, steps: Iterable[tuple[str, int]]) -> Config | None:
        """The configuration some steps away, without options; None where an axis ends."""
        coordinates = _coordinates(config)
        for name, by in steps:
            values = self._axes[name]
            if coordinates[name] not in values:
                return None
            place = values.index(coordinates[name]) + by
            if not 0 <= place < len(values):
                return None
            coordinates[name] = values[place]
        warps, stages = coordinates.pop(_WARPS), coordinates.pop(_STAGES)
        return Config(tuple(coordinates.items()), warps, stages)


#: What the axes of warps and stages are called among those of the symbols: no symbol's name.
_WARPS, _STAGES = "number of warps", "number of stages"


def _size(config: Config) -> int:
    return math.prod(value for _, value in config.values)


def _coordinates(config: Config) -> dict[str, int]:
    return {**dict(config.values), _WARPS: config.num_warps, _STAGES: config.num_stages}


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


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        kernel: the kernel's name.
        device: the name of the device it was measured on.
        config: what was chosen, and is used from now on.
        times: all configurations that were measured, in milliseconds, those from earlier
            searches too.
    """

    kernel: str
    device: str
    config: Config
    times: Mapping[Config, float]

    @property
    def milliseconds(self) -> float:
        """The time of what was chosen."""
        return self.times[self.config]

    def __str__(self) -> str:
        return (
            f"{self.kernel} on {self.device}: {self.milliseconds:.4g} ms, the best of "
            f"{len(self.times)} measured: {self.config}"
        )
