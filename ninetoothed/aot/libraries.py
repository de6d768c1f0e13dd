"""A folder's C sources as libraries, by this machine's C compiler: ``$CC``, or ``cc``."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ninetoothed.errors import ArgumentError, CompilationError

KINDS = ("static", "shared")


def checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """`ArgumentError` where there is no such kind of library."""
    for kind in kinds:
        if kind not in KINDS:
            raise ArgumentError(f"{kind!r} is no kind of library: there are {', '.join(KINDS)}")
    return tuple(kinds)


def compile_libraries(
    folder: Path, name: str, sources: Sequence[str], kinds: Sequence[str]
) -> list[str]:
    """The libraries' names in the folder, ``lib<name>.a`` and ``lib<name>.so``; the same each time.

    Raises:
        CompilationError: there is no compiler, or it fails.
    """
    if not kinds:
        return []
    compiler = shlex.split(os.environ.get("CC", "cc"))
    made = []
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor() as pool:
        objects = [str(Path(temporary) / f"{source}.o") for source in sources]

        def compile_one(source: str, into: str) -> None:
            _run(folder, *compiler, "-std=c11", "-O2", "-fPIC", "-c", source, "-o", into)

        list(pool.map(compile_one, sources, objects))
        if "static" in kinds:
            made.append(f"lib{name}.a")
            (folder / made[-1]).unlink(missing_ok=True)
            _run(folder, os.environ.get("AR", "ar"), "crsD", made[-1], *objects)
        if "shared" in kinds:
            made.append(f"lib{name}.so")
            _run(folder, *compiler, "-shared", *objects, "-o", made[-1], "-ldl", "-lpthread")
    return made


def _run(folder: Path, *command: str) -> None:
    # From the folder: what is made holds no path.
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    except FileNotFoundError:
        raise CompilationError(
            f"libraries are made by `{command[0]}`, which is not here: install a C compiler, or name one in $CC"
        ) from None
    if done.returncode:
        raise CompilationError(f"`{' '.join(command)}` failed:\n{done.stderr.strip()}")
