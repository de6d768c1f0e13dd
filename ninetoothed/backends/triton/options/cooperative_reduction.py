"""Slices of a tile: the parts of one reduction wait for one another, and each completes a slice.

Where all programs run at once, the parts of an element of the grid (`split_k`) end at the same time, and
all but the last to arrive would go home while that one adds what each of them left. Here each waits until
all have arrived, adds the parts' sums of its own slice of the tile, first to last, and does for that slice
what follows the loop. A part waits for a bounded time: one that has waited in vain says so and goes, and
the last to arrive does its share too. So it does not matter which programs run together, nor who does
what: the same arguments give the same bits.

What follows the loop must be the same for each element, and may load nothing: what another part has
stored by then is not for it to see. conv2d took 18.4 µs for 21.2 on an H200
(docs/performance.md, 2026-11-22: the tuner takes it there).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis import reduction_form
from ninetoothed.backends.triton.analysis.boxes import boxes
from ninetoothed.backends.triton.ir import trees
from ninetoothed.backends.triton.ir.nodes import PartPosition, SliceStore, TileSlice
from ninetoothed.backends.triton.ir.parts import Completion, Cut, Cutting, call, counter, elements
from ninetoothed.backends.triton.options.option import Case, Chosen, Option, is_capable
from ninetoothed.kernels.analysis import analysis
from ninetoothed.passes.rewriting import assign
from ninetoothed.program import nodes
from ninetoothed.program.effects import elementwise_operands
from ninetoothed.program.frozen import is_exactly
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import next_power_of_2
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, is_power_of_two, positions
from ninetoothed.tuning.estimate import CostFeatures, resident_programs

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered, Names
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.program.program import Program
    from ninetoothed.tuning.space import Config

#: A part has a bit of 32 to itself, and its sums of a slice are loaded before the first is added.
MOST_PARTS = 16

#: The compute capability from which on tiles come by descriptor.
_HAS_DESCRIPTORS = 90

#: So many neighbours of float32 are a line of the memory's.
_LINE = 32

#: Waiting for the others, as many times what a reduction costs; where some do not run yet, they wait in
#: vain. And the bytes of sums that all load at once in the time of a reduction.
_MEETING, _IN_VAIN = 8.0, 25.0
_SHARED = 40_000

#: The bytes of sums that the programs of a multiprocessor store and load in the time of a reduction: when
#: they do, none has a loop left to hide it behind.
_STORED = 26_000


def choices(
    kernel: Definition, environment: Mapping[Symbol, int], parts: int, multiprocessors: int
) -> tuple[int, ...]:
    """The option's values to try; 0 among them where parts may wait for some that do not run yet."""
    possible = [dim for dim in (0, 1) if is_possible(kernel, environment, parts, 1 + dim)]
    programs = reduction_form.tiles(kernel, environment) * parts
    if not possible or not 0 < programs <= 2 * multiprocessors:
        return ()
    best = 1 + min(possible, key=lambda dim: _unfitness(kernel, environment, parts, dim))
    return (best,) if programs <= multiprocessors else (best, 0)


def is_possible(
    kernel: Definition, environment: Mapping[Symbol, int], parts: int, value: int
) -> bool:
    """Whether tiles of so many parts can be sliced along a dimension, 1 + its number."""
    shape = _shape_of(kernel)
    if shape is None or value not in (1, 2) or not 2 <= parts <= MOST_PARTS:
        return False
    size = int(shape[value - 1].evaluate(environment))
    return size >= count_of(parts) and is_power_of_two(size)


def count_of(parts: int) -> int:
    """How many slices a tile is cut into; some parts do two."""
    return next_power_of_2(parts)


