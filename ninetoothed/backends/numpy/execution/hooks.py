"""What the hooks that `ninetoothed.backends.numpy.execution.rewrite` puts into an application do."""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ninetoothed.backends.numpy.execution.functions import (
    OPERATORS,
    OWN_BUILTINS,
    is_user_function,
    own_name,
)
from ninetoothed.backends.numpy.execution.reference import TileReference, named, place, position
from ninetoothed.backends.numpy.execution.rewrite import give_values, rewrite
from ninetoothed.backends.numpy.execution.rewrite_expressions import is_one_of
from ninetoothed.backends.numpy.execution.tensors import Place
from ninetoothed.backends.numpy.language import callbacks, hints
from ninetoothed.backends.numpy.language.memory import masked_cas
from ninetoothed.backends.numpy.values import context
from ninetoothed.backends.numpy.values.operators import (
    taken_off_zero,
    truncating_cdiv,
    truncating_divide,
    truncating_remainder,
)
from ninetoothed.backends.numpy.values.rounds import asked, counted, lasting, reached, rounds, turns
from ninetoothed.backends.numpy.values.size import Size, left_operand, typed
from ninetoothed.backends.numpy.values.tile import SeveralElementsError, Tile, as_tile
from ninetoothed.errors import caller_location
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.language.promotion import TOO_LARGE, float_type, refuse
from ninetoothed.parsing.objects import is_triton_function
from ninetoothed.symbols.expr import Symbol


def read(value: Any) -> Any:
    """The value of a tile or of a symbol; anything else is its own value."""
    kind = type(value)
    if kind is TileReference:
        return value._value()
    if kind in (tuple, list) and _has_reference(value):
        return kind(map(read, value))
    if kind is dict and _has_reference(value):
        return {key: read(item) for key, item in value.items()}
    if kind is Symbol:
        return context.value_of(value)
    return value


