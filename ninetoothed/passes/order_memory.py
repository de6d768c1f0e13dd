"""Threads wait for one another where one may load, or store to, what another one has stored or loaded.

An application is serial, but the threads of a GPU's program are not: an element that one thread has
stored may be loaded by another, or stored to, where elements are chosen (``y = 0``, ``y[i] = 1``), and what
one is still to load another may have stored to (``x[1:] = x[:-1]``). Between them stands a barrier. Where
`forward_stores` could help, nothing is loaded again. The elements of a tile are stored by the same threads
each time, if no other tile has them, and loaded by these alone where they stay `in_place`. A barrier in a
loop also keeps Triton from loading ahead what a round is still to store. Atomic operations that give the
same in any order wait for none of their kind. As everywhere, tensors that overlap are the user's business.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from dataclasses import field
from typing import Any, NamedTuple

from ninetoothed.passes import rewriting
from ninetoothed.passes.in_place import InPlace
from ninetoothed.program import nodes
from ninetoothed.program.effects import (
    called_name,
    names_assigned,
    names_read,
    place_changed,
    statements_of,
)
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass
from ninetoothed.tensors.sharing import are_apart, lanes_share, windows_overlap


class Place(NamedTuple):
    """What a statement loads or stores.

    Attributes:
        key: of the tile; of elements that may be any thread's None, or the name of the operation that
            changes them in a way that any order suits.
        selected: the numbers that select the tile, if that is what does.
        node: the tile's load, or its store.
    """

    parameter: str
    key: object = None
    selected: tuple[int, ...] = ()
    node: ast.AST | None = None


Places = set[Place]

#: What atomic operations are given.
_PLACES = nodes.SourcePlace, nodes.ElementPlace

#: Those that give the same in any order, where nobody asks what was there before.
_UNORDERED = frozenset(f"atomic_{each}" for each in ("add", "and", "max", "min", "or", "xor"))


@dataclass(frozen=True)
class _Since:
    """What was stored and loaded since the threads last waited for one another."""

    stored: Places = field(default_factory=set)
    loaded: Places = field(default_factory=set)

    def and_then(self, other: _Since) -> _Since:
        return _Since(self.stored | other.stored, self.loaded | other.loaded)


def run(program: Program) -> Program:
    """The program with barriers between stores and what they may concern."""
    stored = [each.tile.parameter for each in program.nodes() if isinstance(each, nodes.Store)]
    tensors = {each.name: each.tensor for each in program.parameters if each.name in stored}
    draft = rewriting.Draft(program)
    _Order(draft, tensors).block(draft.body, _Since())
    return draft.finished()


class _Order:
    """Puts barriers into a program.

    Args:
        tensors: those whose tiles are stored, by their parameter's name.
    """

    def __init__(self, draft: rewriting.Draft, tensors: dict[str, Any]) -> None:
        self._draft = draft
        self._tensors = tensors
        self._share = functools.cache(lambda name: lanes_share(tensors[name]))
        self._overlap = functools.cache(lambda name: windows_overlap(tensors[name]))
        self._in_place = InPlace(draft.body, draft.parameters)

    def block(self, body: list[ast.stmt], since: _Since) -> _Since:
        for statement in body:
            since = self._statement(statement, since)
        return since

    def _statement(self, statement: ast.stmt, since: _Since) -> _Since:
        own = _Since(self._stored(statement), self._loaded(statement))
        inner, anew = self._anew(statement)
        if self._waits(statement, since) or any(
            # Once before a loop instead of in each round.
            self._waits(each, since) and not self._waits(each, anew)
            for each in inner
        ):
            self._draft.insert_before(statement, _barrier(statement))
            since = _Since()
        if self._meet(own.stored, own.loaded):
            self._load_first(statement, {place.parameter for place in own.stored})
            self._draft.insert_before(statement, _barrier(statement))
            since, own = _Since(), _Since(own.stored)
        since = since.and_then(own)
        if isinstance(statement, ast.If):
            either = self.block(statement.body, since)
            return either.and_then(self.block(statement.orelse, since))
        if isinstance(statement, ast.For | ast.While):
            return since.and_then(self.block(statement.body, since.and_then(anew)))
        return since

    def _load_first(self, statement: ast.stmt, parameters: set[str]) -> None:
        """Has what a statement loads from these loaded before it."""
        for holder, key in list(_operands(statement)):
            value = holder[key] if isinstance(holder, list) else getattr(holder, key)
            if parameters.isdisjoint(map(_source_of, nodes.walk(value))):
                continue
            if isinstance(value, nodes.Masked):
                # What does not exist is left out by the store itself.
                holder, key, value = value, "value", value.value
            name = self._draft.fresh(f"{min(parameters)}_value")
            self._draft.insert_before(statement, rewriting.assign(name, value, statement))
            known = rewriting.read(name, statement)
            if isinstance(holder, list):
                holder[key] = known
            else:
                setattr(holder, key, known)

    def _stored(self, statement: ast.stmt) -> Places:
        """What a statement itself stores, and what the atomic operations change that it evaluates."""
        if isinstance(statement, nodes.Store):
            return {self._place(statement.tile, statement)}
        if isinstance(statement, nodes.SourceStore):
            return {Place(statement.parameter)}
        if unordered := _unordered(statement):
            return {unordered}
        return {
            Place(node.parameter) for node in _evaluated(statement) if isinstance(node, _PLACES)
        }

    def _loaded(self, statement: ast.stmt) -> Places:
        """What a statement itself loads."""
        found: Places = set()
        for node in _evaluated(statement):
            if isinstance(node, nodes.Load):
                found.add(self._place(node.tile, node))
            elif isinstance(node, nodes.SourceLoad):
                found.add(Place(node.parameter))
        return found

    def _place(self, tile: nodes.TileRef, node: ast.AST) -> Place:
        key = rewriting.key_of(tile)
        if tile.parameter not in self._tensors:
            return Place(tile.parameter, key, (), node)
        if self._share(tile.parameter):
            return Place(tile.parameter)
        values = [getattr(index, "value", None) for index in tile.indices]
        numbers = tuple(value for value in values if isinstance(value, int))
        if len(numbers) == len(values):
            return Place(tile.parameter, key, numbers, node)
        return Place(tile.parameter, None if self._overlap(tile.parameter) else key, (), node)

    def _anew(self, loop: ast.stmt) -> tuple[list[ast.stmt], _Since]:
        """A loop's statements, and what a round stores and loads, and the next one may load or store to.

        Where a tensor's tiles are selected in one way, by the round's number, those of different rounds are
        apart.
        """
        if not isinstance(loop, ast.For | ast.While):
            return [], _Since()
        inner = [node for node in statements_of(loop) if isinstance(node, ast.stmt)]
        loaded = {place for node in inner for place in self._loaded(node)}
        stored = Places()
        for node in inner:
            places = self._stored(node)
            if isinstance(node, nodes.Store) and _differs_by_round(node.tile, loop):
                places = {place for place in places if not self._is_alone(place, loaded)}
            stored |= places
        return inner, _Since(stored, loaded)

    def _is_alone(self, place: Place, loaded: Places) -> bool:
        """Whether nothing else of a tensor is loaded."""
        return place.key is not None and all(
            each.key == place.key for each in loaded if each.parameter == place.parameter
        )

    def _waits(self, statement: ast.stmt, since: _Since) -> bool:
        """Whether a statement itself is to wait for what was stored, or loaded, before."""
        stored = self._stored(statement)
        unordered = {place for place in stored if place.key in _UNORDERED}
        if _asked(statement) & {place.parameter for place in since.stored - unordered}:
            return True
        return self._meet(stored, since.stored | since.loaded)

    def _meet(self, stored: Places, others: Places) -> bool:
        """Whether what is stored may concern what other threads load or store."""
        return any(self._concerns(one, other) for one in stored for other in others)

    def _concerns(self, one: Place, other: Place) -> bool:
        if one.parameter != other.parameter or (one == other and one.key in _UNORDERED):
            return False
        if any(place.key is None or place.key in _UNORDERED for place in (one, other)):
            return True
        if one.key != other.key:
            overlap = self._overlap(one.parameter)
            if one.selected and other.selected:
                tensor = self._tensors[one.parameter]
                return overlap and not are_apart(tensor, one.selected, other.selected)
            if overlap:
                return True
        load = other.node
        return isinstance(load, nodes.Load) and not self._in_place.is_stored(load, one.node)


def _barrier(place: ast.stmt) -> ast.stmt:
    return nodes.at(ast.Expr(value=rewriting.language("debug_barrier", [], place)), place)


def _operands(statement: ast.stmt) -> Iterator[tuple[Any, Any]]:
    """What a statement stores with, or changes with by atomic operations: each by where it is held."""
    if isinstance(statement, nodes.Store | nodes.SourceStore):
        for owner, name in rewriting.own_expressions(statement):
            yield from _held(owner, name)
        return
    call = getattr(statement, "value", None)
    if isinstance(call, ast.Call) and (changed := place_changed(call)):
        yield from _held(changed, "indices")
        yield from ((call.args, place) for place in range(1, len(call.args)))
        yield from ((keyword, "value") for keyword in call.keywords)


def _differs_by_round(tile: nodes.TileRef, loop: ast.For | ast.While) -> bool:
    """Whether a tile is another one in each round, as its number is, or that and what stays the same."""
    counter = getattr(getattr(loop, "target", None), "id", None)
    assigned = names_assigned(loop.body)

    def differs(index: ast.expr) -> bool:
        if isinstance(index, ast.BinOp) and isinstance(index.op, ast.Add | ast.Sub):
            sides = (index.left, index.right), (index.right, index.left)
            kept = {counter, *assigned}
            return any(differs(one) and kept.isdisjoint(names_read(other)) for one, other in sides)
        return isinstance(index, ast.Name) and index.id == counter and counter not in assigned

    return any(map(differs, tile.indices))


def _held(owner: ast.AST, name: str) -> Iterator[tuple[Any, Any]]:
    value = getattr(owner, name)
    if isinstance(value, list):
        yield from ((value, place) for place in range(len(value)))
    else:
        yield owner, name


def _evaluated(statement: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of the expressions that a statement evaluates itself."""
    for owner, name in rewriting.own_expressions(statement):
        value = getattr(owner, name)
        for part in value if isinstance(value, list) else [value]:
            yield from nodes.walk(part)


def _unordered(statement: ast.stmt) -> Place | None:
    """The tensor that a statement changes in a way that any order suits, and the operation."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or called_name(call) not in _UNORDERED:
        return None
    place = call.args[0]
    if not isinstance(place, _PLACES):
        return None
    others = (each for each in nodes.walk(call) if each is not place)
    is_asked = any(_source_of(each) == place.parameter for each in others)
    return None if is_asked else Place(place.parameter, called_name(call))


def _asked(statement: ast.stmt) -> set[str]:
    """The parameters that a statement itself loads from, atomic operations included."""
    return {name for node in _evaluated(statement) if (name := _source_of(node))}


def _source_of(node: ast.AST) -> str | None:
    """The parameter that a node loads from, or changes at a place."""
    if isinstance(node, nodes.Load):
        return node.tile.parameter
    if isinstance(node, nodes.SourceLoad | nodes.SourcePlace | nodes.ElementPlace):
        return node.parameter
    return None
