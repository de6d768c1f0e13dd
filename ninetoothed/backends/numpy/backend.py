"""The NumPy backend: kernels on CPU tensors, run as Python. Importing it loads no NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.base import Backend, Call, Plan
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition

NINETOOTHED_CONTRACT = 1


class NumpyBackend(Backend):
    """Runs the application itself, a program at a time, on the CPU."""

    name = "numpy"
    device_kinds = ("cpu",)

    def plan(self, kernel: Definition, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        """What runs ``kernel`` for every call of this key; nothing is tuned."""
        from ninetoothed.backends.numpy.execution.planning import plan_for
        from ninetoothed.kernels.meetings.agreement import guarded

        plan = plan_for(kernel, call)
        run = guarded(kernel, plan.run, plan.refusals)
        return Plan(run, {"grid": plan.grid, "configuration": plan.configuration})

    def check(
        self,
        against: tuple[Backend, str] | None = None,
        rtol: float | None = None,
        atol: float | None = None,
    ) -> AbstractContextManager[None]:
        """Kernels are checked as they run; see `ninetoothed.debugging.check`."""
        from ninetoothed.backends.numpy.execution.checking import check
        from ninetoothed.backends.numpy.execution.comparing import Second

        return check(None if against is None else Second(*against, rtol, atol))

    def evaluator(self) -> Callable[[str], Callable[..., Any]]:
        """The functions of tiles and numbers."""
        from ninetoothed.backends.numpy.execution.hooks import evaluator

        return evaluator()


BACKEND = NumpyBackend()


@hookimpl
def ninetoothed_backends() -> Iterable[Backend]:
    """The NumPy backend."""
    return (BACKEND,)
