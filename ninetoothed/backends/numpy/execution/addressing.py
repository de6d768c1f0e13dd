"""Where the elements of a parameter's tiles lie in its source, in numbers.

The access's expressions are compiled once a plan to a Python function of the program's index, the
selected indices and the lanes, with all sizes put in. It gives arrays that broadcast to the tile.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.values.empty import empty_mask
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import LevelMask
from ninetoothed.program.constancy import is_constant_symbol
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.symbols.simplify import simplify

Shape = tuple[int, ...]


def shown(size: Any, value: int) -> int:
    """A size's value as an application has it: a `Size` where only a call tells."""
    return value if is_constant_symbol(as_symbol(size)) else Size(value)


class Addressing:
    """The access of one tensor parameter in one plan.

    Args:
        parameter: the arranged parameter.
        access: its `ninetoothed.tensors.access.Access`.
        environment: the value of each size and constant.

    Attributes:
        levels: the shapes of all levels but the outermost, in numbers; the last is the tile's.
        selectable: the sizes of all dimensions that ``x[...]`` selects in, outer first.
        padded: the tile's shape with each size padded to a power of two.
        dependences: for each source dimension, the tile's dimensions that its index depends on.
    """

    def __init__(self, parameter: Any, access: Any, environment: Mapping[Symbol, int]) -> None:
        shapes = parameter.levels[1:] or ((),)
        self.levels: tuple[Shape, ...] = tuple(
            tuple(shown(size, evaluated(size, environment)) for size in shape) for shape in shapes
        )
        self.selectable: Shape = tuple(int(size) for level in self.levels[:-1] for size in level)
        self.tile: Shape = tuple(map(int, self.levels[-1]))
        self.padded: Shape = tuple(next_power_of_2(size) for size in self.tile)
        self._lanes = tuple(
            _along(_positions(size), dim, len(self.tile)) for dim, size in enumerate(self.padded)
        )
        lanes = tuple(access.coordinates)
        self.dependences = tuple(
            tuple(dim for dim, lane in enumerate(lanes) if lane in set(as_symbol(index).leaves()))
            for index in access.indices
        )
        #: For each selection, the tile's dimensions that go along the same ones of the source.
        self._followed = tuple(
            {
                dim
                for index, dims in zip(access.indices, self.dependences)
                if selection in set(as_symbol(index).leaves())
                for dim in dims
            }
            for selection in access.selections
        )
        self._indices = _compiled(access.indices, access, environment)
        self._conditions = _compiled(access.conditions, access, environment)
        #: For each condition, the tile's dimensions that it asks for a position in: numbers may decide it without.
        self._asked = tuple(
            tuple(dim for dim, lane in enumerate(lanes) if lane in set(as_symbol(asked).leaves()))
            for asked in access.conditions
        )
        #: The tile's dimensions of size 0, of which each has one lane, without an element.
        self._empty = frozenset(dim for dim, size in enumerate(self.tile) if not size)

    def indices(
        self,
        sequences: Any,
        program: Shape,
        selection: Sequence[int],
        positions: Sequence[Any] | None = None,
    ) -> tuple[Any, ...]:
        """The index of each lane's element, or that at positions in the tile, along each source dimension."""
        lanes = self._lanes if positions is None else positions
        return self._indices(sequences, *program, *selection, *lanes)

    def masks(
        self,
        sequences: Any,
        program: Shape,
        selection: Sequence[int],
        positions: Sequence[Any] | None = None,
        rank: int | None = None,
    ) -> tuple[Any, ...]:
        """Conditions that must all hold for a lane to be real, those that hold for all left out.

        Each has as many dimensions as the tile, or as the positions have together. A tile outside of
        its level has no element.
        """
        lanes = self._lanes if positions is None else positions
        rank = len(self.tile) if rank is None else rank
        masks: list[np.ndarray] = []
        if positions is None:
            masks += (empty_mask(dim, rank) for dim in sorted(self._empty))
        for index, size, dims in zip(selection, self.selectable, self._followed):
            if not 0 <= index < size:
                masks.append(_nowhere(rank, [lanes[dim] for dim in dims]))
        conditions = self._conditions(sequences, *program, *selection, *lanes)
        for condition, asked in zip(conditions, self._asked):
            if np.all(condition) or (positions is None and not self._empty.isdisjoint(asked)):
                continue
            mask = np.asarray(condition, bool)
            if asked and not mask.ndim:
                mask = np.zeros(np.broadcast_shapes(*(np.shape(lanes[dim]) for dim in asked)), bool)
            masks.append(mask.reshape((1,) * (rank - mask.ndim) + mask.shape))
        return tuple(masks)


