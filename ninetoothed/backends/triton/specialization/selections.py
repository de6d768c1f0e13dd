"""Which selections, as ``x[k]``, may leave their level in a call: those are asked, so that no access does.

A tile's conditions take a selection to be below its level's size. Where the program's own index is not
bounded by it, as where two operands of a product have sums of different length, or where an index is
read from memory, nothing else keeps an access within its tensor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import called_name, names_assigned
from ninetoothed.program.nodes import ElementLoad, ElementStore, SymbolValue, TileRef, walk
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, make
from ninetoothed.tensors.access import Access, needed

_UNKNOWN: Interval = (-float("inf"), float("inf"))

_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.FloorDiv: "//", ast.Mod: "%"}

_CALLS = {"minimum": "min", "min": "min", "maximum": "max", "max": "max"}

#: A selection: the parameter, and its place among the positions in the middle levels.
Selection = tuple[str, int]


def taken(kernel: Definition, environment: Mapping[Symbol, int]) -> dict[Selection, Interval]:
    """The least and the greatest index that the program selects, wherever it does.

    Args:
        environment: the values of a call.
    """
    found: dict[Selection, Interval] = {}
    program = kernel.optimized
    for body in (program.body, *(helper.body for helper in program.helpers.values())):
        for parameter, place, (low, high) in Walk(environment).statements(body):
            others = found.get((parameter, place), (low, high))
            found[parameter, place] = (min(low, others[0]), max(high, others[1]))
    return found


def unguarded(
    access: Access,
    sizes: Sequence[Expression],
    taken: Mapping[int, Interval],
    environment: Mapping[Symbol, int],
) -> Iterator[int]:
    """The selections that leave their level where nothing else says that no element is there.

    Args:
        sizes: of the middle levels.
        taken: what is selected, by the place among them.
    """
    for place, (low, high) in taken.items():
        size = int(as_symbol(sizes[place]).evaluate(environment))
        if low < 0 or (high >= size and not is_bounded(access, place, sizes[place])):
            yield place


def is_bounded(access: Access, place: int, size: Expression) -> bool:
    """Whether a selection beyond its level, of this size, is beyond the tensor too.

    It may be another program's: of ``t.tile((4,)).tile((2,))`` the third tile is the next program's first.
    """
    return not needed([access.selections[place] < as_symbol(size)], access.conditions)


class Walk:
    """Follows what is known of a program's integers, statement by statement, as intervals of numbers."""

    def __init__(self, environment: Mapping[Symbol, int]) -> None:
        self._environment = environment
        self._known: dict[str, Any] = {}

    def statements(self, body: Iterable[ast.stmt]) -> Iterator[tuple[str, int, Any]]:
        """Each selection in some statements, with the values of its index."""
        for statement in body:
            blocks = [getattr(statement, name, None) or [] for name in ("body", "orelse")]
            inner = [each for block in blocks for each in block]
            if isinstance(statement, (ast.For, ast.While)):
                # What a round leaves is not known in the next one.
                self._forget(names_assigned([statement]))
            for node in _outside(statement):
                if isinstance(node, TileRef | ElementLoad | ElementStore):
                    # Positions in the tile, which come last, have conditions of their own.
                    count = len(node.indices) - (node.view.chosen if hasattr(node, "view") else 0)
                    for place, index in enumerate(node.indices[:count]):
                        yield node.parameter, place, self.bounds(index)
            if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
                if statement.target.id not in names_assigned(inner):
                    self._known[statement.target.id] = self.range_of(statement.iter)
                yield from self.statements(inner)
                self._forget(names_assigned([statement]))
            elif isinstance(statement, ast.If):
                yield from self._branches(*blocks)
            elif inner:
                yield from self.statements(inner)
                self._forget(names_assigned(inner))
            else:
                self._assign(statement)

    def _branches(self, *blocks: Sequence[ast.stmt]) -> Iterator[tuple[str, int, Any]]:
        before, after = self._known, []
        for block in blocks:
            self._known = dict(before)
            yield from self.statements(block)
            after.append(self._known)
        one, other = after
        self._known = {
            name: self.either(one[name], other[name]) for name in one.keys() & other.keys()
        }

    def _assign(self, statement: ast.stmt) -> None:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        value = statement.value if isinstance(statement, ast.Assign) else None
        self._forget(names_assigned([statement]))
        if isinstance(target, ast.Name) and value is not None:
            self._known[target.id] = self.bounds(value)

    def _forget(self, names: Iterable[str]) -> None:
        for name in names:
            self._known.pop(name, None)

    def either(self, one: Any, other: Any) -> Any:
        """What is known where one of two is."""
        return (min(one[0], other[0]), max(one[1], other[1]))

    def range_of(self, iterated: ast.expr) -> Any:
        """The values that a loop's variable takes."""
        if not isinstance(iterated, ast.Call) or not called(iterated).endswith("range"):
            return _UNKNOWN
        bounds = [self.bounds(argument) for argument in iterated.args]
        if len(bounds) == 1:
            bounds = [(0, 0), *bounds]
        start, end = bounds[0], bounds[1]
        step = bounds[2] if len(bounds) > 2 else (1, 1)
        if step[0] > 0:
            return (start[0], max(end[1] - 1, start[0]))
        if step[1] < 0:
            return (min(end[0] + 1, start[1]), start[1])
        return _UNKNOWN

    def bounds(self, node: ast.expr) -> Any:
        """The least and the greatest value of an integer."""
        leaves: dict[Symbol, Interval] = {}
        return interval(self._symbol(node, leaves), leaves)

    def _symbol(self, node: ast.expr, leaves: dict[Symbol, Interval]) -> Symbol:
        """An integer as an expression over leaves whose bounds are noted."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return as_symbol(int(node.value))
        if isinstance(node, SymbolValue):
            return as_symbol(int(as_symbol(node.symbol).evaluate(self._environment)))
        operands, operator = parts(node)
        if operator:
            return make(operator, *(self._symbol(operand, leaves) for operand in operands))
        known = self._known.get(node.id, _UNKNOWN) if isinstance(node, ast.Name) else _UNKNOWN
        leaf = Symbol(f"value_{len(leaves)}")
        leaves[leaf] = known
        return leaf


def parts(node: ast.expr) -> tuple[Sequence[ast.expr], str]:
    """The operands and the operator of an operation on integers; no operator of any other node."""
    if isinstance(node, ast.BinOp):
        return (node.left, node.right), _OPERATORS.get(type(node.op), "")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return (node.operand,), "neg"
    if isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        return node.args, _CALLS.get(called(node), "")
    return (), ""


def called(call: ast.Call) -> str:
    """The name of what is called."""
    return call.func.id if isinstance(call.func, ast.Name) else called_name(call)


def _outside(statement: ast.stmt) -> Iterator[ast.AST]:
    """All of a statement but the statements within it."""
    for field, value in ast.iter_fields(statement):
        if field in ("body", "orelse"):
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield from walk(node)
