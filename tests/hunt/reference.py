"""Executes a described program in plain NumPy: gathers, whole arrays, scatters.

Where an element of a tile is comes from index arrays that `tests.tensors.gather` moves about; a load is a
gather by them and a store a scatter, of all programs at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.hunt.description import UNROLLED, Expression, Program, Statement
from tests.hunt.forms import FORMS, KINDS
from tests.hunt.memory import MOST_ELEMENTS, OVERLAID, Arranged, Memory, arranged, padded
from tests.hunt.values import (
    MOVED,
    RESHAPED,
    WEAK,
    Ambiguous,
    Value,
    aligned,
    cast,
    constant,
    exact,
    number,
    own_float,
    unequal_meetings,
)

#: No program is taken that has more rounds in a loop.
MOST_ROUNDS = 12


@dataclass
class State:
    """What holds at a point of a program.

    Attributes:
        known: variables.
        active: (programs,), which are there.
        before: the variables from before this round of the innermost loop; None outside of loops.
        stale: those of them that kept what they had in a lane, in this round.
        outside: the variables from before the innermost branch.
        evaluated: expressions, by their identity, and their values since the last statement.
    """

    program: Program
    tensors: dict[str, Arranged]
    memory: Memory
    active: np.ndarray
    known: dict[str, Value] = field(default_factory=dict)
    before: dict[str, Value] | None = None
    stale: set[str] = field(default_factory=set)
    outside: frozenset[str] = frozenset()
    evaluated: dict[int, tuple[Expression, Value]] = field(default_factory=dict)

    def copy(self) -> State:
        return replace(
            self,
            known=dict(self.known),
            memory=self.memory.copy(),
            stale=set(self.stale),
            evaluated={},
        )


def begun(program: Program) -> State:
    """The state before the first statement."""
    own_float[0] = "float64" if program.is_wide else "float32"
    tensors = {parameter.name: arranged(parameter) for parameter in program.parameters}
    grids = {tensor.grid for tensor in tensors.values()}
    if len(grids) > 1:
        raise Ambiguous("grids that differ")
    count = len(next(iter(tensors.values())).index)
    state = State(program, tensors, Memory.of(program), np.ones(count, bool))
    for name, value in program.scalars:
        state.known[name] = constant(value, (count,), program.scalar_type(name))
    for name, value in program.flags:
        if not isinstance(value, bool):
            state.known[name] = number(value)
    return state


def executed(program: Program) -> State:
    """The state after the last statement."""
    unequal_meetings[0] = 0
    state = begun(program)
    run(state, program.body)
    return state


def run(state: State, body: tuple[Statement, ...]) -> None:
    for statement in body:
        execute(state, statement)


# Expressions.


def evaluate(state: State, expression: Expression) -> Value:
    found = state.evaluated.get(id(expression))
    if found is not None:
        return found[1]
    kind, *parts = expression
    value = EXPRESSIONS[kind](state, *parts)
    if value.data.size > MOST_ELEMENTS or value.data[:1].size > 4096:
        raise Ambiguous("too large to try")
    state.evaluated[id(expression)] = expression, value
    return value


def _name(state: State, name: str) -> Value:
    if name not in state.known:
        raise Ambiguous(f"{name} has no value")
    if name in state.stale:
        raise Ambiguous("what was kept is read in the same round")
    return state.known[name]


def _form(state: State, name: str, parameters: tuple[Any, ...], operands: tuple[Any, ...]) -> Value:
    form = FORMS[name]
    values = [evaluate(state, operand) for operand in operands]
    for kind, value in zip(form.kinds, values, strict=True):
        if not KINDS[kind](value):
            raise Ambiguous("an operand of another kind")
    if all(value.dtype in WEAK for value in values):
        raise Ambiguous("only numbers")
    given = dict(parameters)
    if "axis" in given and given["axis"] is not None:
        rank = len(values[0].shape) + (name == "expand_dims")
        if not -rank <= given["axis"] < rank:
            raise Ambiguous("no such dimension")
    if "dims" in given and len(given["dims"]) != len(values[0].shape):
        raise Ambiguous("no such dimensions")
    value = form.compute(*values, **given)
    is_moved = name in MOVED and sum(size != 1 for size in values[0].shape) > (name in RESHAPED)
    if is_moved:
        return replace(value, loaded=None)
    if value.loaded is None and any(operand.loaded is not None for operand in values):
        return replace(value, loaded=~value.exists)
    return value


def positions(state: State, parameter: str, indices: tuple[Expression, ...]) -> np.ndarray:
    """(programs, lanes…): where the elements of a selected tile are, -1 where there are none."""
    tensor = state.tensors[parameter]
    if len(indices) != len(tensor.selections):
        raise Ambiguous("another number of selections")
    index = tensor.index
    for expression, size in zip(indices, tensor.selections):
        chosen = evaluate(state, expression)
        if chosen.shape or chosen.dtype not in ("int32", "weak int"):
            raise Ambiguous("an index is a number")
        at = np.broadcast_to(chosen.data, len(index))
        if not chosen.exists.all():
            raise Ambiguous("an index that is not there")
        if size == 0:
            index = np.full((len(index), *index.shape[2:]), -1)
            continue
        at = at.reshape(-1, *(1,) * (index.ndim - 1))
        index = np.take_along_axis(index, np.clip(at, 0, size - 1), 1)
        # A tile outside of its level has no element.
        index = np.where((at < 0) | (at >= size), -1, index)[:, 0]
    return index


def _load(state: State, parameter: str, indices: tuple[Expression, ...]) -> Value:
    value = loaded(state, parameter, positions(state, parameter, indices))
    if value.exists.all():
        return value
    return replace(value, loaded=~value.exists, known=~value.exists)


def loaded(state: State, parameter: str, index: np.ndarray) -> Value:
    described = state.program.parameter(parameter)
    there = (index >= 0) & state.active.reshape(-1, *(1,) * (index.ndim - 1))
    data, error = state.memory.load(parameter, index, there)
    exists = index >= 0
    if described.other is not None:
        data = np.where(exists, data, np.array(described.other).astype(data.dtype))
        exists = np.ones(index.shape, bool)
    return Value(data, exists, error, described.dtype)


def _full(state: State, parameter: tuple[str, int], value: Any, dtype: str) -> Value:
    tensor = state.tensors[parameter[0]]
    count = len(state.active)
    rank = len(tensor.tile)
    there = padded(np.zeros((count, *tensor.tile), int), rank) >= 0
    filled = constant(value, there.shape, dtype)
    return replace(
        filled, exists=there, data=np.where(there, filled.data, np.zeros((), filled.data.dtype))
    )


def _offsets(state: State, parameter: str, indices: tuple[Expression, ...], dim: int) -> Value:
    # It goes on counting where nothing is, so an element is added to it, times 0.
    there = _load(state, parameter, indices)
    index = positions(state, parameter, indices)
    if state.program.parameter(parameter).other is not None:
        raise Ambiguous("a position beyond the tensor")
    if not np.prod(state.program.parameter(parameter).shape):
        raise Ambiguous("a position in what has no element")
    places = np.unravel_index(np.maximum(index, 0), state.program.parameter(parameter).shape)
    return replace(exact(places[dim], "int32", there.exists), loaded=there.loaded)


def _size(state: State, parameter: str, dim: int) -> Value:
    """A size: of 32 bits where a call gives it, and a number of the source where it was declared."""
    described = state.program.parameter(parameter)
    if described.knows(dim):
        return number(described.shape[dim])
    return constant(described.shape[dim], (len(state.active),), "int32")


def _choice(state: State, condition: Expression, one: Expression, other: Expression) -> Value:
    chosen = _truth(state, condition)
    left, right = spread(state, evaluate(state, one)), spread(state, evaluate(state, other))
    if left.shape != right.shape or left.dtype != right.dtype or left.dtype in WEAK:
        raise Ambiguous("a choice of several kinds")
    return merged(chosen, left, right)


def merged(chosen: np.ndarray, left: Value, right: Value) -> Value:
    """The one value in the programs that are chosen, the other in the rest."""
    lanes = chosen.reshape(-1, *(1,) * len(left.shape)) if chosen.ndim == 1 else chosen
    pairs = ((left.data, right.data), (left.exists, right.exists), (left.error, right.error))
    merged = Value(*(np.where(lanes, one, other) for one, other in pairs), left.dtype)
    if left.loaded is None and right.loaded is None:
        return merged
    known = (np.False_ if value.known is None else value.known for value in (left, right))
    return replace(merged, loaded=~merged.exists, known=~merged.exists & np.where(lanes, *known))


def _truth(state: State, condition: Expression) -> np.ndarray:
    value = spread(state, evaluate(state, condition))
    if value.shape or value.dtype != "bool" or not value.exists.all():
        raise Ambiguous("a condition is one truth")
    return value.data


def spread(state: State, value: Value) -> Value:
    """The value with a row for each program."""
    count = len(state.active)
    return value.like(lambda a: np.broadcast_to(a, (count, *a.shape[1:])))


#: What each kind of expression means; those of positions that are computed are in `places`.
EXPRESSIONS = {
    "name": _name,
    "number": lambda state, value: number(value),
    "form": _form,
    "load": _load,
    "full": _full,
    "offsets": _offsets,
    "size": _size,
    "choice": _choice,
}


# Statements.


def execute(state: State, statement: Statement) -> None:
    kind, *parts = statement
    state.evaluated.clear()
    STATEMENTS[kind](state, *parts)
    state.evaluated.clear()


def assign(state: State, name: str, value: Value) -> None:
    if value.dtype in WEAK:
        raise Ambiguous("a number alone")
    if name in dict(state.program.numbers):
        raise Ambiguous("a scalar argument is assigned")
    value = spread(state, value)
    old = state.known.get(name)
    is_carried = state.before is not None and name in state.before
    if name in state.outside and (old.shape != value.shape or old.dtype != value.dtype):
        raise Ambiguous("a variable of two kinds")
    if old is None or (state.active.all() and not is_carried):
        if not state.active.all() and state.active.any():
            raise Ambiguous("assigned in some programs only")
        state.known[name] = value
        state.stale.discard(name)
        return
    if old.shape != value.shape or old.dtype != value.dtype:
        raise Ambiguous("a variable of two kinds")
    if is_carried:
        there = state.active.reshape(-1, *(1,) * len(value.shape))
        before = state.before[name]
        if ((old.exists | before.exists) & ~value.exists & there).any():
            if name in state.stale:
                raise Ambiguous("kept twice in a round")
            state.stale.add(name)
            # A tile that is the same one in every round meets what the variable is stored to.
            unequal_meetings[0] += 1
        # What it had before the round, whatever it was given in between.
        kept = merged(value.exists, value, before)
        exists = value.exists | before.exists
        # Where neither has an element, which of both is computed on is not said here.
        loaded = None if kept.loaded is None else kept.loaded & ~exists
        value = replace(kept, exists=exists, loaded=loaded, known=None)
    state.known[name] = merged(state.active, value, old)


def _augment(state: State, name: str, operator: str, expression: Expression) -> None:
    assign(state, name, evaluate(state, ("form", operator, (), (("name", name), expression))))


def _store(state: State, parameter: str, indices: tuple[Any, ...], expression: Expression) -> None:
    value = evaluate(state, expression)
    index = positions(state, parameter, indices)
    stored(state, parameter, index, value)


def stored(
    state: State,
    parameter: str,
    index: np.ndarray,
    value: Value,
    chosen: np.ndarray | None = None,
    is_part: bool = False,
) -> None:
    """Put a value where a tile's elements are.

    Args:
        chosen: which of the positions exist that the program gives; None where it gives none.
        is_part: whether these are some of the tile's elements, or in another order.
    """
    if state.program.parameter(parameter).layout in OVERLAID:
        raise Ambiguous("an output whose elements lie over each other")
    if len(value.shape) > index.ndim - 1:
        raise Ambiguous("a value of more dimensions than the tile")
    blank = exact(np.zeros(index.shape), "int32")
    value = aligned((cast(value, state.program.parameter(parameter).dtype), blank))[0]
    if value.data.shape != index.shape:
        raise Ambiguous("a value larger than the tile")
    there = (index >= 0) & state.active.reshape(-1, *(1,) * (index.ndim - 1))
    # Other tensors' tiles, whose elements end elsewhere, are refused.
    unequal_meetings[0] += (there & ~value.exists).any()
    if chosen is not None:
        unequal_meetings[0] += (chosen != value.exists).any()
    is_stored = value.exists
    if value.loaded is not None:
        # What is computed of the 0 that was read there.
        known = np.zeros(there.shape, bool)
        if value.known is not None and not is_part:
            known = value.known
        if (there & value.loaded & ~known).any():
            raise Ambiguous("what does not exist where it was loaded is stored over what does")
        is_stored = is_stored | value.loaded
    state.memory.store(parameter, index, there & is_stored, value.data, value.error)


def _add(state: State, parameter: str, indices: Any, operator: str, expression: Expression) -> None:
    value = evaluate(state, ("form", operator, (), (("load", parameter, indices), expression)))
    stored(state, parameter, positions(state, parameter, indices), value)


def rounds(state: State, count: Any) -> range:
    """What a loop's variable is in each round."""
    kind = count[0] if isinstance(count, tuple) else None
    if kind == "reversed":
        return rounds(state, count[1])[::-1]
    if kind == "range":
        _, start, step, count = count
        return range(start, _number(state, count))[::step]
    return range(_number(state, count[1] if kind in UNROLLED else count))


