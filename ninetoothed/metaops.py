"""The meta-operations: each checks its arguments, gives the result's shape and maps indices.

An operation stands between *levels*: it takes the indices of the levels that it made back to the
indices of the levels that it was given. Nothing here knows of tensors' data, programs or backends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ninetoothed.errors import ArrangementError, Location, caller_location
from ninetoothed.expr import Expression, Symbol, as_symbol, is_expression, maximum, minimum
from ninetoothed.simplify import difference, interval, product, simplify

Shape = tuple[Expression, ...]
Indices = tuple[Symbol, ...]
#: What an operation needs for an element to be inside: pairs (index, size), ``0 <= index < size``,
#: of which the lower part may be known to hold.
Condition = Symbol
Evaluate = Callable[[Expression], int]


@dataclass(frozen=True, eq=False)
class MetaOperation:
    """One meta-operation between levels.

    Attributes:
        operand: the shapes of the levels that it was given, outermost first.
        location: where the user wrote it.
    """

    operand: tuple[Shape, ...]
    location: Location | None = field(kw_only=True, default=None)

    @property
    def input(self) -> Shape:
        """The shape of the one level that it was given."""
        return self.operand[0]

    @property
    def name(self) -> str:
        return type(self).__name__.lower()

    def results(self) -> tuple[Shape, ...]:
        """The shapes of the levels that it makes, outermost first."""
        raise NotImplementedError

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        """The operand levels' indices at the given indices of the result's levels."""
        raise NotImplementedError

    def conditions(self, *indices: Indices) -> list[Condition]:
        """What must hold for the operand's element to exist."""
        return []

    def verify(self, evaluate: Evaluate) -> None:
        """Checks, on known sizes, what could not be proved symbolically.

        Raises:
            ArrangementError: the sizes do not fit the operation.
        """

    def substituted(self, function: Callable[[Expression], Expression]) -> MetaOperation:
        """This operation with ``function`` applied to every expression in it."""
        changes = {
            entry.name: _mapped(getattr(self, entry.name), function)
            for entry in fields(self)
            if entry.name != "location"
        }
        return replace(self, **changes)

    def fail(self, found: str, needed: str, remedy: str) -> ArrangementError:
        """The error that this operation does not fit its operand."""
        return error(self.name, self.operand[0], found, needed, remedy, self.location)


def error(
    operation: str,
    shape: Shape,
    found: str,
    needed: str,
    remedy: str = "",
    location: Location | None = None,
    tensor: str | None = None,
) -> ArrangementError:
    """An error of a meta-operation: which, on what, what it got, what it needs, what to do."""
    subject = f"`{operation}` on {tensor or 'a level'} of shape {shape_text(shape)}"
    remedy = f" {remedy}" if remedy else ""
    return ArrangementError(
        f"{subject} got {found}; it needs {needed}.{remedy}", location or caller_location()
    )


