"""Two tiles that take turns in memory, moved in one access and taken apart in registers.

Where one tile of a parameter has the elements at 2 i and another those at 2 i + 1, as the two halves of
interleaved rotary pairs or of complex numbers do, each alone would step over every other element.
Together they are contiguous: one load as wide as the hardware has, split in two, and one store of both,
paired. The two loads, or the two stores, must have nothing between them that could tell. On an H200
rope takes 15 times as long without (2026-11-22).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.nodes import Pair, PairLoad, PairStore
from ninetoothed.backends.triton.options.option import Case, Option
from ninetoothed.backends.triton.specialization.call_facts import CallFacts
from ninetoothed.passes.rewriting import (
    Draft,
    Site,
    assign,
    blocks_of,
    calls_writer,
    index_names,
    key_of,
    load_sites,
    read,
)
from ninetoothed.program.effects import has_effect, names_assigned, reads_memory, writes_memory
from ninetoothed.program.nodes import Store, TileRef, at
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.symbols.simplify import difference, simplify
from ninetoothed.tensors.access import Access, offset_of, positions
from ninetoothed.tensors.arrange import Parameter


def run(program: Program, accesses: Mapping[str, Access], facts: CallFacts) -> Program:
    """The program with such loads and such stores put together, where ``facts`` shows them."""
    draft = Draft(program)
    pairs = _Pairs(program, accesses, facts)
    for block in _blocks(draft.body):
        _pair_stores(block, pairs, draft)
    for block in _blocks(draft.body):
        _pair_loads(block, pairs, draft)
    return draft.finished() if pairs.found else program


@dataclass
class _Pairs:
    """Which tiles are pairs."""

    program: Program
    accesses: Mapping[str, Access]
    facts: CallFacts
    found: bool = False
    _known: dict[tuple[str, int, int], Pair | None] = field(default_factory=dict)

    def of(self, first: TileRef, second: TileRef) -> Pair | None:
        """The pair that two tiles are, the one with the even elements first."""
        if first.parameter != second.parameter:
            return None
        differing = [
            (place, one, other)
            for place, (one, other) in enumerate(zip(first.indices, second.indices))
            if key_of(one) != key_of(other)
        ]
        if len(differing) != 1:
            return None
        ((place, one, other),) = differing
        if not (isinstance(one, ast.Constant) and isinstance(other, ast.Constant)):
            return None
        if type(one.value) is not int or other.value != one.value + 1:
            return None
        key = (first.parameter, place, one.value)
        if key not in self._known:
            parameter = self.program.parameter(first.parameter)
            access = self.accesses[first.parameter]
            self._known[key] = pair_of(parameter, access, place, one.value, self.facts)
        self.found = self.found or self._known[key] is not None
        return self._known[key]


def pair_of(
    parameter: Parameter, access: Access, place: int, first: int, facts: CallFacts
) -> Pair | None:
    """What the tiles selected by ``first`` and ``first + 1`` are together; None where no pair.

    Args:
        place: which of the access's selections it is that differs.
    """
    shape, source = parameter.tile_shape, parameter.source
    if not shape or source.jagged_dim is not None or as_symbol(shape[-1]) in facts.empty:
        return None
    if (parameter.name, place) in facts.beyond:
        # Of the two, one alone may be in its level.
        return None
    lane = access.coordinates[-1]
    (both,) = positions("both", (2 * as_symbol(lane.leaf.extent),))
    turns = {lane: both // 2, access.selections[place]: first + both % 2}
    indices = tuple(as_symbol(simplify(index.substitute(turns))) for index in access.indices)
    steps = {dim for dim, index in enumerate(indices) if both in index.leaves()}
    if len(steps) != 1:
        return None
    (dim,) = steps
    is_contiguous = as_symbol(source.strides[dim]) in facts.unit_strides
    if not is_contiguous or both in as_symbol(difference(indices[dim], both)).leaves():
        return None
    conditions = tuple(as_symbol(simplify(c.substitute(turns))) for c in access.conditions)
    lanes = (*access.coordinates[:-1], both)
    offset = offset_of(source, indices)
    paired = Access(indices, conditions, offset, access.programs, access.selections, lanes)
    return Pair(paired, shape)


def _blocks(body: list[ast.stmt]) -> Iterator[list[ast.stmt]]:
    """A block and all within it."""
    yield body
    for statement in body:
        for inner in blocks_of(statement):
            yield from _blocks(inner)


def _pair_loads(body: list[ast.stmt], pairs: _Pairs, draft: Draft) -> None:
    """Pairs loads between which no memory is written and no index of theirs changes."""
    waiting: list[tuple[ast.stmt, Site]] = []
    for statement in body:
        if calls_writer(statement) and not isinstance(statement, Store):
            waiting = []
            continue
        # A loop's condition is evaluated in each round.
        sites = [] if isinstance(statement, ast.While) else load_sites(statement)
        for site in sites:
            if not site.is_conditional:
                waiting = _matched((statement, site), waiting, pairs, draft)
        if writes_memory(statement):
            waiting = []
        assigned = names_assigned([statement])
        waiting = [w for w in waiting if index_names(w[1].load.tile).isdisjoint(assigned)]


def _matched(
    new: tuple[ast.stmt, Site], waiting: list[tuple[ast.stmt, Site]], pairs: _Pairs, draft: Draft
) -> list[tuple[ast.stmt, Site]]:
    """Pairs a load with one that waits for it; the loads that still wait."""
    for old in waiting:
        for first, second in ((old[1], new[1]), (new[1], old[1])):
            pair = pairs.of(first.load.tile, second.load.tile)
            if pair is not None:
                _join(old[0], first, second, pair, draft)
                return [other for other in waiting if other is not old]
    return [*waiting, new]


def _join(place: ast.stmt, first: Site, second: Site, pair: Pair, draft: Draft) -> None:
    tile = first.load.tile
    names = [draft.fresh(f"{tile.parameter}_tile") for _ in range(2)]
    targets = ast.Tuple([ast.Name(name, ast.Store()) for name in names], ast.Store())
    value = at(PairLoad(tile=tile), first.load)
    value.pair = pair
    draft.insert_before(place, at(ast.Assign([targets], value), first.load))
    for site, name in zip((first, second), names):
        site.put(read(name, site.load))


def _pair_stores(body: list[ast.stmt], pairs: _Pairs, draft: Draft) -> None:
    """Pairs stores between which memory is neither read nor written."""
    result: list[ast.stmt] = []
    # Where in the result a store stands that the next one may be paired with.
    waiting: int | None = None
    for statement in body:
        paired = None
        if isinstance(statement, Store) and waiting is not None:
            paired = _paired_store(result[waiting:], statement, pairs, draft)
        if paired is not None:
            result[waiting:] = paired
            waiting = None
            continue
        result.append(statement)
        if isinstance(statement, Store):
            waiting = len(result) - 1
        elif has_effect(statement) or reads_memory(statement):
            waiting = None
    body[:] = result


def _paired_store(
    earlier: list[ast.stmt], last: Store, pairs: _Pairs, draft: Draft
) -> list[ast.stmt] | None:
    """The statements from a store on, with the last one's paired to it; None where no pair."""
    store, *between = earlier
    assert isinstance(store, Store)
    if reads_memory(last.value) or not index_names(last.tile).isdisjoint(names_assigned(between)):
        return None
    value = store.value
    for first, second in ((store, last), (last, store)):
        pair = pairs.of(first.tile, second.tile)
        if pair is None:
            continue
        if between:
            name = draft.fresh(f"{store.tile.parameter}_value")
            between = [assign(name, value, store), *between]
            store.value = read(name, store)
        both = ast.Tuple([first.value, second.value], ast.Load())
        paired = at(PairStore(tile=first.tile, value=both), last)
        paired.pair = pair
        return [*between, paired]
    return None


def paired(program: Program, lowered: Lowered) -> Program:
    """Puts loads and stores of pairs together: `run` as a step of lowering."""
    return run(program, lowered.kernel.arrangement.accesses, lowered.facts)


class InterleavedPairs(Option):
    """Done wherever tiles take turns; not in a reduction in parts, which takes the program as it is."""

    name = "interleaved_pairs"
    default = 1
    is_offered = False

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, rewrites=(paired, *lowered.rewrites))


OPTION = InterleavedPairs()
