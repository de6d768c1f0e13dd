"""Hints for the second-level cache: what is read once is told to leave it last.

Gained 1.9% in the mean of three settings on an H200 (2026-11-22: 3.3% cold, 1.9% in a row, 0.6% in a
chain of kernels). What then leaves the cache first is what was stored, early and in the order of its
addresses. Loads that ask to be evicted first, as one would think, lose 4% on large tensors; hints at
stores gain nothing more. What is stored to where it was loaded is not to stay: rope was 1 to 7% slower
with the hint. Nor are tiles that are loaded in pairs (`interleaved_pairs`): in a chain of rope's
kernels the hint lost 2.8%, and gained 0.2% cold and 1.4% in a row.
"""

from __future__ import annotations

from dataclasses import replace

from ninetoothed.backends.triton.analysis.streams import streamed
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option


class EvictionPolicy(Option):
    """Whether loads say what the second-level cache should keep; on, unless fixed."""

    name = "eviction_policy"
    default = 1
    is_generic = True

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return value in (0, 1)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, evict_last=streamed(lowered.kernel))


OPTION = EvictionPolicy()
