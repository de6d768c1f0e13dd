"""``paddle_native.c``: what a call on a GPU asks of PaddlePaddle, in C. Built at the first use.

Triton builds it as it builds its own launchers, and keeps it in its cache.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

_SOURCE = Path(__file__).with_name("paddle_native.c")


@functools.cache
def functions() -> Any:
    """The module with ``guard`` and ``stream``; None where there is nothing to build it with.

    ``guard(checks, careful, are_on_device)`` makes a function of tensors and of as many addresses
    that says whether the tensors pass the checks and the addresses are on the device. A tensor's
    checks are its class, functions of it that must say yes, and one that must say no. Where
    anything raises that says no, and the careful checks are used from then on.

    ``stream(stream_of, with_handle)`` makes a function of a device's index that gives its current
    stream's handle: ``stream_of(index)`` is the stream, and ``with_handle(stream)``, both of them,
    is asked where it is another than at the last call.
    """
    from ninetoothed.backends.triton.compiler import versions

    try:
        from triton.runtime.build import compile_module_from_src

        return compile_module_from_src(_SOURCE.read_text(), "ninetoothed_paddle")
    except (ImportError, *versions.BUILD_FAILURES):
        return None
