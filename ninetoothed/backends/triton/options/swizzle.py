"""The order of programs: which element of the grid each one is.

Programs run roughly in order of their number. Where one operand follows the rows of the grid and
another its columns, as in a product of matrices, neighbours in plain row-major order share the rows'
tile and read every column's anew. Numbering them in groups of several rows, column by column, lets
the programs that run together share both, so that more of what they read is in the second-level
cache. This is the grouped order of Triton's matrix multiplication tutorial.

On an H200 a product of 2048 × 14336 × 4096 takes 7% longer in plain order, in the median of 16
configurations, and one of 1024 rows the same (2026-11-21, `tests/tuning/rankings.json`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.program_order import is_grouped
from ninetoothed.backends.triton.options.option import Case, Chosen, Option

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: Rows of tiles in a group, where nothing else is chosen; and where programs stay.
_GROUP, _GROUP_OF_PERSISTENT = 8, 4


class Swizzle(Option):
    """Rows of tiles in a group of programs, where programs are grouped."""

    name = "swizzle"
    default = _GROUP
    off = 1
    is_generic = True

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        if not is_grouped(case.kernel.arrangement):
            return ()
        if chosen["persistent"]:
            return (_GROUP_OF_PERSISTENT,)
        return (1,) if chosen.differs_only_in("eviction_policy") else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        if not is_grouped(lowered.kernel.arrangement):
            return lowered
        return replace(lowered, group_size=value)

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """Plain order reads more from memory; only large tensors show it."""
        return replace(
            features, distinct_bytes=features.distinct_bytes * (2.0 if value == 1 else 1.0)
        )


OPTION = Swizzle()
