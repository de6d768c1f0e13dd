"""The debug mode: what a GPU would do silently becomes an error that says where.

Reported are accesses outside of a tensor (through ``x.source[...]``, pointers, and ``x[k]``),
elements that two programs store to, elements of an output that nothing is stored to, and floats that
become integers of a type that does not hold them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetoothed import errors
from ninetoothed.backends.numpy.values.memory import Memory, element_indices

#: Set to anything but "" or "0", every kernel on the CPU is checked.
VARIABLE = "NINETOOTHED_DEBUG"

if TYPE_CHECKING:
    from ninetoothed.backends.numpy.execution.comparing import Second
    from ninetoothed.backends.numpy.execution.execute import Launch

_is_on: ContextVar[bool] = ContextVar("is_checking", default=False)
_against: ContextVar[Second | None] = ContextVar("is_compared_with", default=None)


@contextmanager
def check(against: Second | None = None) -> Iterator[None]:
    """Within it, kernels on the NumPy backend are checked as they run; see `ninetoothed.debugging.check`."""
    tokens = _is_on.set(True), _against.set(against)
    try:
        yield
    finally:
        _is_on.reset(tokens[0])
        _against.reset(tokens[1])


def second() -> Second | None:
    """What kernels are compared with."""
    return _against.get()


def is_on() -> bool:
    """Whether kernels are checked."""
    return _is_on.get() or os.environ.get(VARIABLE, "0") not in ("", "0")


_NOBODY, _ATOMIC = -1, -2


class Recorder:
    """Who stored to which element, in one launch."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._writers: dict[Memory, np.ndarray] = {}
        self._places: dict[Memory, errors.Location | None] = {}

    def observe(self, memory: Memory, indices: Any, mask: Any, access: str) -> None:
        """Told of every access before it happens."""
        if access == "load":
            return
        if memory not in self._writers:
            self._writers[memory] = np.full(memory.array.size, _NOBODY, dtype=np.int64)
            self._places[memory] = errors.caller_location()
        written = np.asarray(indices).reshape(-1)
        if mask is not None:
            written = written[np.broadcast_to(mask, np.shape(indices)).reshape(-1)]
        writers = self._writers[memory]
        if access == "atomic":
            writers[written] = _ATOMIC
            return
        program = self._launch.running.linear
        before = writers[written]
        conflicts = (before >= 0) & (before != program)
        if conflicts.any():
            place = int(np.flatnonzero(conflicts)[0])
            raise self._conflict(memory, int(written[place]), int(before[place]), program)
        writers[written] = program

    def finish(self) -> None:
        """Raises where an output is not written to the end."""
        for memory, writers in self._writers.items():
            if (writers < 0).all():
                # Atomics add to what is there: an element that none meets is right as it is.
                continue
            elements = element_indices(memory.shape, memory.strides) + memory.origin
            is_unwritten = writers[elements] == _NOBODY
            count = int(is_unwritten.sum())
            if count:
                first = tuple(int(index) for index in np.argwhere(is_unwritten)[0])
                raise errors.UnwrittenOutputError(
                    f"`{memory.name}` is stored to, but {count} of its {elements.size} elements "
                    f"are not, the first at {first}. The arrangement should cover its whole "
                    f"shape {memory.shape}.",
                    self._places[memory],
                )

    def _conflict(self, memory: Memory, flat: int, first: int, second: int) -> Exception:
        programs = " and ".join(
            str(tuple(int(index) for index in np.unravel_index(linear, self._launch.grid)))
            for linear in (first, second)
        )
        return errors.ConflictingStoreError(
            f"Programs {programs} both store to "
            f"`{memory.name}` at {memory.index_of(flat)}. On a GPU either may come last.",
            errors.caller_location(),
        )
