"""Makes a program smaller as long as it fails in the same way."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

from tests.hunt.description import Program, with_shapes
from tests.hunt.executions import Outcome, outcome
from tests.hunt.values import Ambiguous

P = TypeVar("P")

#: How long one program may be made smaller for, in seconds.
PATIENCE = 30.0


def minimal(program: Program, backend: str, found: Outcome) -> tuple[Program, Outcome]:
    """The smallest program found that fails as this one does, and how it fails."""
    errors = (Ambiguous, ValueError, IndexError, TypeError, KeyError, StopIteration)
    return smallest(program, found, candidates, lambda each: outcome(each, backend), errors)


def smallest(
    program: P,
    found: Outcome,
    smaller: Callable[[P], Iterable[P]],
    outcome: Callable[[P], Outcome],
    errors: tuple[type[BaseException], ...],
) -> tuple[P, Outcome]:
    """`minimal` of programs of any kind.

    Args:
        smaller: programs that are a little smaller.
        outcome: what becomes of one.
        errors: what is raised of one that is no program.
    """
    until = time.monotonic() + PATIENCE
    is_smaller = True
    while is_smaller and time.monotonic() < until:
        is_smaller = False
        for candidate in smaller(program):
            if time.monotonic() > until:
                break
            try:
                other = outcome(candidate)
            except errors:
                continue
            if signature(other) == signature(found):
                program, found, is_smaller = candidate, other, True
                break
    return program, found


def signature(found: Outcome) -> tuple[str, str]:
    """What has to stay the same: the kind, and of an error its class and first words."""
    if found.kind in ("agrees", "differs", "slow"):
        return found.kind, ""
    first = found.detail.splitlines()[0] if found.detail else ""
    return found.kind, re.sub(r"[^A-Za-z ]+\w*", "", re.sub(r"'.*?'|`.*?`", "", first))[:60]


def candidates(program: Program) -> Iterator[Program]:
    """Programs that are a little smaller, the much smaller ones first."""
    yield from plainer(program)
    for body in _smaller_blocks(program.body):
        if body:
            yield _used(replace(program, body=body))
    if program.left_out:
        yield replace(program, left_out=0)
    if program.symbols:
        yield replace(program, symbols=frozenset())
    for index, parameter in enumerate(program.parameters):
        simpler = {
            **{"layout": "contiguous", "dtype": "float32"},
            **{"other": None, "same_as": None, "declared": None},
        }
        for name, value in simpler.items():
            if getattr(parameter, name) != value:
                changed = replace(parameter, **{name: value})
                yield _with(program, index, changed)
    sizes = sorted({size for p in program.parameters for size in p.shape}, reverse=True)
    for size in sizes:
        for less in (1, 2, 3, size // 2, size - 1):
            if 0 < less < size:
                # Some sizes an arrangement refuses.
                with contextlib.suppress(ValueError, IndexError):
                    yield _resized(program, size, less)


def plainer(program: Any) -> Iterator[Any]:
    """The program as it was drawn, or with one rewriting less."""
    if program.spelling:
        yield replace(program, spelling=())
    for at in range(len(program.spelling)):
        yield replace(program, spelling=program.spelling[:at] + program.spelling[at + 1 :])


def _with(program: Program, index: int, parameter: Any) -> Program:
    parameters = list(program.parameters)
    parameters[index] = parameter
    return replace(program, parameters=tuple(parameters))


def _resized(program: Program, size: int, less: int) -> Program:
    shapes = {p.name: tuple(less if s == size else s for s in p.shape) for p in program.parameters}
    return with_shapes(program, shapes)


def _used(program: Program) -> Program:
    """Without parameters, scalars and flags that nothing reads."""
    text = repr(program.body) + repr([p.same_as for p in program.parameters])
    text += repr([step.written for p in program.parameters for step in p.steps])

    def is_named(name: str) -> bool:
        return re.search(rf"\b{name}\b|\b{name}_arranged", text) is not None

    numbers = tuple(item[0] for item in program.numbers if is_named(item[0]))
    return replace(
        program,
        left_out=len(program.defaults.intersection(numbers)),
        parameters=tuple(p for p in program.parameters if is_named(p.name)),
        scalars=tuple(item for item in program.scalars if is_named(item[0])),
        flags=tuple(item for item in program.flags if is_named(item[0])),
    )


def _smaller_blocks(body: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for index in range(len(body)):
        yield body[:index] + body[index + 1 :]
    for index, statement in enumerate(body):
        for parts in _smaller_statements(statement):
            yield (*body[:index], *parts, *body[index + 1 :])


def _smaller_statements(statement: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Statements that may stand in the place of one."""
    kind, *parts = statement
    if kind == "group":
        yield parts[0]
        return
    if kind in ("for", "while"):
        name, count, body = parts
        yield body
        if kind == "while":
            yield (("for", name, count, body),)
        for smaller in _smaller_blocks(body):
            yield ((kind, name, count, smaller),)
        return
    if kind == "if":
        condition, body, orelse = parts
        yield body
        if orelse:
            yield orelse
            yield (("if", condition, body, ()),)
        for smaller in _smaller_blocks(body):
            yield (("if", condition, smaller, orelse),)
        for smaller in _smaller_blocks(orelse):
            yield (("if", condition, body, smaller),)
        if condition[0] != "flag":
            for tree in _smaller_trees(condition):
                yield (("if", tree, body, orelse),)
        return
    *before, tree = statement
    if kind in ("put", "add"):
        indices = before[2]
        yield (("store", before[1], indices, tree),)
    if kind == "change":
        yield (("set", *before[1:4], tree),)
    if kind in ("set", "change"):
        for keys in _smaller_keys(before[3]):
            yield ((*before[:3], keys, *before[4:], tree),)
    for smaller in _smaller_trees(tree):
        yield ((*before, smaller),)


def _smaller_keys(keys: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """What may select elements in the place of some keys."""
    for place, key in enumerate(keys):
        whole = ("slice", None, None, None)
        simpler = [] if key in (whole, ("number", 0)) else [whole, ("number", 0)]
        if key[0] == "slice" and key != whole:
            simpler += [key[:at] + (None,) + key[at + 1 :] for at in (1, 2, 3) if key[at]]
        elif key[0] == "form":
            simpler += _smaller_trees(key)
        for one in simpler:
            yield (*keys[:place], one, *keys[place + 1 :])


def _smaller_trees(tree: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Expressions that may stand in the place of one: its operands first."""
    kind, *parts = tree
    if kind == "form":
        name, parameters, operands = parts
        yield from operands
        for index, operand in enumerate(operands):
            for smaller in _smaller_trees(operand):
                changed = (*operands[:index], smaller, *operands[index + 1 :])
                yield ("form", name, parameters, changed)
        if "{axis}" in repr(parameters) or name.endswith(" of a tile"):
            yield ("form", name.removesuffix(" of a tile"), parameters, operands)
    elif kind == "choice":
        condition, one, other = parts
        yield one
        yield other
        for smaller in _smaller_trees(one):
            yield ("choice", condition, smaller, other)
        for smaller in _smaller_trees(other):
            yield ("choice", condition, one, smaller)
    elif kind == "part":
        yield ("load", *parts[:2])
        for keys in _smaller_keys(parts[2]):
            yield ("part", *parts[:2], keys)
    elif kind == "number" and parts[0] not in (1, 1.0):
        yield ("number", 1.0 if isinstance(parts[0], float) else 1)
