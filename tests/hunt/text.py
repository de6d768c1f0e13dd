"""A described program as the text of a module that a user could have written."""

from __future__ import annotations

import itertools
from contextvars import ContextVar
from typing import Any

from tests.hunt.description import Expression, Parameter, Program, Statement, Step, gathered
from tests.hunt.forms import FORMS
from tests.hunt.spelling.respelled import respelled

HEADER = """\
import torch

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor


def added(a, b):
    return a + b


def multiplied(a, b):
    return a * b


def larger(a, b):
    return ntl.maximum(a, b)


def shifted(a, b):
    return a + b + 2


def value_and_place_of_max(v, axis):
    value, place = ntl.max(v, axis, return_indices=True)
    return value + place


def value_and_place_of_min(v, axis):
    value, place = ntl.min(v, axis, return_indices=True)
    return value + place


def flat(v):
    w = v
    return ntl.reshape(w, (w.shape[0] * w.shape[1],))


def flat_view(v):
    w = v
    return ntl.view(w, w.shape[0] * w.shape[1])


def second_half(v):
    first, second = ntl.split(v)
    return second


def gathered_backwards(v):
    w = v
    return ntl.gather(w, w.shape[0] - 1 - ntl.arange(0, w.shape[0]), 0)


def positions(v):
    w = v
    return ntl.arange(0, w.shape[0])


def sum_of_broadcast(a, b):
    left, right = ntl.broadcast(a, b)
    return left + right


def in_rows(v, size):
    w = v
    return ntl.broadcast_to(w[None, :], (size, w.shape[0]))


def put(destination, value):
    destination = value
"""

INDENT = "    "


#: Whether values' members are written as functions, as Triton's interpreter needs it.
_is_plain: ContextVar[bool] = ContextVar("is plain", default=False)


def module(program: Program, is_plain: bool = False) -> str:
    """The text; its ``kernel`` is called with the parameters, the scalars and the flags in order."""
    token = _is_plain.set(is_plain)
    try:
        return _module(program)
    finally:
        _is_plain.reset(token)


def _module(program: Program) -> str:
    lines = [HEADER, ""]
    for size in sorted(program.symbols):
        lines.append(f'S{size} = Symbol("S{size}", constexpr=True)')
    names = names_of(program)
    lines += ["", f"def arrangement({', '.join(names)}):"]
    for parameter in program.parameters:
        lines += [INDENT + line for line in _arranged(parameter, program)]
    results = ", ".join(
        f"{name}_arranged" if name in {p.name for p in program.parameters} else name
        for name in names
    )
    lines += [f"{INDENT}return {results},", "", ""]
    # What is declared with a value has that one.
    values = {**dict(program.scalars), **{name: None for name, _ in program.flags}}
    accepted = [f"{n}={values[n]!r}" if n in program.defaults else n for n in names]
    application = [f"def application({', '.join(accepted)}):", *_within(program.body)]
    ranks = {parameter.name: len(parameter.shape) for parameter in program.parameters}
    given = [[name for name, _ in group] for group in (program.scalars, program.flags)]
    levels = {
        f"{parameter.name}.shape[{dim}]": size
        for parameter in program.parameters
        for dim, size in enumerate(gathered(parameter).shape(1))
    }
    written = respelled("\n".join(application), program.spelling, ranks, *given, levels)
    lines += written.splitlines()
    tensors = [_tensor(program, name) for name in names]
    lines += ["", "", f"tensors = ({', '.join(tensors)},)"]
    lines.append("kernel = ninetoothed.make(arrangement, application, tensors)")
    return "\n".join(lines) + "\n"


def names_of(program: Program) -> list[str]:
    """The application's parameters: tensors, scalars, compile-time constants."""
    return [
        *(parameter.name for parameter in program.parameters),
        *(name for name, _ in program.numbers),
    ]


def _tensor(program: Program, name: str) -> str:
    if name in dict(program.scalars):
        declared = f", dtype=ninetoothed.{program.scalar_type(name)}"
        return f"Tensor(0{declared * program.declares_scalars})"
    if name in dict(program.flags):
        value = f", value={dict(program.flags)[name]!r}" if name in program.defaults else ""
        return f"Tensor(0, constexpr=True{value})"
    parameter = program.parameter(name)
    shape = tuple(n if parameter.knows(dim) else None for dim, n in enumerate(parameter.shape))
    sizes = f"shape={shape}" if parameter.is_known else f"{len(shape)}"
    other = "" if parameter.other is None else f", other={parameter.other}"
    dtype = "" if parameter.declared is None else f", dtype={parameter.declared}"
    return f"Tensor({sizes}{other}{dtype.format(parameter.dtype)})"


def _arranged(parameter: Parameter, program: Program) -> list[str]:
    name = f"{parameter.name}_arranged"
    lines = [f"{name} = {parameter.name}"]
    for step in parameter.steps:
        owner = name + ".dtype" * step.depth
        lines.append(f"{owner} = {owner}{_operation(step, program)}")
    return lines


def _operation(step: Step, program: Program) -> str:
    def written(value: Any) -> str:
        if isinstance(value, tuple):
            inner = ", ".join(map(written, value))
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        is_size = type(value) is int and value in program.symbols and step.name in ("tile", "pad")
        return f"S{value}" if is_size else repr(value)

    if step.name == "__getitem__":
        return f"[{_subscript(step.arguments[0])}]"
    if step.written is not None:
        return f".{step.name}({step.written})"
    parts = [written(argument) for argument in step.arguments]
    parts += [f"{name}={written(value)}" for name, value in step.keywords]
    return f".{step.name}({', '.join(parts)})"


