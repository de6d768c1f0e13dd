"""A reduction in several parts: where the grid is too small for the card, or waits too long.

A loop that only adds to accumulators may be cut into parts, each done by a program of its own. A part
keeps its sums in the workspace, in float32, and counts itself as arrived; the one that arrives last
adds the parts, always in the same order, and does what follows the loop. Nobody waits for anybody
(with `cooperative_reduction` they do, for a while), so that it does not matter which programs run
together, and the same arguments give the same bits. On an H200 conv2d takes 3.4 times as long without,
a product of few rows 1.25 times (2026-11-22).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ninetoothed.backends.triton.analysis import reduction_form
from ninetoothed.backends.triton.ir.nodes import MOST_COUNTERS
from ninetoothed.backends.triton.ir.parts import Cut
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.backends.triton.specialization import divisors
from ninetoothed.symbols.expr import Symbol

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.operation_counts import Counts
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.estimate import CostFeatures
    from ninetoothed.tuning.space import Config

#: The largest offset in the workspace, in elements.
_LARGEST_OFFSET = 2**31 - 1

#: So many programs for each multiprocessor are wanted, in this order.
_PROGRAMS_EACH = (2, 1, 3)

#: A part has at least so many rounds of the loop: fewer do not pay for what a part costs.
_FEWEST_ROUNDS = 4

#: Finding out which part arrives last, as many times what a reduction costs; and the bytes of sums
#: that the last one loads in the time of a reduction, all by itself.
_ARRIVAL = 5.0
_SUMMED = 16_000

#: Of the registers for sums, how many more the other parts' sums take on their way to them.
_SUMS_AGAIN = 0.1


def choices(
    kernel: Definition, environment: Mapping[Symbol, int], multiprocessors: int
) -> tuple[int, ...]:
    """Into how many parts, the most promising first; nothing where there are programs enough."""
    form = reduction_form.form_of(kernel)
    if form is None:
        return ()
    count = reduction_form.tiles(kernel, environment)
    if not 0 < count < 2 * multiprocessors:
        return ()
    most = reduction_form.rounds_of(kernel, environment) // _FEWEST_ROUNDS
    wanted = [min(multiprocessors * each // count, most) for each in _PROGRAMS_EACH]
    return tuple(
        parts for parts in dict.fromkeys(wanted) if is_possible(kernel, environment, parts)
    )


def is_possible(kernel: Definition, environment: Mapping[Symbol, int], parts: int) -> bool:
    """Whether the kernel's loop can be cut into so many parts, be it worth it or not."""
    form = reduction_form.form_of(kernel)
    if form is None or parts < 2:
        return False
    count = reduction_form.tiles(kernel, environment)
    size = count * parts * reduction_form.room(form, environment)
    return count <= MOST_COUNTERS and size <= _LARGEST_OFFSET


class SplitK(Option):
    """How many programs share the reduction of one element of the grid."""

    name = "split_k"
    default = 1
    off = 1

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        if not chosen.has_plain_loop:
            return ()
        return choices(case.kernel, case.environment, case.multiprocessors)

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return chosen.has_plain_loop and is_possible(case.kernel, case.environment, value)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, parts=value, rewrites=(Cut(value),))

    def cost(
        self, features: CostFeatures, value: int, config: Config, counts: Counts
    ) -> CostFeatures:
        """Each part does its share, and writes its sums; the last one reads all."""
        sums = max((4 * p.rows * p.columns for p in counts.products), default=features.threads * 4)
        end = _ARRIVAL + value * sums / _SUMMED
        if dict(config.options).get("cooperative_reduction"):
            # What comes of it then is told there.
            end = 0.0
        return replace(
            features,
            programs=features.programs * value,
            bytes_moved=features.bytes_moved / value + sums,
            # Stored once and loaded once.
            distinct_bytes=features.distinct_bytes + 2 * sums * features.programs * value,
            accesses=features.accesses / value + sums / divisors.MOST,
            copies=features.copies / value,
            flops=features.flops / value,
            special=features.special / value,
            products=tuple(replace(p, times=p.times / value) for p in features.products),
            iterations=max(features.iterations / value, 1.0),
            ending=features.ending + end,
            registers=features.registers + _SUMS_AGAIN * sums / 4 / features.threads,
        )


OPTION = SplitK()
