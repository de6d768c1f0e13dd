"""Elements at positions that a program computes: what they are, and how they are drawn.

Of a tensor, ``x.source[i]``, or of a tile of one dimension, ``x[i]``: loaded, stored, or changed by an
atomic operation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.hunt.description import Expression, Parameter, Statement
from tests.hunt.reference import EXPRESSIONS, STATEMENTS, State, evaluate, loaded, positions, spread
from tests.hunt.values import Ambiguous, Value, aligned, unequal_meetings

if TYPE_CHECKING:
    from tests.hunt.generate import Maker


# What they are.


def _source(state: State, parameter: str, indices: tuple[Expression, ...]) -> Value:
    """What is beyond the tensor reads as 0, and is a number like any."""
    index, there, exists = _addressed(state, parameter, indices)
    if state.program.parameter(parameter).other is not None:
        raise Ambiguous("`other` beyond a source")
    value = loaded(state, parameter, np.where(there, index, -1))
    # What is made of a tile that was loaded is taken to be in its lanes.
    return replace(value, exists=exists, loaded=None if exists.all() else ~exists)


def _part(state: State, parameter: str, indices: tuple[Any, ...], place: Expression) -> Value:
    """Elements of a tile of one dimension; a position beyond it has none."""
    index, at = positions(state, parameter, indices), evaluate(state, place)
    if index.ndim != 2 or at.dtype not in ("int32", "int64"):
        raise Ambiguous("positions are integers, of a tile of one dimension")
    if state.program.parameter(parameter).other is not None:
        raise Ambiguous("`other` beyond a tile")
    at = spread(state, at)
    inside = at.exists & (at.data >= 0) & (at.data < state.tensors[parameter].tile[0])
    flat = np.where(inside, at.data, 0).reshape(len(index), int(np.prod(at.shape)))
    chosen = np.take_along_axis(index, flat, 1).reshape(at.data.shape)
    value = loaded(state, parameter, np.where(inside, chosen, -1))
    return value if value.exists.all() else replace(value, loaded=~value.exists)


def _addressed(
    state: State, parameter: str, indices: tuple[Expression, ...]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where elements of a tensor are, which of the indices are in it, and which exist."""
    shape = state.program.parameter(parameter).shape
    if len(indices) != len(shape):
        raise Ambiguous("another number of indices")
    values = [evaluate(state, expression) for expression in indices]
    if any(value.dtype not in ("int32", "int64") for value in values):
        raise Ambiguous("indices are integers")
    values = aligned(values)
    exists = np.logical_and.reduce([value.exists for value in values])
    index, there = np.zeros(exists.shape, int), exists
    for value, size in zip(values, shape):
        there = there & (value.data >= 0) & (value.data < size)
        index = index * size + np.where(there, value.data, 0)
    whole = (len(state.active), *index.shape[1:])
    return tuple(np.broadcast_to(each, whole) for each in (index, there, exists))


def _scatter(state: State, parameter: str, indices: Any, expression: Expression) -> None:
    index, there, value = _met(state, parameter, True, indices, expression)
    state.memory.store(parameter, index, there, value.data, value.error)


def _atomic(
    state: State, name: str, is_source: bool, parameter: str, indices: Any, expression: Expression
) -> None:
    index, there, value = _met(state, parameter, is_source, indices, expression)
    if value.dtype not in ("int32", "int64") and not (
        value.dtype == "float32" and name in ("max", "min")
    ):
        raise Ambiguous("what depends on an order, or no device has")
    state.memory.update(name, parameter, index, there, value)


def _met(
    state: State, parameter: str, is_source: bool, indices: Any, expression: Expression
) -> tuple[np.ndarray, np.ndarray, Value]:
    """Where elements are, which of them take part, and the value for each, of the tensor's type."""
    described, value = state.program.parameter(parameter), evaluate(state, expression)
    if is_source:
        index, there, exists = _addressed(state, parameter, indices)
    else:
        index = positions(state, parameter, indices)
        there = exists = index >= 0
    if described.layout == "repeated":
        raise Ambiguous("an output whose elements lie over each other")
    if value.dtype != described.dtype or value.shape != index.shape[1:]:
        raise Ambiguous("a value of another shape or type than its places")
    value = spread(state, value)
    if value.loaded is not None and (exists & value.loaded).any():
        raise Ambiguous("what does not exist where it was loaded is stored over what does")
    unequal_meetings[0] += (exists != value.exists).any()
    return index, there & value.exists & state.active.reshape(-1, *(1,) * (index.ndim - 1)), value


EXPRESSIONS.update({"source": _source, "part": _part})
STATEMENTS.update({"scatter": _scatter, "atomic": _atomic})


# How they are drawn.


def scattered(maker: Maker) -> Statement | None:
    """A store to elements at positions that are computed, or an atomic operation there or on a tile."""
    choose, parameters = maker.choose, maker.state.program.parameters
    is_atomic = choose.random() < 0.6
    parameter = choose.choice(
        [p for p in parameters if p.name == "y" or is_atomic or choose.random() < 0.2]
    )
    is_source = not is_atomic or choose.random() < 0.6
    indices = places(maker, parameter) if is_source else maker.selection(parameter.name)
    if indices is None:
        return None
    value = maker.expression(choose.choice((0, 1, 2)), "typed")
    for index in indices if is_source else ():
        # As many as there are places.
        value = ("form", "+", (), (value, ("form", "*", (), (index, ("number", 0)))))
    if evaluate(maker.state, value).dtype != parameter.dtype:
        is_truth = parameter.dtype == "bool"
        way, given = ("truth", ()) if is_truth else ("to", (("dtype", parameter.dtype),))
        value = ("form", way, given, (value,))
    if not is_atomic:
        return ("scatter", parameter.name, indices, value)
    name = choose.choice(("add", "max", "min", "and", "or", "xor"))
    return ("atomic", name, is_source, parameter.name, indices, value)


def places(maker: Maker, parameter: Parameter) -> tuple[Expression, ...]:
    """Indices of elements of a tensor, one for each dimension."""
    chosen = tuple(position(maker) for _ in parameter.shape)
    if len(chosen) != 2 or maker.choose.random() < 0.3:
        return chosen
    return tuple(("form", way, (), (at,)) for way, at in zip(("column", "row"), chosen))


def position(maker: Maker) -> Expression:
    """An integer, or a tile of them, most often near to where a vector's elements are."""
    choose, state = maker.choose, maker.state
    vectors = [
        (p.name, indices)
        for p in state.program.parameters
        if len(state.tensors[p.name].tile) == len(p.shape) == 1
        and (indices := maker.selection(p.name)) is not None
    ]
    draw = choose.random()
    if draw < 0.3 or not vectors:
        names = [n for n, value in state.known.items() if value.dtype in ("int32", "int64")]
        return ("name", choose.choice(names))
    name, indices = choose.choice(vectors)
    at: Expression = ("offsets", name, indices, 0)
    if draw < 0.6:
        return at
    if draw < 0.8:
        at = ("form", "-", (), (("size", name, 0), at))
        return ("form", "-", (), (at, ("number", 1)))
    return ("form", choose.choice("+*"), (), (at, ("number", choose.choice((1, 2, 3)))))
