"""Runs an application as Python: all programs of the grid, in order, in the thread that calls."""

from __future__ import annotations

import inspect
import math
import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ninetoothed.backends.numpy.execution import checking, hooks
from ninetoothed.backends.numpy.execution.addressing import Shape
from ninetoothed.backends.numpy.execution.reference import TileReference
from ninetoothed.backends.numpy.execution.tensors import Running, Tensor
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.memory import Memory
from ninetoothed.errors import CompilationError, Location, NineToothedError, is_own
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

#: What Python raises where a function of the language is given what it cannot take.
_MISTAKES = (TypeError, ValueError, LookupError, AttributeError, UnboundLocalError)


@dataclass(eq=False)
class Launch:
    """One run of a plan.

    Args:
        name: the kernel's name, for messages.
        application: the user's function.
        grid: the number of programs along each dimension.
        value_of: what a symbol stands for.
        is_wide: whether there are elements of float64.
    """

    name: str
    application: Any
    grid: Shape
    value_of: Callable[[Symbol], Any]
    is_wide: bool = False
    running: Running = field(default_factory=Running)

    def run(self, arguments: Sequence[Any]) -> None:
        """Runs all programs; the arguments are the application's: tensors, tiles, constants."""
        application = hooks.rewritten(self.application)
        handed = [TileReference(a) if isinstance(a, Tensor) else a for a in arguments]
        code = application.__code__
        count = len(handed) - code.co_kwonlyargcount
        names = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
        positional, by_keyword = handed[:count], dict(zip(names, handed[count:], strict=True))
        running, grid = self.running, (math.prod(self.grid), 1, 1)
        launch = context.launch(grid, checking.is_on(), self.value_of, self.is_wide)
        try:
            with launch, np.errstate(all="ignore"):
                for linear, program in enumerate(np.ndindex(self.grid if grid[0] else 0)):
                    running.linear, running.program = linear, program
                    running.loads.clear()
                    running.positions.clear()
                    context.set_program((linear, 0, 0))
                    application(*positional, **by_keyword)
        except Exception as error:
            located = _located(error)
            self._explain(located)
            if located is error:
                raise
            raise located from error

    def observe(self, memory: Memory, indices: Any, mask: Any, access: str) -> None:
        """Told of every access: what was loaded may be stale after a store."""
        if access != "load":
            self.running.loads.clear()

    def _explain(self, error: Exception) -> None:
        if hasattr(error, "add_note"):
            error.add_note(
                f"in program {self.running.program} of {self.grid} of kernel {self.name!r}"
            )


def _located(error: Exception) -> Exception:
    """What a line of the user's is wrong about, such as a call with an unknown keyword, as ours."""
    if isinstance(error, NineToothedError) or not isinstance(error, _MISTAKES):
        return error
    frames = [(f.f_code.co_filename, line) for f, line in traceback.walk_tb(error.__traceback__)]
    users = [frame for frame in frames if not is_own(frame[0])]
    if not users:
        return error
    # What the user's own Python raises by itself is as it would be elsewhere.
    if users[-1] is frames[-1] and not isinstance(error, TypeError | UnboundLocalError):
        return error
    kind = "" if isinstance(error, TypeError) else f"{type(error).__name__}: "
    return CompilationError(f"{kind}{error}.{_parameters_of(str(error))}", Location(*users[-1]))


def _parameters_of(message: str) -> str:
    """What the function takes that a message of Python's says was called with the wrong arguments."""
    from ninetoothed.backends.numpy.language.implementations import FUNCTIONS

    called = re.match(r"(\w+)\(\) (got|missing|takes) ", message)
    function = FUNCTIONS.get(called[1]) if called else None
    if not inspect.isfunction(function):
        return ""
    parameters = inspect.signature(function).parameters.values()
    names = (f"{p.name}={p.default}" if p.default is not p.empty else p.name for p in parameters)
    return f" `ntl.{function.__name__}` takes ({', '.join(names)})."
