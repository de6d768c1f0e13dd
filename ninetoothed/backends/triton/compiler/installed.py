"""The Triton that is installed: what is told of it from its files, and that it is imported by one thread.

A first call that finds its kernel on disk imports no Triton, which would take longer than all else.
"""

from __future__ import annotations

import functools
import importlib.machinery
import importlib.util
import os
import re
import sys
from pathlib import Path

from ninetoothed import threads
from ninetoothed.errors import DeviceError

#: Where its package says which release it is.
_VERSION = re.compile(r"^__version__ = ['\"](\d[\w.+-]*)['\"]", re.MULTILINE)

#: What makes it compile anew, or dump or override what it makes.
_COMPILING_ALWAYS = ("TRITON_ALWAYS_COMPILE", "TRITON_KERNEL_OVERRIDE", "TRITON_KERNEL_DUMP")

_importing = threads.reentrant_lock()


@functools.lru_cache(maxsize=1)
def imported() -> None:
    """Imports Triton, whose modules import each other in circles: no two threads begin with it.

    Raises:
        DeviceError: there is none, or it cannot be imported.
    """
    try:
        with _importing, threads.without_collections():
            importlib.import_module("triton")
    except ImportError as error:
        raise DeviceError(f"Compiling needs Triton, which cannot be imported: {error}") from error


def release() -> str:
    """Its full version; `ImportError` without one."""
    package = _unimported()
    if package is not None and (told := _VERSION.search(package.read_text("utf-8"))):
        return told[1]
    import triton

    return str(triton.__version__)


def library_path() -> str:
    """The file that holds its compiled part."""
    if (package := _unimported()) is not None:
        for suffix in importlib.machinery.EXTENSION_SUFFIXES:
            path = package.with_name("_C") / f"libtriton{suffix}"
            if path.exists():
                return str(path)
    from triton._C import libtriton

    return str(libtriton.__file__)


def is_compiling_always() -> bool:
    """Whether it is told to compile anew, to dump or to override what it makes."""
    if "triton" not in sys.modules and not any(map(os.environ.get, _COMPILING_ALWAYS)):
        return False
    imported()
    from triton import knobs

    chosen = knobs.compilation
    return bool(chosen.always_compile or chosen.override or chosen.dump_ir)


def _unimported() -> Path | None:
    """The text of its package, where nobody has imported it yet and there is one."""
    spec = None if "triton" in sys.modules else importlib.util.find_spec("triton")
    path = Path(spec.origin) if spec is not None and spec.origin else None
    return path if path is not None and path.suffix == ".py" and path.is_file() else None
