"""`tune`: searching ahead of the first call, and what it found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.space import Config

if TYPE_CHECKING:
    from ninetoothed.launch.kernel import Kernel


@dataclass(frozen=True)
class Tuned:
    """What a search found.

    Attributes:
        kernel: the kernel's name.
        device: the name of the device it was measured on.
        config: what was chosen, and is used from now on.
        times: all configurations that were measured, in milliseconds, those from earlier
            searches too.
    """

    kernel: str
    device: str
    config: Config
    times: Mapping[Config, float]

    @property
    def milliseconds(self) -> float:
        """The time of what was chosen."""
        return self.times[self.config]

    def __str__(self) -> str:
        return (
            f"{self.kernel} on {self.device}: {self.milliseconds:.4g} ms, the best of "
            f"{len(self.times)} measured: {self.config}"
        )


def tune(kernel: Kernel, *arguments: Any, effort: str = "full", **keywords: Any) -> Tuned:
    """Searches for a kernel's fastest configuration for such arguments, ahead of the first call.

    The result is kept on disk and used by later calls with sizes like these, in this process and in
    others. What the kernel writes to is as before afterwards. An interrupt (Ctrl-C) keeps what was
    measured; the next search goes on from there.

    Args:
        kernel: what `make` or `jit` gave.
        arguments, keywords: as in a call of the kernel, tensors on the device to tune for.
        effort: ``"full"`` measures every configuration that can be expected to serve; ``"quick"``
            does what a first call does.

    Raises:
        ArgumentError: the arguments do not fit the kernel.
        DeviceError: nothing is chosen on the tensors' device, or a graph is being captured.
        NineToothedError: the effort is neither.
    """
    from ninetoothed.errors import NineToothedError
    from ninetoothed.launch.generate import described
    from ninetoothed.plugins import backend_for

    chosen = tuning.effort(effort)
    if chosen.name == "none":
        raise NineToothedError('effort="none" searches for nothing; use "quick" or "full".')
    bound = kernel.bind(arguments, keywords)
    frontend = kernel.frontend_of(bound)
    call = kernel.call_of(*arguments, **keywords)
    backend = backend_for(call.device.kind)
    _, values = described(kernel, frontend, bound)
    stream = frontend.current_stream(call.device.index) if call.device.kind != "cpu" else 0
    tuned = backend.tune(kernel, call, (stream, *values), chosen)
    kernel.forget_launches()
    return tuned
