"""What a kernel was emitted as, for tests that ask what an option changed."""

from __future__ import annotations

from collections.abc import Iterator

from ninetoothed.backends.triton.printers.triton import Emitted
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.call_types import as_given
from ninetoothed.kernels.definition import Definition
from ninetoothed.launch.kernel import Kernel
from ninetoothed.launch.recorded_calls import definition_of


def given_by(kernel: Kernel, call: Call) -> Definition:
    """A kernel as a call gives it."""
    return as_given(definition_of(kernel, call), call)


def last_emitted(kernel: Kernel) -> Emitted:
    """The source that was emitted last for one of the kernel's calls."""
    known = kernel.specializations
    *_, definition = (known.plain, *(found for found, _ in known._known.values()))
    *_, last = _emitted(definition)
    return last


def _emitted(definition: Definition) -> Iterator[Emitted]:
    for answer in definition.further_answers.values():
        if isinstance(answer, Emitted):
            yield answer
        elif isinstance(answer, Definition):
            # The kernel as a kind of call gives it.
            yield from _emitted(answer)
