"""What a kernel was emitted as, for tests that ask what an option changed."""

from __future__ import annotations

from ninetoothed.backends.triton.printers.triton import Emitted
from ninetoothed.kernels.definition import Definition


def last_emitted(kernel: Definition) -> Emitted:
    """The source that was emitted last for one of the kernel's calls."""
    *_, last = (answer for answer in kernel.answers.values() if isinstance(answer, Emitted))
    return last
