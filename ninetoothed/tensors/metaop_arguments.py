"""What a user passes to a meta-operation, checked and made into one.

Checked here is what can be decided of symbolic sizes; `MetaOperation.verify` checks the rest once the
sizes are known.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ninetoothed.errors import caller_location, shown
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import (
    Expression,
    Symbol,
    as_symbol,
    is_expression,
    is_integer,
    maximum,
    minimum,
)
from ninetoothed.symbols.simplify import are_equal, difference_interval, simplify
from ninetoothed.tensors.meta_operation import Misfit, Shape, shape_text
from ninetoothed.tensors.metaops import (
    Expand,
    Flatten,
    Index,
    Pad,
    Permute,
    Resize,
    Squeeze,
    Tile,
    Unsqueeze,
)

#: Positions are numbers of 64 bits, and two of these are added.
_MOST_BITS = 62


def normalized_dim(dim: Any, count: int) -> int:
    """``dim`` counted from the start; ``count`` is how many there are to choose from."""
    if not is_integer(dim):
        raise Misfit(f"dimension {shown(dim)}", "an int")
    position = dim.__index__()
    if not -count <= position < count:
        needed = f"one from {-count} to {count - 1}" if count else "a tensor that has dimensions"
        raise Misfit(f"dimension {shown(position)}", needed)
    return position % count


def entries_for(what: str, values: Any, shape: Shape) -> tuple[Any, ...]:
    """``values`` as a tuple with one expression a dimension."""
    if is_expression(values):
        values = (values,)
    try:
        values = tuple(values)
    except TypeError:
        raise Misfit(f"{what} {shown(values)}", "a tuple of ints or Symbols") from None
    if len(values) != len(shape):
        raise Misfit(
            f"{what} {shape_text(values)} with {len(values)} entries",
            f"one entry for each of the {len(shape)} dimensions",
        )
    for value in values:
        if not is_expression(value):
            raise Misfit(f"{value!r} in {what}", "ints or Symbols")
        if not isinstance(value, Symbol) and value.__index__().bit_length() > _MOST_BITS:
            raise Misfit(f"{shown(value)} in {what}", f"numbers of {_MOST_BITS} bits at most")
    return tuple(value if isinstance(value, Symbol) else value.__index__() for value in values)


def tile(
    shape: Shape,
    tile_shape: Any,
    strides: Any = None,
    dilation: Any = None,
    floor_mode: bool = False,
) -> Tile:
    """The operation of ``Tensor.tile``."""
    sizes = entries_for("tile_shape", tile_shape, shape)
    whole = tuple(size == -1 for size in sizes)
    sizes = tuple(shape[dim] if size == -1 else simplify(size) for dim, size in enumerate(sizes))
    steps = (-1,) * len(shape) if strides is None else entries_for("strides", strides, shape)
    # A whole dimension that is stepped through is a window as long as the dimension: one tile.
    steps = tuple(sizes[dim] if step == -1 else simplify(step) for dim, step in enumerate(steps))
    gaps = (1,) * len(shape) if dilation is None else entries_for("dilation", dilation, shape)
    gaps = tuple(1 if gap == -1 else simplify(gap) for gap in gaps)
    whole = tuple(w and gap == 1 for w, gap in zip(whole, gaps))
    for what, values in (("a tile size", sizes), ("a stride", steps), ("a dilation", gaps)):
        for dim, value in enumerate(values):
            if not whole[dim] and interval(value)[1] < 1:
                raise Misfit(f"{what} of {value} in dimension {dim}", f"{what} of at least 1")
    return Tile((shape,), sizes, steps, gaps, bool(floor_mode), whole, location=caller_location())


def expand(shape: Shape, new_shape: Any) -> Expand:
    """The operation of ``Tensor.expand``."""
    sizes = entries_for("shape", new_shape, shape)
    result: list[Expression] = []
    expanded = []
    for dim, size in enumerate(sizes):
        if size != -1 and interval(size)[1] < 0:
            raise Misfit(
                f"{shown(size)} for dimension {dim}", "a size of at least 0, or -1 to keep one"
            )
        keeps = size == -1 or are_equal(size, shape[dim])
        result.append(shape[dim] if keeps else simplify(size))
        expanded.append(not keeps)
        low, high = difference_interval(shape[dim], 1)
        if not keeps and (low > 0 or high < 0):
            raise Misfit(
                f"{size} for dimension {dim}, whose size is {shape[dim]}",
                "a size of 1 there",
                "Pass -1 to keep a dimension.",
            )
    return Expand((shape,), tuple(result), tuple(expanded), location=caller_location())


def squeeze(shape: Shape, dims: Any) -> Squeeze:
    """The operation of ``Tensor.squeeze``."""
    wanted = dims if isinstance(dims, (tuple, list)) else (dims,)
    positions = tuple(normalized_dim(dim, len(shape)) for dim in wanted)
    if len(set(positions)) != len(positions):
        raise Misfit(f"dimensions {tuple(wanted)}", "each dimension once")
    for dim in positions:
        low, high = difference_interval(shape[dim], 1)
        if low > 0 or high < 0:
            raise Misfit(f"dimension {dim}, whose size is {shape[dim]}", "a dimension of size 1")
    return Squeeze((shape,), positions, location=caller_location())


def unsqueeze(shape: Shape, dim: Any) -> Unsqueeze:
    """The operation of ``Tensor.unsqueeze``."""
    position = normalized_dim(dim, len(shape) + 1)
    return Unsqueeze((shape,), position, location=caller_location())


def permute(shape: Shape, dims: Any) -> Permute:
    """The operation of ``Tensor.permute``."""
    try:
        wanted = tuple(dims)
    except TypeError:
        raise Misfit(f"{dims!r}", "a tuple with every dimension once") from None
    positions = tuple(normalized_dim(dim, len(shape)) for dim in wanted)
    if sorted(positions) != list(range(len(shape))):
        raise Misfit(f"{wanted}", f"each of the {len(shape)} dimensions once")
    return Permute((shape,), positions, location=caller_location())


def flatten(shape: Shape, start_dim: Any = None, end_dim: Any = None) -> Flatten:
    """The operation of ``Tensor.flatten``."""
    count = len(shape)
    start = 0 if start_dim is None else normalized_dim(start_dim, count)
    end = count if end_dim is None else _end(end_dim, count)
    if not start < end <= count:
        raise Misfit(
            f"start_dim={shown(start_dim)}, end_dim={shown(end_dim)} (exclusive)",
            "at least one dimension from start_dim up to end_dim",
        )
    return Flatten((shape,), start, end, location=caller_location())


def _end(end_dim: Any, count: int) -> int:
    """An exclusive end, counted from the start."""
    if not is_integer(end_dim):
        raise Misfit(f"end_dim={shown(end_dim)}", "an int")
    end = end_dim.__index__()
    return end + count if end < 0 else end


def resize(shape: Shape, new_shape: Any) -> Resize:
    """The operation of assigning ``Tensor.shape``."""
    sizes = tuple(map(simplify, new_shape))
    operation = Resize((shape,), sizes, location=caller_location())
    for need in operation.needs:
        if interval(need.expression)[1] < need.low:
            raise Misfit(need.found.format(need.value), need.what, need.remedy)
    return operation


def pad(shape: Shape, padding: Any) -> Pad:
    """The operation of ``Tensor.pad``."""
    try:
        sides = tuple((left, right) for left, right in padding)
    except (TypeError, ValueError):
        raise Misfit(f"{shown(padding)}", "one (left, right) for each dimension") from None
    if len(sides) != len(shape):
        raise Misfit(
            f"{len(sides)} pairs", f"one (left, right) for each of {len(shape)} dimensions"
        )
    for dim, pair in enumerate(sides):
        for side in pair:
            if not is_expression(side):
                raise Misfit(f"{shown(side)} in dimension {dim}", "ints or Symbols")
            if interval(side)[1] < 0:
                raise Misfit(f"{shown(side)} in dimension {dim}", "padding of at least 0")
            if not isinstance(side, Symbol) and side.__index__().bit_length() > _MOST_BITS:
                raise Misfit(
                    f"{shown(side)} in dimension {dim}", f"numbers of {_MOST_BITS} bits at most"
                )
    simplified = tuple((simplify(left), simplify(right)) for left, right in sides)
    return Pad((shape,), simplified, location=caller_location())


def subscript(shape: Shape, key: Any, jagged: Collection[int] = ()) -> Index:
    """The operation of ``tensor[key]``.

    Args:
        jagged: the dimensions whose size is the longest sequence's: none of them has one end.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = sum(1 for entry in keys if entry is not None and entry is not Ellipsis)
    if sum(1 for entry in keys if entry is Ellipsis) > 1:
        raise Misfit("several `...`", "one at most")
    if taken > len(shape):
        raise Misfit(f"{taken} indices", f"at most {len(shape)}")
    if not any(entry is Ellipsis for entry in keys):
        keys.append(Ellipsis)
    at = next(position for position, entry in enumerate(keys) if entry is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (len(shape) - taken)
    sizes = iter(shape)
    entries: list[tuple[Any, ...]] = []
    for entry in keys:
        if entry is not None and _counts_from_end(entry):
            dim = sum(1 for each in entries if each[0] != "new")
            if dim in jagged:
                raise Misfit(
                    f"{shown(entry)}, which counts from the end of dimension {dim}",
                    "positions that count from the start, since each sequence ends elsewhere",
                    "In an application `x.source[i, x.source.shape[1] - 1]` is a sequence's last; here "
                    "`.shape` has the longest one's length.",
                )
        if entry is None:
            entries.append(("new",))
        elif isinstance(entry, slice):
            entries.append(("slice", *_slice(entry, next(sizes))))
        else:
            entries.append(("int", *_position(entry, next(sizes))))
    return Index((shape,), tuple(entries), location=caller_location())


def _counts_from_end(entry: Any) -> bool:
    """Whether an index or a slice is other elements where the dimension is longer."""
    if not isinstance(entry, slice):
        return is_expression(entry) and interval(entry)[1] < 0
    is_backwards = is_integer(entry.step) and entry.step.__index__() < 0
    return (is_backwards and entry.start is None) or any(
        is_expression(bound) and interval(bound)[1] < 0 for bound in (entry.start, entry.stop)
    )


def _position(index: Any, size: Expression) -> tuple[Expression, bool]:
    """A position, and whether it was counted from the end."""
    if not is_expression(index):
        raise Misfit(f"{index!r}", "ints, slices, None and one `...`")
    if not isinstance(index, Symbol):
        index = index.__index__()
    is_from_end = interval(index)[1] < 0
    position = simplify(as_symbol(size) + index) if is_from_end else simplify(index)
    if interval(position)[1] < 0 or difference_interval(size, position)[1] <= 0:
        raise Misfit(f"index {shown(index)}", f"an index inside the dimension of size {size}")
    return position, is_from_end


def _is_of_calls(name: Symbol) -> bool:
    """Whether a call gives this: a constant or a tensor's size."""
    return name.leaf.role == "size" or (name.constexpr and name.leaf.role == "symbol")


def _held(number: Any) -> int:
    """A slice's number, or as great a one as has any meaning: what is beyond all tensors is one."""
    most = (1 << _MOST_BITS) - 1
    return max(-most, min(number.__index__(), most))


def _slice(entry: slice, size: Expression) -> tuple[Expression, ...]:
    """Start, step and number of elements of a slice, as Python clamps them; bounds that calls give."""
    step = 1 if entry.step is None else entry.step
    if not is_integer(step) or step.__index__() == 0:
        raise Misfit(f"the step {step}", "an int that is not 0")
    step = _held(step)
    bounds = (entry.start, entry.stop)
    for bound in bounds:
        if bound is not None and not is_expression(bound):
            raise Misfit(f"the bound {bound!r}", "an int or a Symbol")
    start, stop = (b if b is None or isinstance(b, Symbol) else _held(b) for b in bounds)
    entry = slice(start, stop, step)
    if all(not isinstance(value, Symbol) for value in (size, entry.start, entry.stop)):
        start, stop, step = entry.indices(size)  # type: ignore[arg-type]
        return start, step, len(range(start, stop, step))
    whole, least, most = as_symbol(size), as_symbol(0), as_symbol(size)
    if step < 0:
        least, most = as_symbol(-1), whole - 1

    def from_start(bound: Any, default: Symbol) -> Symbol:
        if bound is None:
            return default
        bound = as_symbol(bound)
        return bound + whole if interval(bound)[1] < 0 else bound

    # Clamped on one side only: what is past the other has no elements either way, and a size that stood
    # there twice would double with each slice of a slice.
    first: Expression
    end: Expression
    if step > 0:
        first, end = from_start(entry.start, least), from_start(entry.stop, most)
        first, end = simplify(maximum(first, least)), simplify(minimum(end, most))
        span = as_symbol(end) - first
    else:
        first, end = from_start(entry.start, most), from_start(entry.stop, least)
        first = simplify(minimum(first, most))
        end = simplify(maximum(end, least)) if entry.stop is not None else least
        span = as_symbol(first) - end
    count = simplify(maximum((span + (abs(step) - 1)) // abs(step), 0))
    given = [
        bound
        for bound in (entry.start, entry.stop)
        if isinstance(bound, Symbol) and interval(bound)[1] >= 0
        if all(_is_of_calls(name) for name in bound.leaves())
    ]
    return first, step, count, *given
