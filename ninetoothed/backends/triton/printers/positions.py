"""The positions of one parameter's elements, as Triton expressions read off its `Access`."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ninetoothed.backends.triton.ir.lowered import NEIGHBOURS, RUN
from ninetoothed.backends.triton.ir.nodes import TileSlice
from ninetoothed.backends.triton.ir.trees import (
    all_of,
    assign,
    element,
    language,
    name,
    number,
    spread,
    sum_of,
)
from ninetoothed.backends.triton.printers.elements import Placement
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.backends.triton.specialization import offsets
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.language import dtypes
from ninetoothed.program.nodes import TileRef
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, needed, sequence_length, sequence_of
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.grids import positions_in


class Positions:
    """The positions of one parameter's elements."""

    def __init__(
        self,
        emission: Emission,
        parameter: Parameter,
        access: Access,
        prologue: list[ast.stmt],
        is_pair: bool = False,
        fold: int | None = None,
        tile_slice: TileSlice | None = None,
        placement: Placement | None = None,
    ) -> None:
        self._emission = emission
        self.parameter = parameter
        self.access = access
        self._prologue = prologue
        self.is_pair = is_pair
        self._fold = fold
        self._tile_slice = tile_slice
        self._placement = placement
        self.tile_shape = parameter.tile_shape if placement is None else placement.view.shape
        self._size_ratios = dict(emission.facts.size_ratios)
        self._named: dict[tuple[Symbol, tuple[int | None, ...]], str] = {}
        self._programs = {leaf: dim for dim, leaf in enumerate(access.programs)}
        self._selections = {leaf: place for place, leaf in enumerate(access.selections)}
        self._lanes = {leaf: dim for dim, leaf in enumerate(access.coordinates)}
        self.dims = tuple(range(len(access.coordinates)))
        self._single = {
            leaf: as_symbol(0)
            for leaf, size in zip(access.coordinates, self.tile_shape)
            if size == 1 and placement is None and not (is_pair and leaf is access.coordinates[-1])
        }
        offset = offsets.collapsed(parameter.source, access.offset, emission.facts.adjacent)
        self.offset = self.compact(offset)
        self._bits = {self.compact(dividend): bits for dividend, bits in emission.facts.bounds}
        self._terms = [
            offsets.without_remainders(access, term) if self._has_small_remainders(term) else term
            for term in offsets.by_lanes(access, self.offset)
        ]
        self._labels = self._labelled()
        self._chosen = 0 if placement is None else placement.view.chosen

    def _labelled(self) -> dict[Symbol, str]:
        """Names for what is worth one: indices of source dimensions, and what is used twice."""
        subject = self.parameter.name
        labels: dict[Symbol, str] = {}
        indices = [self.compact(index) for index in self.access.indices]
        for dim, index in enumerate((*indices, *self.access.indices)):
            if index.op not in ("const", "leaf") or index in self._lanes:
                labels.setdefault(index, f"{subject}_index_{dim % len(indices)}")
        counts: Counter[Symbol] = Counter()
        for expression in {*indices, *map(self.compact, self.access.conditions)}:
            counts.update({node for node in expression.walk() if node.op in ("+", "//", "%")})
        shared = [node for node, count in counts.items() if count > 1 and node not in labels]
        for node in sorted(shared, key=lambda n: (len(str(n)), str(n))):
            positions = (self._programs, self._lanes, self._selections)
            if any(leaf in known for leaf in node.leaves() for known in positions):
                labels[node] = f"{subject}_position"
        if len(self._terms) > 1:
            labels |= dict.fromkeys(self._terms, f"{subject}_offset")
        return labels

    def compact(self, expression: Symbol) -> Symbol:
        """An expression in which the lane of a dimension of size 1 is 0, as it is."""
        if not self._single:
            return expression
        return as_symbol(simplify(expression.substitute(self._single)))

    def _has_small_remainders(self, term: Symbol) -> bool:
        remainders = [node for node in term.walk() if node.op == "%"]
        return bool(remainders) and all(node.operands[0] in self._bits for node in remainders)

    def offset_tree(self, tile: TileRef) -> ast.expr:
        """The offset of each element from the source's first."""
        return self._summed(self._terms, tile)

    def complete_offset(self, tile: TileRef) -> ast.expr:
        """The offset of each element, in the whole shape of a view's value."""
        leaves = set(self.offset.leaves())
        moved = (
            *self.access.coordinates,
            *self.access.selections[len(self.access.selections) - self._chosen :],
        )
        missing = [leaf for leaf in moved if leaf not in leaves]
        if len(missing) < len(moved) and not self._chosen:
            # A dimension of size 1 is there by the place of one before it.
            first = self.access.coordinates[0]
            missing = [leaf for leaf in missing if leaf.leaf.extent != 1 or leaf is first]
        trees = (self.tree(leaf, tile, self.dims) for leaf in missing)
        zeros = [ast.BinOp(tree, ast.Mult(), ast.Constant(0)) for tree in trees]
        return functools.reduce(sum_of, [self.offset_tree(tile), *zeros])

    @property
    def is_advanced(self) -> bool:
        """Whether selections change a part of the offset, and the whole has the tile's shape."""
        return self._has_shape and len({*map(self._depends_on_selection, self._terms)}) == 2

    def first_and_others(self, tile: TileRef) -> list[ast.expr]:
        """The part of the offset that all elements have, and the other one, which has the shape.

        There are none where one of them would be 0, or less than the tile's shape.
        """
        parts: tuple[list[Symbol], list[Symbol]] = [], []
        for addend in (addend for term in self._terms for addend in self._addends(term)):
            parts[any(leaf in self._lanes for leaf in addend.leaves())].append(addend)
        if not self._has_shape or not all(parts):
            return []
        return [self._summed(part, tile) for part in parts]

    def _addends(self, expression: Symbol) -> Iterator[Symbol]:
        """What an expression is the sum of; what has a name is one."""
        if expression.op != "+" or expression in self._labels:
            yield expression
            return
        for operand in expression.operands:
            yield from self._addends(operand)

    @property
    def _has_shape(self) -> bool:
        """Whether the whole offset has the tile's shape."""
        leaves = set(self.offset.leaves())
        return all(lane in leaves or lane in self._single for lane in self.access.coordinates)

    def start_and_advance(self, tile: TileRef) -> list[ast.expr]:
        """The part of the offset that no selection changes, and the other one."""
        parts: tuple[list[Symbol], list[Symbol]] = [], []
        for term in self._terms:
            parts[self._depends_on_selection(term)].append(term)
        return [self._summed(part, tile) for part in parts]

    def _summed(self, terms: Sequence[Symbol], tile: TileRef) -> ast.expr:
        total, *others = terms
        tree = self.tree(total, tile, self.dims)
        for term in others:
            total = total + term
            both = [tree, self.tree(term, tile, self.dims)]
            tree = sum_of(*self._emission.of_64_bits(total, both, self._numbers(tile)))
        return tree

    def shape(self) -> list[ast.expr]:
        """The shape that the positions have together."""
        sizes = [self._width(dim) for dim in self.dims]
        if self._fold is None:
            return sizes
        near, far = sizes[self._fold], sizes[1 - self._fold]
        return [
            ast.Constant(NEIGHBOURS),
            ast.BinOp(far, ast.FloorDiv(), ast.Constant(RUN)),
            ast.Constant(RUN),
            ast.BinOp(near, ast.FloorDiv(), ast.Constant(NEIGHBOURS)),
        ]

    def tree(self, expression: Symbol, tile: TileRef, layout: Iterable[int | None]) -> ast.expr:
        """An expression of the access, with lanes along the dimensions that ``layout`` says."""
        return self._tree(expression, tile, tuple(layout))

    def _tree(self, expression: Symbol, tile: TileRef, layout: tuple[int | None, ...]) -> ast.expr:
        label = self._labels.get(expression)
        if label is None:
            return self._plain(expression, tile, layout)
        if self._placement is not None or self._depends_on_selection(expression):
            value = self._plain(expression, tile, layout)
            return self._emission.named(label, value)
        return name(self._hoisted(expression, label, tile, layout))

    def _plain(self, expression: Symbol, tile: TileRef, layout: tuple[int | None, ...]) -> ast.expr:
        op, operands = expression.op, expression.operands
        if op == "leaf":
            return self._leaf(expression, tile, layout)
        if op in ("sequence_start", "sequence_length"):
            return self._sequence(expression, tile, layout)
        if op == "const":
            return number(operands[0])
        if op == "padded":
            return self._emission.width(operands[0])
        if expression in self._size_ratios:
            return number(self._size_ratios[expression])
        if op == "//" and self._size_ratios.get(operands[1]) == 1:
            return self._tree(operands[0], tile, layout)
        if op == "*" and any(operand in self._emission.facts.unit_strides for operand in operands):
            (rest,) = [o for o in operands if o not in self._emission.facts.unit_strides] or [
                as_symbol(1)
            ]
            return self._tree(rest, tile, layout)
        trees = [self._tree(operand, tile, layout) for operand in operands]
        if op == "*" and self._emission.facts.wide and not self._fits(expression, tile):
            trees[0] = language("cast", trees[0], element(dtypes.int64))
        trees = self._emission.of_64_bits(expression, trees, self._numbers(tile))
        if op == "<":
            return self._emission.below(trees[0], operands[1], trees[1])
        if op in ("//", "%") and operands[0] in self._bits:
            function = "quotient" if op == "//" else "remainder"
            return self._emission.call(function, *trees, ast.Constant(self._bits[operands[0]]))
        return self._emission.over(expression, trees)

    def _fits(self, product: Symbol, tile: TileRef) -> bool:
        """Whether a product of 32 bits is one still, or has a position that has 64."""
        known = self._numbers(tile)
        chosen = self._selections.keys() - known
        if any(n in self._programs or n in chosen for n in product.leaves()):
            return True
        low, high = interval(product.substitute(known))
        return max(-low, high) <= LARGEST_INT32

    def _numbers(self, tile: TileRef) -> dict[Symbol, int]:
        """The selections that are numbers."""
        chosen = {leaf: tile.indices[place] for leaf, place in self._selections.items()}
        return {
            leaf: index.value
            for leaf, index in chosen.items()
            if isinstance(index, ast.Constant) and isinstance(index.value, int)
        }

    def _leaf(self, leaf: Symbol, tile: TileRef, layout: tuple[int | None, ...]) -> ast.expr:
        if leaf in self._programs:
            return self._emission.program(self._programs[leaf])
        if leaf in self._selections:
            index = tile.indices[self._selections[leaf]]
            if self._emission.facts.wide and not isinstance(index, ast.Constant):
                return language("cast", index, element(dtypes.int64))
            return index
        if leaf in self._lanes:
            return self._lane(leaf, layout)
        return self._emission.tree(leaf)

    def _lane(self, leaf: Symbol, layout: tuple[int | None, ...]) -> ast.expr:
        dim = self._lanes[leaf]
        width = self._width(dim)
        if self._fold is not None:
            function = "fold_neighbours" if dim == self._fold else "fold_runs"
            return self._emission.call(function, width)
        if self.is_pair and dim == self.dims[-1]:
            width = ast.BinOp(ast.Constant(2), ast.Mult(), width)
        lane = language("arange", ast.Constant(0), width)
        if self._placement is not None:
            return self._placement.lane(lane, dim)
        if len(layout) == 1:
            return lane
        return spread(lane, [dim if each == dim else None for each in layout])

    def _width(self, dim: int) -> ast.expr:
        """How many positions a dimension has."""
        width = self._emission.width(self.tile_shape[dim])
        if self._tile_slice is not None and dim == self._tile_slice.dim:
            return ast.BinOp(width, ast.FloorDiv(), ast.Constant(self._tile_slice.count))
        return width

    def _sequence(
        self,
        expression: Symbol,
        tile: TileRef,
        layout: tuple[int | None, ...],
        masks: Sequence[ast.expr] = (),
    ) -> ast.expr:
        """The start of a jagged tensor's sequence, or its length, read from the offsets.

        Args:
            masks: where it is there; elsewhere it is 0.
        """
        place = self._tree(expression.operands[1], tile, layout)
        start = ast.BinOp(self._emission.offsets(self.parameter.name), ast.Add(), place)
        keywords: dict[str, ast.expr] = {}
        if masks:
            keywords = {"mask": all_of(masks), "other": ast.Constant(0)}
        first = language("load", start, **keywords)
        if expression.op == "sequence_start":
            return first
        last = language("load", ast.BinOp(start, ast.Add(), ast.Constant(1)), **keywords)
        return ast.BinOp(last, ast.Sub(), first)

    def length(self) -> ast.expr:
        """How long the program's sequence is, of the type of a size; 0 where there is none."""
        source, tile = self.parameter.source, TileRef(parameter=self.parameter.name, indices=[])
        sequence = sequence_of(self.access)
        assert sequence is not None
        own = sequence_length(source, sequence)
        if (own, ()) not in self._named:
            kernel, shape = self._emission.kernel, self.parameter.levels[0]
            placed = kernel.arrangement.places[self.parameter.name]
            inside = positions_in(shape, kernel.grid, self.access.programs, placed)
            facts = [p < as_symbol(n) for p, n in zip(inside, shape)]
            doubts = needed([sequence >= 0, sequence < source.shape[0]], facts)
            masks = [self._tree(doubt, tile, ()) for doubt in doubts]
            size_type = dtypes.int64 if self._emission.facts.is_long else dtypes.int32
            tree = language("cast", self._sequence(own, tile, (), masks), element(size_type))
            self._named[own, ()] = self._emission.fresh(f"{self.parameter.name}_length")
            self._prologue.append(assign(self._named[own, ()], tree))
        return name(self._named[own, ()])

    def _hoisted(
        self, expression: Symbol, label: str, tile: TileRef, layout: tuple[int | None, ...]
    ) -> str:
        key = (expression, self._reduced(expression, layout))
        if key not in self._named:
            tree = self._plain(expression, tile, layout)
            self._named[key] = self._emission.fresh(label)
            self._prologue.append(assign(self._named[key], tree))
        return self._named[key]

    def _reduced(
        self, expression: Symbol, layout: tuple[int | None, ...]
    ) -> tuple[int | None, ...]:
        """The layout as far as the expression depends on it."""
        leaves = set(expression.leaves())
        dims = {dim for leaf, dim in self._lanes.items() if leaf in leaves}
        return tuple(lane if lane in dims else None for lane in layout) if dims else ()

    def _depends_on_selection(self, expression: Symbol) -> bool:
        return any(node in self._selections for node in expression.walk())
