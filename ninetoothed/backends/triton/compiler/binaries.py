"""Compiled kernels kept on disk, so that a fresh process asks Triton for nothing.

Triton has a cache of its own, but to look into it costs more than a launch may: its key is a digest
of Triton's whole library, a third of a second in each process. Here the library counts by its
version, its size and its time of modification. Our own functions that kernels call count by their text:
a kernel's has their names alone. An entry is what a launch needs, no more.
"""

from __future__ import annotations

import functools
import json
import os
import sysconfig
from collections import namedtuple
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ninetoothed.backends.triton.compiler import installed, mending
from ninetoothed.backends.triton.compiler.private_cache import environment
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.cache import Cache, digest
from ninetoothed.records import dataclass

#: Of what an entry looks like.
_FORMAT = 1

_HEADER_SIZE = 8


@dataclass(frozen=True)
class Binary:
    """What a launch needs of Triton's ``CompiledKernel``, under the same names."""

    name: str
    kernel: bytes
    metadata: Any
    packed_metadata: tuple[Any, ...]
    src: Any


class Binaries:
    """The compiled kernels that are kept.

    Args:
        store: where, by default the user's cache.
    """

    def __init__(self, store: Cache | None = None) -> None:
        self._store = Cache("binaries") if store is None else store

    def get(self, key: str | None) -> Binary | None:
        """The kernel that was kept under a key."""
        data = None if key is None else self._store.get(key)
        return None if data is None else _unpacked(data)

    def put(self, key: str | None, compiled: Any) -> None:
        """Keeps one; a full disk is no error."""
        data = None if key is None else _packed(compiled)
        if key is not None and data is not None:
            self._store.put(key, data)


def key_of(
    specialized: Specialized, name: str, target: Target, num_warps: int, num_stages: int
) -> str | None:
    """What a compiled kernel depends on; None where that cannot be told, and it is not kept."""
    externs = []
    for extern, function in sorted(specialized.emitted.externs.items()):
        source = getattr(function, "cache_key", None)
        if source is None:
            return None
        externs.append((extern, source))
    text, *known = specialized.key
    told = repr((name, *known, target, num_warps, num_stages))
    if " at 0x" in told or installed.is_compiling_always():
        return None
    return digest(_FORMAT, _library(), _functions(), text, told, externs, environment())


@functools.lru_cache(maxsize=1)
def _library() -> tuple[Any, ...]:
    """Triton's release and build, without reading it."""
    status = os.stat(installed.library_path())
    return installed.release(), status.st_size, status.st_mtime_ns, sysconfig.get_platform()


@functools.lru_cache(maxsize=1)
def _functions(folder: Path = Path(__file__).parents[1]) -> str:
    """A digest of the files with the functions that emitted kernels call, and with what changes these."""
    more = ("specialization/magic_division.py", *(f"compiler/{name}" for name in mending.FILES))
    files = (*sorted(folder.glob("*.py")), *(folder / name for name in more))
    return digest(*(file.read_bytes() for file in files))


def _packed(compiled: Any) -> bytes | None:
    try:
        header = json.dumps(
            {
                "name": compiled.name,
                "metadata": compiled.metadata._asdict(),
                "packed": list(compiled.packed_metadata),
                "signature": dict(compiled.src.signature),
            },
            default=vars,
        ).encode()
    except (TypeError, ValueError):
        # Something that no file can hold.
        return None
    return len(header).to_bytes(_HEADER_SIZE, "little") + header + bytes(compiled.kernel)


def _unpacked(data: bytes) -> Binary | None:
    end = _HEADER_SIZE + int.from_bytes(data[:_HEADER_SIZE], "little")
    try:
        header = json.loads(data[_HEADER_SIZE:end])
        return Binary(
            header["name"],
            data[end:],
            _metadata(header["metadata"]),
            tuple(header["packed"]),
            SimpleNamespace(signature=header["signature"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _metadata(content: Mapping[str, Any]) -> Any:
    """As Triton has it: a named tuple, the target an object."""
    values = {**content, "target": SimpleNamespace(**content["target"])}
    return namedtuple("KernelMetadata", sorted(values))(**values)
