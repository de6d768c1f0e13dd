"""Elements at positions that a program computes: what they are, and how they are drawn.

Of a tensor, ``x.source[i]``, or of a tile, ``x[i]``, ``x[1:]``: loaded, stored, or changed by an atomic
operation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.hunt.description import Expression, Parameter, Statement
from tests.hunt.memory import OVERLAID, padded
from tests.hunt.reference import (
    EXPRESSIONS,
    STATEMENTS,
    State,
    evaluate,
    loaded,
    positions,
    spread,
    stored,
)
from tests.hunt.values import (
    INTEGERS,
    Ambiguous,
    Value,
    aligned,
    exact,
    is_integer,
    unequal_meetings,
)

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


def _part(state: State, parameter: str, indices: tuple[Any, ...], keys: tuple[Any, ...]) -> Value:
    """Elements of a tile; a position beyond it has none."""
    index, exists = parted(state, parameter, indices, keys)
    value = loaded(state, parameter, index)
    value = replace(value, exists=value.exists & exists)
    return value if value.exists.all() else replace(value, loaded=~value.exists)


def parted(
    state: State, parameter: str, indices: tuple[Any, ...], keys: tuple[Any, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Where selected elements of a tile are, -1 where there are none, and which of the positions exist."""
    index, tile = positions(state, parameter, indices), state.tensors[parameter].tile
    keys = _for_each(keys, len(tile))
    computed = [evaluate(state, key) for key in keys if _is_computed(key)]
    if any(not is_integer(value.dtype) for value in computed):
        raise Ambiguous("positions are integers")
    together = aligned([spread(state, v) for v in computed]) if computed else []
    number = len(together[0].shape) if together else 0
    firsts = [place for place, key in enumerate(keys) if _is_computed(key)]
    slices = [place for place, key in enumerate(keys) if key[0] == "slice"]
    before = sum(place < firsts[0] for place in slices) if firsts else 0
    tiles = [place for place, value in zip(firsts, computed) if value.shape]
    if tiles and sum(place < tiles[0] for place in slices) != before:
        raise Ambiguous("a number, a slice, then a tile of positions")
    rank, runs, along = len(slices) + number, 0, []
    exists = np.ones((len(index), *(1,) * rank), bool)
    for key, size in zip(keys, tile, strict=True):
        if key[0] == "slice":
            dim = 1 + runs + (number if firsts and runs >= before else 0)
            along.append(_run(key, size).reshape(-1, *(1,) * (rank - dim)))
            runs += 1
        elif key[0] == "number":
            along.append(np.array(key[1] + size if key[1] < 0 else key[1]))
        else:
            at = together.pop(0)
            shape = (len(index), *(1,) * before, *at.shape, *(1,) * (len(slices) - before))
            exists = exists & at.exists.reshape(shape)
            along.append(at.data.reshape(shape))
    inside, flat = exists, np.zeros(exists.shape, int)
    for at, size, held in zip(along, tile, index.shape[1:], strict=True):
        within = (at >= 0) & (at < size)
        inside, flat = inside & within, flat * held + np.where(within, at, 0)
    inside, flat = np.broadcast_arrays(inside, np.where(inside, flat, 0))
    lanes, places = (a.reshape(len(index), int(np.prod(a.shape[1:]))) for a in (index, flat))
    chosen = np.take_along_axis(lanes, places, 1)
    return np.where(inside, chosen.reshape(flat.shape), -1), np.broadcast_to(exists, flat.shape)


def _for_each(keys: tuple[Any, ...], rank: int) -> list[Any]:
    """A key for each dimension of a tile."""
    at = next((place for place, key in enumerate(keys) if key[0] == "rest"), len(keys))
    given = (*keys[:at], *keys[at + 1 :])
    if len(given) > rank:
        raise Ambiguous("more keys than dimensions")
    return [*keys[:at], *[("slice", None, None, None)] * (rank - len(given)), *keys[at + 1 :]]


