"""The Triton backend: kernels on GPUs. Importing it imports neither Triton nor a framework."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.base import Backend, Call, Plan
from ninetoothed.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.launch.tune import Tuned
    from ninetoothed.tuning.space import Effort

NINETOOTHED_CONTRACT = 1


class TritonBackend(Backend):
    """Emits Triton source, compiles it with Triton and launches it directly."""

    name = "triton"
    device_kinds = ("cuda", "hip")

    def plan(self, kernel: Kernel, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        """What runs ``kernel`` for every call of this key; see `Backend.plan`."""
        from ninetoothed.backends.triton.planning.planner import Planner

        return Planner(kernel, call).plan(values)

    def tune(self, kernel: Kernel, call: Call, values: tuple[Any, ...], effort: Effort) -> Tuned:
        """Searches for the fastest configuration of a call; see `ninetoothed.tune`."""
        from ninetoothed.backends.triton.planning.planner import Planner

        return Planner(kernel, call).tune(values, effort)


BACKEND = TritonBackend()


@hookimpl
def ninetoothed_backends() -> Iterable[Backend]:
    """The Triton backend."""
    return (BACKEND,)