def _has_reference(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(map(_has_reference, value))
    if type(value) is dict:
        return any(map(_has_reference, value.values()))
    return type(value) is TileReference


def assign(current: Any, value: Any) -> Any:
    """What a parameter stands for after ``parameter = value``: a tile is stored to and stays."""
    if type(current) is TileReference:
        current._assigned(read(value))
        return current
    return value


class Outcome(NamedTuple):
    """What a helper returned, and what it assigned to its parameters last, by place and by keyword.

    The first ``bound`` places are not the caller's to give.
    """

    result: Any
    assigned: Mapping[int | str, Any]
    bound: int = 0

    def last(self, key: int | str, value: Any) -> Any:
        """The last value of the parameter handed over at ``key``; ``value`` if never assigned."""
        key = key + self.bound if isinstance(key, int) else key
        return _handed_back(self.assigned.get(key, value), value)


def _handed_back(last: Any, value: Any) -> Any:
    """What a parameter holds in the end, where the caller has other names than it for tiles."""
    if type(last) is TileReference:
        return value if last._made_from is value else last
    if type(last) in (tuple, list) and type(value) is type(last) and len(value) == len(last):
        return type(last)(map(_handed_back, last, value))
    return last


def invoke(function: Any) -> Callable[..., Outcome]:
    """``function`` in the form that rewritten code calls: on tiles themselves, with an `Outcome`."""
    if isinstance(function, functools.partial):
        bound = functools.partial(invoke(function.func), *function.args, **function.keywords)
        return _shifted(bound, len(function.args))
    if is_triton_function(function):
        return _on_values(own_name(function) or rewritten(function.fn, is_triton=True))
    if is_one_of(function, OWN_BUILTINS):
        return _on_values(_builtin(function.__name__))
    if not is_user_function(function):
        return _on_values(function)
    if isinstance(function, types.MethodType):
        return _shifted(functools.partial(invoke(function.__func__), function.__self__), 1)
    return _named_arguments(rewritten(function))


def _named_arguments(function: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """``function``, whose parameters are names of their own for the tiles that they are given."""

    def call(*arguments: Any, **keywords: Any) -> Outcome:
        return function(*map(named, arguments), **named(keywords))

    return call


def _shifted(function: Callable[..., Outcome], count: int) -> Callable[..., Outcome]:
    """``function``, whose first ``count`` parameters are not the caller's to give."""

    def call(*arguments: Any, **keywords: Any) -> Outcome:
        outcome = function(*arguments, **keywords)
        return outcome._replace(bound=outcome.bound + count)

    return call


def _on_values(function: Callable[..., Any]) -> Callable[..., Outcome]:
    """``function``, which knows nothing of tiles that their names stand for."""

    def call(*arguments: Any, **keywords: Any) -> Outcome:
        result = function(
            *(read(argument) for argument in arguments),
            **{name: read(argument) for name, argument in keywords.items()},
        )
        return Outcome(result.result if type(result) is Outcome else result, {})

    return call


def called_back(function: Any) -> Callable[..., Any]:
    """A user's function in the form that the language calls: on values, for a value."""
    invoked = invoke(function)

    def call(*arguments: Any, **keywords: Any) -> Any:
        return read(invoked(*arguments, **keywords).result)

    return call


def rewritten(function: Any, is_triton: bool = False) -> types.FunctionType:
    """The rewritten form of a user's function."""
    plain, code = rewrite(function, is_triton)
    return code.bound(plain, _HOOKS)


def _stops(value: Any, on: bool) -> bool:
    """Whether ``and`` (``on`` is True) or ``or`` ends at ``value``: both sides of a tile count."""
    if isinstance(value, Tile) and value.ndim:
        return False
    return bool(value) is not on


def _settles(value: Any, on: bool) -> bool:
    """`_stops` for what is known before a kernel runs; what is not, another operand may be a tile beside."""
    return not isinstance(value, (Tile, Size)) and bool(value) is not on


def _decides(value: Any, on: bool, *functions: Any) -> bool:
    """`_stops` where what comes after may do more than give a value, unless these functions do not: one number."""
    return _stops(value, on) if give_values(functions) else bool(value) is not on


def _after(left: Any, on: bool, value: Any, *functions: Any) -> Any:
    """What `_decides` asks for; beside ``left`` where it is a value."""
    return _HOOKS["__and__" if on else "__or__"](left, value) if give_values(functions) else value


def _logical(name: str, on: bool) -> Callable[[Any, Any], Any]:
    """``and`` (``on`` is True) or ``or`` of two values that are there, element by element of tiles."""

    def join(left: Any, right: Any) -> Any:
        if not isinstance(left, (Tile, Size)) and bool(left) is on:
            # What is known before a kernel runs leaves the other one, which may stay a tile's name.
            return right
        right = read(right)
        if any(isinstance(value, Tile) and value.ndim for value in (left, right)):
            if context.is_combining() and not all(map(_is_truth, (left, right))):
                raise SeveralElementsError(
                    f"What `{'and' if on else 'or'}` gives of numbers is one of them, for each element another.",
                    caller_location(),
                )
            return _function(name)(left, right)
        chosen, rest = (right, left) if bool(left) is on else (left, right)
        if isinstance(left, Tile | Size):
            chosen = _chosen(chosen, rest)
        missing = [mask for v in (left, right) if isinstance(v, Tile) for mask in v.validity]
        if not missing:
            return chosen
        # It exists where both do.
        kept = as_tile(chosen)
        return Tile(kept.data, kept.dtype, tuple(missing))

    return join


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool) or (isinstance(value, Tile) and value.dtype is dtypes.bool)


def _choose(test: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """One of two values; of a tile and a number, what is chosen while a kernel runs is what ``where`` gives."""
    chosen, rest = (one, other) if test else (other, one)
    value = chosen()
    if not isinstance(test, (Tile, Size)):
        return value
    return _chosen(value, _asked_for(False, rest))


def _beside(left: Any, on: bool, value: Callable[[], Any]) -> Any:
    """The operand of ``and`` or ``or`` that stands after ``left``, at which Python may end."""
    return _asked_for(not _stops(left, on), value)


def _asked_for(is_asked: bool, value: Callable[[], Any]) -> Any:
    """A value; where Python would not ask for it nothing is loaded, and its type alone is of use."""
    if is_asked:
        return value()
    with context.beside():
        return value()


def _chosen(value: Any, other: Any) -> Any:
    """What a running kernel chose of two: numbers beside one another are the kernel's."""
    both = value, other
    if type(value) in (tuple, list) and type(other) is type(value) and len(value) == len(other):
        return type(value)(map(_chosen, *both))
    if not all(isinstance(each, Tile | bool | int | float) for each in both):
        return value
    are_tiles = [isinstance(each, Tile) for each in both]
    if all(are_tiles) and (value.ndim > 0) == (other.ndim > 0):
        if value.ndim or value.dtype is other.dtype:
            return value
    is_one = type(value) is type(other) and type(value) is not Size
    if not any(are_tiles) and is_one and value == other:
        return value
    made = _function("where")(Tile.of(True, dtypes.bool), *both)
    # Of numbers the one that is chosen says whether it exists, beside a tile both do.
    return made if made.ndim else Tile(made.data, made.dtype, as_tile(value).validity)


def _met(test: Any, value: Any, before: Any = None) -> Any:
    """What a variable holds after an `if`: where the running kernel took a way, a number is one of the kernel's.

    Args:
        before: what it held before, where only the running program knows whether it was assigned.
    """
    if value is before or not isinstance(test, (Tile, Size)):
        return value
    if type(value) in (tuple, list):
        known = before if type(before) is type(value) and len(before) == len(value) else ()
        paired = itertools.zip_longest(value, known)
        return type(value)(_met(test, item, was) for item, was in paired)
    if type(value) is dict:
        return {key: _met(test, item) for key, item in value.items()}
    return as_tile(value) if isinstance(value, bool | int | float) else value


def _pick(test: Any, one: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """`_choose` where a tile may stay a tile: one does that is chosen before a kernel runs."""
    if isinstance(test, (Tile, Size)):
        return _choose(test, lambda: read(one()), lambda: read(other()))
    return one() if test else other()


def _not(value: Any) -> Any:
    return _function("logical_not")(value) if isinstance(value, Tile) else not value


def _is(left: Any, right: Any) -> bool:
    """Whether two values are one object, or one element type whatever its package calls it."""
    are_types = isinstance(left, DType) or isinstance(right, DType)
    return left is right or (are_types and left == right)


def _in(value: Any, items: Any) -> Any:
    """``value in items``; where one of both holds tiles it is asked element by element."""
    if not isinstance(items, tuple | list) or not _has_tile((value, *items)):
        return value in items
    return functools.reduce(_HOOKS["__or__"], [value == item for item in items], False)


def _has_tile(values: tuple[Any, ...]) -> bool:
    return any(isinstance(value, Tile) for value in values)


def _owner(value: Any) -> Any:
    """What a function of tiles is a member of: a number that the kernel computes is a 0-d tile."""
    return as_tile(typed(value)) if isinstance(value, (bool, int, float)) else value


def _cast(name: str, tile: Tile) -> Tile:
    """Python's ``float``, ``int`` or ``bool`` of a tile."""
    if name == "float":
        return tile.cast(float_type(tile.dtype, context.is_wide()))
    if name == "int" and tile.dtype is dtypes.uint64:
        raise refuse(TOO_LARGE)
    return tile.cast(dtypes.int64 if name == "int" else dtypes.bool)


def _builtin(name: str) -> Callable[..., Any]:
    """Python's ``max``, ``abs``, ``int`` …: of a tile it is what the language has for it."""

    is_extremum = name in ("max", "min")

    def call(*arguments: Any, **keywords: Any) -> Any:
        if name in OPERATORS and len(arguments) == 2 and not keywords:
            return OPERATORS[name](left_operand(arguments[0]), arguments[1])
        if is_extremum and len(arguments) == 1 and not isinstance(arguments[0], Tile):
            items = tuple(arguments[0])
            arguments = items if _has_tile(items) else (items,)
        if name == "float":
            arguments = tuple(map(typed, arguments))
        if not any(isinstance(argument, Tile) for argument in arguments):
            return getattr(builtins, name)(*arguments, **keywords)
        if name in ("float", "int", "bool"):
            return _cast(name, *arguments)
        return _function("abs" if name == "abs" else f"builtin_{name}")(*arguments, **keywords)

    return call


def _note_reached(lanes: dict[str, Any], value: Any, before: Any, name: str) -> None:
    """After a round of a loop: in which lanes a variable that its condition asks for got an element."""
    lanes[name] = reached(value, before, lanes.get(name))


def _asked(lanes: dict[str, Any], value: Any, before: Any, name: str) -> Any:
    """A variable in a loop's condition."""
    return asked(lasting(value, before, name), lanes.get(name))


class _Augmented:
    """What ``x[k] += value`` is done to: ``x[k]`` is loaded before ``value`` is computed."""

    def __init__(self, tiles: TileReference) -> None:
        self._tiles = tiles

    def __getitem__(self, key: Any) -> Any:
        return read(self._tiles[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._tiles[key] = value


def _augmented(value: Any) -> Any:
    return _Augmented(value) if type(value) is TileReference else value


def _atomic(name: str, target: Any, *arguments: Any, **keywords: Any) -> Any:
    """An atomic operation: on an access, elements that do not exist, of the values too, take no part.

    What takes no part is read as beyond the tensor.
    """
    function = _function(name)
    if not isinstance(target, Place):
        return function(target, *arguments, **keywords)
    function = masked_cas if name == "atomic_cas" else function
    given = inspect.signature(function).bind(target.pointer, *arguments, **keywords).arguments
    shape = target.pointer.shape
    values = [as_tile(given[key]) for key in ("val", "cmp", "mask") if key in given]
    missing = [mask for value in values for mask in value.validity]
    taking_part = missing.copy()
    if "mask" in given:
        taking_part.append(as_tile(given["mask"]).data)
    if target.report is not None:
        target.report(tuple(taking_part))
    masks = [*target.masks, *taking_part]
    if not masks:
        return function(**given)
    whole = np.broadcast_to(functools.reduce(np.logical_and, masks), shape)
    result = function(**given | {"mask": Tile(whole, dtypes.bool)})
    data = np.where(whole, result.data, target.fill)
    return Tile(data, result.dtype, (*target.validity, *missing))


def evaluator() -> Callable[[str], Callable[..., Any]]:
    """What finds the function of a name of the language."""
    from ninetoothed.backends.numpy.language.implementations import implementation

    return implementation


@functools.cache
def _function(name: str) -> Callable[..., Any]:
    return evaluator()(name)


_HOOKS: dict[str, Any] = {
    "__read__": read,
    "__assign__": assign,
    "__augmented__": _augmented,
    "__named__": named,
    "__atomic__": _atomic,
    "__place__": place,
    "__position__": position,
    "__invoke__": invoke,
    "__outcome__": Outcome,
    "__function__": called_back,
    "__lasting__": lasting,
    "__reached__": _note_reached,
    "__rounds__": rounds,
    "__turns__": turns,
    "__range__": counted,
    "__asked__": _asked,
    "__locals__": locals,
    "__value__": dict.get,
    "__stops__": _stops,
    "__settles__": _settles,
    "__decides__": _decides,
    "__after__": _after,
    "__and__": _logical("logical_and", True),
    "__or__": _logical("logical_or", False),
    "__choose__": _choose,
    "__beside__": _beside,
    "__met__": _met,
    "__pick__": _pick,
    "__not__": _not,
    "__failed__": hints.failed,
    "__holds__": hints.holds,
    "__is__": _is,
    "__in__": _in,
    "__builtin__": _builtin,
    "__quotient__": truncating_divide,
    "__upward__": truncating_cdiv,
    "__minus__": taken_off_zero,
    "__left__": left_operand,
    "__owner__": _owner,
    "__remainder__": truncating_remainder,
}

callbacks.adapt_with(called_back)
