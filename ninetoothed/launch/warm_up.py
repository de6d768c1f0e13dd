"""`warm_up`: compiling ahead of the first call, several at a time."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from ninetoothed.errors import ArgumentError, NineToothedError
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.call_types import fitting
from ninetoothed.kernels.definition import Definition
from ninetoothed.launch.kernel import Kernel
from ninetoothed.launch.recorded_calls import call_of, definition_of
from ninetoothed.plugins import backend_for


def warm_up(kernel: Kernel, *calls: Sequence[Any]) -> int:
    """Compiles what calls of a kernel use, several at a time; nothing is run and nothing searched for.

    What was tuned for such sizes is compiled, else what the estimate ranks first. It is kept on disk for
    other processes too. On a terminal a line shows how far it is.

    Args:
        kernel: what `make` or `jit` gave.
        calls: the arguments of each, in order, as `(x, y, output)`.

    Returns:
        How many calls are ready.

    Raises:
        ArgumentError: the arguments do not fit the kernel.
    """
    if not isinstance(kernel, Kernel):
        raise ArgumentError(f"`warm_up` takes what `make` or `jit` gave, not {kernel!r}")
    prepared = []
    for arguments in calls:
        if not isinstance(arguments, tuple | list):
            raise ArgumentError(
                "`warm_up` takes the arguments of each call together, as "
                f"`warm_up(kernel, (x, y), (v, w))`; got {type(arguments).__qualname__}"
            )
        call = kernel.call_of(*arguments)
        bound = kernel.bind(tuple(arguments), {})
        prepared.append((kernel.definition_of(bound, kernel.frontend_of(bound)), call))
    ready = _compiled(prepared)
    kernel.forget_launches()
    return ready


def warm_up_from(path: str | Path) -> int:
    """Compiles for the calls of a list that ``$NINETOOTHED_RECORD`` had written; see `warm_up`.

    Raises:
        NineToothedError: the file is none, or a kernel of it is no longer there.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError, TypeError) as error:
        why = getattr(error, "strerror", None) or error
        raise NineToothedError(f"{path} cannot be read: {why}") from None
    prepared = []
    for number, line in enumerate(dict.fromkeys(lines), 1):
        try:
            prepared.append(_from_json(json.loads(line)))
        except NineToothedError as error:
            raise NineToothedError(f"{path}, line {number}: {error.message}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise NineToothedError(f"{path}, line {number}, is no recorded call: {error}") from None
    return _compiled(prepared)


def _compiled(prepared: Iterable[tuple[Definition, Call]]) -> int:
    """Has plans made, in threads; how many there are."""
    workers = max(1, min(16, (os.cpu_count() or 2) - 1))
    is_shown = sys.stderr is not None and sys.stderr.isatty()
    with ThreadPoolExecutor(workers, thread_name_prefix="ninetoothed-warm-up") as pool:
        begun = [pool.submit(_plan, definition, call) for definition, call in prepared]
        try:
            for count, done in enumerate(as_completed(begun), 1):
                done.result()
                if is_shown:
                    sys.stderr.write(f"\r\033[Kwarming up: {count} of {len(begun)} calls")
                    sys.stderr.flush()
        finally:
            for future in begun:
                future.cancel()
            if is_shown:
                sys.stderr.write("\r\033[K")
    return len(begun)


def _plan(definition: Definition, call: Call) -> None:
    plan = backend_for(call.device.kind).plan
    fitting(definition, call, lambda given: plan(given, call, None))


def _from_json(entry: dict[str, Any]) -> tuple[Definition, Call]:
    """A definition and a call, from what a line holds."""
    module, name = entry["kernel"]
    try:
        kernel = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise NineToothedError(f"module {module} of kernel {name}: {error}") from None
    if not isinstance(kernel, Kernel):
        raise NineToothedError(f"module {module} has no kernel {name}")
    call = call_of(entry)
    return definition_of(kernel, call), call