def _nowhere(rank: int, lanes: Iterable[Any]) -> np.ndarray:
    """The mask of a tile outside of its level, along the dimensions in which it leaves that."""
    shape = np.broadcast_shapes((1,) * rank, *map(np.shape, lanes))
    nowhere = np.zeros(shape, bool)
    return nowhere if nowhere.size > 1 else nowhere.view(LevelMask)


class Sequences:
    """The sequences of a jagged tensor: where each starts, and how long it is."""

    def __init__(self, offsets: np.ndarray) -> None:
        self.offsets = offsets
        self.count = len(offsets) - 1

    def start(self, number: Any) -> Any:
        """The position of the first element of a sequence; 0 for one that is not there."""
        return self.offsets[self._known(number)]

    def length(self, number: Any) -> Any:
        """The length of a sequence; 0 for one that is not there."""
        known = self._known(number)
        lengths = self.offsets[np.minimum(known + 1, self.count)] - self.offsets[known]
        return np.where((np.asarray(number) == known), lengths, 0)

    def _known(self, number: Any) -> Any:
        return np.clip(number, 0, max(self.count - 1, 0))


@functools.lru_cache(maxsize=64)
def _positions(size: int) -> np.ndarray:
    """0, 1, 2 … ``size`` - 1, which all plans share: those of a large tile are megabytes."""
    positions = np.arange(size)
    positions.flags.writeable = False
    return positions


def _along(lane: np.ndarray, dim: int, ndim: int) -> np.ndarray:
    shape = [1] * ndim
    shape[dim] = lane.size
    return lane.reshape(shape)


_OPAQUE = {"sequence_start": "start", "sequence_length": "length"}


def _compiled(
    expressions: Iterable[Expression], access: Any, environment: Mapping[Symbol, int]
) -> Any:
    """A function of (sequences, programs…, selections…, lanes…) that gives all expressions."""
    arguments = [*access.programs, *access.selections, *access.coordinates]
    names = {symbol: f"a{place}" for place, symbol in enumerate(arguments)}

    def name_of(symbol: Symbol) -> ast.expr:
        if symbol in names:
            return ast.Name(names[symbol], ast.Load())
        if symbol.op in _OPAQUE:
            sequences = ast.Name("sequences", ast.Load())
            function = ast.Attribute(sequences, _OPAQUE[symbol.op], ast.Load())
            return ast.Call(function, [symbol.operands[1].ast(name_of)], [])
        raise KeyError(symbol)

    def tree_of(expression: Expression) -> ast.expr:
        leaves = (leaf for leaf in as_symbol(expression).leaves() if leaf not in names)
        known = {leaf: environment[leaf] for leaf in leaves}
        return as_symbol(simplify(as_symbol(expression).substitute(known))).ast(name_of)

    parameters = [ast.arg(name) for name in ("sequences", *names.values())]
    function = ast.Lambda(
        ast.arguments([], parameters, None, [], [], None, []),
        ast.Tuple([tree_of(expression) for expression in expressions], ast.Load()),
    )
    tree = ast.fix_missing_locations(ast.Expression(function))
    return eval(compile(tree, "<access>", "eval"), {"min": np.minimum, "max": np.maximum})
