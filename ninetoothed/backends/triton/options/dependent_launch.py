"""A kernel that is launched while the one before it ends: programs wait, instead of the device.

Without it the device begins a launch when all that was given to the stream before is done and
written. With programmatic dependent launch (CUDA, "Programming Guide", section of that name; compute
capability 9.0 and above) the launch begins when the kernel before has no program left to begin, and
each program's first instruction waits until that kernel is done and its results can be read: what a
launch costs the device, about 1.6 µs on an H200, passes in the meantime. Where the work before is no
kernel, and where the launcher does not ask for it, the instruction waits for nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ninetoothed.backends.triton.compiler.compile import is_capable

if TYPE_CHECKING:
    from ninetoothed.backends.triton.compiler.compile import Target
    from ninetoothed.tuning.estimate import DeviceLimits

#: A program's first statement.
WAIT = "tl.extra.cuda.gdc_wait()"

#: The compute capability from which on devices launch so.
_FIRST_CAPABILITY = 90


def serves(device: DeviceLimits | Target | None) -> bool:
    """Whether a device launches so."""
    return is_capable(device, _FIRST_CAPABILITY)


def is_in(text: str) -> bool:
    """Whether an emitted kernel waits: no other may be launched so."""
    return f"\n    {WAIT}\n" in text