def _subscript(key: Any) -> str:
    def entry(one: Any) -> str:
        if not isinstance(one, slice):
            return "..." if one is Ellipsis else repr(one)
        parts = ["" if part is None else str(part) for part in (one.start, one.stop)]
        return ":".join(parts) + ("" if one.step is None else f":{one.step}")

    if isinstance(key, tuple):
        return ", ".join(map(entry, key)) + ("," if len(key) == 1 else "") if key else "()"
    return entry(key)


# The application.


def expression(tree: Expression) -> str:
    kind, *parts = tree
    if kind == "name":
        return parts[0]
    if kind == "number":
        return repr(parts[0]) if parts[0] >= 0 else f"({parts[0]!r})"
    if kind == "form":
        name, parameters, operands = parts
        form = FORMS[name]
        text = form.plain if form.plain and _is_plain.get() else form.text
        return text.format(*map(expression, operands), **dict(parameters))
    if kind == "load":
        return _selected(*parts)
    if kind == "full":
        parameter, value, dtype = parts
        name, depth = parameter
        return f"ntl.full({name}{'.dtype' * depth}.shape, {value!r}, ntl.{dtype})"
    if kind == "size":
        return f"{parts[0]}.source.shape[{parts[1]}]"
    if kind == "offsets":
        parameter, indices, dim = parts
        tile = _selected(parameter, indices)
        return f"({tile}.offsets({dim}) + 0 * {tile}.to(ntl.int32))"
    if kind == "source":
        parameter, indices = parts
        return f"{parameter}.source[{', '.join(map(expression, indices))}]"
    if kind == "part":
        return _part(*parts)
    if kind == "lanes":
        return f"ntl.arange(0, {parts[0]})"
    assert kind == "choice", kind
    condition, one, other = map(expression, parts)
    return f"({one} if {condition} else {other})"


def _selected(parameter: str, indices: tuple[Expression, ...]) -> str:
    return f"{parameter}[{', '.join(map(expression, indices))}]" if indices else parameter


def _part(parameter: str, indices: tuple[Expression, ...], keys: tuple[Any, ...]) -> str:
    """Elements of a tile."""
    tile = _selected(parameter, indices)

    def key(place: int, entry: Any) -> str:
        if entry[0] == "slice":
            dim = place - len(keys) if ("rest",) in keys[:place] else place
            half = f"{parameter}{'.dtype' * bool(indices)}.shape[{dim}] // 2"
            bounds = (half if isinstance(bound, tuple) else bound for bound in entry[1:])
            return _subscript(slice(*bounds))
        return "..." if entry[0] == "rest" else expression(entry)

    return f"{tile}[{', '.join(key(*each) for each in enumerate(keys))}]"


def _block(body: tuple[Statement, ...]) -> list[str]:
    lines = list(itertools.chain.from_iterable(map(_statement, body)))
    return lines or ["pass"]


def _count(count: Any) -> str:
    if isinstance(count, tuple) and count[0] == "range":
        _, start, step, count = count
        if step < 0:
            return f"{_count(count)} - 1, {start - 1}, {step}"
        return f"{start}, {_count(count)}" + (f", {step}" if step > 1 else "")
    if isinstance(count, tuple):
        return f"{count[0]}.shape[{count[1]}]"
    return str(count)


def _rounds(count: Any) -> str:
    """What a `for` goes through."""
    kind = count[0] if isinstance(count, tuple) else None
    if kind == "reversed":
        return f"reversed({_rounds(count[1])})"
    if kind == "tuple":
        return f"({''.join(f'{number}, ' for number in range(count[1]))})"
    return f"ntl.static_range({count[1]})" if kind == "static" else f"range({_count(count)})"


def _statement(statement: Statement) -> list[str]:
    kind, *parts = statement
    if kind == "group":
        return _block(parts[0])
    if kind == "let":
        return [f"{parts[0]} = {expression(parts[1])}"]
    if kind == "augment":
        return [f"{parts[0]} {parts[1]}= {expression(parts[2])}"]
    if kind == "store":
        return [f"{_selected(parts[0], parts[1])} = {expression(parts[2])}"]
    if kind == "put":
        return [f"put({_selected(parts[0], parts[1])}, {expression(parts[2])})"]
    if kind == "add":
        return [f"{_selected(parts[0], parts[1])} {parts[2]}= {expression(parts[3])}"]
    if kind == "set":
        return [f"{_part(*parts[:3])} = {expression(parts[3])}"]
    if kind == "change":
        return [f"{_part(*parts[:3])} {parts[3]}= {expression(parts[4])}"]
    if kind == "scatter":
        places = ", ".join(map(expression, parts[1]))
        return [f"{parts[0]}.source[{places}] = {expression(parts[2])}"]
    if kind == "atomic":
        name, is_source, parameter, indices, keys, value = parts
        where = _selected(f"{parameter}.source" if is_source else parameter, indices)
        if keys:
            where = _part(parameter, indices, keys)
        return [f"ntl.atomic_{name}({where}, {expression(value)})"]
    if kind == "for":
        name, count, body = parts
        return [f"for {name} in {_rounds(count)}:", *_within(body)]
    if kind == "while":
        name, count, body = parts
        return [
            f"{name} = 0",
            f"while {name} < {_count(count)}:",
            *_within(body),
            f"{INDENT}{name} += 1",
        ]
    assert kind == "if", kind
    condition, body, orelse = parts
    asked = condition[1] if condition[0] == "flag" else expression(condition)
    lines = [f"if {asked}:", *_within(body)]
    return [*lines, "else:", *_within(orelse)] if orelse else lines


def _within(body: tuple[Statement, ...]) -> list[str]:
    return [INDENT + line for line in _block(body)]
