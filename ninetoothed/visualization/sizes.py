"""The sizes of a picture: which ones follow from others, and small ones for those nobody gave.

Sizes that an arrangement lays side by side are the same, or one is an expression of the others: a
product's two inner sizes, a convolution's output. So a person changes one, and the others follow.
That is read off the meta-operations; where nothing is found, sizes are independent.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_expression, as_symbol
from ninetoothed.symbols.simplify import product, simplify
from ninetoothed.tensors import metaops
from ninetoothed.tensors.level import Level, operations, origins


class Extent(NamedTuple):
    """One factor of a level's size in a dimension.

    Attributes:
        size: the factor.
        tiles: where it counts tiles, how they are cut: size, stride, dilation, rounding.
        tiled: the factors of what is cut.
    """

    size: Expression
    tiles: tuple[Expression | bool, ...] = ()
    tiled: tuple[Extent, ...] = ()


def extents(level: Level, dim: int) -> tuple[Extent, ...]:
    """The factors of a level's size in a dimension, as its meta-operations made them."""
    origin = level.origin
    if origin is None:
        return _alone(level.shape[dim])
    operation, operand = origin.operation, origin.operands[0]
    if isinstance(operation, metaops.Tile):
        within = extents(operand, dim)
        if operation.whole[dim]:
            return within if origin.result else ()
        cut = tuple(part[dim] for part in (operation.tile_shape, operation.strides))
        if origin.result:
            return _alone(operation.tile_shape[dim])
        if cut == (1, 1):
            return within  # As many tiles as elements.
        cut = (*cut, operation.dilation[dim], operation.floor_mode)
        return (Extent(level.shape[dim], cut, within),)
    if isinstance(operation, metaops.Expand) and not operation.expanded[dim]:
        return extents(operand, dim)
    if isinstance(operation, metaops.Squeeze):
        kept = [d for d in range(operand.ndim) if d not in operation.dims]
        return extents(operand, kept[dim])
    if isinstance(operation, metaops.Unsqueeze):
        return () if dim == operation.dim else extents(operand, dim - (dim > operation.dim))
    if isinstance(operation, metaops.Permute):
        return extents(operand, operation.dims[dim])
    if isinstance(operation, metaops.Flatten):
        count = operation.end - operation.start
        merged = range(operation.start, operation.end)
        if dim != operation.start:
            return extents(operand, dim if dim < operation.start else dim + count - 1)
        return tuple(itertools.chain.from_iterable(extents(operand, d) for d in merged))
    if isinstance(operation, metaops.Ravel):
        places = [(each, d) for each in origin.operands for d in range(each.ndim)]
        return extents(*places[dim])
    return _alone(level.shape[dim])


def _alone(size: Expression) -> tuple[Extent, ...]:
    return () if size == 1 else (Extent(size),)


class Links:
    """Sizes that follow from others, by the expression that gives each.

    Args:
        fixed: sizes and symbols that follow from nothing: they were given.
    """

    def __init__(self, fixed: Iterable[Symbol] = ()) -> None:
        self.found: dict[Symbol, Symbol] = {}
        self._fixed = frozenset(fixed)

    def add(self, tensors: Sequence[Level]) -> None:
        """Links the sizes that meet, preferably those of later tensors to those of earlier ones."""
        for tensor in tensors:
            self._add_singletons(tensor)
        for first, second in itertools.combinations(tensors, 2):
            self._add_levels(first, second)
            if len(first.levels) > 2 and len(second.levels) > 2:
                for one, other in zip(first.levels[1:-1], second.levels[1:-1]):
                    self._add_levels(one, other)
            if len(first.levels) > 1 and len(second.levels) > 1:
                self._add_levels(first.levels[-1], second.levels[-1])

    def resolved(self, expression: Expression) -> Symbol:
        """An expression of sizes that follow from nothing."""
        symbol = as_symbol(expression)
        while any(leaf in self.found for leaf in symbol.leaves()):
            symbol = symbol.substitute(self.found)
        return symbol

    def _add_levels(self, first: Level, second: Level) -> None:
        if first.ndim == second.ndim:
            for dim in range(first.ndim):
                self._same(extents(first, dim), extents(second, dim))

    def _add_singletons(self, tensor: Level) -> None:
        """Of what is squeezed away there is one tile, which is as large as what is tiled."""
        for origin in origins(tensor):
            if not isinstance(origin.operation, metaops.Squeeze):
                continue
            for dim in origin.operation.dims:
                for extent in extents(origin.operands[0], dim):
                    sizes = as_symbol(extent.tiles[0]).leaves() if extent.tiles else ()
                    if any(leaf.leaf.role == "size" for leaf in sizes):
                        self._same(extent.tiled, (Extent(as_expression(extent.tiles[0])),))

    def _same(self, first: Sequence[Extent], second: Sequence[Extent]) -> None:
        """Two sizes are the same: factor by factor, or as products."""
        if len(first) != len(second):
            one, other = (product([extent.size for extent in each]) for each in (first, second))
            if first and second:
                self._equal(one, other)
            return
        for a, b in zip(first, second):
            if a.tiles and a.tiles == b.tiles:
                self._same(a.tiled, b.tiled)
            else:
                self._equal(a.size, b.size)

    def _equal(self, first: Expression, second: Expression) -> None:
        one, other = self.resolved(first), self.resolved(second)
        for leaf, value in ((other, one), (one, other)):
            is_free = leaf.op == "leaf" and leaf.leaf.role == "size" and leaf not in self._fixed
            if is_free and leaf not in value.leaves():
                self.found[leaf] = as_symbol(simplify(value))
                return


