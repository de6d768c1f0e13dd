"""A kernel that is launched while the one before it ends: programs wait, instead of the device.

Without it the device begins a launch when all that was given to the stream before is done and
written. With programmatic dependent launch (CUDA, "Programming Guide", section of that name; compute
capability 9.0 and above) the launch begins when the kernel before has no program left to begin, and
each program's first instruction waits until that kernel is done and its results can be read: what a
launch costs the device, about 1.6 µs on an H200, passes in the meantime. Where the work before is no
kernel, and where the launcher does not ask for it, the instruction waits for nothing.
Gained 5.7% in the mean of three settings and 25 tasks (2026-11-23: nothing cold, 8.2% in a row, 9.1% in a
chain of kernels).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.options.option import Case, Chosen, Option


class DependentLaunch(Option):
    """Whether programs wait for the kernel before, instead of the device."""

    name = "dependent_launch"
    is_always_on = True
    first_capability = 90

    def values(self, case: Case, chosen: Chosen) -> Sequence[int]:
        return (1,)

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, waits=True)


OPTION = DependentLaunch()
