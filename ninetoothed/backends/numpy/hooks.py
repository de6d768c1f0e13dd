"""What the hooks that `ninetoothed.backends.numpy.rewrite` puts into an application do."""

from __future__ import annotations

import functools
import sys
import threading
import types
import weakref
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ninetoothed import dtypes, language
from ninetoothed import source as sources
from ninetoothed.backends.numpy.reference import TileReference, position
from ninetoothed.backends.numpy.rewrite import is_jit_function, is_user_function, rewrite
from ninetoothed.backends.numpy.tile import Tile, unmarked
from ninetoothed.errors import ApplicationError, caller_location
from ninetoothed.expr import Symbol


class _Running(threading.local):
    #: What a symbol in the application stands for in the launch that runs on this thread.
    value_of: Callable[[Symbol], Any] | None = None


_running = _Running()


def enter(value_of: Callable[[Symbol], Any]) -> Callable[[Symbol], Any] | None:
    """Begin a launch on this thread; returns what `leave` needs."""
    previous = _running.value_of
    _running.value_of = value_of
    return previous


def leave(previous: Callable[[Symbol], Any] | None) -> None:
    """End a launch on this thread."""
    _running.value_of = previous


def read(value: Any) -> Any:
    """The value of a tile or of a symbol; anything else is its own value."""
    kind = type(value)
    if kind is TileReference:
        return value._value()
    if kind is Symbol:
        if _running.value_of is None:
            raise ApplicationError(
                f"{value} has a value only in a running kernel.", caller_location()
            )
        return _running.value_of(value)
    return value


def assign(current: Any, value: Any) -> Any:
    """What a parameter stands for after ``parameter = value``: a tile is stored to and stays."""
    if type(current) is TileReference:
        current._store(value)
        return current
    return value


class Outcome(NamedTuple):
    """What a helper returned, and what it assigned to its parameters last."""

    result: Any
    assigned: Mapping[str, Any]
    names: tuple[str, ...] = ()

    def last(self, key: int | str, value: Any) -> Any:
        """The last value of the parameter handed over at ``key``; ``value`` if never assigned."""
        if isinstance(key, int):
            if key >= len(self.names):
                return value
            key = self.names[key]
        return self.assigned.get(key, value)


def invoke(function: Any) -> Callable[..., Outcome]:
    """``function`` in the form that rewritten code calls: on tiles themselves, with an `Outcome`."""
    if type(function) is functools.partial:
        return functools.partial(invoke(function.func), *function.args, **function.keywords)
    if isinstance(function, types.MethodType) and is_user_function(function):
        return functools.partial(invoke(function.__func__), function.__self__)
    if is_jit_function(function):
        return _on_values(_own_name(function) or rewritten(function.fn))
    if is_user_function(function):
        return rewritten(function)
    return _on_values(function)


def _on_values(function: Callable[..., Any]) -> Callable[..., Outcome]:
    def call(*arguments: Any, **keywords: Any) -> Outcome:
        result = function(
            *(read(argument) for argument in arguments),
            **{name: read(argument) for name, argument in keywords.items()},
        )
        return Outcome(result.result if type(result) is Outcome else result, {})

    return call


_rewritten: weakref.WeakKeyDictionary[Any, Callable[..., Outcome]] = weakref.WeakKeyDictionary()


def rewritten(function: Any) -> Callable[..., Outcome]:
    """The rewritten form of a user's function; made once."""
    found = _rewritten.get(function)
    if found is None:
        source = sources.read(function)
        names = tuple(arg.arg for arg in source.tree.args.posonlyargs + source.tree.args.args)
        hooks = dict(_HOOKS)
        hooks["__outcome__"] = lambda result, assigned: Outcome(result, assigned, names)
        found = _rewritten[function] = rewrite(source, _own_names(source.function), hooks)
    return found


def _own_names(function: types.FunctionType) -> dict[str, Any]:
    """The free names of a function that mean something of Triton's, with ours in its place."""
    if "triton.language" not in sys.modules:
        return {}
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    namespace = dict(function.__globals__)
    for name, cell in cells:
        try:
            namespace[name] = cell.cell_contents
        except ValueError:
            continue
    wanted = _code_names(function.__code__) | set(function.__code__.co_freevars)
    found = ((name, _own_name(namespace[name])) for name in wanted & namespace.keys())
    return {name: own for name, own in found if own is not None}


def _code_names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _code_names(constant)
    return names


_NAMESPACES = {
    "triton.language": language,
    "triton.language.math": language.math,
    "triton.language.extra.libdevice": language.libdevice,
    "triton.language.extra.cuda.libdevice": language.libdevice,
    "triton.language.extra": language.extra,
}


def _own_name(value: Any) -> Any:
    """What ours is for a module, a function, a type or a constant of Triton's language, or None."""
    if isinstance(value, types.ModuleType):
        return _NAMESPACES.get(value.__name__)
    kind = type(value)
    if kind.__module__ == "triton.language.core" and kind.__name__ == "constexpr":
        return value.value
    if kind.__module__ == "triton.language.core" and kind.__name__ == "dtype":
        return dtypes.by_name(value.name)
    plain = value.fn if is_jit_function(value) else value
    module = getattr(plain, "__module__", None) or ""
    if not module.startswith("triton.language") or not hasattr(plain, "__name__"):
        return None
    namespace = language.libdevice if module.endswith("libdevice") else language
    return getattr(namespace, plain.__name__)


def _is_tile(value: Any) -> bool:
    return isinstance(value, Tile)


def _stops(value: Any, on: bool) -> bool:
    """Whether ``and`` (``on`` is True) or ``or`` ends at ``value``: both sides of a tile count."""
    return not isinstance(value, Tile) and bool(value) is not on


def _logical(name: str) -> Callable[[Any, Any], Any]:
    def join(left: Any, right: Any) -> Any:
        if isinstance(left, Tile) or (isinstance(right, Tile) and isinstance(left, bool)):
            return _function(name)(left, right)
        return right

    return join


def _not(value: Any) -> Any:
    return _function("logical_not")(value) if isinstance(value, Tile) else not value


def _builtin(name: str) -> Callable[..., Any]:
    """Python's ``max``, ``min`` or ``abs``, where a tile is among the arguments the language's."""
    import builtins

    def call(*arguments: Any, **keywords: Any) -> Any:
        if not any(isinstance(argument, Tile) for argument in arguments):
            return getattr(builtins, name)(*arguments, **keywords)
        own = "abs" if name == "abs" else f"builtin_{name}"
        return _function(own)(*arguments, **keywords)

    return call


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    from ninetoothed.backends.numpy import language as implementations

    return implementations.implementation(name)


_HOOKS: dict[str, Any] = {
    "__read__": read,
    "__assign__": assign,
    "__position__": position,
    "__invoke__": invoke,
    "__unmarked__": unmarked,
    "__is_tile__": _is_tile,
    "__stops__": _stops,
    "__and__": _logical("logical_and"),
    "__or__": _logical("logical_or"),
    "__not__": _not,
    "__builtin__": _builtin,
}
