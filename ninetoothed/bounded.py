"""Dictionaries that remember, and forget what they were told first: memory stays within a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def keep(
    known: dict[_Key, _Value],
    key: _Key,
    value: _Value,
    most: int,
    forget: Callable[[_Key], object] | None = None,
) -> _Value:
    """Adds an entry and gives it; at ``most`` of them the oldest goes first, and ``forget`` is told its key.

    Readers need no lock. Of two threads that add one at once both get the first's.
    """
    while len(known) >= most and key not in known:
        try:
            oldest = next(iter(known))
        except (StopIteration, RuntimeError):
            # Another thread changed it just now.
            continue
        known.pop(oldest, None)
        if forget is not None:
            forget(oldest)
    return known.setdefault(key, value)


def remembering(
    make: Callable[[_Key], _Value], most: int
) -> tuple[dict[_Key, _Value], Callable[[_Key], _Value]]:
    """What was made of keys, and a function that makes what is not there and adds it."""
    known: dict[_Key, _Value] = {}
    return known, lambda key: keep(known, key, make(key), most)
