"""What several passes need: keys of tiles, places of loads, new names, statements put in between."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from ninetoothed import threads
from ninetoothed.program import nodes
from ninetoothed.program.effects import (
    is_write,
    names_assigned,
    names_read,
    statements_of,
    targets_of,
    writes_memory,
)
from ninetoothed.program.frozen import kind_of
from ninetoothed.program.names import unused
from ninetoothed.program.program import Program
from ninetoothed.symbols.operators import next_power_of_2

_KnownT = TypeVar("_KnownT", bound="Known")


class Draft:
    """A copy of what a program is made of that a pass may change, and what it adds to it.

    Attributes:
        parameters: the program's.
        body: the copied statements.
        helpers: the copied helpers, by name.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.parameters = program.parameters
        self.body = [nodes.clone(statement) for statement in program.body]
        self.helpers = {name: nodes.clone(helper) for name, helper in program.helpers.items()}
        self._names = set(program.names)
        self._before: dict[int, list[ast.stmt]] = {}
        self._after: dict[int, list[ast.stmt]] = {}

    @threads.cached_property
    def counts(self) -> Counter[str]:
        """How many statements assign each name."""
        return Counter(
            target.id
            for statement in self.body
            for node in statements_of(statement)
            for target in targets_of(node)
        )

    def fresh(self, wish: str) -> str:
        """A name that the program does not have yet."""
        name = unused(wish, self._names)
        self._names.add(name)
        self.counts[name] += 1
        return name

    def scratch(self) -> Draft:
        """A draft of the same body whose new names and statements are thrown away."""
        result = copy.copy(self)
        result.__dict__["counts"] = Counter(self.counts)
        result._names = set(self._names)
        result._before, result._after = {}, {}
        return result

    def insert_before(self, place: ast.stmt, statement: ast.stmt) -> None:
        """Put a statement before another, after those put there before."""
        self._before.setdefault(id(place), []).append(statement)

    def insert_after(self, place: ast.stmt, statement: ast.stmt) -> None:
        """Put a statement after another."""
        self._after.setdefault(id(place), []).append(statement)

    def finished(self, **more: Any) -> Program:
        """The program with the changed body."""
        body = self._with_insertions(self.body)
        return dataclasses.replace(self.program, body=body, names=frozenset(self._names), **more)

    def _with_insertions(self, block: list[ast.stmt]) -> list[ast.stmt]:
        if not self._before and not self._after:
            return block
        result: list[ast.stmt] = []
        for statement in block:
            for inner in blocks_of(statement):
                inner[:] = self._with_insertions(inner)
            # What is put in may itself have something put before it.
            result += self._with_insertions(self._before.pop(id(statement), []))
            result.append(statement)
            result += self._with_insertions(self._after.pop(id(statement), []))
        return result


def stored_and_loaded(program: Program) -> set[str]:
    """The parameters that a program both stores to and loads from."""
    stored, loaded = set(), set()
    for node in program.nodes():
        if isinstance(node, nodes.Store):
            stored.add(node.tile.parameter)
        elif isinstance(node, nodes.SourceStore):
            stored.add(node.parameter)
        elif isinstance(node, nodes.Load):
            loaded.add(node.tile.parameter)
        elif isinstance(node, nodes.SourceLoad):
            loaded.add(node.parameter)
        elif isinstance(node, nodes.SourcePlace | nodes.ElementPlace):
            stored.add(node.parameter)
            loaded.add(node.parameter)
    return stored & loaded


class Known(Protocol):
    """What is known of memory, until something changes what it is of."""

    names: set[str]


def surviving(known: dict[object, _KnownT], statement: ast.stmt) -> dict[object, _KnownT]:
    """What is still known after a statement has run, or in each round of a loop."""
    if not known:
        return known
    if writes_memory(statement):
        return {}
    assigned = names_assigned([statement])
    return {key: entry for key, entry in known.items() if entry.names.isdisjoint(assigned)}


def assign(name: str, value: ast.expr, origin: ast.AST) -> ast.Assign:
    """``name = value`` at the place of ``origin``."""
    target = nodes.at(ast.Name(id=name, ctx=ast.Store()), origin)
    return nodes.at(ast.Assign(targets=[target], value=value), origin)


def read(name: str, origin: ast.AST) -> ast.Name:
    """A name, read at the place of ``origin``."""
    return nodes.at(ast.Name(id=name, ctx=ast.Load()), origin)


def language(name: str, arguments: list[ast.expr], origin: ast.AST) -> ast.Call:
    """A call of the language's function ``name``."""
    function = nodes.at(nodes.LanguageRef(name=name), origin)
    return nodes.at(ast.Call(func=function, args=arguments, keywords=[]), origin)


def size_node(size: Any, origin: ast.AST) -> ast.expr:
    """A tile's size in the running kernel: the next power of two of an int or a symbol."""
    if isinstance(size, int):
        return nodes.at(ast.Constant(value=next_power_of_2(size)), origin)
    return nodes.at(nodes.Padded(value=nodes.at(nodes.SymbolValue(symbol=size), origin)), origin)


