"""What a process needs once for whatever kernel it compiles first, made in threads while that is planned.

Triton reads itself to name what it compiles, and C code is built that launches. None of it needs Python
much, so that neither waits for the other.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable

from ninetoothed import threads
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.compiler.private_cache import private_cache
from ninetoothed.backends.triton.runtime import launcher
from ninetoothed.backends.triton.runtime.device_api import runtime

_starting = threads.lock()


class Ahead:
    """Something that is made in a thread of its own, once.

    Args:
        make: makes it, and is called again by whoever needs it; so an error is theirs.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        self._make = make
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Begins, where nobody has yet."""
        with _starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Comes back once it is made, or could not be, or nobody has begun."""
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        with contextlib.suppress(Exception):
            self._make()


def _build(backend: str) -> None:
    runtime(backend)
    if backend == "cuda":
        launcher.module()
    else:
        versions.utilities()


#: Triton's name for itself, and by the kind of device what loads and launches there.
COMPILER = Ahead(versions.fingerprint)
LAUNCHERS = {backend: Ahead(functools.partial(_build, backend)) for backend in ("cuda", "hip")}


def begin(backend: str) -> None:
    """Begins with what a first kernel that is compiled for a kind of device will need."""
    # Triton is imported here, once, and not by several threads at a time.
    with private_cache():
        LAUNCHERS[backend].begin()
        COMPILER.begin()
