"""Triton's cache for what is ours: in a directory of the user's alone, and checked before it is used.

Triton's own directory may be one that others can write to, and what lies there is loaded into the
process: launchers, and kernels that would be kept under our name. The user's own kernels stay there.
"""

from __future__ import annotations

import functools
import importlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ninetoothed import cache
from ninetoothed.backends.triton.compiler import installed

#: Triton's modules that ask for its cache.
_ASKING = ("triton.compiler.compiler", "triton.runtime.build")

_DIGEST = ".sha256"

_ours = threading.local()


@contextmanager
def private_cache(kind: str = "triton") -> Iterator[None]:
    """What Triton compiles or builds in this thread meanwhile is kept in the user's own cache.

    Args:
        kind: the part of it. Triton's keys leave out what its source's file is called, which is in what
            it makes.
    """
    _redirect()
    before = getattr(_ours, "kind", None)
    _ours.kind = kind
    try:
        yield
    finally:
        _ours.kind = before


@functools.lru_cache(maxsize=1)
def _redirect() -> None:
    installed.imported()
    for name in _ASKING:
        module: Any = importlib.import_module(name)
        plain = module.get_cache_manager
        module.get_cache_manager = functools.partial(_manager, plain)


def _manager(plain: Any, key: str) -> Any:
    kind = getattr(_ours, "kind", None)
    return plain(key) if kind is None else _manager_class()(plain(key).key, kind)


@functools.lru_cache(maxsize=1)
def _manager_class() -> Any:
    from triton.runtime.cache import FileCacheManager

    class PrivateCacheManager(FileCacheManager):
        def __init__(self, key: str, kind: str) -> None:
            self.key = key
            place = cache.private_directory(kind) / key
            place.mkdir(mode=0o700, exist_ok=True)
            self.cache_dir = str(place)
            self.lock_path = str(place / "lock")

        def has_file(self, filename: str) -> bool:
            return _is_intact(self._make_path(filename))

        def get_group(self, filename: str) -> dict[str, str] | None:
            group: dict[str, str] | None = super().get_group(filename)
            # All or nothing: Triton takes what is missing for another error.
            is_whole = group is not None and all(map(_is_intact, group.values()))
            return group if is_whole else None

        def put(self, data: Any, filename: str, binary: bool = True) -> str:
            path: str = super().put(data, filename, binary)
            content = data if isinstance(data, bytes) else str(data).encode()
            super().put(_digest_of(path, content), filename + _DIGEST, binary=False)
            return path

    return PrivateCacheManager


def _is_intact(path: str) -> bool:
    try:
        content, told = cache.read_private(path), cache.read_private(path + _DIGEST)
    except OSError:
        return False
    return content is not None and told == _digest_of(path, content).encode()


def _digest_of(path: str, content: bytes) -> str:
    """Of a file's content, its name and its key: what lies in another's place is not intact there."""
    return cache.digest(*path.split(os.sep)[-2:], content)


def environment() -> list[tuple[str, ...]]:
    """The variables that may change what Triton makes: those it counts itself, and more.

    A tool that one of them names counts by its size and its time of modification as well.
    """
    found: list[tuple[str, ...]] = []
    for name, value in sorted(os.environ.items()):
        if name.startswith(_COUNTED) and not name.startswith(_NOT_COUNTED):
            try:
                status = os.stat(value)
                found.append((name, value, str(status.st_size), str(status.st_mtime_ns)))
            except (OSError, ValueError):
                found.append((name, value))
    return found


#: Beginnings of names that `triton.knobs` and Triton's library read, of its compilation, its language and its
#: targets.
_COUNTED = (
    "TRITON_", "PTXAS_", "DISABLE_", "AMDGCN_", "NVPTX_", "LLVM_", "MLIR_", "USE_IR_LOC",
    "ALLOW_LHS_TMEM",
)  # fmt: skip

#: Where things are kept, how they are told of, and who is asked for time and devices.
_NOT_COUNTED = (
    "TRITON_HOME", "TRITON_CACHE", "TRITON_DUMP_DIR", "TRITON_DUMP_PTXAS", "TRITON_OVERRIDE_DIR", "TRITON_REDIS",
    "TRITON_REMOTE", "TRITON_PRINT", "TRITON_PROTON", "TRITON_CUPTI", "TRITON_ENABLE_NVTX", "TRITON_LIBCUDA",
    "TRITON_INTERPRET",
)  # fmt: skip
