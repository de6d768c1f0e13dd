"""The meta-operations: each checks its arguments, gives the result's shape and maps indices.

An operation stands between *levels*: it takes the indices of the levels that it made back to the
indices of the levels that it was given. Nothing here knows of tensors' data, programs or backends.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from ninetoothed.errors import ArrangementError, Location
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, maximum
from ninetoothed.symbols.simplify import is_nonnegative, product, simplify

Shape = tuple[Expression, ...]
Indices = tuple[Symbol, ...]
#: A comparison that must hold for an element to exist.
Condition = Symbol
#: Gives the known size that an expression has.
Evaluate = Callable[[Expression], int]
#: Gives what is to stand for an expression.
Rewrite = Callable[[Expression], Expression]


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

    def conditions_of_sizes(self, *indices: Indices) -> list[Condition]:
        """Those of `conditions` that a size alone decides.

        Positions that `pad` adds and windows that overlap may lie beyond a size on purpose.
        """
        return []

    def verify(self, evaluate: Evaluate) -> None:
        """Checks, on known sizes, what could not be proved symbolically.

        Raises:
            Misfit: the sizes do not fit the operation.
        """

    def symbols(self) -> Iterator[Symbol]:
        """The names in its arguments, as they were given."""
        for entry in fields(self):
            if entry.name not in ("operand", "location"):
                for value in _flat(getattr(self, entry.name)):
                    yield from value.leaves()

    def substituted(self, function: Rewrite) -> MetaOperation:
        """This operation with ``function`` applied to every expression in it."""
        changes = {
            entry.name: _mapped(getattr(self, entry.name), function)
            for entry in fields(self)
            if entry.name != "location"
        }
        return replace(self, **changes)


class Misfit(Exception):
    """An operation does not fit its operand: what it got, what it needs, what to do.

    Whoever knows the tensor makes an error of it (`Misfit.error`); no user ever sees a Misfit.
    """

    def __init__(self, found: str, needed: str, remedy: str = "") -> None:
        super().__init__(found, needed, remedy)
        self.found, self.needed, self.remedy = found, needed, remedy

    def error(
        self,
        operation: str,
        subject: str,
        shape: Sequence[Expression],
        location: Location | None = None,
    ) -> ArrangementError:
        """The user's error: which tensor, which operation, what it got, what it needs."""
        remedy = f" {self.remedy}" if self.remedy else ""
        return ArrangementError(
            f"`{operation}` on {subject} of shape {shape_text(shape)} got {self.found}; it needs "
            f"{self.needed}.{remedy}",
            location,
        )


def shape_text(shape: Sequence[Expression]) -> str:
    """A shape as Python prints a tuple."""
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _mapped(value: Any, function: Rewrite) -> Any:
    if isinstance(value, tuple):
        return tuple(_mapped(entry, function) for entry in value)
    if isinstance(value, Symbol):
        return function(value)
    return value


def _flat(value: Any) -> Iterator[Symbol]:
    if isinstance(value, tuple):
        for entry in value:
            yield from _flat(entry)
    elif isinstance(value, Symbol):
        yield value


def _shown(value: Expression, known: int) -> str:
    """A value, and the expression that it comes from."""
    return f"{known} (`{value}`)" if isinstance(value, Symbol) else f"{known}"


def _at_least_zero(size: Expression) -> Expression:
    """A size that may be the number of tiles where not even one fits, an expression below 0."""
    return size if is_nonnegative(size) or _is_checked(size) else simplify(maximum(size, 0))


@functools.lru_cache(maxsize=4096)
def _is_checked(size: Expression) -> bool:
    """Whether only a constant of the call that is 0 or less can make a size negative.

    `Tile.verify` refuses a call in which it does.
    """
    given = [s for s in as_symbol(size).leaves() if s.constexpr and s.leaf.role == "symbol"]
    return bool(given) and not is_nonnegative(size) and is_nonnegative(size, frozenset(given))


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
        if stride != tile or dilation != 1:
            # Side by side, tiles of a negative number of elements are no more than those of none.
            size = _at_least_zero(size)
        span = as_symbol(size) - dilation * (as_symbol(tile) - 1) - 1
        rounding = 0 if self.floor_mode else stride - as_symbol(1)
        count = simplify((span + rounding + stride) // as_symbol(stride))
        return max(count, 0) if isinstance(count, int) else count

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

    def conditions_of_sizes(self, *indices: Indices) -> list[Condition]:
        sizes = zip(self.whole, self.tile_shape, self.strides, self.dilation)
        is_side_by_side = [t == stride and d == 1 for whole, t, stride, d in sizes if not whole]
        return list(itertools.compress(self.conditions(*indices), is_side_by_side))

    def verify(self, evaluate: Evaluate) -> None:
        for dim, what, value in self.checked():
            known = evaluate(value)
            if known < 1:
                raise Misfit(
                    f"a {what} of {_shown(value, known)} in dimension {dim}",
                    f"a {what} of at least 1",
                )

        for dim, size in enumerate(self.input):
            if _is_checked(size) and (known := evaluate(size)) < 0:
                raise Misfit(
                    f"a size of {_shown(size, known)} in dimension {dim}", "a size of at least 0"
                )

    def checked(self) -> Iterator[tuple[int, str, Expression]]:
        """What must be at least 1, with its dimension and what it is."""
        for dim, values in enumerate(zip(self.tile_shape, self.strides, self.dilation)):
            if not self.whole[dim]:
                for what, value in zip(("tile size", "stride", "dilation"), values):
                    yield dim, what, value


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
                raise Misfit(
                    f"{self.shape[dim]} for dimension {dim}, whose size is {size}",
                    "a size of 1 there, or -1 to keep the dimension",
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
                raise Misfit(f"dimension {dim}, whose size is {size}", "a dimension of size 1")


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

    def verify(self, evaluate: Evaluate) -> None:
        sizes = [evaluate(size) for size in self.input[self.start : self.end]]
        if math.prod(sizes) <= 0:
            return
        for dim, size in enumerate(sizes, self.start):
            # So is the number of tiles where not even one fits; the product of two is not.
            if size < 0:
                raise Misfit(
                    f"a size of {size} in dimension {dim}",
                    "sizes of at least 0",
                    "No tile fits there: pad before tiling, or make no call with such sizes.",
                )


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
        return (
            tuple(
                simplify(as_symbol(_at_least_zero(size)) + left + right)
                for size, (left, right) in padded
            ),
        )

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
                raise Misfit(f"a negative padding in dimension {dim}", "padding of at least 0")


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
                found = evaluate(entry[1])
                # What counts from the end has the size in it.
                given = found if found >= 0 else found - size
                raise Misfit(f"index {given}", f"an index from {-size} to {size - 1}")


def unravel(position: Expression, shape: Shape) -> Indices:
    """The indices of the element at ``position`` of a row-major ``shape``."""
    result = []
    for dim in range(len(shape)):
        index = as_symbol(position) // as_symbol(product(shape[dim + 1 :]))
        result.append(as_symbol(simplify(index if dim == 0 else index % as_symbol(shape[dim]))))
    return tuple(result)
