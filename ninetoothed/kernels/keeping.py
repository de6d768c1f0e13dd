"""What names mean when a kernel is made, and what functions among a call's constants mean when they are first given.

Later changes of them change nothing, on any backend.
"""

from __future__ import annotations

import copy
import functools
import sys
from types import CellType, FunctionType, MethodType
from typing import Any

from ninetoothed.parsing.source import LIBRARIES, is_filled, names_in, own_function


def frozen(function: FunctionType, made: dict[Any, Any] | None = None) -> FunctionType:
    """A function whose free names mean what they do now, whatever they are set to later.

    So are what they mean, as `held` has it.

    Args:
        made: the functions frozen already, which may call each other, and by their ids what else is.
    """
    made = {} if made is None else made
    if function in made:
        return made[function]
    code = function.__code__
    known: dict[str, Any] = {"__name__": function.__module__}
    known["__builtins__"] = function.__builtins__  # type: ignore[attr-defined]
    result = made[function] = FunctionType(
        code,
        known,
        function.__name__,
        None,
        tuple(
            CellType(cell.cell_contents) if is_filled(cell) else cell
            for cell in function.__closure__ or ()
        ),
    )
    result.__defaults__ = held(function.__defaults__, made)
    result.__kwdefaults__ = held(function.__kwdefaults__, made)
    result.__module__, result.__qualname__ = function.__module__, function.__qualname__
    for name in names_in(code) & function.__globals__.keys():
        known[name] = held(function.__globals__[name], made)
    for cell in result.__closure__ or ():
        if is_filled(cell):
            cell.cell_contents = held(cell.cell_contents, made)
    return result


def held(value: Any, made: dict[Any, Any]) -> Any:
    """A value as it is now: a function of the user's, a list, a tuple, a set, a dictionary, an array of NumPy's,
    and those within. What other objects hold is not kept.

    Args:
        made: see `frozen`.
    """
    if _is_users(value):
        return frozen(value, made)
    kind = type(value)
    if kind is MethodType and _is_users(value.__func__):
        return MethodType(frozen(value.__func__, made), value.__self__)
    if kind is functools.partial:
        arguments = [held(item, made) for item in value.args]
        return functools.partial(held(value.func, made), *arguments, **held(value.keywords, made))
    is_array = kind.__module__ == "numpy" and kind.__name__ == "ndarray"
    if kind not in (list, tuple, set, dict) and not is_array:
        return value
    if id(value) in made:
        return made[id(value)]
    if kind is tuple:
        items = tuple(held(item, made) for item in value)
        is_same = all(one is other for one, other in zip(items, value, strict=True))
        return value if is_same else made.setdefault(id(value), items)
    result = made[id(value)] = copy.copy(value)
    places = range(len(value)) if kind is list else value if kind is dict else ()
    for place in places:
        result[place] = held(value[place], made)
    return result


def _is_users(value: Any) -> bool:
    if not isinstance(value, FunctionType) or own_function(value) is not value:
        return False
    package = (value.__module__ or "").partition(".")[0]
    return package == "__main__" or not (package in LIBRARIES or package in sys.stdlib_module_names)
