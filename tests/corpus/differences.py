"""How two corpora differ, told so that a person sees what a change to the package did."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator

from tests.corpus.record import Corpus

#: So many differing texts are shown, and so many cases named.
_MOST_SHOWN, _MOST_NAMED = 3, 8


def differences(old: Corpus, new: Corpus) -> list[str]:
    """The lines of a report; nothing where the files are the same byte for byte."""
    if old.files == new.files:
        return []
    report = [*_texts(old, new), *_records(old, new)]
    report += _named("no more there", old.lines.keys() - new.lines.keys())
    report += _named("new", new.lines.keys() - old.lines.keys())
    files = old.files.keys() | new.files.keys()
    changed = [path for path in files if old.files.get(path) != new.files.get(path)]
    report.append(f"files that differ: {', '.join(sorted(changed))}")
    return report


def _texts(old: Corpus, new: Corpus) -> Iterator[str]:
    """Each change of a text once, with the cases that it changes for."""
    changes: dict[tuple[str, str], list[str]] = {}
    for name in old.sections:
        pair = old.sections[name], new.sections.get(name, "")
        if pair[0] != pair[1] and pair[1]:
            changes.setdefault(pair, []).append(name)
    if changes:
        count = sum(map(len, changes.values()))
        yield f"{len(changes)} texts differ, of {count} cases; the first of them:"
    for (before, after), names in list(changes.items())[:_MOST_SHOWN]:
        yield ""
        yield from _named("text of", names)
        lines = before.splitlines(), after.splitlines()
        yield from difflib.unified_diff(*lines, "stored", "emitted", lineterm="", n=2)
        yield ""


def _records(old: Corpus, new: Corpus) -> Iterator[str]:
    """For each thing that is recorded, the cases in which it differs."""
    found: dict[str, list[str]] = {}
    for name, line in old.lines.items():
        other = new.lines.get(name, line)
        for key in [key for key in {**line, **other} if line.get(key) != other.get(key)]:
            if key != "text":
                found.setdefault(key, []).append(f"{name}: {line.get(key)} -> {other.get(key)}")
    for key, entries in found.items():
        yield from _named(f"`{key}` differs", entries)


def _named(what: str, names: Collection[str]) -> Iterator[str]:
    """A heading and the first of some names."""
    listed = sorted(names) if isinstance(names, set) else list(names)
    if listed:
        yield f"{what} ({len(listed)}):"
        yield from (f"  {name}" for name in listed[:_MOST_NAMED])
        if len(listed) > _MOST_NAMED:
            yield "  …"
