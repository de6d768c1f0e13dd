"""Addresses and masks of tiles as Triton expressions, read off each parameter's `Access`.

What depends on the program alone is computed once, in the kernel's first lines, under names that
say what it is; what depends on a selection (``x[k]``) is computed where it is selected.
"""

from __future__ import annotations

import ast
import ctypes
import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from ninetoothed.backends.triton.analysis import streamed_tensors
from ninetoothed.backends.triton.ir import nodes
from ninetoothed.backends.triton.ir.trees import (
    all_of,
    assign,
    attribute,
    element,
    language,
    method,
    name,
    number,
    sum_of,
)
from ninetoothed.backends.triton.minus_zero import is_minus_zero
from ninetoothed.backends.triton.printers import program_order
from ninetoothed.backends.triton.printers.box_shapes import as_block, as_tile, halves
from ninetoothed.backends.triton.printers.elements import Placement
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.backends.triton.printers.positions import Positions
from ninetoothed.backends.triton.specialization.boxes import Box
from ninetoothed.language import dtypes
from ninetoothed.program.nodes import TileRef
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access
from ninetoothed.tensors.views import View, viewed

#: For each dimension of a value, the tile's dimension that it follows, or None.
Layout = Sequence["int | None"]


class Addresses:
    """The addresses of one kernel's tiles."""

    def __init__(self, emission: Emission) -> None:
        self._emission = emission
        self._wide = emission.facts.wide
        self._prologue: list[ast.stmt] = []
        self._positions: dict[tuple[str, int | nodes.Pair | None], Positions] = {}
        self._folds = dict(emission.lowered.folds)

    def prologue(self) -> list[ast.stmt]:
        """What the kernel computes first: the program's position, then that of its tiles."""
        parts = self._emission.parts
        first = parts.position(self._emission.tree, self._emission.kernel.grid) if parts else []
        return [*first, *self._program_position(), *self._prologue]

    def _program_position(self) -> list[ast.stmt]:
        grid = self._emission.kernel.grid
        parts, number = self._emission.parts, self._emission.number
        program = name(parts.tile) if parts else language("program_id", ast.Constant(0))
        if number:
            program = name(number)
        if self._wide:
            program = method(program, "to", element(dtypes.int64))
        if not self._emission.programs:
            return []
        if len(grid) == 1:
            return [assign(self._emission.programs[0], program)]
        whole = self._emission.fresh("program")
        first, tree = assign(whole, program), self._emission.tree
        names, lowered = self._emission.programs, self._emission.lowered
        fresh = self._emission.fresh
        if lowered.group_size > 1:
            grouped = program_order.grouped(whole, names, grid, lowered.group_size, tree, fresh)
            return [first, *grouped]
        if lowered.by_inverses:
            inverse = self._emission.inverse
            return [first, *program_order.by_inverses(whole, names, grid, tree, inverse, fresh)]
        return [first, *program_order.plain(whole, names, grid, tree)]

    # Accesses of tiles.

    def load(self, tile: TileRef) -> ast.expr:
        """The value of a tile."""
        box = self._emission.lowered.box(tile.parameter)
        if box is not None:
            return self._load_box(tile, box)
        if tile.parameter in self._folds:
            return self._load_folded(tile)
        return self._loaded(self._of(tile), tile)

    def _load_folded(self, tile: TileRef) -> ast.expr:
        """The value of a gathered tile (`folded_gather`)."""
        dim = self._folds[tile.parameter]
        loaded = self._loaded(self._of(tile, dim), tile)
        return self._emission.call("unfold_tile", loaded, ast.Constant(dim))

    def _load_box(self, tile: TileRef, box: Box) -> ast.expr:
        """The value of a tile by its source's descriptor (`descriptors`)."""
        positions = self._of(tile)
        descriptor = self._emission.descriptor(tile.parameter)
        corner = ast.List(self._corner(positions, tile, box), ast.Load())
        block = nodes.DescriptorLoad(parameter=tile.parameter, descriptor=descriptor, corner=corner)
        return as_tile(block, box, self._widths(positions.parameter.tile_shape))

    def _store_box(self, tile: TileRef, box: Box, value: ast.expr) -> ast.stmt:
        """Stores a value to a tile by its source's descriptor."""
        positions = self._of(tile)
        descriptor = self._emission.descriptor(tile.parameter)
        widths = self._widths(positions.parameter.tile_shape)
        shape = ast.Tuple(widths, ast.Load())
        value = language(
            "broadcast_to", language("cast", value, attribute(descriptor, "dtype")), shape
        )
        value = self._emission.named(f"{tile.parameter}_value", value)
        corner = self._corner(positions, tile, box)

        def stored(place: list[ast.expr], part: ast.expr, widths: list[ast.expr]) -> ast.stmt:
            return nodes.DescriptorStore(
                parameter=tile.parameter,
                descriptor=descriptor,
                corner=ast.List(place, ast.Load()),
                value=as_block(part, box, widths),
            )

        if not box.is_halved:
            return stored(corner, value, widths)
        *outer, last = widths
        half = ast.BinOp(last, ast.FloorDiv(), ast.Constant(2))
        names = [self._emission.fresh(f"{tile.parameter}_{side}") for side in ("left", "right")]
        both = ast.Tuple([ast.Name(each, ast.Store()) for each in names], ast.Store())
        self._emission.scope.before.append(ast.Assign([both], halves(value, outer, half)))
        corners = [corner, [*corner[:-1], ast.BinOp(corner[-1], ast.Add(), half)]]
        first, second = (
            stored(each, name(side), [*outer, half]) for each, side in zip(corners, names)
        )
        self._emission.scope.before.append(first)
        return second

    def _corner(self, positions: Positions, tile: TileRef, box: Box) -> list[ast.expr]:
        """The indices of a tile's first element, as a descriptor takes them."""
        first = {lane: as_symbol(0) for lane in positions.access.coordinates}
        corner = []
        for dim in box.dims:
            index = as_symbol(simplify(positions.access.indices[dim].substitute(first)))
            tree = positions.tree(index, tile, ())
            corner.append(language("cast", tree, element(dtypes.int32)) if self._wide else tree)
        return corner

    def load_pair(self, tile: TileRef, pair: nodes.Pair) -> ast.expr:
        """The values of two tiles that take turns (`interleaved_pairs`), as a tuple."""
        positions = self._of_pair(tile.parameter, pair)
        loaded = self._emission.named(f"{tile.parameter}_pair", self._loaded(positions, tile))
        shape = ast.Tuple([*self._widths(pair.tile_shape), ast.Constant(2)], ast.Load())
        return language("split", language("reshape", loaded, shape))

    def _loaded(self, positions: Positions, tile: TileRef) -> ast.expr:
        pointer = self._pointer(positions, tile)
        mask = self._mask(positions, tile, positions.dims)
        keywords: dict[str, ast.expr] = {}
        if mask is not None:
            keywords = {"mask": mask, "other": self.filler(tile.parameter)}
        if tile.parameter in self._emission.lowered.evict_last:
            keywords["eviction_policy"] = ast.Constant("evict_last")
        return language("load", pointer, **keywords)

    def filler(self, parameter: str) -> ast.expr:
        """What stands where a tensor has no element: ``other``, or 0."""
        other = self._emission.kernel.program.parameter(parameter).source.other
        other = 0 if other is None else other
        facts = self._emission.facts
        if parameter in facts.booleans:
            return number(int(other != 0))
        if is_minus_zero(other):
            return self._emission.function("MINUS_ZERO")
        if (parameter, dtypes.float64) in facts.beside_float64 and _is_no_float32(other):
            wide = element(dtypes.float64)
            return language("full", ast.Tuple([], ast.Load()), number(other), wide)
        return number(float(other) if parameter in facts.float8 else other)

    def store(self, tile: TileRef, value: ast.expr) -> ast.stmt:
        """Stores a value to a tile."""
        box = self._emission.lowered.box(tile.parameter)
        if box is not None:
            return self._store_box(tile, box, value)
        return self._stored(self._of(tile), tile, value)

    def store_pair(self, tile: TileRef, pair: nodes.Pair, values: Sequence[ast.expr]) -> ast.stmt:
        """Stores two values to two tiles that take turns (`interleaved_pairs`)."""
        positions = self._of_pair(tile.parameter, pair)
        dtype = nodes.PointedType(
            parameter=tile.parameter, pointer=self._emission.pointer(tile.parameter)
        )
        shape = ast.Tuple(self._widths(pair.tile_shape), ast.Load())
        whole = [
            self._emission.named(
                f"{tile.parameter}_value",
                language("broadcast_to", language("cast", value, dtype), shape),
            )
            for value in values
        ]
        return self._stored(positions, tile, language("interleave", *whole))

    def store_slice(self, tile: TileRef, tile_slice: nodes.TileSlice, value: ast.expr) -> ast.stmt:
        """Stores a value to a slice of a tile (`cooperative_reduction`)."""
        parameter = self._emission.kernel.program.parameter(tile.parameter)
        positions = Positions(
            self._emission, parameter, tile_slice.access, self._prologue, tile_slice=tile_slice
        )
        return self._stored(positions, tile, value)

    def _stored(self, positions: Positions, tile: TileRef, value: ast.expr) -> ast.stmt:
        pointer = self._pointer(positions, tile)
        mask = self._mask(positions, tile, positions.dims)
        keywords = {} if mask is None else {"mask": mask}
        return ast.Expr(language("store", pointer, value, **keywords))

    def elements(
        self, parameter: str, view: View, indices: Sequence[ast.expr], layout: Layout | None = None
    ) -> tuple[ast.expr, ast.expr | None]:
        """Pointers to the elements of a tile that a view selects, and where they exist.

        Args:
            layout: the dimensions that are asked for; those of slices alone have conditions of their own.
        """
        count = len(indices) - view.chosen
        placement = Placement(self._emission, view, indices[count:])
        declared = self._emission.kernel.program.parameter(parameter)
        access = viewed(
            self._emission.kernel.arrangement.accesses[parameter],
            declared.tile_shape,
            view,
            declared.source,
        )
        positions = Positions(self._emission, declared, access, self._prologue, placement=placement)
        chosen = [
            index
            if isinstance(index, (ast.Name, ast.Constant))
            else self._emission.named(f"{parameter}_position", index)
            for index in placement.positions()
        ]
        tile = TileRef(parameter=parameter, indices=[*indices[:count], *chosen])
        pointer = self._emission.pointer(parameter)
        if positions.dims or chosen or positions.offset != 0:
            pointer = sum_of(pointer, positions.complete_offset(tile))
        found = [ast.Compare(index, [ast.GtE()], [ast.Constant(0)]) for index in chosen]
        present = positions.dims if layout is None or view.chosen else layout
        mask = self._mask(positions, tile, positions.dims, present)
        conditions: list[ast.expr] = [*found, *([] if mask is None else [mask])]
        return pointer, all_of(conditions) if conditions else None

    def offset(self, tile: TileRef, dim: int | None) -> ast.expr:
        """The linear offset of each element, or its index along a source dimension.

        An index has the dimensions of the tile that it depends on.
        """
        positions = self._of(tile)
        if dim is None:
            return self._spread(positions, positions.offset_tree(tile), positions.offset)
        index = positions.access.indices[dim]
        leaves = set(index.leaves())
        layout = [lane for lane, leaf in enumerate(positions.access.coordinates) if leaf in leaves]
        return positions.tree(index, tile, layout)

    def length(self, parameter: str) -> ast.expr:
        """How long the program's sequence of a jagged tensor is."""
        return self._of(TileRef(parameter=parameter, indices=[])).length()

    def mask(self, tile: TileRef, layout: Layout) -> ast.expr | None:
        """Where the elements exist, over the dimensions in ``layout``; None where all do."""
        return self._mask(self._of(tile), tile, layout)

    def _mask(
        self, positions: Positions, tile: TileRef, layout: Layout, asked: Layout | None = None
    ) -> ast.expr | None:
        """The conditions on the dimensions that are asked for, over those in ``layout``; by default these."""
        holding, powers = self._emission.facts.holding, self._emission.facts.powers_of_two
        present = {lane for lane in (layout if asked is None else asked) if lane is not None}
        found: list[ast.expr] = []
        for place, condition in enumerate(positions.access.conditions):
            condition = positions.compact(condition)
            if (positions.parameter.name, place) in holding:
                continue
            inside = self._emission.holding
            if inside is not None and not positions.is_pair and inside.covers(tile, place):
                continue
            if condition.op == "const":
                if condition.operands[0]:
                    continue
                # No element exists: every position is padding.
                return ast.Constant(False)
            if any(
                condition == (lane < size)
                for lane in positions.access.coordinates
                for size in powers
            ):
                continue
            leaves = set(condition.leaves())
            wanted = {
                lane for lane, leaf in enumerate(positions.access.coordinates) if leaf in leaves
            }
            if not wanted <= present:
                continue
            found.append(positions.tree(condition, tile, layout))
        found += self._within(positions, tile, present)
        return all_of(found) if found else None

    def _within(
        self, positions: Positions, tile: TileRef, present: Collection[int]
    ) -> Iterator[ast.expr]:
        """That selections which may leave their level do not, asked as conditions are where the dimensions
        are present of which more than one element depends on them: all where none does."""
        middle, access = positions.parameter.middle_sizes, positions.access
        lanes = {
            number: lane
            for number, (lane, size) in enumerate(zip(access.coordinates, positions.tile_shape))
            if size != 1
        }
        for place, index in enumerate(tile.indices):
            if (tile.parameter, place) not in self._emission.facts.beyond:
                continue
            touched = [
                set(e.leaves()) for e in access.indices if access.selections[place] in e.leaves()
            ]
            followed = [n for n, lane in lanes.items() if any(lane in leaves for leaves in touched)]
            if all(number in present for number in followed or lanes):
                count = self._emission.position(as_symbol(middle[place]))
                yield ast.Compare(index, [ast.GtE()], [ast.Constant(0)])
                yield ast.Compare(index, [ast.Lt()], [count])

    def _pointer(self, positions: Positions, tile: TileRef) -> ast.expr:
        offset = positions.offset
        pointer = self._emission.pointer(positions.parameter.name)
        if offset == 0 and not positions.dims:
            return pointer
        if self._emission.lowered.prefetched and positions.is_advanced:
            # What a loop leaves as it is is added to the pointer before the loop.
            return functools.reduce(sum_of, positions.start_and_advance(tile), pointer)
        if positions.parameter.name in streamed_tensors.moved(self._emission.kernel):
            # One addition for all elements, and constants between a thread's: fewer registers.
            if parts := positions.first_and_others(tile):
                return functools.reduce(sum_of, parts, pointer)
        return sum_of(pointer, self._spread(positions, positions.offset_tree(tile), offset))

    def _spread(self, positions: Positions, tree: ast.expr, expression: Symbol) -> ast.expr:
        """``tree`` in the tile's whole shape, where it does not have it already."""
        leaves = set(expression.leaves())
        missing = [
            size
            for leaf, size in zip(positions.access.coordinates, positions.parameter.tile_shape)
            if leaf not in leaves and size != 1
        ]
        lanes = [leaf for leaf in positions.access.coordinates if leaf in leaves]
        if not missing and (lanes or not positions.access.coordinates):
            return tree
        shape = ast.Tuple(positions.shape(), ast.Load())
        if lanes:
            return language("broadcast_to", tree, shape)
        # One position for all: it may be a plain number, which cannot be broadcast.
        integer = element(dtypes.int64 if self._wide else dtypes.int32)
        return language("full", shape, tree, integer)

    def _widths(self, shape: Iterable[Any]) -> list[ast.expr]:
        return [self._emission.width(size) for size in shape]

    def _of(self, tile: TileRef, fold: int | None = None) -> Positions:
        access = self._emission.kernel.arrangement.accesses[tile.parameter]
        return self._known(tile.parameter, fold, access, fold=fold)

    def _of_pair(self, parameter: str, pair: nodes.Pair) -> Positions:
        return self._known(parameter, pair, pair.access, is_pair=True)

    def _known(
        self, name: str, kind: int | nodes.Pair | None, access: Access, **options: Any
    ) -> Positions:
        """The positions of a parameter's tiles, made once for each kind."""
        if (name, kind) not in self._positions:
            parameter = self._emission.kernel.program.parameter(name)
            self._positions[name, kind] = Positions(
                self._emission, parameter, access, self._prologue, **options
            )
        return self._positions[name, kind]


def _is_no_float32(value: Any) -> bool:
    """Whether a number would be rounded as a float32, which a compiler makes of each by itself."""
    return isinstance(value, float) and value == value and ctypes.c_float(value).value != value
