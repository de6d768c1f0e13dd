"""Calls of Python's own functions: computed now where the arguments are known."""

from __future__ import annotations

import ast
import builtins
import functools
import itertools
import math
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ninetoothed import language
from ninetoothed.errors import ApplicationError
from ninetoothed.language import dtypes, operations
from ninetoothed.language.dtypes import DType
from ninetoothed.parsing.comparisons import NO_TUPLE
from ninetoothed.parsing.compile_time import MOST_ITEMS
from ninetoothed.parsing.language_calls import LanguageCallFrame
from ninetoothed.parsing.objects import comes_from
from ninetoothed.parsing.values import (
    Group,
    Iterated,
    Known,
    Listed,
    Named,
    Range,
    Runtime,
    Symbolic,
    Tile,
    Value,
    to_python,
)
from ninetoothed.program import nodes
from ninetoothed.symbols.operators import PYTHON_BINARY

#: Functions that do something, so that computing them at compile time would be wrong.
_IMPURE = frozenset(
    {builtins.open, builtins.input, builtins.exec, builtins.eval, builtins.setattr, builtins.vars}
    | {builtins.globals, builtins.locals, builtins.delattr, builtins.__import__}
)


def call_builtin(
    frame: LanguageCallFrame,
    function: Any,
    arguments: list[Value],
    keywords: dict[str, Value],
    node: ast.Call,
) -> Value:
    """The value of ``function(*arguments, **keywords)`` for a function not written in Python.

    Raises:
        ApplicationError: if an argument is not known yet and the function means nothing in a
            running kernel.
    """
    special = _SPECIAL.get(function) if _is_hashable(function) else None
    if special is not None:
        _check_count(frame, function, len(arguments) + len(keywords), node)
    if function is print and keywords:
        raise frame.error(
            node,
            "`print` takes no keywords here: it shows a line for each program, as a device does.",
        )
    if special is not None and not keywords:
        result = special(frame, arguments, node)
        if result is not None:
            return result
    if function is id and any(isinstance(argument, Group) for argument in arguments):
        raise frame.error(
            node, "A tuple or a list has no `id` in an application: compare with `==`."
        )
    if not _is_computable(function):
        called = vars(type(function)).get("__call__")
        if isinstance(called, types.FunctionType) and not comes_from("torch", called):
            raise frame.error(
                node,
                f"{_name(function)!r} is an object, and functions are called in an application: name its "
                "method, `object.__call__(...)`, or write a function.",
            )
        raise frame.error(
            node,
            f"{_name(function)!r} cannot be called in an application. What can: functions of "
            "`ninetoothed.language`, functions written in Python, functions decorated with "
            "`triton.jit`, and Python's own on constants.",
        )
    frame.check_reusable(Known(getattr(function, "__self__", None)), node)
    plain = [_object(frame, value, node) for value in arguments]
    named = {key: _object(frame, value, node) for key, value in keywords.items()}
    if None in plain or None in named.values():
        raise frame.error(node, _unknown_arguments(function))
    keyed = {key: item.object for key, item in named.items() if item}
    compute = functools.partial(function, **keyed) if keyed else function
    made = frame.computed(compute, node, *(item.object for item in plain if item))
    if not isinstance(made, Known) or not isinstance(made.object, Iterator):
        return made
    items = frame.computed(lambda: tuple(itertools.islice(made.object, MOST_ITEMS + 1)), node)
    return frame.iterator(frame.elements(items, node), *arguments)


def _object(frame: LanguageCallFrame, value: Value, node: ast.Call) -> Known | None:
    """The Python object behind an argument; None where it is not known."""
    if isinstance(value, Known):
        frame.check_reusable(value, node)
    if isinstance(value, Iterated):
        known = to_python(Group(tuple(frame.elements(value, node))))
        return known and Known(iter(known.object))
    return to_python(frame.needed(value, node))


