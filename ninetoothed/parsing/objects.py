"""Python objects as values: the language's functions, element types, symbols, Triton's own objects.

Triton is never imported here: an object of it can only be met once the user has imported it.
"""

from __future__ import annotations

import functools
import operator
import sys
from dataclasses import field
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ninetoothed import language
from ninetoothed.language import LanguageFunction, LanguageNamespace, dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.parsing.values import Function, Group, Known, Listed, Symbolic, Value, is_scalar
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol

#: Where Triton's language keeps its functions, and our prefix for them. Searched in order.
_TRITON_MODULES = {
    "triton.language": "",
    "triton.language.math": "math.",
    "triton.language.random": "random.",
    "triton.language.standard": "standard.",
    "triton.language.extra.libdevice": "libdevice.",
    "triton.language.extra.cuda.libdevice": "libdevice.",
    "triton.language.extra.hip.libdevice": "libdevice.",
}

#: What stands for itself, with no further question.
_PLAIN = frozenset(
    {bool, int, float, str, type(None), ModuleType, DType, LanguageFunction, LanguageNamespace}
)

_FUNCTIONS = (FunctionType, BuiltinFunctionType, type)


def value_of(item: Any) -> Value:
    """The value that stands for a Python object."""
    kind = type(item)
    if kind in _PLAIN:
        return Known(item)
    if isinstance(item, Symbol):
        return Known(item.operands[0]) if item.op == "const" else Symbolic(item)
    if kind is tuple or kind is list:
        items = tuple(value_of(element) for element in item)
        return Listed(items, identity=None) if kind is list else Group(items)
    if comes_from("triton", item):
        return _of_triton(item)
    return Known(item)


def comes_from(package: str, item: Any) -> bool:
    """Whether the object's type, or a function itself, is defined in ``package``."""
    module = item.__module__ if isinstance(item, _FUNCTIONS) else type(item).__module__
    return isinstance(module, str) and module.partition(".")[0] == package


#: The types that ``triton.jit`` gives, the interpreter's among them.
_JIT_TYPES = frozenset({"JITFunction", "JITCallable", "InterpretedFunction"})


def is_triton_function(item: Any) -> bool:
    """Whether ``item`` was decorated with ``triton.jit``."""
    return type(item).__name__ in _JIT_TYPES and comes_from("triton", item)


def is_inlined(item: Any) -> bool:
    """Whether calling ``item`` means inlining it."""
    return isinstance(item, FunctionType) and not comes_from("triton", item)


def is_function(value: Value) -> bool:
    """Whether a value is a function, which no running kernel holds."""
    if isinstance(value, Known):
        return isinstance(value.object, (*_FUNCTIONS, LanguageFunction))
    return isinstance(value, Function)


@dataclass(frozen=True)
class Bound:
    """Arguments that a callable object brings along, before those of a call."""

    arguments: tuple[Value, ...] = ()
    keywords: dict[str, Value] = field(default_factory=dict)


def unbound(item: Any) -> tuple[Any, Bound]:
    """What a partial function, a bound method or a cached function calls, and with what."""
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while True:
        if isinstance(item, functools.partial):
            arguments = (*item.args, *arguments)
            keywords = {**item.keywords, **keywords}
            item = item.func
        elif isinstance(item, MethodType) and _is_users(item.__func__):
            arguments = (item.__self__, *arguments)
            item = item.__func__
        elif isinstance(item, _CACHED) and isinstance(item.__wrapped__, FunctionType):
            item = item.__wrapped__
        else:
            break
    named = {key: value_of(value) for key, value in keywords.items()}
    return item, Bound(tuple(value_of(value) for value in arguments), named)


def _is_users(function: Any) -> bool:
    return is_inlined(function) and not comes_from("ninetoothed", function)


_CACHED = type(functools.cache(lambda: None))


def _of_triton(item: Any) -> Value:
    kind = type(item).__name__
    if kind == "constexpr":
        return value_of(item.value)
    if kind == "dtype":
        found = dtypes.element_type(str(item))
        return Known(found or language_member(repr(item).removeprefix("triton.language.")))
    if isinstance(item, ModuleType):
        return Known(item)
    name = _name_in_triton(item)
    return Known(item) if name is None else Known(language_member(name))


def _name_in_triton(item: Any) -> str | None:
    """The name, dotted as ours are, under which Triton's language has ``item``."""
    name = getattr(item, "__name__", None)
    if not isinstance(name, str):
        return None
    for module_name, prefix in _TRITON_MODULES.items():
        module = sys.modules.get(module_name)
        if module is not None and getattr(module, name, None) is item:
            return prefix + name
    return None


@functools.cache
def language_member(name: str) -> Any:
    """The language's own object under a dotted name."""
    return attrgetter(name)(language)


def counted(item: Any) -> Any:
    """What Python's operators get for an object: an enum member's value, else the object."""
    import enum

    return item.value if isinstance(item, enum.Enum) else item


def index_of(item: Any) -> int | None:
    """The integer that Python takes an object for where it counts; None of what it takes for none."""
    try:
        return operator.index(counted(item))
    except TypeError:
        return None


def bound_of(item: Any) -> Any:
    """A bound of a slice: an integer, or what is none as it is."""
    index = index_of(item)
    return item if index is None else index


def literal(item: Any) -> Any:
    """A number of Python behind an object: of an enum's member, or a scalar of NumPy's; else the object."""
    item = counted(item)
    return item.item() if is_scalar(item) else item
