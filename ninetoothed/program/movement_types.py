"""The types of what is moved or laid out anew: elements in another shape, of the type that they were."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ninetoothed.language.operations import Operation
from ninetoothed.program.typed_calls import Call, shown
from ninetoothed.program.types import Shape, ValueType, differ, is_one, together
from ninetoothed.symbols.expr import Symbol


def _moved(call: Call, shape: Shape | None) -> ValueType:
    """The elements of the first argument in another shape."""
    return replace(call.type(0), shape=shape, number=None)


def _transposed(call: Call, operation: Operation) -> ValueType:
    call.require_axes(call.listed("dims", 1))
    shape, order = call.type(0).shape, call.numbers("dims", 1)
    if shape is None or order is None:
        return _moved(call, None)
    rank = len(shape)
    if not order and operation.name == "trans":
        order = [*range(rank - 2), rank - 1, rank - 2]
    if sorted(order) != list(range(rank)):
        call.refuse(
            f"`ntl.{operation.name}` needs each of {rank} dimensions of a tile of shape "
            f"{shown(call.type(0))} once, but got {tuple(order)}."
        )
        return _moved(call, None)
    return _moved(call, tuple(shape[place] for place in order))


def _expanded(call: Call, operation: Operation) -> ValueType:
    call.require_axes(call.listed("axis", 1))
    shape, axes = call.type(0).shape, call.numbers("axis", 1)
    if shape is None or not axes:
        return _moved(call, None)
    rank = len(shape) + len(axes)
    outside = [axis for axis in axes if not -rank <= axis < rank]
    if outside:
        call.refuse(f"Axis {outside[0]} is out of range for a tile of {rank} dimensions.")
        return _moved(call, None)
    added, old = {axis % rank for axis in axes}, iter(shape)
    if len(added) < len(axes):
        call.refuse(f"`ntl.expand_dims` was given an axis twice: {tuple(axes)}.")
        return _moved(call, None)
    return _moved(call, tuple(1 if dim in added else next(old) for dim in range(rank)))


def _broadcast_to(call: Call, operation: Operation) -> ValueType:
    value, shape = call.type(0), call.sizes(1)
    call.require_tile(call.get(0), operation.name)
    if value.shape and shape is not None:
        pairs = zip(value.shape, shape)
        fits = len(value.shape) == len(shape) and not any(
            not is_one(a) and isinstance(a, int) and isinstance(b, int) and a != b for a, b in pairs
        )
        if not fits:
            call.refuse(
                f"A tile of shape {shown(value)} does not broadcast to {shown(ValueType(shape))}."
            )
    return _moved(call, shape)


def _reshaped(call: Call, operation: Operation) -> ValueType:
    value, shape = call.type(0), call.sizes(1)
    before, after = elements(value.shape), elements(shape)
    if isinstance(before, int) and isinstance(after, int) and before != after:
        call.refuse(
            f"A tile of shape {shown(value)} has {before} elements and cannot become "
            f"{shown(ValueType(shape))}, which has {after}."
        )
    return _moved(call, shape)


def elements(shape: Shape | None) -> Any:
    """How many elements there are, as a size; None where that is not known."""
    total: Any = 1
    for size in (None,) if shape is None else shape:
        if size is None or (isinstance(size, Symbol) and isinstance(total, Symbol)):
            return None
        total = total * size if isinstance(size, int) or total != 1 else size
    return total


def _broadcast_both(call: Call, operation: Operation) -> ValueType:
    both = call.type(0), call.named("other", 1)
    _require_two(call, operation)
    shape = call.met(both, operation.name)
    return ValueType(items=tuple(replace(each, shape=shape, number=None) for each in both))


def _require_two(call: Call, operation: Operation) -> None:
    """Two tiles are given."""
    one, other = operation.operands
    if call.get(0) is None or call.node_of(other, 1) is None:
        call.refuse(f"`ntl.{operation.name}` needs two tiles, `{one}` and `{other}`.")
    for node in (call.get(0), call.node_of(other, 1)):
        call.require_tile(node, operation.name)


def _pair(call: Call, operation: Operation) -> tuple[ValueType, Shape | None]:
    """Two tiles that are put together: what their elements are, and their common shape."""
    both = call.type(0), call.named(operation.operands[1], 1)
    _require_two(call, operation)
    found = together(both, call.met(both, operation.name))
    one, other = (each.dtype for each in both)
    if None not in (one, other) and one is not other:
        call.refuse(f"`ntl.{operation.name}` needs tiles of one type, but got {one} and {other}.")
    return replace(
        found, dtype=both[0].dtype if both[0].dtype is both[1].dtype else None
    ), found.shape


def _joined(call: Call, operation: Operation) -> ValueType:
    found, shape = _pair(call, operation)
    return replace(found, shape=None if shape is None else (*shape, 2))


def _doubled(call: Call, operation: Operation) -> ValueType:
    found, shape = _pair(call, operation)
    if operation.shape == "concatenated" and call.constant("can_reorder", 2) in (None, False):
        call.refuse("`ntl.cat` may reorder elements: it needs can_reorder=True.")
    if operation.shape == "concatenated":
        _require_vectors(call)
    if not shape:
        return replace(found, shape=None if shape is None else (2,))
    last = None if shape[-1] is None else 2 * shape[-1]
    return replace(found, shape=(*shape[:-1], last))


def _require_vectors(call: Call) -> None:
    one, other = call.type(0), call.named("other", 1)
    if any(each.rank not in (1, None) for each in (one, other)) or differ(one.shape, other.shape):
        call.refuse(
            f"`ntl.cat` takes two one-dimensional tiles of one shape, but got {shown(one, other)}."
        )


def _halved(call: Call, operation: Operation) -> ValueType:
    value = call.type(0)
    if value.shape is None:
        return ValueType(items=(replace(value, number=None),) * 2)
    last = value.shape[-1] if value.shape else 1
    if isinstance(last, int) and last != 2:
        call.refuse(
            f"`ntl.split` needs a last dimension of size 2, but the shape is {shown(value)}."
        )
    return ValueType(items=(replace(value, shape=value.shape[:-1], number=None),) * 2)


def _flipped(call: Call, operation: Operation) -> ValueType:
    value = call.type(0)
    call.axis("dim", 1, value.rank, -1)
    return value


def _gathered(call: Call, operation: Operation) -> ValueType:
    value, index = call.type(0), call.named("index", 1)
    if index.kind in ("float", "bool"):
        call.refuse(
            f"`ntl.gather` needs an integer index, but got {index.dtype or index.kind}: cast it."
        )
    if value.rank is not None and index.rank is not None and value.rank != index.rank:
        call.refuse(
            f"`ntl.gather` needs an index of the source's rank, but got {shown(index)} for "
            f"{shown(value)}."
        )
    axis = call.axis("axis", 2, value.rank)
    if isinstance(axis, int) and value.shape and index.shape:
        beside = [
            tuple(size for dim, size in enumerate(each.shape or ()) if dim != axis)
            for each in (value, index)
        ]
        if differ(*beside):
            call.refuse(
                f"`ntl.gather` needs an index like the source but in axis {axis}, yet got "
                f"{shown(index)} for {shown(value)}."
            )
    # It has as many dimensions as what is gathered from, where more is not known.
    if index.shape is None and value.rank is not None:
        return _moved(call, (None,) * value.rank)
    return _moved(call, index.shape)


def _raveled(call: Call, operation: Operation) -> ValueType:
    return _moved(call, (elements(call.type(0).shape),))


RULES: dict[str, Callable[[Call, Operation], ValueType]] = {
    "transposed": _transposed,
    "expanded": _expanded,
    "broadcast to": _broadcast_to,
    "reshaped": _reshaped,
    "broadcast both": _broadcast_both,
    "flipped": _flipped,
    "joined": _joined,
    "interleaved": _doubled,
    "concatenated": _doubled,
    "halved": _halved,
    "gathered": _gathered,
    "raveled": _raveled,
}