#: A tile of a symbol's size has so many elements, and a dimension that is taken whole.
_TILE, _WHOLE = 4, 8
#: Of a window, as a convolution's; of dimensions before the last two.
_WINDOW, _BATCH = 3, 2


def default_symbols(
    tensors: Sequence[Level], symbols: Iterable[Symbol], given: Mapping[Symbol, int]
) -> dict[Symbol, int]:
    """A value for each symbol that is none of a size: a tile's is a quarter of what it cuts."""
    cuts: dict[Symbol, list[int]] = {}
    for operation in itertools.chain.from_iterable(map(operations, tensors)):
        if isinstance(operation, metaops.Tile):
            for size, tile in zip(operation.input, operation.tile_shape):
                if isinstance(tile, Symbol) and tile.op == "leaf":
                    known = cuts.setdefault(tile, [])
                    if all(leaf in given for leaf in as_symbol(size).leaves()):
                        known.append(as_symbol(size).evaluate(given))
    result = {}
    for symbol in symbols:
        if symbol not in given:
            quarters = [max(size // 4, 1) for size in cuts.get(symbol, ())] or [_TILE]
            chosen = 1 << (min(quarters).bit_length() - 1) if symbol in cuts else 1
            result[symbol] = within_bounds(symbol, chosen)
    return result


def within_bounds(symbol: Symbol, value: int) -> int:
    """The value next to this one that a symbol was declared to have."""
    low, high = interval(symbol)
    if not symbol.meta:
        low = low if symbol.lower_bound is None else symbol.lower_bound
        high = high if symbol.upper_bound is None else symbol.upper_bound
    return int(min(max(value, low), high))


def default_sizes(tensors: Sequence[Level], values: Mapping[Symbol, int]) -> dict[Symbol, int]:
    """A size for each that is not among the values: some tiles, the last one not full."""
    windows: set[Symbol] = set()
    cut: dict[Symbol, int] = {}
    for operation in itertools.chain.from_iterable(map(operations, tensors)):
        if not isinstance(operation, metaops.Tile):
            continue
        for size, tile, whole in zip(operation.input, operation.tile_shape, operation.whole):
            own = set(as_symbol(size).leaves())
            others = {each for each in as_symbol(tile).leaves() if each.leaf.role == "size"}
            if not whole and others:
                windows |= others - own
            elif not whole and isinstance(size, Symbol) and size.op == "leaf":
                known = as_symbol(tile).evaluate(values)
                # A tile of one element is one of a batch.
                cut[size] = max(cut.get(size, 1), 2 * known + known // 2 if known > 1 else 1)
    result: dict[Symbol, int] = {}
    for tensor in tensors:
        for dim, size in enumerate(tensor.source.shape):
            if not isinstance(size, Symbol) or size in values or size.op != "leaf":
                continue
            usual = _WHOLE if dim >= tensor.source.ndim - 2 else _BATCH
            usual = cut[size] if cut.get(size, 1) > 1 else usual
            result[size] = within_bounds(size, _WINDOW if size in windows else usual)
    return result
