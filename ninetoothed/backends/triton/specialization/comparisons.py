"""Comparisons of positions in the user's program, as ``position < x.source.shape[0]``.

A comparison is known by its *slack*: a symbolic integer over the program's position, the rounds of
loops and tile coordinates, negative exactly where the comparison holds, by how far it is from
failing. Bounding it shows where nothing need be compared. What cannot be written so stays as it is.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping

from ninetoothed.backends.triton.specialization.selections import staying
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.effects import targets_of
from ninetoothed.program.nodes import Offsets, SymbolValue, walk
from ninetoothed.program.program import Program
from ninetoothed.program.types import Shape, type_of
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, constant, evaluated, leaf
from ninetoothed.symbols.leaf import Leaf
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import reads_sequences

#: The most that may be added to positions: with it those of 2**30 elements are integers of 32 bits still.
_LARGEST = 2**30


@dataclass(frozen=True)
class Comparison:
    """One comparison.

    Attributes:
        slack: negative exactly where it holds.
        dims: of its value.
    """

    slack: Symbol
    dims: Shape


def round_of(variable: str, extent: Expression | None) -> Symbol:
    """The round of the loop over ``variable``, as a slack has it: below an extent, if that is known."""
    return leaf(Leaf(variable, role="index", owner="round", extent=extent))


def is_round_of(symbol: Symbol, variable: str) -> bool:
    """Whether a leaf is the round of the loop over ``variable``."""
    what = symbol.leaf
    return what.owner == "round" and what.name == variable


class Comparisons:
    """The comparisons of positions in one kernel's program."""

    def __init__(self, kernel: Definition) -> None:
        program = kernel.optimized
        self._accesses, self._staying = kernel.arrangement.accesses, staying(kernel)
        self._levels = {p.name: p.middle_sizes for p in program.parameters if p.kind == "tensor"}
        self._values: dict[str, ast.expr] = {}
        self._loops: set[str] = set()
        self._learn_names(program.body)
        self._tile_number = 0
        self.all = tuple(self._found(program))

    def of(self, node: ast.AST) -> Comparison | None:
        """A node's comparison; None where it is none of positions."""
        if not isinstance(node, ast.Compare) or len(node.ops) != 1:
            return None
        # Each tile has lanes of its own, and gets the same ones whenever it is asked for.
        self._tile_number = 0
        left, right = self._value(node.left), self._value(node.comparators[0])
        dims = type_of(node).shape
        if left is None or right is None or not dims or None in dims:
            return None
        if _may_wrap(left) or _may_wrap(right):
            return None
        slack = _slack(node.ops[0], left, right)
        if slack is None:
            return None
        return Comparison(as_symbol(simplify(slack)), dims)

    def _found(self, program: Program) -> Iterator[Comparison]:
        for node in program.nodes():
            comparison = self.of(node)
            if comparison is not None:
                yield comparison

    def _learn_names(self, body: list[ast.stmt]) -> None:
        """What a name stands for, where it does so wherever it is used."""
        statements = [node for statement in body for node in walk(statement)]
        counts: Counter[str] = Counter()
        for node in statements:
            if isinstance(node, ast.stmt):
                counts.update(target.id for target in targets_of(node))
        for node in statements:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if counts[node.targets[0].id] == 1:
                    self._values[node.targets[0].id] = node.value
            elif isinstance(node, ast.For) and isinstance(node.target, ast.Name):
                if counts[node.target.id] == 1:
                    self._loops.add(node.target.id)

    def _value(self, node: ast.AST) -> Symbol | None:
        """An integer value as an expression of positions; None where it is more than that."""
        if isinstance(node, SymbolValue):
            return as_symbol(node.symbol)
        if isinstance(node, ast.Constant):
            # Of the constants that are integers, a truth value is none here.
            return constant(node.value) if type(node.value) is int else None
        if isinstance(node, Offsets):
            return self._offsets(node)
        if isinstance(node, ast.Name):
            return self._value(self._values[node.id]) if node.id in self._values else None
        if isinstance(node, ast.Subscript):
            # Dimensions of one alone are put between others.
            return None if type_of(node).shape is None else self._value(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
            left, right = self._value(node.left), self._value(node.right)
            if left is None or right is None:
                return None
            return left + right if isinstance(node.op, ast.Add) else left - right
        return None

    def _offsets(self, node: Offsets) -> Symbol | None:
        if node.dim is None:
            return None
        self._tile_number += 1
        tile, number = node.tile, self._tile_number
        access = self._accesses[tile.parameter]
        index = access.indices[node.dim]
        if reads_sequences(index):
            return None
        renamed: dict[Symbol, Expression] = {}
        for lane in access.coordinates:
            renamed[lane] = leaf(
                Leaf(lane.name, role="index", owner=("lane", number), extent=lane.leaf.extent)
            )
        for place, selection in enumerate(access.selections):
            chosen, extent = tile.indices[place], self._levels[tile.parameter][place]
            # Positions go on beyond a level.
            stays = (tile.parameter, place) in self._staying
            if isinstance(chosen, ast.Constant) and isinstance(chosen.value, int):
                renamed[selection] = chosen.value
            elif isinstance(chosen, ast.Name) and chosen.id in self._loops:
                renamed[selection] = round_of(chosen.id, extent if stays else None)
            elif stays:
                owner = ("selection", (number, place))
                renamed[selection] = leaf(
                    Leaf("selection", role="index", owner=owner, extent=extent)
                )
            else:
                return None
        return index.substitute(renamed)


@analysis
def comparisons_of(kernel: Definition) -> Comparisons:
    """The comparisons of a kernel's program."""
    return Comparisons(kernel)


def holding(
    kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> frozenset[Symbol]:
    """The slacks of the comparisons that hold for every lane of every program of a call."""
    programs = dict(zip(kernel.arrangement.programs, grid))
    result = set()
    for comparison in comparisons_of(kernel).all:
        ranges: dict[Symbol, Interval] = {}
        for name in comparison.slack.leaves():
            if name in programs:
                ranges[name] = (0, max(programs[name] - 1, 0))
            elif name.leaf.role == "index" and name.leaf.extent is not None:
                extent = evaluated(name.leaf.extent, environment)
                ranges[name] = (0, max(extent - 1, 0))
        known = simplify(comparison.slack.substitute(environment))
        if interval(known, ranges)[1] < 0:
            result.add(comparison.slack)
    return frozenset(result)


def _may_wrap(side: Symbol) -> bool:
    """Whether so much is added to positions, or they are multiplied by so much, that they may wrap around."""
    least, most = interval(as_symbol(simplify(side.substitute(dict.fromkeys(side.leaves(), 1)))))
    return least < -_LARGEST or most > _LARGEST


def _slack(op: ast.cmpop, left: Symbol, right: Symbol) -> Symbol | None:
    if isinstance(op, ast.Lt):
        return left - right
    if isinstance(op, ast.LtE):
        return left - right - 1
    if isinstance(op, ast.Gt):
        return right - left
    if isinstance(op, ast.GtE):
        return right - left - 1
    return None
