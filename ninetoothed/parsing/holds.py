"""Names that stand for a tile, and what they read once it was stored to under another name.

A helper's parameter, an item that a loop goes over and a default stand for a tile without loading it. Storing
through such a name stores to the tile, for the names too that it was made from; any other name that stands for
the tile is still what the tile was, as in Python. Where one is read after such a store, the application is parsed
anew, and that name loads where it begins to stand for the tile (`ReadLater`).

Whether two names stand for one tile only the running kernel may know, by their indices. Where one of them is stored
to and the other is read and stored to, as both are by ``for each in (y[i], y[j]): add_one(each)``, all names of
the parameter's tiles are views: they read what the tile is now.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

#: Where a name begins to stand for a tile: the parameter, file, line, column, and which name it is.
Key = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Hold:
    """A name that stands for a tile.

    Attributes:
        key: where it begins to.
        moment: when it begins to.
        parent: the name that it was made from; None where that is the application's own parameter.
        value: the variable that holds what the tile was then, where it was loaded.
    """

    key: Key
    moment: int
    parent: Hold | None = None
    value: ast.Name | None = None

    def line(self) -> Iterator[Hold]:
        """The name, and those that it was made from."""
        hold: Hold | None = self
        while hold is not None:
            yield hold
            hold = hold.parent


class ReadLater(Exception):
    """A name is read after its tile was stored to under another one: parse anew, and load it at once."""

    def __init__(self, key: Key, is_certain: bool) -> None:
        super().__init__(key)
        self.key = key
        self.is_certain = is_certain


@dataclass
class Loaded:
    """What is known of an application's names after it was parsed before.

    Attributes:
        certain: the names to load because their tile is stored to under another name.
        possible: those to load because it may be, where indices that only the running kernel knows are equal.
        viewed: the parameters that have one of the latter which is stored to itself.
    """

    certain: set[Key] = field(default_factory=set)
    possible: set[Key] = field(default_factory=set)
    viewed: set[str] = field(default_factory=set)

    def add(self, found: ReadLater) -> None:
        """Has a name loaded at once."""
        (self.certain if found.is_certain else self.possible).add(found.key)

    def __contains__(self, key: Key) -> bool:
        return key in self.certain or (key in self.possible and key[0] not in self.viewed)


@dataclass
class Holds:
    """What was stored to, and read, under which names.

    Attributes:
        loaded: which names load at once.
        moment: counts what happens.
        stores: when a tile was stored to, which, and the names that see it.
        changes: when elements of a parameter's were changed, and of which.
        reads: when a name was read, and which tile it stands for.
    """

    loaded: Loaded = field(default_factory=Loaded)
    moment: int = 0
    stores: list[tuple[int, Any, frozenset[Hold]]] = field(default_factory=list)
    changes: list[tuple[int, Any]] = field(default_factory=list)
    reads: list[tuple[int, Any]] = field(default_factory=list)

    def now(self) -> int:
        """The next moment."""
        self.moment += 1
        return self.moment

    def stored(self, tile: Any) -> None:
        """Note that a tile is stored to as a whole, by assigning the name that stands for it."""
        seen_by = frozenset(tile.held.line()) if tile.held else frozenset[Hold]()
        self.stores.append((self.now(), tile, seen_by))

    def read(self, tile: Any) -> None:
        """Note that a tile is read under a name.

        Raises:
            ReadLater: it was stored to under another one since.
        """
        self.reads.append((self.now(), tile))
        self._check(tile)

    def check_rounds(self, start: int) -> None:
        """As ``read``, where a round of a loop that began then reads what the one before it stored."""
        for moment, tile in self.reads:
            if moment > start:
                self._check(tile, start)

    def _check(self, tile: Any, start: int | None = None) -> None:
        for hold in tile.held.line():
            if hold.value is not None:
                return
            if start is not None and hold.moment > start:
                continue
            since = hold.moment if start is None else start
            for moment, stored, seen_by in self.stores:
                if moment <= since or hold in seen_by or not _may_be_same(tile, stored):
                    continue
                is_certain = _is_same(tile, stored)
                if is_certain or hold.key[0] not in self.loaded.viewed:
                    raise ReadLater(hold.key, is_certain)

    def is_changed(self, tile: Any) -> bool:
        """Whether elements of a tile may have been changed since a name stands for it."""
        since = min(hold.moment for hold in tile.held.line())
        return any(moment > since and item is tile.parameter for moment, item in self.changes)


def _is_same(one: Any, other: Any) -> bool:
    return one.parameter is other.parameter and [*map(ast.dump, one.indices)] == [
        *map(ast.dump, other.indices)
    ]


def _may_be_same(one: Any, other: Any) -> bool:
    """Whether two tiles are not known to be different ones."""
    return one.parameter is other.parameter and not any(
        isinstance(a, ast.Constant) and isinstance(b, ast.Constant) and a.value != b.value
        for a, b in zip(one.indices, other.indices, strict=False)
    )
