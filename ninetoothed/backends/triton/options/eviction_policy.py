"""Hints for the second-level cache: what is read once is told to leave it last.

Gained 2.2% in the mean of three settings on an H200 (2026-11-23: 3.7% cold, 1.9% in a row, 1.0% in a
chain of kernels). What then leaves the cache first is what was stored, early and in the order of its
addresses. Loads that ask to be evicted first, as one would think, lose 4% on large tensors; hints at
stores gain nothing more. What is stored to where it was loaded is not to stay: rope was 1 to 7% slower
with the hint.

Where a kernel streams one tensor and all that it moves just fits the cache, the next kernel of a chain
finds its input there, unless what was loaded before has stayed: with the hint silu, softmax and rope
lost 0.8 to 3.6% where they move 0.73 to 0.87 of the cache, and at most 0.5% at 0.67 and 0.93 of it;
add, which streams two, lost nothing. So such calls have none (``python -m
benchmarks.option_trials.sizes``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from ninetoothed.backends.base import Call
from ninetoothed.backends.triton.analysis.streamed_tensors import streamed
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option
from ninetoothed.kernels.definition import Definition

#: Of the second-level cache, what a call moves that just fits it: more than the first, less than the second.
_JUST_FITTING = (0.7, 0.9)


class EvictionPolicy(Option):
    """Whether loads say what the second-level cache should keep; on, unless fixed or of no use."""

    name = "eviction_policy"
    default = 1
    is_generic = True
    is_always_on = True

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        return (0,) if len(streamed(case.kernel)) == 1 and _just_fits(case) else ()

    def is_right(self, case: Case, chosen: Chosen, value: int) -> bool:
        return value in (0, 1)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, evict_last=streamed(lowered.kernel))


def _just_fits(case: Case) -> bool:
    """Whether the cache of the device, where that is known, just holds what a call moves."""
    least, most = (share * getattr(case.device, "l2_bytes", 0) for share in _JUST_FITTING)
    return least < _bytes_moved(case.kernel, case.call) < most


def _bytes_moved(kernel: Definition, call: Call) -> int:
    """The bytes of all tensors that a kernel touches."""
    names = {parameter.name for parameter in kernel.tensor_parameters} - kernel.untouched
    arguments = [call.arguments[name] for name in names]
    return sum(math.prod(a.shape) * a.dtype.itemsize for a in arguments)


OPTION = EvictionPolicy()
