"""The debug mode: what a GPU would do silently becomes an error that says where.

Reported are accesses outside of a tensor (through ``x.source[...]``, pointers, and ``x[k]``), between the elements of a
strided one too, positions beyond a tile, elements that two programs or lanes store to or that one program loads and
another stores to, elements of an output that nothing is stored to, and floats that become integers of a type that does
not hold them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
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


_NOBODY, _ATOMIC, _SEVERAL = -1, -2, -3

#: How many times an element may be one of a tensor's where it is looked at what lies between its elements.
_MOST_OVERLAPPING = 64


class Recorder:
    """Which program stored to each element and which loaded it, in one launch.

    Args:
        outputs: by the names of the tensors that the kernel is to store to, where it does.
    """

    def __init__(self, launch: Launch, outputs: Mapping[str, errors.Location]) -> None:
        self._launch = launch
        self._outputs = outputs
        #: The tensors of the launch, with where its elements are in the array; None for everywhere.
        self._elements: dict[Memory, np.ndarray | None] = {}
        self._writers: dict[Memory, np.ndarray] = {}
        self._readers: dict[Memory, np.ndarray] = {}
        self._places: dict[tuple[Memory, bool], errors.Location | None] = {}
        self._stored: set[Memory] = set()
        self._has_atomics = False

    def add(self, memory: Memory) -> None:
        """Has a tensor of the launch recorded."""
        memory.observers.append(self.observe)
        # An expanded tensor has more elements than there is memory.
        steps = [(n, step) for n, step in zip(memory.shape, memory.strides, strict=True) if step]
        shape, strides = tuple(n for n, _ in steps), tuple(step for _, step in steps)
        has_element = np.zeros(memory.array.size, dtype=np.bool_)
        if has_element.size and math.prod(shape) <= _MOST_OVERLAPPING * has_element.size:
            has_element[element_indices(shape, strides) + memory.origin] = True
        is_everywhere = has_element.all() or not has_element.any()
        self._elements[memory] = None if is_everywhere else has_element

    def observe(self, memory: Memory, indices: Any, mask: Any, access: str) -> None:
        """Told of every access before it happens."""
        found = self._readers if access == "load" else self._writers
        if memory not in found:
            found[memory] = np.full(memory.array.size, _NOBODY, dtype=np.int64)
            self._places[memory, access == "load"] = errors.caller_location()
        touched = np.asarray(indices).reshape(-1)
        if mask is not None:
            touched = touched[np.broadcast_to(mask, np.shape(indices)).reshape(-1)]
        self._check_elements(memory, touched, access)
        programs, program = found[memory], self._launch.running.linear
        before = programs[touched]
        if access == "load":
            is_first = (before == _NOBODY) | (before == program)
            programs[touched] = np.where(is_first, program, _SEVERAL)
            return
        if access == "atomic":
            self._has_atomics = True
            programs[touched] = _ATOMIC
            return
        self._stored.add(memory)
        conflicts = (before >= 0) & (before != program)
        if conflicts.any():
            place = int(np.flatnonzero(conflicts)[0])
            both = f"Programs {self._program(int(before[place]))} and {self._program(program)} both store"
            raise _conflict(both, memory, int(touched[place]))
        # The last of several lanes leaves its number.
        lanes = np.arange(touched.size)
        programs[touched] = lanes
        again = touched[programs[touched] != lanes]
        programs[touched] = program
        if again.size:
            several = f"Program {self._program(program)} stores several lanes"
            raise _conflict(several, memory, int(again[0]))

    def finish(self) -> None:
        """Raises where programs depend on each other's order, or an output is not written to the end."""
        if not self._has_atomics:
            # By these, programs may wait for each other.
            self._check_order()
        for memory in self._elements:
            # Atomics add to what is there: an element that none meets is right as it is. So is one that a
            # program loads, where data choose which ones change.
            is_changed_alone = memory in self._stored and memory not in self._readers
            is_output = is_changed_alone or memory.name in self._outputs
            if not is_output or not memory.array.size:
                continue
            writers = self._writers.get(memory)
            elements = _elements_of(memory)
            is_unwritten = (
                np.ones(elements.shape, np.bool_)
                if writers is None
                else writers[elements] == _NOBODY
            )
            count = int(is_unwritten.sum())
            if count:
                first = tuple(int(index) for index in np.argwhere(is_unwritten)[0])
                raise errors.UnwrittenOutputError(
                    f"`{memory.name}` is stored to, but {count} of its {elements.size} elements "
                    f"are not, the first at {first}. The arrangement should cover its whole "
                    f"shape {memory.shape}.",
                    self._places.get((memory, False)) or self._outputs.get(memory.name),
                )

    def _check_elements(self, memory: Memory, touched: np.ndarray, access: str) -> None:
        """Raises where an access is between the elements of a tensor."""
        has_element = self._elements.get(memory)
        if has_element is None:
            return
        beside = touched[~has_element[touched]]
        if beside.size:
            what = "An atomic operation" if access == "atomic" else f"A {access}"
            raise errors.OutOfBoundsError(
                f"{what} leaves `{memory.name}`: offset {int(beside[0]) - memory.origin} is between its "
                f"elements (shape {memory.shape}, strides {memory.strides}). Multiply what counts elements "
                "by the stride.",
                errors.caller_location(),
            )

    def _check_order(self) -> None:
        """Raises where a program loads, or stores to by another tensor, what another one stores to."""
        for memory, writers in self._writers.items():
            others = [(self._readers, each, True) for each in self._readers]
            others += [(self._writers, each, False) for each in self._writers if each is not memory]
            for found, other, is_load in others:
                start = max(each.array.ctypes.data for each in (memory, other))
                stop = min(each.array.ctypes.data + each.array.nbytes for each in (memory, other))
                if start >= stop:
                    continue
                stored = _by_byte(memory, writers, start, stop)
                touched = _by_byte(other, found[other], start, stop)
                conflicts = np.flatnonzero(
                    (stored >= 0) & (touched != _NOBODY) & (touched != stored)
                )
                if conflicts.size:
                    at = start + int(conflicts[0])
                    raise errors.ConflictingStoreError(
                        f"Program {self._program(int(stored[conflicts[0]]))} stores to `{memory.name}` at "
                        f"{_index_of(memory, at)}, where another one {'loads' if is_load else 'stores to'} "
                        f"`{other.name}` at {_index_of(other, at)}. On a GPU either may come first: they "
                        "have to be apart, or each program to touch elements of its own.",
                        self._places[other, is_load],
                    )

    def _program(self, linear: int) -> tuple[int, ...]:
        return tuple(int(index) for index in np.unravel_index(linear, self._launch.grid))


def _elements_of(memory: Memory) -> np.ndarray:
    """Where the elements of a tensor are in the array, shaped as the tensor."""
    return element_indices(memory.shape, memory.strides) + memory.origin


def _conflict(what: str, memory: Memory, flat: int) -> Exception:
    return errors.ConflictingStoreError(
        f"{what} to `{memory.name}` at {memory.index_of(flat)}. On a GPU either may come last.",
        errors.caller_location(),
    )


def _by_byte(memory: Memory, programs: np.ndarray, start: int, stop: int) -> np.ndarray:
    """The program of each byte between two addresses."""
    first, size = memory.array.ctypes.data, memory.array.itemsize
    low, high = (start - first) // size, -((first - stop) // size)
    return np.repeat(programs[low:high], size)[start - first - low * size :][: stop - start]


def _index_of(memory: Memory, address: int) -> tuple[int, ...] | None:
    return memory.index_of((address - memory.array.ctypes.data) // memory.array.itemsize)
