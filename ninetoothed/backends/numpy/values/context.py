"""Which program is running: what ``ntl.program_id`` and ``ntl.num_programs`` read.

The executor sets it, once a program, per thread:

    previous = context.enter((programs, 1, 1))   # the grid, before the first program
    for index in range(programs):
        context.set_program((index, 0, 0))
        ...                                      # run the application
    context.leave(previous)                      # in a ``finally``

This module knows nothing about tiles or kernels.
"""

from __future__ import annotations

import threading

from ninetoothed.errors import NineToothedError, caller_location

#: A position in a three-dimensional grid, or its shape.
Triple = tuple[int, int, int]


class _State(threading.local):
    grid: Triple | None = None
    program: Triple = (0, 0, 0)
    is_checked: bool = False


_state = _State()


def enter(grid: Triple, is_checked: bool = False) -> tuple[Triple | None, Triple, bool]:
    """Begin a launch of ``grid`` on this thread; returns what `leave` needs to end it."""
    previous = (_state.grid, _state.program, _state.is_checked)
    _state.grid = grid
    _state.program = (0, 0, 0)
    _state.is_checked = is_checked
    return previous


def leave(previous: tuple[Triple | None, Triple, bool]) -> None:
    """End a launch on this thread: go back to what was there before `enter`."""
    _state.grid, _state.program, _state.is_checked = previous


def set_program(program: Triple) -> None:
    """Say which program of the grid runs from here on, on this thread."""
    _state.program = program


def program_index(axis: int) -> int:
    """The running program's index along ``axis``; an error outside of a launch."""
    _grid_extent(axis)
    return _state.program[axis]


def program_count(axis: int) -> int:
    """The number of programs along ``axis``; an error outside of a launch."""
    return _grid_extent(axis)


def _grid_extent(axis: int) -> int:
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


def is_running() -> bool:
    """Whether a launch runs on this thread."""
    return _state.grid is not None


def is_checked() -> bool:
    """Whether what runs on this thread runs in the debug mode."""
    return _state.is_checked


def running_program() -> Triple:
    """The running program's index in the grid."""
    return _state.program
