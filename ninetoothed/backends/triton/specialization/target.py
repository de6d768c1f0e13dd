"""What a kernel is compiled for; no device need be there."""

from __future__ import annotations

from typing import Any

from ninetoothed.errors import DeviceError
from ninetoothed.records import dataclass


@dataclass(frozen=True)
class Target:
    """What a kernel is compiled for.

    Attributes:
        backend: ``"cuda"`` or ``"hip"``.
        arch: the compute capability as an int (``90``), or AMD's name (``"gfx942"``).
        warp_size: the number of threads that run in step.
    """

    backend: str
    arch: int | str
    warp_size: int

    @classmethod
    def parse(cls, description: Any) -> Target:
        """A target from ``("cuda", 90)``, ``("hip", "gfx942")``, a third member, or a `Target`.

        Raises:
            DeviceError: if it describes none.
        """
        if isinstance(description, cls):
            return description
        try:
            backend, arch, *rest = description
        except (TypeError, ValueError):
            raise _unknown_target(description) from None
        if backend == "cuda" and isinstance(arch, int):
            default = 32
        elif backend == "hip" and isinstance(arch, str) and arch.startswith("gfx"):
            # AMD's compute cards (gfx9) run 64 threads in step, its graphics cards 32.
            default = 64 if arch.startswith("gfx9") else 32
        else:
            raise _unknown_target(description)
        return cls(backend, arch, *(rest or [default]))


def _unknown_target(description: object) -> DeviceError:
    return DeviceError(
        f"{description!r} is no target. Give a kind and an architecture: "
        '("cuda", 90) or ("hip", "gfx942").'
    )