def with_loops(program: Program, change: Callable[[ast.For], ast.stmt | None]) -> Program:
    """The program with some loops changed.

    Args:
        change: gives what takes the place of a loop, which is a copy to keep; None for loops that stay,
            within which it is asked again.
    """

    def changed(body: list[ast.stmt]) -> None:
        for place, statement in enumerate(body):
            new = change(statement) if isinstance(statement, ast.For) else None
            if new is not None:
                body[place] = new
                continue
            for block in blocks_of(statement):
                changed(block)

    draft = Draft(program)
    changed(draft.body)
    return draft.finished()


def blocks_of(statement: ast.stmt) -> list[list[ast.stmt]]:
    """The blocks within a statement."""
    if isinstance(statement, ast.If | ast.For | ast.While):
        return [statement.body, statement.orelse]
    return []


def key_of(node: Any) -> Any:
    """Equal for trees that are equal; symbols and element types count by identity."""
    if isinstance(node, ast.AST):
        parts = (key_of(getattr(node, field, None)) for field in node._fields if field != "ctx")
        return (kind_of(node), *parts)
    if isinstance(node, list | tuple):
        return tuple(key_of(item) for item in node)
    return node if isinstance(node, str) else (type(node), node)


def place_of(node: ast.AST) -> tuple[Any, ...]:
    """Where a node stands in the user's source: the same in every copy of it."""
    place = node.__dict__
    return tuple(
        place.get(key) for key in ("file", "lineno", "col_offset", "end_lineno", "end_col_offset")
    )


def index_names(tile: nodes.TileRef) -> set[str]:
    """The local names that decide which tile it is."""
    return {name for index in tile.indices for name in names_read(index)}


def own_expressions(statement: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """The fields of a statement that hold expressions it evaluates itself: owner and field."""
    if isinstance(statement, ast.If | ast.While):
        yield statement, "test"
    elif isinstance(statement, ast.For):
        yield statement, "iter"
    else:
        for field in ("indices", "value"):
            if getattr(statement, field, None) is not None:
                yield statement, field
        if isinstance(statement, nodes.Store):
            yield statement.tile, "indices"


def calls_writer(statement: ast.stmt) -> bool:
    """Whether an expression that a statement evaluates itself changes memory."""
    return any(
        is_write(node)
        for owner, field in own_expressions(statement)
        for part in _listed(getattr(owner, field))
        for node in nodes.walk(part)
    )


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def choices_of(statement: ast.stmt) -> Iterator[tuple[ast.IfExp, Callable[[ast.expr], None]]]:
    """The choices in the expressions that a statement evaluates itself, and what puts others in their place."""
    pending = list(own_expressions(statement))
    while pending:
        owner, field = pending.pop()
        value = getattr(owner, field, None)
        for place, part in enumerate(_listed(value)):
            if isinstance(part, ast.IfExp):
                if isinstance(value, list):
                    yield part, _putting(value, place)
                else:
                    yield part, _setting(owner, field)
            if isinstance(part, ast.AST):
                pending += [(part, name) for name in part._fields]


class Site:
    """A place in a statement where a tile is loaded."""

    def __init__(
        self, load: nodes.Load, put: Callable[[ast.expr], None], is_conditional: bool
    ) -> None:
        self.load = load
        self.put = put
        self.is_conditional = is_conditional


def load_sites(statement: ast.stmt) -> list[Site]:
    """The loads in the expressions that a statement evaluates itself, in order."""
    sites: list[Site] = []
    for owner, field in own_expressions(statement):
        _find(owner, field, False, sites)
    return sites


def _find(owner: Any, field: str, is_conditional: bool, sites: list[Site]) -> None:
    value = getattr(owner, field)
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, ast.AST):
                later = isinstance(owner, ast.BoolOp) and index > 0
                _visit(item, _putting(value, index), is_conditional or later, sites)
    elif isinstance(value, ast.AST):
        later = isinstance(owner, ast.IfExp) and field != "test"
        _visit(value, _setting(owner, field), is_conditional or later, sites)


def _visit(
    node: ast.AST, put: Callable[[ast.expr], None], is_conditional: bool, sites: list[Site]
) -> None:
    for field in node._fields:
        if isinstance(getattr(node, field, None), ast.AST | list):
            _find(node, field, is_conditional, sites)
    if isinstance(node, nodes.Load):
        sites.append(Site(node, put, is_conditional))


def _putting(items: list[Any], index: int) -> Callable[[ast.expr], None]:
    def put(node: ast.expr) -> None:
        items[index] = node

    return put


def _setting(owner: Any, field: str) -> Callable[[ast.expr], None]:
    def put(node: ast.expr) -> None:
        setattr(owner, field, node)

    return put