def _check_count(frame: LanguageCallFrame, function: Any, given: int, node: ast.Call) -> None:
    least, most = _COUNTS.get(function, (2, 2))
    if least <= given <= most:
        return
    takes = (
        f"{least}" if least == most else f"at least {least}" if given < least else f"at most {most}"
    )
    raise frame.error(
        node,
        f"`{_name(function)}` takes {takes} argument{'s' * (not takes.endswith('1'))}, but got {given}.",
    )


def _unknown_arguments(function: Any) -> str:
    name = _name(function)
    message = f"{name!r} is Python's own: its arguments are needed at compile time."
    if function is len:
        return f"{message} How many elements a tile has is in its `.shape`."
    if hasattr(language, name):
        return f"{message} `ntl.{name}` takes values of a running kernel."
    is_type = isinstance(function, type)
    instead = _INSTEAD.get(name, "A tuple, a list or a dictionary holds values." if is_type else "")
    return f"{message} {instead}".rstrip()


#: What to write where a function of Python's is given values of a running kernel.
_INSTEAD = {
    "any": "`ntl.max` of conditions says whether any holds.",
    "all": "`ntl.min` of conditions says whether all hold.",
    "filter": "Write a comprehension.",
    "map": "Write a comprehension.",
    "round": "`ntl.libdevice.rint` rounds to the nearest whole number.",
    "sorted": "`ntl.sort` sorts a tile.",
}


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", None) or repr(function))


def _is_hashable(function: Any) -> bool:
    return getattr(type(function), "__hash__", None) is not None


def _is_computable(function: Any) -> bool:
    if _is_hashable(function) and function in _IMPURE:
        return False
    if isinstance(function, type):
        return True
    if isinstance(function, types.MethodType):
        return isinstance(function.__self__, DType | type)
    kinds = (types.BuiltinFunctionType, types.MethodWrapperType, types.MethodDescriptorType)
    return isinstance(function, kinds) or (comes_from("numpy", function) and callable(function))


#: What one of Python's functions means for values of a running kernel; None where it is to be
#: computed as usual.
Meaning = Callable[[LanguageCallFrame, list[Value], ast.Call], Value | None]