def _unfitness(
    kernel: Definition, environment: Mapping[Symbol, int], parts: int, dim: int
) -> tuple[bool, bool]:
    """What speaks against cutting a dimension: short lines of sums, and then of the result."""
    shape = _shape_of(kernel)
    assert shape is not None
    width = int(shape[1].evaluate(environment)) // (count_of(parts) if dim == 1 else 1)
    access = kernel.arrangement.accesses[_store(kernel.optimized).tile.parameter]
    base = access.first(dict(environment))
    first = access.offset.evaluate(base)
    step = access.offset.evaluate({**base, access.coordinates[dim]: 1}) - first
    return width < _LINE, step == 1


@analysis
def _shape_of(kernel: Definition) -> tuple[Symbol, ...] | None:
    """The shape of the tile that may be done in slices; None where there is none."""
    form = reduction_form.form_of(kernel)
    return None if form is None else _shared(kernel, form)


def _shared(kernel: Definition, form: reduction_form.Form) -> tuple[Symbol, ...] | None:
    shape, *others = set(form.shapes.values())
    if others or len(shape) != 2:
        return None
    program = kernel.optimized
    *computed, stored = program.body[form.place + 1 :] or [ast.Pass()]
    if not is_exactly(stored, nodes.Store) or not _is_whole(program, stored.tile, shape):
        return None
    known = {p.name for p in kernel.parameters if p.kind in ("scalar", "constexpr")}
    known |= set(form.shapes)
    for statement in computed:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        if not isinstance(target, ast.Name) or not _is_elementwise(statement.value, known):  # type: ignore[attr-defined]
            return None
        known.add(target.id)
    return shape if _is_elementwise(stored.value, known) else None


def _is_whole(program: Program, tile: nodes.TileRef, shape: tuple[Symbol, ...]) -> bool:
    """Whether a tile has this shape, and is the same in each slice."""
    sizes = program.parameter(tile.parameter).tile_shape
    is_fixed = all(isinstance(index, ast.Constant) for index in tile.indices)
    return is_fixed and tuple(map(as_symbol, sizes)) == shape


def _is_elementwise(node: ast.expr, known: set[str]) -> bool:
    """Whether a value is computed of these names, each element for itself."""
    if isinstance(node, ast.Name):
        return node.id in known
    if isinstance(node, ast.Constant | nodes.SymbolValue | nodes.DTypeRef | nodes.ElementType):
        return True
    operands = elementwise_operands(node)
    return operands is not None and all(_is_elementwise(each, known) for each in operands)


def _store(program: Program) -> nodes.Store:
    store = program.body[-1]
    assert isinstance(store, nodes.Store)
    return store


@dataclass(frozen=True)
class Slices(Completion):
    """What follows the loop, slice by slice, for the slices that are a part's to do."""

    dim: int = 0

    def __call__(
        self, cut: Cutting, accumulators: Sequence[str], after: list[ast.stmt], loop: ast.For
    ) -> list[ast.stmt]:
        names, slices = cut.names, count_of(cut.count)
        mine, share = names.fresh("mine"), names.fresh("share")
        asked = call("shares_of_part", counter(), PartPosition(what="part"), cut.count)
        # In a loop a name keeps its shape.
        renamed = {each: names.fresh(f"{each}_share") for each in accumulators}
        sums = [
            assign(renamed[each], self._sum_of_share(cut, accumulators, each, share), loop)
            for each in accumulators
        ]
        *computed, stored = after
        assert isinstance(stored, nodes.Store)
        rest = [*computed, self._stored(cut, stored, share)]
        _rename(rest, renamed, names)
        body = [*(nodes.at(each, loop) for each in sums), *rest]
        through = ast.For(
            target=ast.Name(share, ast.Store()),
            iter=ast.Call(trees.name("range"), [ast.Constant(slices)], []),
            body=[ast.If(_is_mine(mine, share, cut.count, slices), body, [])],
            orelse=[],
        )
        return [assign(mine, asked, loop), through]

    def _sum_of_share(
        self, cut: Cutting, accumulators: Sequence[str], whole: str, share: str
    ) -> ast.expr:
        return call(
            "share_of_sum",
            cut.room(accumulators, whole, cut.first()),
            trees.name(whole),
            trees.name(share),
            count_of(cut.count),
            self.dim,
            elements(accumulators),
            cut.count,
        )

    def _stored(self, cut: Cutting, store: nodes.Store, share: str) -> ast.stmt:
        indices = [*store.tile.indices, trees.name(share)]
        tile = nodes.TileRef(parameter=store.tile.parameter, indices=indices)
        stored = nodes.at(SliceStore(tile=tile, value=store.value), store)
        access = cut.lowered.kernel.arrangement.accesses[tile.parameter]
        stored.tile_slice = slice_of(access, self.dim, count_of(cut.count))
        return stored


