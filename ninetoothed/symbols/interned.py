"""A table of what is there once, which keeps none of it alive.

It does what `weakref.WeakValueDictionary` does, without that one's functions of Python for each entry.
"""

from __future__ import annotations

import weakref
from _weakref import _remove_dead_weakref  # type: ignore[attr-defined]
from typing import Any


class Reference(weakref.ref[Any]):
    """A weak reference that knows its key in the table."""

    __slots__ = ("key",)

    key: Any


#: By key. One may be dead that is about to be removed.
references: dict[Any, Reference] = {}


def first(key: Any, made: Any) -> Any:
    """What stands under a key: ``made``, or of several threads' what was there before."""
    reference = Reference(made, _forget)
    reference.key = key
    while True:
        # Looked up and added at once, whichever threads there are and whatever the collector calls.
        found = references.setdefault(key, reference)()
        if found is not None:
            return found
        _forget(reference)


def _forget(
    reference: Reference, table: Any = references, remove: Any = _remove_dead_weakref
) -> None:
    """Removes a key whose object is gone, if no other one stands there; also while Python ends."""
    remove(table, reference.key)
