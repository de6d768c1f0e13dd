"""Loops without products whose next rounds' tiles are copied to shared memory meanwhile.

Triton begins a loop's loads ahead of their rounds where they feed products, elsewhere where a loop says
so. Without, a round that reduces what it loads, as the backward of a normalisation does row by row,
waits for memory and then for the reduction, one after the other. The value is the number of stages: of
each tile, the next rounds' are under way, one less than there are stages. The backward of rms_norm by
its rows and its weight takes 1.49 times as long without, in the mean of three settings on an H200
(2026-11-23). A tile that a round stores must not be one that a later round loads: loops that store are
pipelined only where what is stored to was made for it (`Declaration.stores_apart`).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.full_iterations import is_counted
from ninetoothed.backends.triton.analysis.resources import lanes
from ninetoothed.backends.triton.analysis.vector_width import bytes_at_once
from ninetoothed.backends.triton.ir import trees
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.backends.triton.specialization import divisors, offsets
from ninetoothed.passes.rewriting import with_loops
from ninetoothed.program.effects import is_product, names_read, writes_memory
from ninetoothed.program.nodes import Load, SourceLoad, Store, walk
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.program.program import Program
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: The stages that are worth trying.
_STAGES = (3, 2, 4)

#: Shared memory that a program has on every device that copies in the background.
_SHARED_BYTES = 99 * 1024


def loops(kernel: Definition, program: Program) -> Iterator[ast.For]:
    """The loops of a program of this kernel whose loads may be begun rounds ahead."""
    for statement in program.nodes():
        if isinstance(statement, ast.For) and _is_suited(statement, kernel.stores_apart):
            yield statement


def _is_suited(loop: ast.For, stores_apart: bool) -> bool:
    if not is_counted(loop):
        return False
    nodes = [node for statement in loop.body for node in walk(statement)]
    if any(is_product(node) or isinstance(node, SourceLoad) for node in nodes) or not _ahead(loop):
        return False
    stored = {node.tile.parameter for node in nodes if isinstance(node, Store)}
    if not stored:
        return not writes_memory(loop)
    loaded = {node.tile.parameter for node in nodes if isinstance(node, Load)}
    others = (s for s in loop.body if not isinstance(s, Store))
    return stores_apart and stored.isdisjoint(loaded) and not any(map(writes_memory, others))


def _ahead(loop: ast.For) -> list[Load]:
    """What every round loads, and other rounds load otherwise."""
    assert isinstance(loop.target, ast.Name)
    return [
        node
        for statement in loop.body
        if not isinstance(statement, ast.If)
        for node in walk(statement)
        if isinstance(node, Load)
        if any(loop.target.id in names_read(index) for index in node.tile.indices)
    ]


def bytes_of_a_round(kernel: Definition, call: Call, environment: Mapping[Symbol, int]) -> int:
    """The bytes of the tiles that a round loads, of the loop that loads the most; 0 where none of them is
    copied in the background."""
    adjacent = offsets.adjacent(kernel, environment)
    most = 0
    for loop in loops(kernel, kernel.optimized):
        tiles = {
            load.tile.parameter
            for statement in loop.body
            for load in walk(statement)
            if isinstance(load, Load)
        }
        widest = max(
            bytes_at_once(
                kernel, kernel.program.parameter(load.tile.parameter), call, environment, adjacent
            )
            for load in _ahead(loop)
        )
        if widest >= divisors.LEAST_COPY:
            most = max(most, sum(_bytes(kernel, tile, call, environment) for tile in tiles))
    return most


def _bytes(
    kernel: Definition, parameter: str, call: Call, environment: Mapping[Symbol, int]
) -> int:
    sizes = kernel.program.parameter(parameter).tile_shape
    return (
        math.prod(lanes(size, environment) for size in sizes)
        * call.arguments[parameter].dtype.itemsize
    )


@dataclass(frozen=True)
class Pipelining:
    """Says of the loops how many stages they have."""

    stages: int

    def __call__(self, program: Program, lowered: Lowered) -> Program:
        def told(loop: ast.For) -> ast.stmt | None:
            if not _is_suited(loop, lowered.kernel.stores_apart):
                return None
            assert isinstance(loop.iter, ast.Call)
            stages = ast.Constant(self.stages)
            loop.iter = trees.language("range", *loop.iter.args, num_stages=stages)
            return loop

        return with_loops(program, told)


class LoopPipelining(Option):
    """In how many stages a loop that reduces what it loads does so."""

    name = "loop_pipelining"
    phase = 2
    first_capability = 80

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        return tuple(value for value in _STAGES if self.is_right(case, chosen, value))

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        if chosen["tma_pipeline"] or chosen["register_prefetch"] or chosen["descriptors"]:
            return False
        size = case.known(bytes_of_a_round)
        room = getattr(case.device, "shared_memory_per_block", _SHARED_BYTES)
        return value > 1 and 0 < (value - 1) * size <= room

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, rewrites=(*lowered.rewrites, Pipelining(value)))

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """A round waits no longer; the tiles of those to come are in shared memory."""
        a_round = sum(counts.loaded.values()) / max(counts.rounds, 1.0)
        shared = features.shared_bytes + round((value - 1) * a_round)
        return replace(features, stages=value, is_waiting=False, shared_bytes=shared)


OPTION = LoopPipelining()