def _rename(body: Sequence[ast.stmt], names: dict[str, str], fresh: Names) -> None:
    """Puts the names of slices in the place of those of whole tiles."""
    for statement in body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else None
        for node in nodes.walk(statement):
            if isinstance(node, ast.Name) and node is not target:
                node.id = names.get(node.id, node.id)
        if isinstance(target, ast.Name):
            if target.id not in names:
                names[target.id] = fresh.fresh(f"{target.id}_share")
            target.id = names[target.id]


def _is_mine(mine: str, share: str, parts: int, slices: int) -> ast.expr:
    """Whether a slice is this part's to do."""
    owner = trees.name(share)
    if parts < slices:
        owner = ast.BinOp(owner, ast.Mod(), ast.Constant(parts))
    shifted = ast.BinOp(trees.name(mine), ast.RShift(), owner)
    return ast.BinOp(shifted, ast.BitAnd(), ast.Constant(1))


def slice_of(access: Access, dim: int, count: int) -> TileSlice:
    """One of ``count`` slices of a tile along a dimension."""
    lane = access.coordinates[dim]
    size = as_symbol(lane.leaf.extent) // count
    share, within = positions("share", (count, size))
    place = {lane: as_symbol(share * size + within)}

    def moved(expression: Symbol) -> Symbol:
        return as_symbol(simplify(expression.substitute(place)))

    lanes = (*access.coordinates[:dim], within, *access.coordinates[dim + 1 :])
    found = Access(
        tuple(map(moved, access.indices)),
        tuple(map(moved, access.conditions)),
        moved(access.offset),
        access.programs,
        (*access.selections, share),
        lanes,
    )
    return TileSlice(found, dim, count)


class CooperativeReduction(Option):
    """Whether the parts wait for one another and share what follows the loop, 1 + the dimension along
    which."""

    name = "cooperative_reduction"
    is_always_on = True
    first_capability = 0

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        loaded = reduction_form.loaded_in_loop(case.kernel)
        if is_capable(case.device, _HAS_DESCRIPTORS) and loaded <= dict(case.known(boxes)).keys():
            # Where all tiles may come by descriptor, a loop need not be cut to be as quick.
            return ()
        return choices(case.kernel, case.environment, chosen["split_k"], case.multiprocessors)

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return is_possible(case.kernel, case.environment, chosen["split_k"], value)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        rewrites = tuple(
            replace(each, completion=Slices(value - 1)) if isinstance(each, Cut) else each
            for each in lowered.rewrites
        )
        return replace(lowered, rewrites=rewrites)

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """All load the sums of a slice; `split_k` says the rest."""
        parts = dict(config.options)["split_k"]
        sums = max((4 * p.rows * p.columns for p in counts.products), default=features.threads * 4)
        slices = count_of(parts)
        programs = features.programs * parts
        room = resident_programs(features) * features.limits.multiprocessors
        end = _MEETING if programs <= room else _IN_VAIN
        end += parts * sums * math.ceil(slices / parts) / slices / _SHARED
        end += min(programs, room) * sums / features.limits.multiprocessors / _STORED
        return replace(features, ending=features.ending + end)


OPTION = CooperativeReduction()
