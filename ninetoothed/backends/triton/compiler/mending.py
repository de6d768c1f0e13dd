"""What is changed between the stages of Triton's compiler, where these or what follows them are wrong."""

from __future__ import annotations

import functools
import importlib
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ninetoothed.backends.triton.compiler import extrema, negations, reductions, versions
from ninetoothed.cache import digest

#: The files that say what is changed: a program that was kept is known by them too.
FILES = ("extrema.py", "mending.py", "negations.py", "reductions.py")

_asked = threading.local()


@contextmanager
def mended() -> Iterator[None]:
    """What Triton compiles in this thread meanwhile is changed between its stages."""
    _hook()
    _asked.is_set = True
    try:
        yield
    finally:
        _asked.is_set = False


@functools.lru_cache(maxsize=1)
def _hook() -> None:
    module: Any = importlib.import_module("triton.compiler.compiler")
    module.make_backend = functools.partial(_made, module.make_backend)


def _made(plain: Any, target: Any) -> Any:
    """Triton's part for a kind of devices, with its stages' programs changed where this is asked for."""
    backend = plain(target)
    if getattr(_asked, "is_set", False):
        add_stages, hash_ = backend.add_stages, backend.hash

        def with_changes(stages: dict[str, Any], *arguments: Any) -> None:
            add_stages(stages, *arguments)
            _change(stages, "ttir", reductions.in_order)
            if not versions.reduces_in_any_layout():
                _change(stages, "ttgir", reductions.rearranged)
            _change(stages, "ttgir", extrema.regrouped)
            _change(stages, "ptx", negations.spelled_out)

        backend.add_stages = with_changes
        # Triton keeps what it compiled by this.
        backend.hash = lambda: f"{hash_()}-{_digest()}"
    return backend


def _change(stages: dict[str, Any], name: str, change: Callable[[str], str]) -> None:
    """Has a stage give its program changed, where there is such a stage: Gluon begins with tiles laid out."""
    if name in stages:
        plain = stages[name]
        stages[name] = lambda *given: _changed(plain(*given), change)


def _changed(module: Any, change: Callable[[str], str]) -> Any:
    """A stage's program with its text changed: MLIR's, or of the last stages text as it is."""
    if isinstance(module, str):
        return change(module)
    from triton._C.libtriton import ir

    before = str(module)
    text = change(before)
    if text == before:
        return module
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
        file.write(text)
        file.flush()
        context = module.context
        module = ir.parse_mlir_module(file.name, context)
    module.context = context
    return module


@functools.lru_cache(maxsize=1)
def _digest() -> str:
    folder = Path(__file__).parent
    return digest(b"".join((folder / name).read_bytes() for name in FILES))
