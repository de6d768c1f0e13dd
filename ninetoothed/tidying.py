"""What is removed from a directory of the cache: only where the cache made it, and by what was opened.

The directory may be a link's end, or be exchanged for one by somebody who may write beside it: what is
read of it, written and removed is found by the descriptor of one directory, which others cannot exchange.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

#: The beginning of the name of a file that is being written.
ASIDE = ".aside-"

#: So many seconds after the last write, nobody is writing it any more.
_ORPHANED = 24 * 3600

#: Bytes that entries may take, unless the user says so.
_LIMIT = 2 * 2**30

#: Lies in a directory that the cache made, after https://bford.info/cachedir: only there files are removed.
_TAG = "CACHEDIR.TAG"
_TAGGED = b"Signature: 8a477f597d28d172789f06886806bc55\n# Of NineToothed: all may be removed.\n"


def limit() -> int:
    """Bytes that entries may take: ``$NINETOOTHED_CACHE_LIMIT``, in MiB; 2 GiB by default."""
    try:
        return int(float(os.environ["NINETOOTHED_CACHE_LIMIT"]) * 2**20)
    except (KeyError, ValueError, OverflowError):
        return _LIMIT


def most_read() -> int:
    """Bytes beyond which a file is none of the cache's."""
    return max(limit(), _LIMIT)


def mark(root: Path) -> None:
    """Has an empty directory say that it is the cache's."""
    with _opened(root) as (top, within):
        if os.listdir(top if within is None else within):
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with suppress(FileExistsError):
            descriptor = os.open(os.path.join(top, _TAG), flags, 0o600, dir_fd=within)
            with os.fdopen(descriptor, "wb") as file:
                file.write(_TAGGED)


def tidy(root: Path) -> None:
    """Removes what interrupted writes left behind, and the files longest unused beyond `limit`.

    What the tuner has measured stays: it is small, and costs the most to find again. A directory that
    the cache did not make, which may hold other things, is left as it is.
    """
    with suppress(OSError), _opened(root) as (top, within):
        if _is_marked(top, within):
            _tidy(top, within)


@contextmanager
def _opened(root: Path) -> Iterator[tuple[str, int | None]]:
    """A path, and the descriptor of the directory that it is relative to; None where a system has none."""
    if not hasattr(os, "fwalk"):
        yield str(root), None
        return
    descriptor = os.open(root, os.O_RDONLY)
    try:
        yield os.curdir, descriptor
    finally:
        os.close(descriptor)


def _is_marked(top: str, within: int | None) -> bool:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with os.fdopen(os.open(os.path.join(top, _TAG), flags, dir_fd=within), "rb") as file:
        return file.read(len(_TAGGED)) == _TAGGED


def _tidy(top: str, within: int | None) -> None:
    now, found = time.time(), []
    walk = os.walk(top) if within is None else (e[:3] for e in os.fwalk(top, dir_fd=within))
    for folder, _, names in walk:
        is_measured = os.path.relpath(folder, top) == "tuning"
        for name in names if folder != top else ():
            path = os.path.join(folder, name)
            try:
                status = os.stat(path, dir_fd=within, follow_symlinks=False)
                last = max(status.st_atime, status.st_mtime)
                if (name.startswith(ASIDE) or ".pid_" in folder) and now - last > _ORPHANED:
                    os.unlink(path, dir_fd=within)
                elif not is_measured:
                    found.append((last, status.st_size, path))
            except OSError:
                continue
    excess = sum(size for _, size, _ in found) - limit()
    for _, size, path in sorted(found):
        if excess <= 0:
            return
        with suppress(OSError):
            os.unlink(path, dir_fd=within)
            excess -= size
