"""The meta-operations, one by one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, maximum, minimum
from ninetoothed.symbols.simplify import is_nonnegative, product, simplify
from ninetoothed.tensors.meta_operation import (
    Condition,
    Evaluate,
    Indices,
    MetaOperation,
    Misfit,
    Need,
    Shape,
)


def _shown(value: Expression) -> str:
    """A place for a value's number, and the expression that it comes from."""
    return f"{{}} (`{value}`)" if isinstance(value, Symbol) else "{}"


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


def _is_given_negative(size: Expression) -> bool:
    """Whether numbers and constants of the call alone make a size, which may be negative then.

    What tensors' sizes make negative may be the number of tiles where not even one fits.
    """
    leaves = as_symbol(size).leaves()
    return not is_nonnegative(size) and all(s.constexpr and s.leaf.role == "symbol" for s in leaves)


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
        if tile == stride == dilation == 1 and (isinstance(size, int) or size.op == "leaf"):
            # Each element is a tile.
            return max(size, 0) if isinstance(size, int) else size
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

    def conditions(self, *operands: Indices) -> list[Condition]:
        (positions,) = operands
        return [
            as_symbol(position) < as_symbol(size)
            for position, size, whole in zip(positions, self.input, self.whole)
            if not whole
        ]

    def conditions_of_sizes(self, *operands: Indices) -> list[Condition]:
        sizes = zip(self.whole, self.tile_shape, self.strides, self.dilation)
        is_side_by_side = [t == stride and d == 1 for whole, t, stride, d in sizes if not whole]
        return list(itertools.compress(self.conditions(*operands), is_side_by_side))

    def _needed(self) -> Iterator[Need]:
        for dim, values in enumerate(zip(self.tile_shape, self.strides, self.dilation)):
            if not self.whole[dim]:
                for noun, value in zip(("a tile size", "a stride", "a dilation"), values):
                    found = f"{noun} of {_shown(value)} in dimension {dim}"
                    yield Need(value, 1, None, dim, f"{noun} of at least 1", found)
        for dim, size in enumerate(self.input):
            if _is_checked(size):
                found = f"a size of {_shown(size)} in dimension {dim}"
                yield Need(size, 0, None, dim, "a size of at least 0", found)


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

    def _needed(self) -> Iterator[Need]:
        for dim, (size, new) in enumerate(zip(self.input, self.shape)):
            if self.expanded[dim]:
                found = f"{new} for dimension {dim}, whose size is {{}}"
                yield Need(size, 1, 1, dim, "a size of 1", found, "Pass -1 to keep a dimension.")
                if _is_given_negative(new):
                    found = f"{_shown(new)} for dimension {dim}"
                    remedy = "An int of -1 keeps a dimension; what a Symbol stands for does not."
                    yield Need(new, 0, None, dim, "a size of at least 0", found, remedy)


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

    def _needed(self) -> Iterator[Need]:
        for dim in self.dims:
            found = f"dimension {dim}, whose size is {{}}"
            yield Need(self.input[dim], 1, 1, dim, "a size of 1", found)


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

    def _needed(self) -> Iterator[Need]:
        sizes = self.input[self.start : self.end]
        # Where a tile does not fit even once, their number is negative, and the product of two is not.
        below_if_empty = minimum(0 - as_symbol(product(sizes)), 0)
        for dim, size in enumerate(sizes, self.start):
            yield Need(
                size,
                0,
                None,
                dim,
                "a size of at least 0",
                f"a size of {{}} in dimension {dim}",
                "No tile fits there: pad before tiling, or make no call with such sizes.",
                simplify(maximum(size, below_if_empty)),
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

    def conditions(self, *operands: Indices) -> list[Condition]:
        (positions,) = operands
        result = []
        for position, size, (left, right) in zip(positions, self.input, self.padding):
            if left != 0:
                result.append(position >= 0)
            if right != 0:
                result.append(position < as_symbol(size))
        return result

    def _needed(self) -> Iterator[Need]:
        for dim, sides in enumerate(self.padding):
            for side in sides:
                found = f"a padding of {_shown(side)} in dimension {dim}"
                yield Need(side, 0, None, dim, "a padding of at least 0", found)


@dataclass(frozen=True, eq=False)
class Index(MetaOperation):
    """Subscripts: ints, slices, None; one entry a dimension or new axis, in order."""

    #: ("int", position, whether it was counted from the end)
    #: | ("slice", start, step, size, *bounds that calls give) | ("new",)
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

    def _taken(self, kind: str) -> Iterator[tuple[int, Expression, tuple[Any, ...]]]:
        """Each dimension that an entry of a kind takes from, its size, and what the entry has."""
        old = (entry for entry in self.entries if entry[0] != "new")
        for dim, (size, entry) in enumerate(zip(self.input, old, strict=True)):
            if entry[0] == kind:
                yield dim, size, entry[1:]

    def _needed(self) -> Iterator[Need]:
        for dim, _, (_, _, _, *bounds) in self._taken("slice"):
            for bound in bounds:
                found = f"the bound {_shown(bound)} in dimension {dim}"
                remedy = "A negative int counts from the end; what a Symbol stands for does not."
                yield Need(bound, 0, None, dim, "a bound of at least 0", found, remedy)
        for dim, size, (position, _) in self._taken("int"):
            yield Need(position, 0, None, dim, "an index of at least 0", "index {}")
            needed = f"a size above the index {position}"
            beyond = simplify(as_symbol(size) - position)
            yield Need(size, 1, None, dim, needed, "a size of {}", bounded=beyond)

    def verify(self, evaluate: Evaluate) -> None:
        for _, size, (position, is_from_end) in self._taken("int"):
            found, count = evaluate(position), evaluate(size)
            if not 0 <= found < count:
                given = found - count if is_from_end else found
                # An int may count from the end; what a Symbol stands for does not.
                is_given = not is_from_end and (found < 0 or isinstance(position, Symbol))
                low = 0 if is_given else -count
                raise Misfit(f"index {given}", f"an index from {low} to {count - 1}")
        super().verify(evaluate)


@dataclass(frozen=True, eq=False)
class Resize(MetaOperation):
    """Takes the first positions of a level: what assigning ``.shape`` does."""

    shape: Shape

    name = ".shape"  # type: ignore[assignment]

    def results(self) -> tuple[Shape, ...]:
        return (self.shape,)

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        return (indices[0],)

    def _needed(self) -> Iterator[Need]:
        for dim, (size, new) in enumerate(zip(self.input, self.shape)):
            if new != size:
                most, found = _at_least_zero(size), f"a size of {{}} in dimension {dim}"
                if _is_given_negative(new):
                    yield Need(new, 0, None, dim, "a size of at least 0", found)
                yield Need(
                    new,
                    0,
                    None,
                    dim,
                    "a size that is at most the one there",
                    found,
                    "`expand` repeats a dimension of size 1, and `pad` adds positions.",
                    simplify(as_symbol(most) - new),
                )


def unravel(position: Expression, shape: Shape) -> Indices:
    """The indices of the element at ``position`` of a row-major ``shape``."""
    result = []
    for dim in range(len(shape)):
        index = as_symbol(position) // as_symbol(product(shape[dim + 1 :]))
        result.append(as_symbol(simplify(index if dim == 0 else index % as_symbol(shape[dim]))))
    return tuple(result)
