"""What a kernel was emitted as, for tests that ask what an option changed."""

from __future__ import annotations

from ninetoothed.backends.triton.printers.triton import Emitted
from ninetoothed.launch.kernel import Kernel


def last_emitted(kernel: Kernel) -> Emitted:
    """The source that was emitted last for one of the kernel's calls."""
    known = kernel.specializations
    *_, definition = (known.plain, *(found for found, _ in known._known.values()))
    *_, last = (
        answer for answer in definition.further_answers.values() if isinstance(answer, Emitted)
    )
    return last
