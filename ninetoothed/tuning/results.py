"""What was measured and chosen of a kernel's configurations, kept on disk, carried between machines.

An entry holds the times of one kernel on one kind of device for one bucket of sizes, and says what
it is about, so that a file of entries makes sense on another machine of the same kind.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ninetoothed.cache import Cache
from ninetoothed.errors import NineToothedError
from ninetoothed.records import dataclass
from ninetoothed.tuning.space import EFFORTS, Config

#: Of what an entry and an exported file look like. Entries of another format are never read.
FORMAT = 3

#: The kind of the cache's entries.
KIND = "tuning"

#: Times are written at least so often, in seconds, while a search goes on.
_WRITING_INTERVAL = 0.5

_EXPORTED = "ninetoothed-tuning"

#: No number of a configuration is larger.
_LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Subject:
    """What an entry's times belong to, for people and for choosing what to carry.

    Attributes:
        kernel: the kernel's name.
        device: the device's name, as its driver says it.
        compiler: the compiler's name and version.
        arguments: the sizes and element types, in words.
    """

    kernel: str = ""
    device: str = ""
    compiler: str = ""
    arguments: str = ""


def arguments_text(
    arguments: Iterable[tuple[str, Sequence[int], str]], constants: Mapping[str, object]
) -> str:
    """A subject's arguments: each tensor's name, sizes and element type, and the numbers among the constants."""
    tensors = [f"{name} {'x'.join(map(str, sizes))} {dtype}" for name, sizes, dtype in arguments]
    numbers = [f"{n}={v!r}" for n, v in sorted(constants.items()) if isinstance(v, int | float)]
    return "; ".join([*tensors, *numbers])


def arguments_from(text: str) -> tuple[dict[str, tuple[tuple[int, ...], str]], dict[str, str]]:
    """Sizes and element types by tensor, and constants as they are printed, of `arguments_text`."""
    tensors: dict[str, tuple[tuple[int, ...], str]] = {}
    constants: dict[str, str] = {}
    for part in text.split("; "):
        name, is_constant, value = part.partition("=")
        if is_constant:
            constants[name] = value
        elif part.count(" ") == 2:
            name, sizes, dtype = part.split(" ")
            tensors[name] = tuple(int(n) for n in sizes.split("x") if n.isdigit()), dtype
    return tensors, constants


class Results:
    """The measured times of one kernel on one kind of device for one bucket of sizes, on disk.

    Args:
        key: tells the kernel, the device's name and all else that the times depend on.
        subject: the same in words.
        store: where they are kept.
        clock: the seconds of a clock that only goes forward.
    """

    def __init__(
        self,
        key: str,
        subject: Subject | None = None,
        store: Cache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._key = key
        self._subject = subject or Subject()
        self._store = Cache(KIND) if store is None else store
        self._clock = clock
        self._written = -math.inf
        self.times: dict[Config, float] = {}
        self.finished: str | None = None
        self.chosen: Config | None = None
        self.read()

    def best(self, applies: Callable[[Config], bool] = lambda config: True) -> Config | None:
        """See `Entry.best`."""
        return Entry(self._subject, self.times, self.finished, self.chosen).best(applies)

    def record(self, config: Config, time_ms: float) -> None:
        """Keeps a time, here and, at most some moments later, on disk."""
        self.times[config] = time_ms
        if self._clock() - self._written >= _WRITING_INTERVAL:
            self.write()

    def finish(self, effort_name: str, chosen: Config) -> None:
        """Notes that a search of this effort came to its end, and its choice.

        The effort ``"none"`` measures nothing: its choice is what the estimate ranks first.
        """
        self.finished, self.chosen = effort_name, chosen
        self.write()

    def serve(self, wanted: str) -> bool:
        """Whether a search of at least this effort was done and found something."""
        if self.finished is None or self.best() is None:
            return False
        return EFFORTS.index(self.finished) >= EFFORTS.index(wanted)

    def read(self) -> None:
        """Takes in what others have found in the meantime; what was measured here wins."""
        data = self._store.get(self._key)
        entry = None if data is None else _entry_from(data)
        if entry is not None:
            self.take(entry)

    def take(self, entry: Entry) -> None:
        """Takes in what others have found; what was measured here wins."""
        self.times = {**entry.times, **self.times}
        if entry.finished is not None and not self.serve(entry.finished):
            self.finished, self.chosen = entry.finished, entry.chosen

    def write(self) -> None:
        """Writes everything down, with what others have found in the meantime."""
        self.read()
        entry = Entry(self._subject, self.times, self.finished, self.chosen)
        self._store.put(self._key, json.dumps(_to_json(entry)).encode())
        self._written = self._clock()

    @contextmanager
    def alone(self, patience: float) -> Iterator[None]:
        """Nobody else who shares the cache searches for these results; theirs are read first.

        Args:
            patience: so many seconds others are waited for; then the search is done twice.
        """
        with self._store.lock(self._key, patience):
            self.read()
            yield


# Entries as JSON.


@dataclass(frozen=True)
class Entry:
    """What the cache holds under one key."""

    subject: Subject
    times: Mapping[Config, float]
    finished: str | None
    chosen: Config | None

    def best(self, applies: Callable[[Config], bool] = lambda config: True) -> Config | None:
        """What a search chose, or else the fastest that was measured; of those that apply.

        What was chosen and not measured comes last: it was ranked first by an estimate.
        """
        ranked = sorted(self.times, key=lambda config: (self.times[config], str(config)))
        if self.chosen is not None:
            ranked.insert(0 if self.chosen in self.times else len(ranked), self.chosen)
        return next((config for config in ranked if applies(config)), None)


def _to_json(entry: Entry) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "subject": asdict(entry.subject),
        "times": [[_config_to_json(config), found] for config, found in entry.times.items()],
        "finished": entry.finished,
        "chosen": None if entry.chosen is None else _config_to_json(entry.chosen),
    }


def _entry_from(data: bytes | dict[str, Any]) -> Entry | None:
    """The entry, or None where the content makes no sense: that is a miss, not an error."""
    try:
        content = json.loads(data) if isinstance(data, bytes) else data
        if content["format"] != FORMAT or content["finished"] not in (None, *EFFORTS):
            return None
        chosen = content["chosen"]
        return Entry(
            Subject(**{name: _text(value) for name, value in content["subject"].items()}),
            {_config_from_json(entry): _time(found) for entry, found in content["times"]},
            content["finished"],
            None if chosen is None else _config_from_json(chosen),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _config_to_json(config: Config) -> list[Any]:
    return [
        [list(value) for value in config.values],
        config.num_warps,
        config.num_stages,
        [list(value) for value in config.options],
    ]


def _config_from_json(entry: Any) -> Config:
    values, num_warps, num_stages, options = entry
    if _number(num_warps, 1).bit_count() != 1:
        raise ValueError(f"no number of warps: {num_warps}")
    return Config(_pairs(values, 1), num_warps, _number(num_stages, 0), _pairs(options, 0))


def _pairs(entries: Any, least: int) -> tuple[tuple[str, int], ...]:
    return tuple((_text(name), _number(value, least)) for name, value in entries)


def _number(value: Any, least: int) -> int:
    if type(value) is not int or not least <= value <= _LARGEST:
        raise ValueError(f"no whole number from {least} to {_LARGEST}: {value!r}")
    return value


def _text(value: Any) -> str:
    # It is printed, and what steers a terminal has no place in a name.
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"no text: {value!r}")
    return value


def _time(value: Any) -> float:
    found = float(value)
    # Infinite is what could not be run.
    if not found >= 0:
        raise ValueError(f"no time: {value!r}")
    return found


# All entries: what the command line and users work with.


def entries(store: Cache | None = None) -> dict[str, Entry]:
    """All entries that are kept, by key."""
    found = {}
    for key, data in (Cache(KIND) if store is None else store).entries():
        entry = _entry_from(data)
        if entry is not None:
            found[key] = entry
    return found


def export_results(path: str | Path, device: str | None = None, store: Cache | None = None) -> int:
    """Writes what was found into a file for another machine of the same kind.

    Args:
        path: the file, JSON; it is overwritten.
        device: only what was measured on devices of this name; by default everything.

    Returns:
        The number of entries.
    """
    chosen = {
        key: _to_json(entry)
        for key, entry in entries(store).items()
        if device is None or entry.subject.device == device
    }
    content = {"format": [_EXPORTED, FORMAT], "entries": chosen}
    try:
        Path(path).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise NineToothedError(f"{path} cannot be written: {error.strerror}.") from error
    return len(chosen)


def import_results(path: str | Path, store: Cache | None = None) -> int:
    """Takes in a file that `export_results` wrote; what was measured here stays.

    Returns:
        The number of entries that were taken in.

    Raises:
        NineToothedError: the file holds no results, or those of another version.
    """
    taken = 0
    for key, entry in _entries_of(path):
        results = Results(key, entry.subject, store)
        results.take(entry)
        results.write()
        taken += 1
    return taken


def read_exported(path: str | Path) -> list[Entry]:
    """What a file that `export_results` wrote holds; nothing is taken in.

    Raises:
        NineToothedError: as `import_results`.
    """
    return [entry for _, entry in _entries_of(path)]


#: So many characters of a file are read; a device such as `/dev/zero` has no end of them.
_MOST_EXPORTED = 1 << 26


def _entries_of(path: str | Path) -> Iterator[tuple[str, Entry]]:
    for key, data in _exported(path).items():
        entry = _entry_from(data)
        if entry is None:
            raise NineToothedError(
                f"{path}: the entry {key[:12]!r}… is damaged, or says what cannot be. Export it again."
            )
        yield key, entry


def _exported(path: str | Path) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            content = json.loads(file.read(_MOST_EXPORTED))
        name, version = content["format"]
        found: dict[str, Any] = dict(content["entries"])
    except OSError as error:
        raise NineToothedError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise NineToothedError(
            f"{path} holds no tuning results. Write one with "
            "`python -m ninetoothed tuning export FILE`."
        ) from error
    if (name, version) != (_EXPORTED, FORMAT):
        raise NineToothedError(
            f"{path} has the format {name!r} {version!r}; this version of NineToothed reads "
            f"{_EXPORTED} {FORMAT}. Export it again with the same version."
        )
    return found
