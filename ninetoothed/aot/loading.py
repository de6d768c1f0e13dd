"""A `premake` by the name that the command line is given."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ninetoothed.errors import ArgumentError, NineToothedError, near, raised_at

#: The configurations that a module without a list of them has.
_ONE: Sequence[Any] = (((), {}, {}),)


def load_premake(described: str) -> tuple[Callable[..., Any], Sequence[Any]]:
    """The function that ``module:premake`` names, and its module's ``CONFIGS``.

    Raises:
        ArgumentError: there is no such module or function, or the module raises an error.
    """
    module_name, _, name = described.partition(":")
    # As `python -m` does for the command itself.
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except NineToothedError:
        raise
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        if isinstance(error, ImportError):
            said = str(error)
        why = f"{module_name!r} cannot be imported: {said}"
        raise ArgumentError(why, raised_at(error)) from error
    premake = getattr(module, name or "premake", None)
    if not callable(premake):
        raise ArgumentError(
            f"{module_name!r} has no `{name or 'premake'}`.{near(name, list(vars(module)))}"
        )
    return premake, getattr(module, "CONFIGS", _ONE)
