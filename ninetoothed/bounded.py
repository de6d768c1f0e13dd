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
        forget_oldest(known, forget)
    return known.setdefault(key, value)


def forget_oldest(
    known: dict[_Key, _Value], forget: Callable[[_Key], object] | None = None
) -> None:
    """Drops what was added first, and tells ``forget`` its key."""
    try:
        oldest = next(iter(known))
    except (StopIteration, RuntimeError):
        # Another thread changed it just now.
        return
    known.pop(oldest, None)
    if forget is not None:
        forget(oldest)
