"""Which loaded tiles stay in place: what is made of each element is stored at its place alone.

Of such a tile a thread needs no element but those that it stores itself, so that nobody has to wait
before the tile is stored to. A value that is summed, broadcast, asked in a condition or selects elements
is needed by other threads too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from ninetoothed.passes.rewriting import own_expressions
from ninetoothed.program import nodes
from ninetoothed.program.effects import elementwise_operands, statements_of, targets_of
from ninetoothed.program.types import Shape, are_same, is_one

_Loads = frozenset[nodes.Load]

_NONE: _Loads = frozenset()


class InPlace:
    """What becomes of the tiles that a program loads, whatever the order of its statements.

    Args:
        body: its statements.
    """

    def __init__(self, body: list[ast.stmt], parameters: Iterable[Any]) -> None:
        self._shapes = {each.name: each.tile_shape for each in parameters if each.kind == "tensor"}
        self._held: dict[str, _Loads] = {}
        self._moved: set[nodes.Load] = set()
        statements = [each for outer in body for each in statements_of(outer)]
        while True:
            before = dict(self._held), len(self._moved)
            for statement in statements:
                self._follow(statement)
            if before == (self._held, len(self._moved)):
                break

    def is_stored(self, load: nodes.Load, store: ast.AST | None) -> bool:
        """Whether a tile that is loaded stays in place, and what is made of it is what is stored."""
        if load in self._moved or not isinstance(store, nodes.Store):
            return False
        return load in self._sources(store.value)

    def _follow(self, statement: ast.AST) -> None:
        """Takes note of what a statement itself makes of the tiles."""
        value = getattr(statement, "value", None)
        targets = list(targets_of(statement))
        if isinstance(statement, nodes.Store):
            self._move(statement.tile.indices)
            self._moved |= self._displaced(self._sources(statement.value), statement.tile.parameter)
        elif value is None or len(targets) != 1:
            for owner, field in own_expressions(statement):
                self._move(getattr(owner, field))
        else:
            name = targets[0].id
            self._held[name] = self._held.get(name, _NONE) | self._sources(value)

    def _displaced(self, loads: _Loads, stored: str) -> _Loads:
        """Those of these loads of which elements at other places are needed to store a tile.

        What is computed element by element has as many elements as each operand or more, and no more than
        the tile. Tiles of several dimensions that lie otherwise in memory may be other threads'.
        """
        shape = self._shapes[stored]
        has_rows = sum(not is_one(size) for size in shape) > 1
        others = {load.tile.parameter for load in loads} - {stored}
        displaced = {each for each in others if has_rows or not self._has_shape(each, shape)}
        return frozenset(load for load in loads if load.tile.parameter in displaced)

    def _has_shape(self, parameter: str, shape: Shape) -> bool:
        own = self._shapes[parameter]
        return len(own) == len(shape) and all(map(are_same, own, shape))

    def _sources(self, node: ast.expr) -> _Loads:
        """The loads of which a value is made, each element of those at its place."""
        if isinstance(node, nodes.Load):
            self._move(node.tile.indices)
            return frozenset({node})
        if isinstance(node, ast.Name):
            return self._held.get(node.id, _NONE)
        operands = [node.value] if isinstance(node, nodes.Masked) else elementwise_operands(node)
        if operands is None:
            self._move([node])
            return _NONE
        return _NONE.union(*map(self._sources, operands))

    def _move(self, parts: ast.expr | list[ast.expr]) -> None:
        """Takes note that the loads within these do not stay in place."""
        for part in parts if isinstance(parts, list) else [parts]:
            for each in nodes.walk(part):
                if isinstance(each, nodes.Load):
                    self._moved.add(each)
                elif isinstance(each, ast.Name):
                    self._moved |= self._held.get(each.id, _NONE)
