"""What a search found, as `tune` gives it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ninetoothed.tuning.space import Config


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
