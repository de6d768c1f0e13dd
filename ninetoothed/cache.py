"""What is kept on disk between processes: content-addressed entries and generated source files.

Many processes share the directory, so an entry is one self-contained file, written aside and
renamed, and carries a checksum of itself. Any doubt about an entry is a miss. Nothing is created
before something is stored, and nothing is read from where another user could have written.
"""

from __future__ import annotations

import atexit
import errno
import functools
import hashlib
import os
import re
import shutil
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ninetoothed import tidying

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_MAGIC = b"ninetoothed-cache-1\n"
_DIGEST_SIZE = hashlib.sha256().digest_size

#: Seconds between two looks at a lock that somebody else holds.
_LOCK_INTERVAL = 0.02


def directory() -> Path:
    """Where entries are kept: ``$NINETOOTHED_CACHE_DIR``, else ``ninetoothed`` in the user's cache."""
    chosen, base = (os.environ.get(name) for name in ("NINETOOTHED_CACHE_DIR", "XDG_CACHE_HOME"))
    try:
        if chosen:
            path = Path(chosen).expanduser().absolute()
        # The XDG base directory specification: a relative path is to be ignored.
        elif base and os.path.isabs(base):
            path = Path(base) / "ninetoothed"
        else:
            path = Path("~/.cache/ninetoothed").expanduser()
        str(path).encode()
        return path
    except (RuntimeError, OSError, UnicodeError):
        # No HOME, and the user has no entry in the list of users, as in some containers; what is
        # relative is so to a directory that is gone; or Triton, which takes UTF-8, cannot be told the name.
        return _without_home()


@functools.lru_cache(maxsize=1)
def _without_home() -> Path:
    root = _temporary_root()
    warnings.warn(
        f"There is no directory to keep compiled kernels in: {root} serves until the process ends. "
        "Set NINETOOTHED_CACHE_DIR to one that only you can write to, with a name in UTF-8.",
        RuntimeWarning,
        stacklevel=2,
    )
    return root


def _remove(root: Path, process: int) -> None:
    # A forked process uses what is its parent's, and leaves it there.
    if os.getpid() == process:
        shutil.rmtree(root, ignore_errors=True)


def private_directory(kind: str) -> Path:
    """A directory of the cache that is ours alone; a temporary one where that cannot be had."""
    root, place = directory(), directory() / kind
    with suppress(OSError):
        if _are_private(root, place, is_made=True) and os.access(place, os.W_OK):
            _tidy_once(root)
            return place
    place = _temporary_root() / kind
    place.mkdir(mode=0o700, exist_ok=True)
    return place


@functools.lru_cache(maxsize=8)
def _tidy_once(root: Path) -> None:
    tidying.tidy(root)


def digest(*parts: object) -> str:
    """A hexadecimal digest of the parts, told apart by type and by where one ends.

    Bytes count as they are, anything else by its ``repr``, which must thus be the same in every
    process (no addresses, no sets).
    """
    hasher = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        hasher.update(f"{type(part).__name__}:{len(data)}:".encode())
        hasher.update(data)
    return hasher.hexdigest()


def is_private(status: os.stat_result) -> bool:
    """Whether only this user, or the administrator, can have written what has this status."""
    if not hasattr(os, "getuid"):
        return True
    writable_by_others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return status.st_uid in (os.getuid(), 0) and not writable_by_others


class Cache:
    """The entries of one kind, each found by its key. Safe in many threads and processes.

    Args:
        kind: the name of the sub-directory, an identifier.
        root: the cache's directory, by default `directory` at the time of each access.
    """

    def __init__(self, kind: str, root: Path | None = None) -> None:
        if not kind.isidentifier():
            raise ValueError(f"A cache's kind must be an identifier, got {kind!r}.")
        self.kind = kind
        self._root = root

    @property
    def _directories(self) -> tuple[Path, Path]:
        root = directory() if self._root is None else self._root
        return root, root / self.kind

    def _is_private(self, is_made: bool = False) -> bool:
        """Whether the directories are ours alone; where they are not there they are made, or `OSError`."""
        return _are_private(*self._directories, is_made)

    def path_of(self, name: str) -> Path:
        """The path of the entry file called ``name``, whether it exists or not."""
        return self._directories[1] / name

    def get(self, key: str) -> bytes | None:
        """What was stored under ``key``, or None where nothing is found or anything is doubtful."""
        try:
            if not self._is_private():
                return None
            content = read_private(self.path_of(_entry_name(key)))
        except OSError:
            return None
        return None if content is None else _unpack(key, content)

    def put(self, key: str, value: bytes) -> bool:
        """Stores ``value`` under ``key``; whether it could be. A full or read-only disk is no error."""
        return self._write(_entry_name(key), _pack(key, value)) is not None

    def entries(self) -> Iterator[tuple[str, bytes]]:
        """All entries, by key, in no particular order; what is doubtful is left out."""
        try:
            if not self._is_private():
                return
            names = sorted(os.listdir(self._directories[1]))
        except OSError:
            return
        for name in names:
            try:
                content = read_private(self.path_of(name))
            except OSError:
                continue
            key = None if content is None else _key_of(content)
            if content is not None and key is not None and _entry_name(key) == name:
                value = _unpack(key, content)
                if value is not None:
                    yield key, value

    @contextmanager
    def lock(self, key: str, patience: float) -> Iterator[bool]:
        """Holds off all other threads and processes that lock the same key of the same directory.

        Gives whether it is held. It is not where another one still has it after so many seconds,
        and where the directory's file system has no locks: it saves work done twice, no more.
        """
        descriptor = self._locked(key, patience)
        try:
            yield descriptor is not None
        finally:
            if descriptor is not None:
                # The system's lock goes with the descriptor, also when the process dies.
                os.close(descriptor)

    def _locked(self, key: str, patience: float) -> int | None:
        path = self.path_of(f"{_entry_name(key)}.lock")
        deadline = time.monotonic() + patience
        try:
            if not self._is_private(is_made=True):
                return None
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError:
            return None
        is_held = False
        try:
            while not (is_held := _lock(descriptor)) and time.monotonic() < deadline:
                time.sleep(_LOCK_INTERVAL)
        except OSError:
            pass
        finally:
            if not is_held:
                os.close(descriptor)
        return descriptor if is_held else None

    def write_text(self, name: str, text: str) -> Path | None:
        """Writes a text file as it is, under ``name``; None where the directory is not ours alone.

        The name must come from the content: a file that is there and says the same is left alone.
        """
        data = text.encode()
        path = self.path_of(name)
        try:
            if self._is_private() and read_private(path) == data:
                return path
        except OSError:
            pass
        return self._write(name, data)

    def _write(self, name: str, data: bytes) -> Path | None:
        path = self.path_of(name)
        try:
            if not self._is_private(is_made=True):
                return None
            _replace(path, data)
            _tidy_once(self._directories[0])
        except OSError:
            return None
        return path


