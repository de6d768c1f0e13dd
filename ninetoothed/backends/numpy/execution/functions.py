"""What kind of function an application calls, and what ours is for a name of Triton's language."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

from ninetoothed import language
from ninetoothed.language import LanguageFunction
from ninetoothed.parsing.objects import comes_from, is_triton_function, value_of
from ninetoothed.parsing.source import LIBRARIES, names_in, own_function
from ninetoothed.parsing.values import Known
from ninetoothed.symbols.operators import PYTHON_BINARY

#: Of Python's own functions, those that are an operator, or two.
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    **{function.__name__: function for function in PYTHON_BINARY.values()},
    "divmod": lambda one, other: (one // other, one % other),
}

#: Those that mean something else for tiles.
OWN_BUILTINS = (max, min, abs, float, int, bool, divmod, pow, *PYTHON_BINARY.values())


def is_direct(function: Any) -> bool:
    """Whether a call of ``function`` takes values and is left as it is."""
    if isinstance(function, (LanguageFunction, type, types.BuiltinFunctionType)):
        return True
    return not (is_user_function(function) or is_triton_function(function))


def is_user_function(function: Any) -> bool:
    """Whether ``function`` is written in Python by a user: tiles are handed to it as tiles."""
    plain = function.func if isinstance(function, functools.partial) else function
    plain = own_function(getattr(plain, "__func__", plain))
    if not isinstance(plain, types.FunctionType):
        return False
    package = (plain.__module__ or "").partition(".")[0]
    is_library = package in LIBRARIES or package in sys.stdlib_module_names
    return not is_library or package == "__main__"


def own_names(function: types.FunctionType) -> dict[str, Any]:
    """The free names of a function that mean something of Triton's, with ours in its place."""
    if "triton.language" not in sys.modules:
        return {}
    namespace = dict(function.__globals__)
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            namespace[name] = cell.cell_contents
        except ValueError:
            namespace.pop(name, None)
    wanted = names_in(function.__code__) & namespace.keys()
    found = ((name, own_name(namespace[name])) for name in wanted)
    return {name: own for name, own in found if own is not None}


_NAMESPACES = {
    "triton.language": language,
    "triton.language.math": language.math,
    "triton.language.extra": language.extra,
    "triton.language.extra.libdevice": language.libdevice,
    "triton.language.extra.cuda.libdevice": language.libdevice,
    "triton.language.extra.hip.libdevice": language.libdevice,
}


def own_name(value: Any) -> Any:
    """What ours is for a module, a function, a type or a constant of Triton's language, or None."""
    if isinstance(value, types.ModuleType):
        return _NAMESPACES.get(value.__name__)
    if not comes_from("triton", value):
        return None
    found = value_of(value)
    return found.object if isinstance(found, Known) and found.object is not value else None