def shape_text(shape: Sequence[Expression]) -> str:
    """A shape as Python prints a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _mapped(value: Any, function: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, tuple):
        return tuple(_mapped(entry, function) for entry in value)
    if isinstance(value, Symbol):
        return function(value)
    return value


def _at_least_zero(value: Expression) -> Expression:
    return max(value, 0) if isinstance(value, int) else value


@dataclass(frozen=True, eq=False)
class Tile(MetaOperation):
    """Two levels: the outer counts tiles, the inner is one tile. Paper, section 3.1."""

    tile_shape: Shape
    strides: Shape
    dilation: Shape
    floor_mode: bool
    #: Whether a dimension is taken whole: one tile, however long it is.
    whole: tuple[bool, ...]

    def results(self) -> tuple[Shape, ...]:
        outer = tuple(self._count(dim) for dim in range(len(self.tile_shape)))
        sizes = zip(self.whole, self.input, self.tile_shape)
        return outer, tuple(size if whole else tile for whole, size, tile in sizes)

    def _count(self, dim: int) -> Expression:
        size, tile = self.input[dim], self.tile_shape[dim]
        stride, dilation = self.strides[dim], self.dilation[dim]
        if self.whole[dim]:
            return 1
        span = as_symbol(size) - dilation * (as_symbol(tile) - 1) - 1
        rounding = 0 if self.floor_mode else stride - as_symbol(1)
        # floor(a / s) + 1 as (a + s) // s: then it is the same where division truncates.
        return _at_least_zero(simplify((span + rounding + stride) // as_symbol(stride)))

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        outer, inner = indices
        mapped = zip(outer, inner, self.strides, self.dilation, self.whole)
        return (
            tuple(
                as_symbol(simplify((0 if whole else o * stride) + i * as_symbol(dilation)))
                for o, i, stride, dilation, whole in mapped
            ),
        )

    def conditions(self, *indices: Indices) -> list[Condition]:
        (positions,) = self.operand_indices(*indices)
        return [
            as_symbol(position) < as_symbol(size)
            for position, size, whole in zip(positions, self.input, self.whole)
            if not whole
        ]

    def verify(self, evaluate: Evaluate) -> None:
        for dim, (tile, stride, dilation) in enumerate(
            zip(self.tile_shape, self.strides, self.dilation)
        ):
            if self.whole[dim]:
                continue
            for what, value in (("tile size", tile), ("stride", stride), ("dilation", dilation)):
                known = evaluate(value)
                if known < 1:
                    raise self.fail(
                        f"a {what} of {known} (`{value}`) in dimension {dim}",
                        f"a {what} of at least 1",
                        "",
                    )


@dataclass(frozen=True, eq=False)
class Expand(MetaOperation):
    """Repeats singleton dimensions."""

    shape: Shape
    expanded: tuple[bool, ...]

    def results(self) -> tuple[Shape, ...]:
        sizes = zip(self.expanded, self.input, self.shape)
        return (tuple(new if expanded else size for expanded, size, new in sizes),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        (index,) = indices
        zero = as_symbol(0)
        return (tuple(zero if e else i for i, e in zip(index, self.expanded)),)

    def verify(self, evaluate: Evaluate) -> None:
        for dim, expanded in enumerate(self.expanded):
            size = evaluate(self.input[dim])
            if expanded and size != 1:
                raise self.fail(
                    f"{self.shape[dim]} for dimension {dim}, whose size is {size}",
                    "a size of 1 there, or -1 to keep the dimension",
                    "",
                )


@dataclass(frozen=True, eq=False)
class Squeeze(MetaOperation):
    """Removes singleton dimensions."""

    dims: tuple[int, ...]

    def results(self) -> tuple[Shape, ...]:
        return (tuple(size for dim, size in enumerate(self.input) if dim not in self.dims),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        remaining = iter(indices[0])
        zero = as_symbol(0)
        return (tuple(zero if d in self.dims else next(remaining) for d in range(len(self.input))),)

    def verify(self, evaluate: Evaluate) -> None:
        for dim in self.dims:
            size = evaluate(self.input[dim])
            if size != 1:
                raise self.fail(
                    f"dimension {dim}, whose size is {size}", "a dimension of size 1", ""
                )


@dataclass(frozen=True, eq=False)
class Unsqueeze(MetaOperation):
    """Inserts a dimension of size 1."""

    dim: int

    def results(self) -> tuple[Shape, ...]:
        return ((*self.input[: self.dim], 1, *self.input[self.dim :]),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        (index,) = indices
        return (index[: self.dim] + index[self.dim + 1 :],)


@dataclass(frozen=True, eq=False)
class Permute(MetaOperation):
    """Reorders dimensions."""

    dims: tuple[int, ...]

    def results(self) -> tuple[Shape, ...]:
        return (tuple(self.input[dim] for dim in self.dims),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        (index,) = indices
        return (tuple(index[self.dims.index(dim)] for dim in range(len(self.dims))),)


@dataclass(frozen=True, eq=False)
class Flatten(MetaOperation):
    """Merges the dimensions from ``start`` up to ``end``, exclusive."""

    start: int
    end: int

    def results(self) -> tuple[Shape, ...]:
        merged = product(self.input[self.start : self.end])
        return ((*self.input[: self.start], merged, *self.input[self.end :]),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        (index,) = indices
        merged = unravel(index[self.start], self.input[self.start : self.end])
        return (index[: self.start] + merged + index[self.start + 1 :],)


@dataclass(frozen=True, eq=False)
class Ravel(MetaOperation):
    """Merges all levels into one, outermost first."""

    def results(self) -> tuple[Shape, ...]:
        return (tuple(size for level in self.operand for size in level),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        remaining = iter(indices[0])
        return tuple(tuple(next(remaining) for _ in level) for level in self.operand)


@dataclass(frozen=True, eq=False)
class Pad(MetaOperation):
    """Adds positions before and after; they read as ``other``."""

    padding: tuple[tuple[Expression, Expression], ...]

    def results(self) -> tuple[Shape, ...]:
        padded = zip(self.input, self.padding)
        return (tuple(simplify(as_symbol(size) + left + right) for size, (left, right) in padded),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        (index,) = indices
        shifted = zip(index, self.padding)
        return (tuple(as_symbol(simplify(position - left)) for position, (left, _) in shifted),)

    def conditions(self, *indices: Indices) -> list[Condition]:
        (positions,) = self.operand_indices(*indices)
        result = []
        for position, size, (left, right) in zip(positions, self.input, self.padding):
            if left != 0:
                result.append(position >= 0)
            if right != 0:
                result.append(position < as_symbol(size))
        return result

    def verify(self, evaluate: Evaluate) -> None:
        for dim, sides in enumerate(self.padding):
            if any(evaluate(side) < 0 for side in sides):
                raise self.fail(
                    f"a negative padding in dimension {dim}", "padding of at least 0", ""
                )


@dataclass(frozen=True, eq=False)
class Index(MetaOperation):
    """Subscripts: ints, slices, None; one entry a dimension or new axis, in order."""

    #: ("int", position) | ("slice", start, step, size) | ("new",)
    entries: tuple[tuple[Any, ...], ...]

    name = "[...]"  # type: ignore[assignment]

    def results(self) -> tuple[Shape, ...]:
        sizes = {
            "slice": lambda entry: (entry[3],),
            "new": lambda entry: (1,),
            "int": lambda entry: (),
        }
        return (tuple(size for entry in self.entries for size in sizes[entry[0]](entry)),)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        remaining = iter(indices[0])
        result: list[Symbol] = []
        for entry in self.entries:
            if entry[0] == "int":
                result.append(as_symbol(entry[1]))
            elif entry[0] == "new":
                next(remaining)
            else:
                result.append(as_symbol(simplify(entry[1] + next(remaining) * as_symbol(entry[2]))))
        return (tuple(result),)

    def verify(self, evaluate: Evaluate) -> None:
        sizes = iter(self.input)
        for entry in self.entries:
            size = evaluate(next(sizes)) if entry[0] != "new" else 0
            if entry[0] == "int" and not 0 <= evaluate(entry[1]) < size:
                raise self.fail(
                    f"index {evaluate(entry[1])}", f"an index below the size, {size}", ""
                )


def unravel(position: Expression, shape: Shape) -> Indices:
    """The indices of the element at ``position`` of a row-major ``shape``."""
    result = []
    for dim in range(len(shape)):
        index = as_symbol(position) // as_symbol(product(shape[dim + 1 :]))
        result.append(as_symbol(simplify(index if dim == 0 else index % as_symbol(shape[dim]))))
    return tuple(result)


# What a user passes, made into operations.


def normalized_dim(operation: str, dim: Any, count: int, shape: Shape) -> int:
    """``dim`` counted from the start; ``count`` is how many there are to choose from."""
    if not hasattr(dim, "__index__") or isinstance(dim, Symbol):
        raise error(operation, shape, f"dimension {dim!r}", "an int")
    position = dim.__index__()
    if not -count <= position < count:
        raise error(operation, shape, f"dimension {position}", f"one from {-count} to {count - 1}")
    return position % count


def entries_for(operation: str, what: str, values: Any, shape: Shape) -> tuple[Any, ...]:
    """``values`` as a tuple with one expression a dimension."""
    if is_expression(values):
        values = (values,)
    try:
        values = tuple(values)
    except TypeError:
        raise error(operation, shape, f"{what} {values!r}", "a tuple of ints or Symbols") from None
    if len(values) != len(shape):
        raise error(
            operation,
            shape,
            f"{what} {shape_text(values)} with {len(values)} entries",
            f"one entry for each of the {len(shape)} dimensions",
        )
    for value in values:
        if not is_expression(value):
            raise error(operation, shape, f"{value!r} in {what}", "ints or Symbols")
    return tuple(value if isinstance(value, Symbol) else value.__index__() for value in values)


def tile(
    shape: Shape,
    tile_shape: Any,
    strides: Any = None,
    dilation: Any = None,
    floor_mode: bool = False,
) -> Tile:
    """The operation of ``Tensor.tile``."""
    sizes = entries_for("tile", "tile_shape", tile_shape, shape)
    whole = tuple(size == -1 for size in sizes)
    sizes = tuple(shape[dim] if size == -1 else simplify(size) for dim, size in enumerate(sizes))
    steps = (
        (-1,) * len(shape) if strides is None else entries_for("tile", "strides", strides, shape)
    )
    # A whole dimension that is stepped through is a window as long as the dimension: one tile.
    steps = tuple(sizes[dim] if step == -1 else simplify(step) for dim, step in enumerate(steps))
    gaps = (
        (1,) * len(shape) if dilation is None else entries_for("tile", "dilation", dilation, shape)
    )
    gaps = tuple(1 if gap == -1 else simplify(gap) for gap in gaps)
    whole = tuple(w and gap == 1 for w, gap in zip(whole, gaps))
    for what, values in (("a tile size", sizes), ("a stride", steps), ("a dilation", gaps)):
        for dim, value in enumerate(values):
            if not whole[dim] and interval(value)[1] < 1:
                raise error(
                    "tile", shape, f"{what} of {value} in dimension {dim}", f"{what} of at least 1"
                )
    return Tile((shape,), sizes, steps, gaps, bool(floor_mode), whole, location=caller_location())


def expand(shape: Shape, new_shape: Any) -> Expand:
    """The operation of ``Tensor.expand``."""
    sizes = entries_for("expand", "shape", new_shape, shape)
    result: list[Expression] = []
    expanded = []
    for dim, size in enumerate(sizes):
        keeps = size == -1 or difference(size, shape[dim]) == 0
        result.append(shape[dim] if keeps else simplify(size))
        expanded.append(not keeps)
        low, high = interval(difference(shape[dim], 1))
        if not keeps and (low > 0 or high < 0):
            raise error(
                "expand",
                shape,
                f"{size} for dimension {dim}, whose size is {shape[dim]}",
                "a size of 1 there",
                "Pass -1 to keep a dimension.",
            )
    return Expand((shape,), tuple(result), tuple(expanded), location=caller_location())


def squeeze(shape: Shape, dims: Any) -> Squeeze:
    """The operation of ``Tensor.squeeze``."""
    wanted = dims if isinstance(dims, (tuple, list)) else (dims,)
    positions = tuple(normalized_dim("squeeze", dim, len(shape), shape) for dim in wanted)
    if len(set(positions)) != len(positions):
        raise error("squeeze", shape, f"dimensions {tuple(wanted)}", "each dimension once")
    for dim in positions:
        low, high = interval(difference(shape[dim], 1))
        if low > 0 or high < 0:
            raise error(
                "squeeze",
                shape,
                f"dimension {dim}, whose size is {shape[dim]}",
                "a dimension of size 1",
            )
    return Squeeze((shape,), positions, location=caller_location())


def unsqueeze(shape: Shape, dim: Any) -> Unsqueeze:
    """The operation of ``Tensor.unsqueeze``."""
    position = normalized_dim("unsqueeze", dim, len(shape) + 1, shape)
    return Unsqueeze((shape,), position, location=caller_location())


def permute(shape: Shape, dims: Any) -> Permute:
    """The operation of ``Tensor.permute``."""
    try:
        wanted = tuple(dims)
    except TypeError:
        raise error("permute", shape, f"{dims!r}", "a tuple with every dimension once") from None
    positions = tuple(normalized_dim("permute", dim, len(shape), shape) for dim in wanted)
    if sorted(positions) != list(range(len(shape))):
        raise error("permute", shape, f"{wanted}", f"each of the {len(shape)} dimensions once")
    return Permute((shape,), positions, location=caller_location())


def flatten(shape: Shape, start_dim: Any = None, end_dim: Any = None) -> Flatten:
    """The operation of ``Tensor.flatten``."""
    count = len(shape)
    start = 0 if start_dim is None else normalized_dim("flatten", start_dim, count, shape)
    end = count if end_dim is None else end_dim.__index__()
    if end < 0:
        end += count
    if not start < end <= count:
        raise error(
            "flatten",
            shape,
            f"start_dim={start_dim}, end_dim={end_dim} (exclusive)",
            "at least one dimension from start_dim up to end_dim",
        )
    return Flatten((shape,), start, end, location=caller_location())


def pad(shape: Shape, padding: Any) -> Pad:
    """The operation of ``Tensor.pad``."""
    try:
        sides = tuple((left, right) for left, right in padding)
    except (TypeError, ValueError):
        raise error("pad", shape, f"{padding!r}", "one (left, right) for each dimension") from None
    if len(sides) != len(shape):
        raise error(
            "pad",
            shape,
            f"{len(sides)} pairs",
            f"one (left, right) for each of {len(shape)} dimensions",
        )
    for dim, pair in enumerate(sides):
        for side in pair:
            if not is_expression(side):
                raise error("pad", shape, f"{side!r} in dimension {dim}", "ints or Symbols")
            if interval(side)[1] < 0:
                raise error("pad", shape, f"{side} in dimension {dim}", "padding of at least 0")
    simplified = tuple((simplify(left), simplify(right)) for left, right in sides)
    return Pad((shape,), simplified, location=caller_location())


def subscript(shape: Shape, key: Any) -> Index:
    """The operation of ``tensor[key]``."""
    keys = list(key) if isinstance(key, tuple) else [key]
    taken = sum(1 for entry in keys if entry is not None and entry is not Ellipsis)
    if sum(1 for entry in keys if entry is Ellipsis) > 1:
        raise error("[...]", shape, "several `...`", "one at most")
    if taken > len(shape):
        raise error("[...]", shape, f"{taken} indices", f"at most {len(shape)}")
    if not any(entry is Ellipsis for entry in keys):
        keys.append(Ellipsis)
    at = next(position for position, entry in enumerate(keys) if entry is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (len(shape) - taken)
    sizes = iter(shape)
    entries: list[tuple[Any, ...]] = []
    for entry in keys:
        if entry is None:
            entries.append(("new",))
        elif isinstance(entry, slice):
            entries.append(("slice", *_slice(shape, entry, next(sizes))))
        else:
            entries.append(("int", _position(shape, entry, next(sizes))))
    return Index((shape,), tuple(entries), location=caller_location())


def _position(shape: Shape, index: Any, size: Expression) -> Expression:
    if not is_expression(index):
        raise error("[...]", shape, f"{index!r}", "ints, slices, None and one `...`")
    if not isinstance(index, Symbol):
        index = index.__index__()
    position = simplify(as_symbol(size) + index) if interval(index)[1] < 0 else simplify(index)
    if interval(position)[1] < 0 or interval(difference(size, position))[1] <= 0:
        raise error(
            "[...]", shape, f"index {index}", f"an index inside the dimension of size {size}"
        )
    return position


def _slice(
    shape: Shape, entry: slice, size: Expression
) -> tuple[Expression, Expression, Expression]:
    """Start, step and number of elements of a slice, as Python clamps them."""
    step = 1 if entry.step is None else entry.step
    if not hasattr(step, "__index__") or step.__index__() == 0:
        raise error("[...]", shape, f"the step {step}", "an int that is not 0")
    step = step.__index__()
    for bound in (entry.start, entry.stop):
        if bound is not None and not is_expression(bound):
            raise error("[...]", shape, f"the bound {bound!r}", "an int or a Symbol")
    if all(not isinstance(value, Symbol) for value in (size, entry.start, entry.stop)):
        start, stop, step = entry.indices(size)  # type: ignore[arg-type]
        return start, step, len(range(start, stop, step))
    last = as_symbol(size) - 1
    low, high = (as_symbol(0), as_symbol(size)) if step > 0 else (as_symbol(-1), last)

    def clamped(bound: Any, default: Symbol) -> Symbol:
        if bound is None:
            return default
        bound = as_symbol(bound)
        bound = bound + size if interval(bound)[1] < 0 else bound
        return as_symbol(simplify(maximum(minimum(bound, high), low)))

    first = clamped(entry.start, low if step > 0 else last)
    end = clamped(entry.stop, high if step > 0 else as_symbol(-1))
    span = (end - first) if step > 0 else (first - end)
    count = simplify(maximum((span + (abs(step) - 1)) // abs(step), 0))
    return simplify(first), step, count
