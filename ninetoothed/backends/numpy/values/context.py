"""What runs on this thread: what ``ntl.program_id``, ``ntl.num_programs`` and symbols stand for.

The executor says so, for a launch (`launch`) and for each of its programs (`set_program`). This module
knows nothing about tiles or kernels.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ninetoothed.errors import ApplicationError, NineToothedError, caller_location

#: A position in a three-dimensional grid, or its shape.
Triple = tuple[int, int, int]


class _State(threading.local):
    grid: Triple | None = None
    program: Triple = (0, 0, 0)
    is_checked: bool = False
    value_of: Callable[[Any], Any] | None = None
    is_wide: bool = False
    is_combining: bool = False
    is_beside: bool = False


_state = _State()


@contextmanager
def launch(
    grid: Triple,
    is_checked: bool = False,
    value_of: Callable[[Any], Any] | None = None,
    is_wide: bool = False,
) -> Iterator[None]:
    """A launch on this thread; within another, that goes on after it.

    Args:
        grid: the number of programs along each axis.
        is_checked: whether it runs in the debug mode.
        value_of: what a symbol stands for in it.
        is_wide: whether it has elements of float64, beside which Python's floats are float64.
    """
    before = dict(vars(_state))
    vars(_state).update(
        grid=grid, program=(0, 0, 0), is_checked=is_checked, value_of=value_of, is_wide=is_wide
    )
    try:
        yield
    finally:
        vars(_state).clear()
        vars(_state).update(before)


def set_program(program: Triple) -> None:
    """Say which program of the grid runs from here on, on this thread."""
    _state.program = program


def running_program() -> Triple | None:
    """The running program's index in the grid; None outside of a launch."""
    return None if _state.grid is None else _state.program


def is_checked() -> bool:
    """Whether what runs on this thread runs in the debug mode."""
    return _state.is_checked


def is_wide() -> bool:
    """Whether what runs on this thread has elements of float64."""
    return _state.is_wide


@contextmanager
def combining() -> Iterator[None]:
    """What runs on this thread is a function of elements, given all elements of tiles at once."""
    before, _state.is_combining = _state.is_combining, True
    try:
        yield
    finally:
        _state.is_combining = before


def is_combining() -> bool:
    """Whether what runs on this thread is such a function."""
    return _state.is_combining


@contextmanager
def beside() -> Iterator[None]:
    """What runs on this thread is asked for its type alone, beside what was chosen: nothing is loaded."""
    before, _state.is_beside = _state.is_beside, True
    try:
        yield
    finally:
        _state.is_beside = before


def is_beside() -> bool:
    """Whether what runs on this thread is asked for its type alone."""
    return _state.is_beside


def value_of(symbol: Any) -> Any:
    """What a symbol stands for in what runs; an error outside of a launch."""
    if _state.value_of is None:
        raise ApplicationError(f"{symbol} has a value only in a running kernel.")
    return _state.value_of(symbol)


def program_index(axis: int) -> int:
    """The running program's index along ``axis``; an error outside of a launch."""
    program_count(axis)
    return _state.program[axis]


def program_count(axis: int) -> int:
    """The number of programs along ``axis``; an error outside of a launch."""
    if axis not in (0, 1, 2):
        raise NineToothedError(
            f"A grid has the axes 0, 1 and 2, but axis {axis!r} was asked for.", caller_location()
        )
    if _state.grid is None:
        raise NineToothedError(
            "ntl.program_id and ntl.num_programs have a meaning only inside a running kernel.",
            caller_location(),
        )
    return _state.grid[axis]