def _range(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    return Range(Known(range), tuple(arguments), {})


def _len(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if len(arguments) != 1:
        return None
    if isinstance(arguments[0], Iterated):
        raise frame.error(node, NO_TUPLE)
    if isinstance(arguments[0], Group | Range):
        return Known(len(frame.elements(arguments[0], node)))
    if isinstance(arguments[0], Runtime):
        nodes = [frame.expression(arguments[0], node)]
        call = ast.Call(func=frame.name("len", node), args=nodes, keywords=[])
        return Runtime(frame.at(call, node))
    return None


def _tuple(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    return Group(tuple(frame.elements(arguments[0], node)) if arguments else ())


def _iterated(function: Callable[..., Any]) -> Meaning:
    """A function that gives items once."""

    def call(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
        lists = [frame.elements(argument, node) for argument in arguments]
        return frame.iterator(_group_of(function(*lists)).items, *arguments)

    return call


def _next(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    items = arguments[0]
    if not isinstance(items, Iterated):
        return None
    left = frame.taken(items, node)
    if not items.items[left]:
        return frame.computed(lambda: next(iter(())), node) if len(arguments) < 2 else arguments[1]
    items.left.value = Known(slice(left.start + 1, None))
    return items.items[left.start]


def _reversed(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if isinstance(arguments[0], Iterated) or getattr(arguments[0], "left", None) is not None:
        raise frame.error(node, NO_TUPLE)
    ranges = [each for each in arguments if isinstance(each, Range)]
    bounds = [*ranges[0].arguments] if len(ranges) == len(arguments) == 1 else []
    start, stop, step = {1: [Known(0), *bounds, Known(1)], 2: [*bounds, Known(1)], 3: bounds}.get(
        len(bounds), [None] * 3
    )
    is_known = all(isinstance(each, Known) for each in bounds)
    if is_known or not (isinstance(step, Known) and isinstance(step.object, int) and step.object):
        return _iterated(lambda items: list(reversed(items)))(frame, arguments, node)
    assert start is not None and stop is not None
    by, towards = step.object, Known(1 if step.object > 0 else -1)
    last, before = (frame.binary(end, ast.Sub(), towards, node) for end in (stop, start))
    if abs(by) > 1:
        # As many whole steps from the first as do not go past the last that there may be.
        steps = frame.binary(frame.binary(last, ast.Sub(), start, node), ast.FloorDiv(), step, node)
        last = frame.binary(start, ast.Add(), frame.binary(steps, ast.Mult(), step, node), node)
    left = frame.iterator(()).left
    return Range(ranges[0].function, (last, before, Known(-by)), ranges[0].keywords, left)


def _enumerate(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    items, *start = arguments[0], *(frame.needed(each, node) for each in arguments[1:])
    if len(start) > 1 or not all(isinstance(each, Known) for each in start):
        return None
    first = start[0].object if start and isinstance(start[0], Known) else 0
    return _iterated(lambda items: enumerate(items, first))(frame, [items], node)


def _list(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if len(arguments) > 1:
        return None
    return Listed(tuple(frame.elements(arguments[0], node)) if arguments else ())


def _group_of(items: Any) -> Group:
    """Tuples of values, and numbers among them, as a group."""
    return Group(
        tuple(
            item
            if isinstance(item, Value)
            else _group_of(item)
            if isinstance(item, tuple | list)
            else Known(item)
            for item in items
        )
    )


def _extremum(name: str, of_numbers: Callable[..., Any]) -> Meaning:
    def call(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
        if len(arguments) == 1 and isinstance(arguments[0], Group):
            arguments = frame.elements(arguments[0], node)
        known = [to_python(argument) for argument in arguments]
        if arguments and None not in known:
            return frame.computed(lambda: of_numbers(item.object for item in known if item), node)
        result, *rest = arguments
        for argument in rest:
            result = frame.language_call(name, [result, argument], {}, node)
        return result if rest else None

    return call


def _cast(dtype: DType) -> Meaning:
    def call(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
        if len(arguments) != 1 or to_python(arguments[0]) is not None:
            return None
        if dtype is dtypes.int64 and isinstance(arguments[0], Symbolic):
            return arguments[0]
        made = frame.language_call("cast", [arguments[0], Known(dtype)], {}, node)
        if dtype is not dtypes.bool and isinstance(made, Runtime):
            assert isinstance(made.node, ast.Call)
            made.node.args[1] = frame.at(nodes.NumberType(dtype=dtype), node)
        return made

    return call


def _abs(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if len(arguments) != 1 or to_python(arguments[0]) is not None:
        return None
    return frame.language_call("abs", arguments, {}, node)


def _operator(*ops: ast.operator) -> Meaning:
    """A function that is an operator, or several of the same operands."""

    def call(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
        if len(arguments) != 2 or to_python(Group(tuple(arguments))) is not None:
            return None
        one, other = (frame.computed_once(each, node, "operand") for each in arguments)
        made = [frame.binary(one, op, other, node) for op in ops]
        return made[0] if len(made) == 1 else Group(tuple(made))

    return call


def _folded(op: ast.operator, start: int) -> Meaning:
    """Python's ``sum`` or ``math.prod``, of items that only the running kernel or a call knows too."""

    def call(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
        if not arguments or to_python(Group(tuple(arguments))) is not None:
            return None
        total: Value = arguments[1] if len(arguments) > 1 else Known(start)
        for item in frame.elements(arguments[0], node):
            # A start of 0 counts: it makes a number of a truth value, and 0 of a negative one.
            total = frame.binary(total, op, item, node)
        return total

    return call


def _print(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    text: list[Value] = [Known("")]
    if arguments and isinstance(arguments[0], Known) and isinstance(arguments[0].object, str):
        text, arguments = arguments[:1], arguments[1:]
    values = _flat(arguments)
    if not all(isinstance(getattr(each, "object", each), _SHOWN) for each in values):
        raise frame.error(
            node,
            "`print` shows one text, its first argument, and then numbers and tiles: what else is known is shown "
            "in that text, as an f-string.",
        )
    return frame.language_call("device_print", [*text, *values], {}, node)


#: What is shown while a kernel runs.
_SHOWN = (Runtime, Symbolic, Tile, int, float)


def _flat(values: Iterable[Value]) -> list[Value]:
    """Values, and the items of tuples and lists among them."""
    groups = [_flat(value.items) if isinstance(value, Group) else [value] for value in values]
    return [item for group in groups for item in group]


def _getattr(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if len(arguments) not in (2, 3):
        return None
    name = arguments[1]
    if not (isinstance(name, Known) and isinstance(name.object, str)):
        raise frame.error(node, "`getattr` needs the attribute's name at compile time.")
    if len(arguments) == 3 and not _has(frame, arguments[0], name.object, node):
        return arguments[2]
    return frame.attribute(arguments[0], name.object, node)


def _hasattr(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    name = arguments[1] if len(arguments) == 2 else None
    if not (isinstance(name, Known) and isinstance(name.object, str)):
        return None
    return Known(_has(frame, arguments[0], name.object, node))


def _has(frame: LanguageCallFrame, value: Value, name: str, node: ast.Call) -> bool:
    """Whether a value has an attribute."""
    try:
        found = frame.attribute(value, name, node)
    except ApplicationError:
        return False
    if not (isinstance(found, Runtime) and isinstance(found.node, ast.Attribute)):
        return True
    owner = found.node.value
    if isinstance(owner, ast.Attribute):
        raise frame.error(
            node,
            "Whether this has an attribute only a compiler knows: what a parameter, a tile or an object of "
            "Python has is known here.",
        )
    operation = operations.find(found.node.attr)
    is_member = operation is not None and operation.member_of == "tile"
    return is_member or name in operations.OF_TILES


def _isinstance(frame: LanguageCallFrame, arguments: list[Value], node: ast.Call) -> Value | None:
    if len(arguments) == 2 and isinstance(arguments[0], Group) and isinstance(arguments[1], Known):
        kinds = arguments[1].object
        if isinstance(arguments[0], Iterated):
            raise frame.error(node, NO_TUPLE)
        group: Any = _EMPTY[type(arguments[0])]
        return frame.computed(lambda: isinstance(group, kinds), node)
    return None


#: A tuple, a list and a dictionary, by the values that stand for them.
_EMPTY: dict[type[Value], Any] = {Group: (), Listed: [], Named: {}}

_SPECIAL: dict[Any, Meaning] = {
    range: _range,
    len: _len,
    tuple: _tuple,
    list: _list,
    zip: _iterated(lambda *lists: list(zip(*lists, strict=False))),
    next: _next,
    enumerate: _enumerate,
    reversed: _reversed,
    min: _extremum("minimum", min),
    max: _extremum("maximum", max),
    float: _cast(dtypes.float32),
    int: _cast(dtypes.int64),
    bool: _cast(dtypes.bool),
    abs: _abs,
    sum: _folded(ast.Add(), 0),
    math.prod: _folded(ast.Mult(), 1),
    print: _print,
    getattr: _getattr,
    hasattr: _hasattr,
    isinstance: _isinstance,
    divmod: _operator(ast.FloorDiv(), ast.Mod()),
    pow: _operator(ast.Pow()),
} | {function: _operator(op()) for op, function in PYTHON_BINARY.items() if op is not ast.MatMult}

#: How many arguments those take, where not two.
_COUNTS: dict[Any, tuple[int, float]] = {
    **dict.fromkeys((len, reversed, abs), (1, 1)),
    **dict.fromkeys((tuple, list, float, bool), (0, 1)),
    **dict.fromkeys((enumerate, next, sum, math.prod), (1, 2)),
    **dict.fromkeys((zip, print), (0, math.inf)),
    **dict.fromkeys((min, max), (1, math.inf)),
    range: (1, 3),
    int: (0, 2),
    getattr: (2, 3),
    pow: (2, 3),
}
