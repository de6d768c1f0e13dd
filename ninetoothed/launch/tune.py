"""`tune`: searching ahead of the first call."""

from __future__ import annotations

from typing import Any

from ninetoothed.errors import ArgumentError, NineToothedError
from ninetoothed.kernels.call_types import fitting
from ninetoothed.launch.absent_tensors import without_none
from ninetoothed.launch.arguments import described
from ninetoothed.launch.kernel import Kernel
from ninetoothed.plugins import backend_for
from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.space import Tuned


def tune(kernel: Kernel, *arguments: Any, effort: str = "full", **keywords: Any) -> Tuned:
    """Searches for a kernel's fastest configuration for such arguments, ahead of the first call.

    The result is kept on disk and used by later calls with sizes like these, in this process and in
    others. What the kernel writes to is as before afterwards. An interrupt (Ctrl-C) keeps what was
    measured; the next search goes on from there.

    Args:
        kernel: what `make` or `jit` gave.
        arguments, keywords: as in a call of the kernel, tensors on the device to tune for.
        effort: ``"full"`` measures every configuration that can be expected to serve; ``"quick"``
            goes on from the most promising for at most ten seconds.

    Raises:
        ArgumentError: the arguments do not fit the kernel.
        DeviceError: nothing is chosen on the tensors' device, or a graph is being captured.
        NineToothedError: the effort is neither.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(
            f"`tune` takes what `make` or `jit` gave, and its arguments, not {kernel!r}"
        )
    chosen = tuning.effort(effort)
    if chosen.name == "none":
        raise NineToothedError('effort="none" searches for nothing; use "quick" or "full".')
    bound = kernel.bind(arguments, keywords)
    frontend = kernel.frontend_of(bound)
    definition = kernel.definition_of(bound, frontend)
    call = kernel.call_of(*arguments, **keywords)
    bound = without_none(definition, frontend, bound)
    backend = backend_for(call.device.kind)
    _, values = described(definition, frontend, bound)
    stream = frontend.current_stream(call.device.index) if call.device.kind != "cpu" else 0
    tuned = fitting(
        definition, call, lambda given: backend.tune(given, call, (stream, *values), chosen)
    )
    kernel.forget_launches()
    return tuned
