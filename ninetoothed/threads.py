"""What threads and forked processes need taken care of: locks, Python's parser and its collector.

Nothing is known here of what the locks guard.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import importlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

_Lock = TypeVar("_Lock")
_Value = TypeVar("_Value")

#: All locks of the package. A fork copies a lock as it is, without the thread that would free it.
_locks: weakref.WeakSet[Any] = weakref.WeakSet()

#: What is imported by first calls, and so in threads. A fork waits for it no longer, in seconds.
_IMPORTED_LATE = ("ninetoothed", "pluggy")
_IMPORT_PATIENCE = 20.0

#: The locks of modules that are being imported, by name, as weak references. A module is held before it
#: is in `sys.modules`, so that this alone tells.
_import_locks: Mapping[str, Any] = getattr(importlib._bootstrap, "_module_locks", {})  # type: ignore[attr-defined]

#: How often a tree is asked for again where another library's thread has parsed in between.
_ATTEMPTS = 100


def lock() -> threading.Lock:
    """A lock that is free in a process that was forked off while a thread held it.

    What it guards may be half done there: publish by one assignment, or start over.
    """
    return _registered(threading.Lock())


def reentrant_lock() -> Any:
    """A lock that its holder can take again; free in a forked process, as one of `lock` is."""
    return _registered(threading.RLock())


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
    """No thread looks for garbage in the meantime. For imports and what leaves as little behind: with PyTorch in
    the process one look takes as long as they do."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _registered(made: _Lock) -> _Lock:
    _locks.add(made)
    return made


def _free_all() -> None:
    for each in list(_locks):
        # As the standard library's own locks are freed.
        each._at_fork_reinit()


def _wait_for_imports() -> None:
    """A module that another thread was importing would never be whole in the forked process."""
    deadline = time.monotonic() + _IMPORT_PATIENCE
    while _is_another_importing() and time.monotonic() < deadline:
        time.sleep(0.001)


def _is_another_importing() -> bool:
    """Whether another thread imports what first calls do."""
    here = threading.get_ident()
    for name, reference in list(_import_locks.items()):
        held = reference() if name.startswith(_IMPORTED_LATE) else None
        if held is not None and getattr(held, "owner", None) not in (None, here):
            return True
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait_for_imports, after_in_child=_free_all)


class cached_property(functools.cached_property[_Value]):
    """That of Python 3.12 in every version: before, one lock of the class was held meanwhile."""

    def __init__(self, function: Callable[[Any], _Value]) -> None:
        super().__init__(function)
        if hasattr(self, "lock"):
            self.lock = contextlib.nullcontext()


_parsing = reentrant_lock()


def parse(text: str, mode: str = "exec") -> Any:
    """``ast.parse``, from any thread.

    Raises:
        SyntaxError: as `ast.parse`.
    """
    with _parsing:
        return undisturbed(lambda: ast.parse(text, mode=mode))


def undisturbed(parses: Callable[[], _Value]) -> _Value:
    """What a function that parses gives, asked again where a thread of somebody else's came between.

    Python 3.11 counts how deep a tree is for all threads together, so that two that parse at a time
    may both be told "AST constructor recursion depth mismatch" (python/cpython#106905).
    """
    for _ in range(_ATTEMPTS):
        try:
            return parses()
        except SystemError as error:
            if "recursion depth mismatch" not in str(error):
                raise
    return parses()
