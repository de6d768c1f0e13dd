"""The NumPy backend: kernels on CPU tensors, run as Python. Importing it loads no NumPy."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ninetoothed.backends.base import Backend
from ninetoothed.hookspecs import hookimpl


class NumpyBackend(Backend):
    """Runs the application itself, a program at a time, on the CPU."""

    name = "numpy"
    device_kinds = ("cpu",)

    def plan(self, kernel: Any, call: Any) -> Any:
        """What runs ``kernel`` for calls like ``call``."""
        from ninetoothed.backends.numpy.planning import plan_for

        return plan_for(kernel, call)


BACKEND = NumpyBackend()


@hookimpl
def ninetoothed_backends() -> Iterable[Backend]:
    """The NumPy backend."""
    return (BACKEND,)