def _number(state: State, count: Any) -> int:
    """A number, a scalar argument, or a level's size."""
    if isinstance(count, int):
        return count
    if isinstance(count, str):
        return int(dict(state.program.numbers)[count])
    parameter, dim = count
    sizes = state.tensors[parameter].selections
    if dim >= len(sizes):
        raise Ambiguous("no such selection")
    return sizes[dim]


def _loop(state: State, name: str, count: Any, body: tuple[Statement, ...]) -> None:
    times = rounds(state, count)
    if len(times) > MOST_ROUNDS:
        raise Ambiguous("too many rounds")
    if name in state.known:
        raise Ambiguous("a loop's variable was one before")
    if not times:
        # Types have to fit all the same.
        _rehearsed(state, name, body)
    outer, names, kept = state.before, frozenset(state.known), set(state.stale)
    around = frozenset(state.stale)
    is_unrolled = isinstance(count, tuple) and count[0] in UNROLLED
    for place in times:
        state.before, state.stale = dict(state.known), set(around)
        dtype = "weak int" if is_unrolled else "int32"
        state.known[name] = constant(place, (len(state.active),), dtype)
        run(state, body)
        for made in set(state.known) - names:
            del state.known[made]
        kept |= state.stale
    state.before = outer
    state.stale = kept & outer.keys() if outer is not None else set()


def _rehearsed(state: State, name: str, body: tuple[Statement, ...]) -> None:
    """A round of which nothing is left, in which no program takes part."""
    rehearsal = state.copy()
    rehearsal.before = dict(state.known)
    rehearsal.active = np.zeros_like(state.active)
    rehearsal.known[name] = constant(0, (len(state.active),), "int32")
    run(rehearsal, body)


def _branch(state: State, condition: Expression, body: Any, orelse: Any) -> None:
    if condition[0] == "flag":
        run(state, body if dict(state.program.flags)[condition[1]] else orelse)
        return
    chosen = _truth(state, condition)
    whole, names, outside = state.active, frozenset(state.known), state.outside
    state.outside = names
    for active, statements in ((whole & chosen, body), (whole & ~chosen, orelse)):
        if statements:
            state.active = active
            # A program that is not there has no part; a loop within would run for none.
            run(state, statements)
    state.active, state.outside = whole, outside
    for made in set(state.known) - names:
        del state.known[made]


STATEMENTS = {
    "group": run,
    "let": lambda state, name, expression: assign(state, name, evaluate(state, expression)),
    "augment": _augment,
    "store": _store,
    "put": _store,
    "add": _add,
    "for": _loop,
    "while": _loop,
    "if": _branch,
}