def _is_computed(key: Any) -> bool:
    return key[0] not in ("slice", "number")


def _run(key: Any, size: int) -> np.ndarray:
    """A slice's positions, and -1 up to a power of two."""
    bounds = (size // 2 if isinstance(bound, tuple) else bound for bound in key[1:])
    run = np.arange(size)[slice(*bounds)]
    if not run.size:
        raise Ambiguous("a slice of nothing")
    return padded(run, 1)


def _set(state: State, parameter: str, indices: Any, keys: Any, expression: Expression) -> None:
    value = evaluate(state, expression)
    index, exists = parted(state, parameter, indices, keys)
    chosen = exists if any(map(_is_computed, keys)) else None
    stored(state, parameter, index, value, chosen, is_part=True)


def _change(
    state: State, parameter: str, indices: Any, keys: Any, operator: str, expression: Expression
) -> None:
    part = ("part", parameter, indices, keys)
    _set(state, parameter, indices, keys, ("form", operator, (), (part, expression)))


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
    index, there, value = _met(state, parameter, True, indices, (), expression)
    state.memory.store(parameter, index, there, value.data, value.error)


def _atomic(state: State, name: str, is_source: bool, parameter: str, *rest: Any) -> None:
    index, there, value = _met(state, parameter, is_source, *rest)
    if value.dtype not in ("int32", "int64") and not (
        value.dtype == "float32" and name in ("max", "min")
    ):
        raise Ambiguous("what depends on an order, or no device has")
    state.memory.update(name, parameter, index, there, value)


def _met(
    state: State, parameter: str, is_source: bool, indices: Any, keys: Any, expression: Expression
) -> tuple[np.ndarray, np.ndarray, Value]:
    """Where elements are, which of them take part, and the value for each, of the tensor's type."""
    described, value = state.program.parameter(parameter), evaluate(state, expression)
    if is_source:
        index, there, exists = _addressed(state, parameter, indices)
    else:
        index = parted(state, parameter, indices, keys)[0]
        there = exists = index >= 0
    if described.layout in OVERLAID:
        raise Ambiguous("an output whose elements lie over each other")
    if value.dtype != described.dtype or value.shape != index.shape[1:]:
        raise Ambiguous("a value of another shape or type than its places")
    value = spread(state, value)
    if value.loaded is not None and (exists & value.loaded).any():
        raise Ambiguous("what does not exist where it was loaded is stored over what does")
    unequal_meetings[0] += (exists != value.exists).any()
    return index, there & value.exists & state.active.reshape(-1, *(1,) * (index.ndim - 1)), value


def _lanes(state: State, count: int) -> Value:
    return exact(np.broadcast_to(np.arange(count), (len(state.active), count)), "int32")


EXPRESSIONS.update({"source": _source, "part": _part, "lanes": _lanes})
STATEMENTS.update({"scatter": _scatter, "set": _set, "change": _change, "atomic": _atomic})


# How they are drawn.


def scattered(maker: Maker) -> Statement | None:
    """A store to elements at positions that are computed, or an atomic operation there or on a tile."""
    choose, parameters = maker.choose, maker.state.program.parameters
    is_atomic = choose.random() < 0.6
    parameter = choose.choice(
        [p for p in parameters if p.name == "y" or is_atomic or choose.random() < 0.2]
    )
    is_source = not is_atomic or choose.random() < 0.5
    indices = places(maker, parameter) if is_source else maker.selection(parameter.name)
    if indices is None:
        return None
    chosen = () if is_source or choose.random() < 0.4 else keys(maker, parameter.name)
    value = maker.expression(choose.choice((0, 1, 2)), "typed")
    alike = indices if is_source else (("part", parameter.name, indices, chosen),) if chosen else ()
    for one in alike:
        # As many as there are places.
        value = ("form", "+", (), (value, ("form", "*", (), (one, ("number", 0)))))
    if evaluate(maker.state, value).dtype != parameter.dtype:
        is_truth = parameter.dtype == "bool"
        way, given = ("truth", ()) if is_truth else ("to", (("dtype", parameter.dtype),))
        value = ("form", way, given, (value,))
    if not is_atomic:
        return ("scatter", parameter.name, indices, value)
    name = choose.choice(("add", "max", "min", "and", "or", "xor"))
    return ("atomic", name, is_source, parameter.name, indices, chosen, value)


def set_in_part(maker: Maker) -> Statement | None:
    """A store to elements of a tile."""
    choose, parameters = maker.choose, maker.state.program.parameters
    name = choose.choice([p.name for p in parameters if p.name == "y" or choose.random() < 0.3])
    indices = maker.selection(name)
    if indices is None:
        return None
    chosen = keys(maker, name)
    draw = choose.random()
    if draw < 0.5:
        # What has such elements, too.
        other = choose.choice([p.name for p in parameters])
        there = maker.selection(other)
        if there is None:
            return None
        value: Expression = ("part", other, there, chosen)
        if choose.random() < 0.6:
            value = ("form", choose.choice("+-*"), (), (value, maker.expression(0, "number")))
    else:
        value = maker.expression(choose.choice((0, 1, 1, 2)), "any" if draw < 0.8 else "scalar")
    if choose.random() < 0.25:
        return ("change", name, indices, chosen, choose.choice("+-*"), value)
    return ("set", name, indices, chosen, value)


def keys(maker: Maker, parameter: str) -> tuple[Any, ...]:
    """What selects elements of a parameter's tile: a key for each dimension, or for some."""
    choose, tile = maker.choose, maker.state.tensors[parameter].tile
    if not tile:
        raise Ambiguous("no dimension to select in")
    chosen = [_key(maker, size) for size in tile]
    places = [place for place, key in enumerate(chosen) if _is_computed(key)]
    if len(places) == 2 and choose.random() < 0.6:
        # Rows and columns.
        for place, way in zip(places, ("column", "row")):
            if len(evaluate(maker.state, chosen[place]).shape) == 1:
                chosen[place] = ("form", way, (), (chosen[place],))
    if choose.random() < 0.25:
        start = choose.randrange(len(chosen) + 1)
        chosen[start : choose.randint(start, len(chosen))] = [("rest",)]
    elif choose.random() < 0.25 and len(chosen) > 1:
        chosen.pop()
    return tuple(chosen)


def _key(maker: Maker, size: int) -> Any:
    """What selects along a dimension of so many elements."""
    choose = maker.choose
    draw = choose.random()
    if draw < 0.5:
        step = choose.choice((None, None, None, 1, 2, 3, -1, -2))
        start, stop = None, None
        if step is None or step > 0:
            start = choose.choice((None, 0, 1, 1, 2, -1, -2, size // 2, 1 - size, ("half",)))
            stop = choose.choice((None, None, -1, -2, size - 1, size, size + 2, ("half",)))
        return ("slice", start, stop, step)
    if draw < 0.65:
        beyond = choose.random() < 0.1
        return ("number", size if beyond else choose.randrange(-size, size))
    if draw < 0.75:
        return position(maker)
    if draw < 0.85:
        loads = [
            (p.name, indices)
            for p in maker.state.program.parameters
            if p.dtype in INTEGERS and (indices := maker.selection(p.name)) is not None
        ]
        if loads:
            return ("load", *choose.choice(loads))
    lanes: Expression = ("lanes", choose.choice((1, 2, 2, 4, 8)))
    beside = ("number", choose.choice((1, 2, size - 1, -1)))
    if choose.random() < 0.3:
        names = [n for n, value in maker.state.known.items() if value.dtype == "int32"]
        beside = ("name", choose.choice(names))
    operator, is_turned = choose.choice((("+", False), ("-", True), ("*", False), ("-", False)))
    return ("form", operator, (), (beside, lanes) if is_turned else (lanes, beside))


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
