"""Addresses and masks of tiles as Triton expressions, read off each parameter's `Access`.

What depends on the program alone is computed once, in the kernel's first lines, under names that
say what it is; what depends on a selection (``x[k]``) is computed where it is selected.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.analysis import streams
from ninetoothed.backends.triton.ir.lowered import NEIGHBOURS, RUN
from ninetoothed.backends.triton.printers import program_order
from ninetoothed.backends.triton.printers.boxes import as_block, as_tile, halves
from ninetoothed.backends.triton.printers.trees import (
    all_of,
    assign,
    element_type,
    language,
    method,
    name,
    number,
    sum_of,
)
from ninetoothed.backends.triton.specialization import offsets
from ninetoothed.program.nodes import TileRef
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import (
    Access,
    is_power_of_two,
    needed,
    sequence_length,
    sequence_of,
)

if TYPE_CHECKING:
    from ninetoothed.backends.triton.ir.nodes import Pair, Piece
    from ninetoothed.backends.triton.printers.triton import _Emitter
    from ninetoothed.backends.triton.specialization.boxes import Box
    from ninetoothed.tensors.arrange import Parameter

#: For each dimension of a value, the tile's dimension that it follows, or None.
Layout = Sequence["int | None"]


class Scope:
    """What one statement computes before it: the positions and the values of its tiles."""

    def __init__(self) -> None:
        self.before: list[ast.stmt] = []
        self.is_open = True
        self._names: dict[str, str] = {}

    def named(self, emitter: _Emitter, wanted: str, value: ast.expr) -> ast.expr:
        """A name for a value, or the value where nothing may be computed before."""
        if not self.is_open:
            return value
        text = ast.dump(value)
        if text not in self._names:
            self._names[text] = emitter.fresh(wanted)
            self.before.append(assign(self._names[text], value))
        return name(self._names[text])


class Addresses:
    """The addresses of one kernel's tiles."""

    def __init__(self, emitter: _Emitter) -> None:
        self._emitter = emitter
        self._wide = emitter.variant.wide
        self._program_names: dict[int, str] = {}
        self._prologue: list[ast.stmt] = []
        self.scope = Scope()
        self._positions: dict[str, _Positions] = {}
        self._pairs: dict[Pair, _Positions] = {}
        self._folds = dict(emitter.lowered.folds)
        self._folded: dict[str, _Positions] = {}

    def prologue(self) -> list[ast.stmt]:
        """What the kernel computes first: the program's position, then that of its tiles."""
        parts = self._emitter.parts
        first = parts.position() if parts else []
        return [*first, *self._program_position(), *self._prologue]

    def program(self, dim: int) -> ast.expr:
        """The program's position in a dimension of the grid."""
        if dim not in self._program_names:
            count = len(self._emitter.kernel.grid)
            wanted = "program" if count == 1 else f"program_{dim}"
            self._program_names[dim] = self._emitter.fresh(wanted)
        return name(self._program_names[dim])

    def _program_position(self) -> list[ast.stmt]:
        grid = self._emitter.kernel.grid
        parts, number = self._emitter.parts, self._emitter.number
        program = name(parts.tile) if parts else language("program_id", ast.Constant(0))
        if number:
            program = name(number)
        if self._wide:
            program = method(program, "to", ast.Attribute(name("tl"), "int64", ast.Load()))
        if not self._program_names:
            return []
        if len(grid) == 1:
            return [assign(self._program_names[0], program)]
        whole = self._emitter.fresh("program")
        first, tree = assign(whole, program), self._emitter.tree
        names, lowered, fresh = self._program_names, self._emitter.lowered, self._emitter.fresh
        if lowered.group > 1:
            grouped = program_order.grouped(whole, names, grid, lowered.group, tree, fresh)
            return [first, *grouped]
        if lowered.by_inverses:
            inverse = self._emitter.inverse
            return [first, *program_order.by_inverses(whole, names, grid, tree, inverse, fresh)]
        return [first, *program_order.plain(whole, names, grid, tree)]

    # Accesses of tiles.

    def load(self, tile: TileRef) -> ast.expr:
        """The value of a tile."""
        box = self._emitter.lowered.box(tile.parameter)
        if box is not None:
            return self._load_box(tile, box)
        if tile.parameter in self._folds:
            return self._load_folded(tile)
        return self._loaded(self._of(tile), tile)

    def _load_folded(self, tile: TileRef) -> ast.expr:
        """The value of a gathered tile (`folded`)."""
        self._emitter.library |= {"fold_neighbours", "fold_runs", "unfold_tile"}
        loaded = self._loaded(self._of_folded(tile), tile)
        dim = ast.Constant(self._folds[tile.parameter])
        return ast.Call(name("unfold_tile"), [loaded, dim], [])

    def _load_box(self, tile: TileRef, box: Box) -> ast.expr:
        """The value of a tile by its source's descriptor (`descriptors`)."""
        positions = self._of(tile)
        descriptor = self._emitter.descriptor(tile.parameter)
        corner = ast.List(self._corner(positions, tile, box), ast.Load())
        block = method(descriptor, "load", corner)
        return as_tile(block, box, self._widths(positions.parameter.tile_shape))

    def _store_box(self, tile: TileRef, box: Box, value: ast.expr) -> ast.stmt:
        """Stores a value to a tile by its source's descriptor."""
        positions = self._of(tile)
        descriptor = self._emitter.descriptor(tile.parameter)
        widths = self._widths(positions.parameter.tile_shape)
        dtype = ast.Attribute(descriptor, "dtype", ast.Load())
        shape = ast.Tuple(widths, ast.Load())
        value = language("broadcast_to", language("cast", value, dtype), shape)
        value = self.scope.named(self._emitter, f"{tile.parameter}_value", value)
        corner = self._corner(positions, tile, box)
        if not box.is_halved:
            block = as_block(value, box, widths)
            return ast.Expr(method(descriptor, "store", ast.List(corner, ast.Load()), block))
        *outer, last = widths
        half = ast.BinOp(last, ast.FloorDiv(), ast.Constant(2))
        names = [self._emitter.fresh(f"{tile.parameter}_{side}") for side in ("left", "right")]
        both = ast.Tuple([ast.Name(each, ast.Store()) for each in names], ast.Store())
        self.scope.before.append(ast.Assign([both], halves(value, outer, half)))
        corners = [corner, [*corner[:-1], ast.BinOp(corner[-1], ast.Add(), half)]]
        stores = [
            method(
                descriptor,
                "store",
                ast.List(each, ast.Load()),
                as_block(name(side), box, [*outer, half]),
            )
            for each, side in zip(corners, names)
        ]
        self.scope.before.append(ast.Expr(stores[0]))
        return ast.Expr(stores[1])

    def _corner(self, positions: _Positions, tile: TileRef, box: Box) -> list[ast.expr]:
        """The indices of a tile's first element, as a descriptor takes them."""
        first = {lane: as_symbol(0) for lane in positions.access.lanes}
        corner = []
        for dim in box.dims:
            index = as_symbol(simplify(positions.access.indices[dim].substitute(first)))
            tree = positions.tree(index, tile, ())
            narrow = ast.Attribute(name("tl"), "int32", ast.Load())
            corner.append(language("cast", tree, narrow) if self._wide else tree)
        return corner

    def load_pair(self, tile: TileRef, pair: Pair) -> ast.expr:
        """The values of two tiles that take turns (`interleave`), as a tuple."""
        positions = self._of_pair(tile.parameter, pair)
        loaded = self.scope.named(
            self._emitter, f"{tile.parameter}_pair", self._loaded(positions, tile)
        )
        shape = ast.Tuple([*self._widths(pair.tile_shape), ast.Constant(2)], ast.Load())
        return language("split", language("reshape", loaded, shape))

    def _loaded(self, positions: _Positions, tile: TileRef) -> ast.expr:
        pointer = self._pointer(positions, tile)
        mask = self._mask(positions, tile, positions.lanes)
        keywords: dict[str, ast.expr] = {}
        if mask is not None:
            keywords = {"mask": mask, "other": self.filler(tile.parameter)}
        if tile.parameter in self._emitter.lowered.last_to_leave and not positions.is_pair:
            keywords["eviction_policy"] = ast.Constant("evict_last")
        return language("load", pointer, **keywords)

    def filler(self, parameter: str) -> ast.expr:
        """What stands where a tensor has no element: ``other``, or 0."""
        other = self._emitter.kernel.program.parameter(parameter).source.other
        if other is None:
            other = 0.0 if parameter in self._emitter.variant.float8 else 0
        return number(other)

    def store(self, tile: TileRef, value: ast.expr) -> ast.stmt:
        """Stores a value to a tile."""
        box = self._emitter.lowered.box(tile.parameter)
        if box is not None:
            return self._store_box(tile, box, value)
        return self._stored(self._of(tile), tile, value)

    def store_pair(self, tile: TileRef, pair: Pair, values: Sequence[ast.expr]) -> ast.stmt:
        """Stores two values to two tiles that take turns (`interleave`)."""
        positions = self._of_pair(tile.parameter, pair)
        dtype = element_type(self._emitter.pointer(tile.parameter))
        shape = ast.Tuple(self._widths(pair.tile_shape), ast.Load())
        whole = [
            self.scope.named(
                self._emitter,
                f"{tile.parameter}_value",
                language("broadcast_to", language("cast", value, dtype), shape),
            )
            for value in values
        ]
        return self._stored(positions, tile, language("interleave", *whole))

    def store_piece(self, tile: TileRef, piece: Piece, value: ast.expr) -> ast.stmt:
        """Stores a value to a piece of a tile (`shares`)."""
        parameter = self._emitter.kernel.program.parameter(tile.parameter)
        positions = _Positions(
            self, self._emitter, parameter, piece.access, self._prologue, piece=piece
        )
        return self._stored(positions, tile, value)

    def _stored(self, positions: _Positions, tile: TileRef, value: ast.expr) -> ast.stmt:
        pointer = self._pointer(positions, tile)
        mask = self._mask(positions, tile, positions.lanes)
        keywords = {} if mask is None else {"mask": mask}
        return ast.Expr(language("store", pointer, value, **keywords))

    def offset(self, tile: TileRef, dim: int | None) -> ast.expr:
        """The linear offset of each element, or its index along a source dimension.

        An index has the dimensions of the tile that it depends on.
        """
        positions = self._of(tile)
        if dim is None:
            return self._spread(positions, positions.offset_tree(tile), positions.offset)
        index = positions.access.indices[dim]
        leaves = set(index.leaves())
        layout = [lane for lane, leaf in enumerate(positions.access.lanes) if leaf in leaves]
        return positions.tree(index, tile, layout)

    def length(self, parameter: str) -> ast.expr:
        """How long the program's sequence of a jagged tensor is."""
        return self._of(TileRef(parameter=parameter, indices=[])).length()

    def mask(self, tile: TileRef, layout: Layout) -> ast.expr | None:
        """Where the elements exist, over the dimensions in ``layout``; None where all do."""
        return self._mask(self._of(tile), tile, layout)

    def _mask(self, positions: _Positions, tile: TileRef, layout: Layout) -> ast.expr | None:
        holding = self._emitter.variant.holding
        present = {lane for lane in layout if lane is not None}
        found: list[ast.expr] = []
        for place, condition in enumerate(positions.access.conditions):
            condition = positions.compact(condition)
            if (positions.parameter.name, place) in holding:
                continue
            inside = self._emitter.holding
            if inside is not None and not positions.is_pair and inside.covers(tile, place):
                continue
            if condition.op == "const":
                if condition.operands[0]:
                    continue
                # No element exists: every position is padding.
                return ast.Constant(False)
            leaves = set(condition.leaves())
            wanted = {lane for lane, leaf in enumerate(positions.access.lanes) if leaf in leaves}
            if not wanted <= present:
                continue
            found.append(positions.tree(condition, tile, layout))
        return all_of(found) if found else None

    def _pointer(self, positions: _Positions, tile: TileRef) -> ast.expr:
        offset = positions.offset
        pointer = self._emitter.pointer(positions.parameter.name)
        if offset == 0 and not positions.lanes:
            return pointer
        if self._emitter.lowered.fetched and positions.is_advanced:
            # What a loop leaves as it is is added to the pointer before the loop.
            return functools.reduce(sum_of, positions.start_and_advance(tile), pointer)
        if positions.parameter.name in streams.moved(self._emitter.kernel):
            # One addition for all elements, and constants between a thread's: fewer registers.
            if parts := positions.first_and_others(tile):
                return functools.reduce(sum_of, parts, pointer)
        return sum_of(pointer, self._spread(positions, positions.offset_tree(tile), offset))

    def _spread(self, positions: _Positions, tree: ast.expr, expression: Symbol) -> ast.expr:
        """``tree`` in the tile's whole shape, where it does not have it already."""
        leaves = set(expression.leaves())
        missing = [
            size
            for leaf, size in zip(positions.access.lanes, positions.parameter.tile_shape)
            if leaf not in leaves and size != 1
        ]
        lanes = [leaf for leaf in positions.access.lanes if leaf in leaves]
        if not missing and (lanes or not positions.access.lanes):
            return tree
        shape = ast.Tuple(positions.shape(), ast.Load())
        if lanes:
            return language("broadcast_to", tree, shape)
        # One position for all: it may be a plain number, which cannot be broadcast.
        integer = ast.Attribute(name("tl"), "int64" if self._wide else "int32", ast.Load())
        return language("full", shape, tree, integer)

    def _widths(self, shape: Iterable[Any]) -> list[ast.expr]:
        return [self.width(size) for size in shape]

    def width(self, size: Any) -> ast.expr:
        """A tile's size, widened to a power of two."""
        if isinstance(size, int):
            return ast.Constant(1 << max(size - 1, 0).bit_length())
        if as_symbol(size) in self._emitter.variant.empty:
            return ast.Constant(1)
        tree = self._emitter.tree(size)
        if is_power_of_two(size) or as_symbol(size) in self._emitter.variant.powers_of_two:
            return tree
        return ast.Call(ast.Attribute(name("triton"), "next_power_of_2", ast.Load()), [tree], [])

    def _of(self, tile: TileRef) -> _Positions:
        if tile.parameter not in self._positions:
            parameter = self._emitter.kernel.program.parameter(tile.parameter)
            access = self._emitter.kernel.arrangement.accesses[tile.parameter]
            self._positions[tile.parameter] = _Positions(
                self, self._emitter, parameter, access, self._prologue
            )
        return self._positions[tile.parameter]

    def _of_folded(self, tile: TileRef) -> _Positions:
        if tile.parameter not in self._folded:
            parameter = self._emitter.kernel.program.parameter(tile.parameter)
            access = self._emitter.kernel.arrangement.accesses[tile.parameter]
            self._folded[tile.parameter] = _Positions(
                self,
                self._emitter,
                parameter,
                access,
                self._prologue,
                fold=self._folds[tile.parameter],
            )
        return self._folded[tile.parameter]

    def _of_pair(self, name: str, pair: Pair) -> _Positions:
        if pair not in self._pairs:
            parameter = self._emitter.kernel.program.parameter(name)
            self._pairs[pair] = _Positions(
                self, self._emitter, parameter, pair.access, self._prologue, is_pair=True
            )
        return self._pairs[pair]


