"""Tiles that are boxes of their source, moved by the copy engine of Hopper and later.

Where each dimension of a tile runs along one dimension of its source, step by step, the tile is a box
of the source, and a *tensor descriptor* of the source's address, sizes and strides lets the hardware
compute every address and leave out what is beyond the source: a load by descriptor needs one thread,
no registers for addresses and no mask. A descriptor is made on the host, once for each address, and
handed over as a parameter of the kernel.

The option is offered for what products read: element-wise kernels gain nothing from it. With rings
(`tma_pipeline`) attention gained 44% in the mean of three settings on an H200 (2026-11-22).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis.boxes import boxes, stay_in_level
from ninetoothed.backends.triton.analysis.full_iterations import compares
from ninetoothed.backends.triton.analysis.resources import registers, shared_bytes
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.backends.triton.specialization import divisors

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: What is left of the work of copies where descriptors do it; in a loop of several products, as in
#: attention, it is more, for the one thread that asks is late for each. Registers are saved in any
#: case, and to fetch the descriptors takes a part of what a reduction does. Where products are one, each
#: round's wait takes another, and of the time a tenth less is left where all else is the same: without it
#: products of 64 to 512 rows were split along K that go better whole (1.10 to 1.2 of the time on an H200, 2026-11-23).
_DESCRIBED, _DESCRIBED_AMONG_SEVERAL = 0.1, 2.5
_REGISTERS_SAVED = 12
_FETCHED, _WAITED = 0.84, 0.01
_LEFT = 0.9

#: What does not exist is filled in at so many times the price of what is loaded: with tiles of 64 rows a product
#: of one row took 1.27 of the time by descriptor, of 16 rows 1.18 (H200, 2026-11-23).
_FILLED = 4.0


class Descriptors(Option):
    """Whether products' tiles are moved by descriptor."""

    name = "descriptors"
    first_capability = 90

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        if not chosen.differs_only_in(
            "loop_splitting", "partial_reduction_sinking", "eviction_policy"
        ):
            return ()
        # Loads by descriptor have no masks: what is left to split a loop for are comparisons.
        if chosen["loop_splitting"] and not compares(case.kernel, case.facts):
            return ()
        described = case.known(boxes)
        return (1,) if described and stay_in_level(described, case.facts.beyond) else ()

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, boxes=boxes(lowered.kernel, case.call, case.environment))

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """All that products read is loaded ahead, whatever its rows' beginnings are multiples of."""
        copies = sum(counts.loaded.get(name, 0.0) for name in counts.streamed) / divisors.MOST
        features = replace(features, stages=config.num_stages, is_waiting=False)
        is_one = len(counts.products) == 1
        left = _DESCRIBED if is_one else _DESCRIBED_AMONG_SEVERAL
        fetched = _FETCHED + is_one * _WAITED * features.iterations
        return replace(
            features,
            bytes_moved=features.bytes_moved + _FILLED * counts.bytes_filled,
            copies=copies * left,
            reductions=features.reductions + fetched,
            accesses=min(features.accesses, sum(counts.stored.values()) / divisors.MOST),
            registers=registers(counts, features.threads, 0) - _REGISTERS_SAVED,
            share=features.share * (_LEFT if is_one else 1.0),
            shared_bytes=shared_bytes(counts, features.threads, config.num_stages),
        )


OPTION = Descriptors()
