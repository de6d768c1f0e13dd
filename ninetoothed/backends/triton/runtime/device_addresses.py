"""Whose memory addresses are of: the driver is asked for several of them in one C call.

A framework's object for a tensor's device can cost more to make and to compare than a launch. The
driver knows what memory an address is in, at any time and for certain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ninetoothed.backends.triton.runtime.device_api import runtime
from ninetoothed.backends.triton.runtime.launcher import extension
from ninetoothed.errors import DeviceError


def on_device(index: int, addresses: Sequence[int]) -> Callable[..., bool] | None:
    """What says of addresses whether all are in memory of a CUDA device's own, in one C call.

    Args:
        index: the device's index.
        addresses: some for which that is so.

    Returns:
        a function of any addresses; None where it cannot be had: these are elsewhere (managed or
        pinned memory, nowhere), there is no CUDA driver, or no C compiler to build it with.
    """
    module = _connected()
    if module is None:
        return None
    are_on = module.on(index)
    return are_on if are_on(*addresses) else None


@functools.cache
def _connected() -> Any:
    """The C functions with the driver's; None without either."""
    try:
        ask = runtime("cuda").address_of("cuPointerGetAttributes")
        module = extension(Path(__file__).with_suffix(".c"), "ninetoothed_memory")
    except (DeviceError, ImportError):
        return None
    module.connect(ask)
    return module
