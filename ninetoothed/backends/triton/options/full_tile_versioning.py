"""Programs within which no tensor ends: there masks are left out.

A mask whose end is no multiple of what one access moves (`divisors`) takes accesses apart into single
elements, in every program, though it fails in the last one alone. Where only the end stands in the way,
a program asks once whether all its elements exist; its body is written without masks for the case that
they do, and with them for the other. On an H200 an element-wise kernel on an odd size takes 3.7 times as
long without (2026-11-22).
"""

from __future__ import annotations

import math
from dataclasses import replace

from ninetoothed.backends.triton.analysis import full_tiles
from ninetoothed.backends.triton.analysis.full_iterations import Holding
from ninetoothed.backends.triton.ir.lowered import FullTiles, Lowered
from ninetoothed.backends.triton.options.option import Case, Option
from ninetoothed.symbols.expr import evaluated


class FullTileVersioning(Option):
    """Done wherever there are several programs and masks take accesses apart."""

    name = "full_tile_versioning"
    default = 1
    is_offered = False
    phase = 2

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        kernel = lowered.kernel
        grid = [evaluated(size, case.environment) for size in kernel.grid]
        if math.prod(grid) * lowered.parts <= 1:
            return lowered
        asked = full_tiles.conditions(kernel, case.call, case.environment)
        needed = asked - lowered.facts.holding
        if not needed:
            return lowered
        tests = dict.fromkeys(slack for key, slack in full_tiles.slacks(kernel) if key in needed)
        holding = Holding(frozenset((name, (), number) for name, number in asked))
        return replace(lowered, full_tiles=FullTiles(tuple(tests), holding))


OPTION = FullTileVersioning()
