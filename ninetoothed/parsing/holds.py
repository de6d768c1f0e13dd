"""Names that stand for a tile, and what they read once it was stored to under another name.

A helper's parameter, an item that a loop goes over and a default stand for a tile without loading it. Storing
through such a name stores to the tile, for the names too that it was made from; any other name that stands for
the tile is still what the tile was, as in Python. Where one is read after such a store, the application is parsed
anew, and that name loads where it begins to stand for the tile (`ReadLater`).

Whether two names stand for one tile only the running kernel may know, by their indices. Where one of them is stored
to and the other is read and stored to, as both are by ``for each in (y[i], y[j]): add_one(each)``, all names of
the parameter's tiles are views: they read what the tile is now.

A parameter of a helper that returns nothing may stand for a variable of the caller's, which assigning it rebinds: see
`Loan`. Whether it does in a loop is seen only where the call is; if what stands before that makes no sense of what
the variable held before the loop, the application is parsed anew, as if it did (`CarryLater`).
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import Any

from ninetoothed.parsing.syntax.walks import statements_in
from ninetoothed.records import dataclass

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


class CarryLater(Exception):
    """A loop makes no sense unless a helper assigns variables that it is given: parse anew, with them carried."""

    def __init__(self, key: Key, names: frozenset[str], error: Exception) -> None:
        super().__init__(key)
        self.key = key
        self.names = names
        self.error = error


@dataclass(frozen=True, eq=False)
class Loan:
    """What a helper that returns nothing was given as a parameter, where assigning that stores to no tile.

    Attributes:
        frame: the helper's.
        name: the parameter.
        cell: the variable that it stands for.
        given: what that held; on a way that does not assign the parameter it still does.
        parent: the caller's own loan of that variable; None where the caller has it of itself.
        refusal: why the parameter cannot be assigned; empty where it can.
        is_value: whether what was given is a value, which nothing but the helper sees.
        is_place: whether it was read off a tile or a variable, to which it might be taken for another name.
    """

    frame: Any
    name: str
    cell: Any
    given: Any = None
    parent: Loan | None = None
    refusal: str = ""
    is_value: bool = False
    is_place: bool = False

    def line(self) -> Iterator[Loan]:
        """The loan, and those that it was made of."""
        loan: Loan | None = self
        while loan is not None:
            yield loan
            loan = loan.parent

    def end(self) -> None:
        """The helper returns: what it assigned, the variable that it was given holds."""
        if self.cell.changed_by is self:
            self.cell.changed_by = self.parent


@dataclass
class Loaded:
    """What is known of an application's names after it was parsed before.

    Attributes:
        certain: the names to load because their tile is stored to under another name.
        possible: those to load because it may be, where indices that only the running kernel knows are equal.
        viewed: the parameters that have one of the latter which is stored to itself.
        carried: for loops, by their files and places, the variables given to helpers that they carry, and the error
            that each is else, until it is seen that it makes sense so.
    """

    certain: set[Key] = field(default_factory=set)
    possible: set[Key] = field(default_factory=set)
    viewed: set[str] = field(default_factory=set)
    carried: dict[Key, tuple[frozenset[str], Exception | None]] = field(default_factory=dict)

    def add(self, found: ReadLater | CarryLater) -> None:
        """Has a name loaded at once, or a loop carry what helpers are given."""
        if isinstance(found, CarryLater):
            assert found.key not in self.carried or found.names < self.carried[found.key][0]
            self.carried[found.key] = found.names, found.error
            return
        assert found.key not in self, found.key
        (self.certain if found.is_certain else self.possible).add(found.key)

    def refusal(self) -> Exception | None:
        """What is wrong with a loop that makes no sense either way."""
        return next((error for _, error in self.carried.values() if error is not None), None)

    def makes_sense(self, key: Key, changed: Collection[str]) -> None:
        """Note that a loop does, and which variables it changed.

        Raises:
            CarryLater: it carried others as well, that are what they were before it.
            Exception: it makes none as it is: helpers change nothing that they are given.
        """
        names, error = self.carried.get(key, (frozenset(), None))
        if error is None:
            return
        if not names.intersection(changed):
            raise error
        if not names.issubset(changed):
            raise CarryLater(key, names.intersection(changed), error)
        self.carried[key] = names, None

    def __contains__(self, key: Key) -> bool:
        return key in self.certain or (key in self.possible and key[0] not in self.viewed)


@dataclass
class Holds:
    """What was stored to, and read, under which names.

    Attributes:
        loaded: which names load at once.
        moment: counts what happens.
        uses: when a variable that was lent was read: the loan, if any, the variable, its name and the place.
        stores: when a tile was stored to, which, and the names that see it.
        changes: when elements of a parameter's were changed, and of which.
        reads: when a name was read, and which tile it stands for.
        items: variables that hold what a tile is and may be taken for it: a loop's, and those given to helpers.
        lost: of these the ones that were assigned and not read since, each with the error that it is.
        asked: when a variable was read, and which.
    """

    loaded: Loaded = field(default_factory=Loaded)
    moment: int = 0
    uses: list[tuple[int, Loan | None, Any, str, ast.AST]] = field(default_factory=list)
    stores: list[tuple[int, Any, frozenset[Hold]]] = field(default_factory=list)
    changes: list[tuple[int, Any]] = field(default_factory=list)
    reads: list[tuple[int, Any]] = field(default_factory=list)
    items: set[Any] = field(default_factory=set)
    lost: dict[Any, Exception] = field(default_factory=dict)
    asked: list[tuple[int, Any]] = field(default_factory=list)

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

    def ask(self, variable: Any) -> None:
        """Note that a variable is read."""
        self.asked.append((self.moment, variable))
        self.lost.pop(variable, None)

    def check_rounds(self, start: int) -> None:
        """As ``read``, where a round of a loop that began then reads what the one before it stored."""
        for moment, tile in self.reads:
            if moment > start:
                self._check(tile, start)
        for moment, variable in self.asked:
            if moment >= start:
                self.lost.pop(variable, None)

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


def lent_names(nodes: Sequence[ast.AST]) -> set[str]:
    """The variables that statements give to helpers whose result they do not ask for."""
    statements = list(nodes)
    for statement in statements:
        statements.extend(statements_in(statement))
    expressions = [statement.value for statement in statements if isinstance(statement, ast.Expr)]
    calls = [value for value in expressions if isinstance(value, ast.Call)]
    given = [each for call in calls for each in (*call.args, *(k.value for k in call.keywords))]
    return {each.id for each in given if isinstance(each, ast.Name)}


def is_read_after(tree: ast.FunctionDef, name: str, place: ast.AST, is_repeated: bool) -> bool:
    """Whether a function reads a name after a place in it, as far as its text says.

    Args:
        is_repeated: whether what stands before the place within a loop counts, for the next round.
    """
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    if any(_reads(node, name) for node in above if isinstance(node, ast.FunctionDef | ast.Lambda)):
        return True
    child = place
    while child is not tree:
        if child not in above:
            return True
        node = above[child]
        parts = _in_order(node)
        is_round = is_repeated and isinstance(node, _ROUNDS) and child is not parts[0]
        later = parts if is_round else parts[parts.index(child) + 1 :]
        if isinstance(node, ast.If | ast.IfExp) and child is not node.test:
            # It is one way or the other.
            others = node.orelse if isinstance(node.orelse, list) else [node.orelse]
            later = [part for part in later if (part in others) is (child in others)]
        if any(_reads(part, name) for part in later):
            return True
        child = node
    return False


_ROUNDS = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp)


def _in_order(node: ast.AST) -> list[ast.AST]:
    """The parts of a node as they are evaluated."""
    parts = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For):
        first = node.iter if isinstance(node, ast.For) else node.value
        parts.sort(key=lambda part: part is not first)
    elif isinstance(node, ast.ListComp | ast.GeneratorExp):
        parts.sort(key=lambda part: part is node.elt)
    elif isinstance(node, ast.comprehension):
        parts.sort(key=lambda part: part is not node.iter)
    return parts


def _reads(node: ast.AST, name: str) -> bool:
    """Whether a node reads a name, as what `+=` assigns is read."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]
    augmented = [part.target for part in ast.walk(node) if isinstance(part, ast.AugAssign)]
    return any(isinstance(part.ctx, ast.Load) or part in augmented for part in names)


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