def write_source(name: str, text: str) -> Path:
    """Writes a generated source file, its name telling its content apart, and says where.

    Args:
        name: what the source is called, the beginning of the file's name.
        text: the whole source.

    The same name and text give the same path in every process that shares the cache. Where the
    cache cannot be written to, or could be by others, a directory that lives as long as the
    process takes its place.
    """
    readable = re.sub(r"\W+", "_", name)[:80]
    file = f"{readable}_{digest(name, text)[:16]}.py"
    path = Cache("sources").write_text(file, text)
    if path is None:
        path = Cache("sources", _temporary_root()).write_text(file, text)
    if path is None:
        raise OSError(f"The generated source of {name!r} can be written neither to {directory()} "
                      f"nor to {tempfile.gettempdir()}. Set NINETOOTHED_CACHE_DIR to a directory "
                      "that only you can write to.")  # fmt: skip
    return path


@functools.lru_cache(maxsize=1)
def _temporary_root() -> Path:
    root = Path(tempfile.mkdtemp(prefix="ninetoothed-"))
    atexit.register(_remove, root, os.getpid())
    return root


def _lock(descriptor: int) -> bool:
    """Locks an open file for us alone, unless somebody else has; `OSError` where there are no locks."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        # The one is what Linux says of another's lock, the other what Windows says.
        return False
    return True


def _entry_name(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def _pack(key: str, value: bytes) -> bytes:
    name = key.encode()
    body = len(name).to_bytes(8, "little") + name + value
    return _MAGIC + hashlib.sha256(body).digest() + body


def _unpack(key: str, content: bytes) -> bytes | None:
    start = len(_MAGIC) + _DIGEST_SIZE
    body = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or len(content) < start + 8:
        return None
    if hashlib.sha256(body).digest() != content[len(_MAGIC) : start]:
        return None
    end = 8 + int.from_bytes(body[:8], "little")
    return body[end:] if body[8:end] == key.encode() else None


def _key_of(content: bytes) -> str | None:
    """The key that an entry says it is found under."""
    start = len(_MAGIC) + _DIGEST_SIZE
    size = int.from_bytes(content[start : start + 8], "little")
    try:
        return content[start + 8 : start + 8 + size].decode()
    except UnicodeDecodeError:
        return None


def _are_private(root: Path, place: Path, is_made: bool = False) -> bool:
    """Whether a cache's directory and one of its kinds are ours alone; `OSError` where they are not there."""
    if is_made:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _directory_is_private(root):
        return False
    if is_made:
        tidying.mark(root)
        place.mkdir(mode=0o700, exist_ok=True)
    return _directory_is_private(place)


def _directory_is_private(path: Path) -> bool:
    link = os.lstat(path)
    if stat.S_ISLNK(link.st_mode) and hasattr(os, "getuid") and link.st_uid not in (os.getuid(), 0):
        _refuse(str(path), f"it is a link of the user {link.st_uid}")
        return False
    # Following one of ours is right: what counts is who can write to the place it leads to.
    status = os.stat(path)
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not is_private(status):
        _refuse(str(path), _why_not_private(status))
        return False
    return True


def read_private(path: Path | str) -> bytes | None:
    """The file's content, or None where it is no plain file, larger than all that is kept, or not ours alone."""
    # A pipe would be waited for.
    flags = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, os.O_RDONLY | flags)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        _refuse(str(path), "it is a link")
        return None
    with os.fdopen(descriptor, "rb") as file:
        # The status of what is open, so that nobody can exchange it in between.
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > tidying.most_read():
            return None
        if not is_private(status):
            _refuse(str(path), _why_not_private(status))
            return None
        return file.read()


def _why_not_private(status: os.stat_result) -> str:
    if status.st_uid not in (os.getuid(), 0):
        return f"it belongs to the user {status.st_uid}"
    return f"others may write to it, its mode is {stat.S_IMODE(status.st_mode):o}"


@functools.lru_cache(maxsize=1024)
def _refuse(path: str, why: str) -> None:
    """Warns, once for each path."""
    warnings.warn(
        f"{path} is not used as a cache of kernels: {why}, and what lies there is loaded into programs. "
        "Remove it, or set NINETOOTHED_CACHE_DIR to a directory that only you can write to.",
        RuntimeWarning,
        stacklevel=2,
    )


def _replace(path: Path, data: bytes) -> None:
    """Makes the file hold the data, at once for every reader."""
    # mkstemp gives mode 0600 whatever the umask.
    descriptor, aside = tempfile.mkstemp(prefix=tidying.ASIDE, dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(aside, path)
    except BaseException:
        os.unlink(aside)
        raise
