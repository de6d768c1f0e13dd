"""Programs that stay on their multiprocessor and take one element of the grid after another.

A launch has as many programs as the device holds at a time. Triton flattens the loop over a program's
elements together with the product's loop inside it: the pipeline of loads goes on from one tile of the
result to the next, and storing one is hidden behind loading for the next. That pays where all that the
inner loop reads comes by descriptor; with computed addresses the flattened loop is several times
slower, so it is not offered there. A product of 4096 rows gained 2.1% by hand on an H200
(docs/performance.md, "Products: descriptors, persistent programs"), and the tuner takes it there
(2026-11-22).
"""

from __future__ import annotations

import ast
import math
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.boxes import boxes, halved
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.program.effects import names_assigned, writes_memory
from ninetoothed.program.nodes import LanguageRef, Load, SourceLoad, Store, walk

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: What tells a program which it is: there would be several answers.
_POSITIONS = frozenset({"program_id", "num_programs"})


def is_possible(kernel: Definition, described: Collection[str]) -> bool:
    """Whether a kernel's program may be a loop's body, and the loop be flattened.

    Args:
        described: the tensors that are loaded by descriptor.
    """
    program = kernel.optimized
    loops = [statement for statement in program.body if isinstance(statement, ast.For)]
    if len(loops) != 1 or any(isinstance(s, (ast.If, ast.While)) for s in program.body):
        return False
    inside = [node for statement in loops[0].body for node in walk(statement)]
    if any(isinstance(node, (ast.For, ast.While, ast.If, Store, SourceLoad)) for node in inside):
        return False
    before = program.body[: program.body.index(loops[0])]
    if any(isinstance(node, (Load, SourceLoad)) for s in before for node in walk(s)):
        # A tile that a product takes while the loop runs: Triton 3.6 has one buffer for it, and loads the
        # next element's while the last round of this one still reads it.
        return False
    loaded = {node.tile.parameter for node in inside if isinstance(node, Load)}
    if not loaded or not loaded <= set(described):
        return False
    parameters = {parameter.name for parameter in kernel.parameters}
    return not (
        # A value that one round would hand on to the next.
        names_assigned(program.body) & parameters
        or any(isinstance(n, LanguageRef) and n.name in _POSITIONS for n in program.nodes())
        or any(writes_memory(s) for s in program.body if not isinstance(s, Store))
    )


#: Of the time that is estimated, what is left where programs stay: of mm 2048 4096 14336 .76 to .83 on
#: an H200, of 512 28672 4096 .95, of most products nothing is gained (`tests/tuning/rankings.json`).
_LEFT = 0.95


class Persistent(Option):
    """Whether programs stay and handle one element of the grid after another."""

    name = "persistent"

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        is_described = chosen["descriptors"] == 1
        if not is_described or not chosen.differs_only_in("descriptors", "eviction_policy"):
            return ()
        if math.prod(case.grid) <= case.multiprocessors:
            # Nobody has a second element to go on with.
            return ()
        return (1,) if is_possible(case.kernel, dict(case.known(boxes))) else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        found = halved(lowered.kernel, lowered.boxes, case.environment)
        return replace(lowered, is_persistent=True, boxes=found)

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """Half of the result waits to be stored where the next tiles are being loaded to."""
        waiting = int(sum(counts.stored.values())) // 2
        return replace(
            features,
            is_persistent=True,
            shared_bytes=features.shared_bytes + waiting,
            share=features.share * _LEFT,
        )


OPTION = Persistent()