class _Positions:
    """The positions of one parameter's elements."""

    def __init__(
        self,
        addresses: Addresses,
        emitter: _Emitter,
        parameter: Parameter,
        access: Access,
        prologue: list[ast.stmt],
        is_pair: bool = False,
        fold: int | None = None,
        piece: Piece | None = None,
    ) -> None:
        self._addresses = addresses
        self._emitter = emitter
        self.parameter = parameter
        self.access = access
        self._prologue = prologue
        self.is_pair = is_pair
        self._fold = fold
        self._piece = piece
        self._ratios = dict(emitter.variant.ratios)
        self._named: dict[tuple[Symbol, tuple[int | None, ...]], str] = {}
        self._programs = {leaf: dim for dim, leaf in enumerate(access.programs)}
        self._selections = {leaf: place for place, leaf in enumerate(access.selections)}
        self._lanes = {leaf: dim for dim, leaf in enumerate(access.lanes)}
        self.lanes = tuple(range(len(access.lanes)))
        self._single = {
            leaf: as_symbol(0)
            for leaf, size in zip(access.lanes, parameter.tile_shape)
            if size == 1 and not (is_pair and leaf is access.lanes[-1])
        }
        offset = offsets.joined(parameter.source, access.offset, emitter.variant.adjacent)
        self.offset = self.compact(offset)
        self._bits = {self.compact(dividend): bits for dividend, bits in emitter.variant.bounds}
        self._terms = [
            offsets.without_remainders(access, term) if self._has_small_remainders(term) else term
            for term in offsets.by_lanes(access, self.offset)
        ]
        self._labels = self._labelled()

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
        return all(lane in leaves or lane in self._single for lane in self.access.lanes)

    def start_and_advance(self, tile: TileRef) -> list[ast.expr]:
        """The part of the offset that no selection changes, and the other one."""
        parts: tuple[list[Symbol], list[Symbol]] = [], []
        for term in self._terms:
            parts[self._depends_on_selection(term)].append(term)
        return [self._summed(part, tile) for part in parts]

    def _summed(self, terms: Sequence[Symbol], tile: TileRef) -> ast.expr:
        return functools.reduce(sum_of, [self.tree(term, tile, self.lanes) for term in terms])

    def shape(self) -> list[ast.expr]:
        """The shape that the positions have together."""
        sizes = [self._width(dim) for dim in self.lanes]
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
        if self._depends_on_selection(expression):
            value = self._plain(expression, tile, layout)
            return self._addresses.scope.named(self._emitter, label, value)
        return name(self._hoisted(expression, label, tile, layout))

    def _plain(self, expression: Symbol, tile: TileRef, layout: tuple[int | None, ...]) -> ast.expr:
        op, operands = expression.op, expression.operands
        if op == "leaf":
            return self._leaf(expression, tile, layout)
        if op in ("sequence_start", "sequence_length"):
            return self._sequence(expression, tile, layout)
        if op == "const":
            return number(operands[0])
        if expression in self._ratios:
            return number(self._ratios[expression])
        if op == "//" and self._ratios.get(operands[1]) == 1:
            return self._tree(operands[0], tile, layout)
        if op == "*" and any(operand in self._emitter.variant.unit_strides for operand in operands):
            (rest,) = [o for o in operands if o not in self._emitter.variant.unit_strides] or [
                as_symbol(1)
            ]
            return self._tree(rest, tile, layout)
        trees = [self._tree(operand, tile, layout) for operand in operands]
        if op in ("//", "%") and operands[0] in self._bits:
            function = "quotient" if op == "//" else "remainder"
            self._emitter.library.add(function)
            return ast.Call(name(function), [*trees, ast.Constant(self._bits[operands[0]])], [])
        return self._emitter.over(expression, trees)

    def _leaf(self, leaf: Symbol, tile: TileRef, layout: tuple[int | None, ...]) -> ast.expr:
        if leaf in self._programs:
            return self._addresses.program(self._programs[leaf])
        if leaf in self._selections:
            index = tile.indices[self._selections[leaf]]
            if self._emitter.variant.wide and not isinstance(index, ast.Constant):
                return language("cast", index, ast.Attribute(name("tl"), "int64", ast.Load()))
            return index
        if leaf in self._lanes:
            return self._lane(leaf, layout)
        return self._emitter.tree(leaf)

    def _lane(self, leaf: Symbol, layout: tuple[int | None, ...]) -> ast.expr:
        dim = self._lanes[leaf]
        width = self._width(dim)
        if self._fold is not None:
            function = "fold_neighbours" if dim == self._fold else "fold_runs"
            return ast.Call(name(function), [width], [])
        if self.is_pair and dim == self.lanes[-1]:
            width = ast.BinOp(ast.Constant(2), ast.Mult(), width)
        lane = language("arange", ast.Constant(0), width)
        if len(layout) == 1:
            return lane
        place = layout.index(dim)
        entries: list[ast.expr] = [
            ast.Slice() if position == place else ast.Constant(None)
            for position in range(len(layout))
        ]
        return ast.Subscript(lane, ast.Tuple(entries, ast.Load()), ast.Load())

    def _width(self, dim: int) -> ast.expr:
        """How many positions a dimension has."""
        width = self._addresses.width(self.parameter.tile_shape[dim])
        if self._piece is not None and dim == self._piece.dim:
            return ast.BinOp(width, ast.FloorDiv(), ast.Constant(self._piece.count))
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
        number = expression.operands[1]
        offsets = self._emitter.offsets(self.parameter.name)
        start = ast.BinOp(offsets, ast.Add(), self._tree(number, tile, layout))
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
            facts = [
                p < as_symbol(n) for p, n in zip(self.access.programs, self.parameter.levels[0])
            ]
            doubts = needed([sequence >= 0, sequence < source.shape[0]], facts)
            masks = [self._tree(doubt, tile, ()) for doubt in doubts]
            size_type = "int64" if self._emitter.variant.is_long else "int32"
            length = self._sequence(own, tile, (), masks)
            tree = language("cast", length, ast.Attribute(name("tl"), size_type, ast.Load()))
            self._named[own, ()] = self._emitter.fresh(f"{self.parameter.name}_length")
            self._prologue.append(assign(self._named[own, ()], tree))
        return name(self._named[own, ()])

    def _hoisted(
        self, expression: Symbol, label: str, tile: TileRef, layout: tuple[int | None, ...]
    ) -> str:
        key = (expression, self._reduced(expression, layout))
        if key not in self._named:
            tree = self._plain(expression, tile, layout)
            self._named[key] = self._emitter.fresh(label)
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
