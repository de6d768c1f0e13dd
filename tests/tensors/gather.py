"""Chains of meta-operations, executed on plain NumPy arrays: the oracle of the property tests.

Nothing here knows how the package does it. A `Gathered` holds, for each element of all levels, the
element's index in the source, or -1; every operation moves that data about with explicit gathers.
"""

from __future__ import annotations

import itertools
import math
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: A chain whose result has more elements is not taken.
MOST_ELEMENTS = 4000


@dataclass(frozen=True)
class Step:
    """One operation, on the level that is ``depth`` below the outermost.

    ``symbolic`` are the arguments where sizes are not known: `expand` has -1 for what it keeps.
    """

    depth: int
    name: str
    arguments: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)
    symbolic: tuple[Any, ...] | None = None

    def __str__(self) -> str:
        parts = [repr(argument) for argument in self.arguments]
        parts += [f"{name}={value!r}" for name, value in self.keywords.items()]
        return f"{'.dtype' * self.depth}.{self.name}({', '.join(parts)})"

    def apply(self, tensor: Any, replace: Any = None) -> Any:
        """The step on a tensor; ``replace`` makes symbols of the numbers among its arguments."""
        outer = tensor
        for _ in range(self.depth - 1):
            outer = outer.dtype
        level = outer.dtype if self.depth else tensor
        arguments, keywords = self.arguments, self.keywords
        if replace is not None:
            arguments = arguments if self.symbolic is None else self.symbolic
            if self.name in _NUMERIC:
                arguments, keywords = _deeply(arguments, replace), _deeply(keywords, replace)
        result = getattr(level, self.name)(*arguments, **keywords)
        if not self.depth:
            return result
        outer.dtype = result
        return tensor


#: Operations whose arguments may be Symbols.
_NUMERIC = ("tile", "pad")


def _deeply(value: Any, replace: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_deeply(entry, replace) for entry in value)
    if isinstance(value, dict):
        return {name: _deeply(entry, replace) for name, entry in value.items()}
    return replace(value) if type(value) is int else value


class Gathered:
    """Levels of source indices: ``data`` has the axes of all levels, ``ranks`` says how many each."""

    def __init__(self, data: np.ndarray, ranks: tuple[int, ...]) -> None:
        self.data = data
        self.ranks = ranks

    @classmethod
    def source(cls, shape: tuple[int, ...]) -> Gathered:
        return cls(np.arange(math.prod(shape)).reshape(shape), (len(shape),))

    def first(self, depth: int) -> int:
        """The first axis of a level."""
        return sum(self.ranks[:depth])

    def shape(self, depth: int) -> tuple[int, ...]:
        first = self.first(depth)
        return self.data.shape[first : first + self.ranks[depth]]

    def apply(self, step: Step) -> Gathered:
        if step.name == "__getitem__":
            return self[(step.depth, *step.arguments)]
        return getattr(self, step.name)(step.depth, *step.arguments, **step.keywords)

    def _same_levels(self, depth: int, data: np.ndarray, rank: int) -> Gathered:
        return Gathered(data, (*self.ranks[:depth], rank, *self.ranks[depth + 1 :]))

    def tile(self, depth, tile_shape, strides=None, dilation=None, floor_mode=False) -> Gathered:
        first, shape = self.first(depth), self.shape(depth)
        rank = len(shape)
        data = self.data
        for dim in reversed(range(rank)):
            positions = tile_positions(
                shape[dim],
                tile_shape[dim],
                -1 if strides is None else strides[dim],
                1 if dilation is None else dilation[dim],
                floor_mode,
            )
            data = gather(data, first + dim, positions)
        # Now each dimension is followed by its tile's: all counts come before all tiles.
        outer = [first + 2 * dim for dim in range(rank)]
        inner = [first + 2 * dim + 1 for dim in range(rank)]
        rest = range(first + 2 * rank, data.ndim)
        data = data.transpose(*range(first), *outer, *inner, *rest)
        return Gathered(data, (*self.ranks[:depth], rank, rank, *self.ranks[depth + 1 :]))

    def expand(self, depth, sizes) -> Gathered:
        shape, first = list(self.data.shape), self.first(depth)
        for dim, size in enumerate(sizes, first):
            shape[dim] = shape[dim] if size == -1 else size
        return self._same_levels(depth, np.broadcast_to(self.data, shape), self.ranks[depth])

    def squeeze(self, depth, dim) -> Gathered:
        rank, first = self.ranks[depth], self.first(depth)
        dims = {d % rank for d in (dim if isinstance(dim, tuple) else (dim,))}
        data = np.squeeze(self.data, tuple(first + place for place in dims))
        return self._same_levels(depth, data, rank - len(dims))

    def unsqueeze(self, depth, dim) -> Gathered:
        rank = self.ranks[depth]
        data = np.expand_dims(self.data, self.first(depth) + dim % (rank + 1))
        return self._same_levels(depth, data, rank + 1)

    def permute(self, depth, dims) -> Gathered:
        first, rank = self.first(depth), self.ranks[depth]
        order = list(range(self.data.ndim))
        order[first : first + rank] = [first + dim % rank for dim in dims]
        return self._same_levels(depth, self.data.transpose(order), rank)

    def flatten(self, depth, start_dim=None, end_dim=None) -> Gathered:
        first, rank = self.first(depth), self.ranks[depth]
        start, stop, _ = slice(start_dim, end_dim).indices(rank)
        shape = self.data.shape
        merged = math.prod(shape[first + start : first + stop])
        data = self.data.reshape(*shape[: first + start], merged, *shape[first + stop :])
        return self._same_levels(depth, data, rank - (stop - start) + 1)

    def ravel(self, depth) -> Gathered:
        return Gathered(self.data, (*self.ranks[:depth], sum(self.ranks[depth:])))

    def pad(self, depth, pad) -> Gathered:
        first = self.first(depth)
        width = [(0, 0)] * self.data.ndim
        width[first : first + len(pad)] = pad
        padded = np.pad(self.data, width, constant_values=-1) if width else self.data
        return self._same_levels(depth, padded, self.ranks[depth])

    def __getitem__(self, arguments) -> Gathered:
        depth, key = arguments
        first, rank = self.first(depth), self.ranks[depth]
        keys = list(key) if isinstance(key, tuple) else [key]
        taken = sum(entry is not None and entry is not Ellipsis for entry in keys)
        if Ellipsis not in keys:
            keys.append(Ellipsis)
        at = keys.index(Ellipsis)
        keys[at : at + 1] = [slice(None)] * (rank - taken)
        data = self.data[(slice(None),) * first + tuple(keys)]
        return self._same_levels(depth, data, rank - self.data.ndim + data.ndim)


def tile_positions(size: int, tile: int, stride: int, dilation: int, floor: bool) -> np.ndarray:
    """The positions of all tiles' elements along a dimension: (tiles, elements of one)."""
    if tile == -1 and dilation == 1:
        return np.arange(size).reshape(1, size)
    tile = size if tile == -1 else tile
    stride = tile if stride == -1 else stride
    steps = (size - dilation * (tile - 1) - 1) / stride
    count = max((math.floor(steps) if floor else math.ceil(steps)) + 1, 0)
    return np.array(
        [
            [number * stride + element * dilation for element in range(tile)]
            for number in range(count)
        ],
        dtype=int,
    ).reshape(count, tile)


def gather(data: np.ndarray, axis: int, positions: np.ndarray) -> np.ndarray:
    """Two axes in the place of one; -1 where a position is outside."""
    size = data.shape[axis]
    inside = (positions >= 0) & (positions < size)
    if size == 0:
        shape = (*data.shape[:axis], *positions.shape, *data.shape[axis + 1 :])
        return np.full(shape, -1)
    taken = np.take(data, np.where(inside, positions, 0), axis=axis)
    mask = inside.reshape(*inside.shape, *(1,) * (data.ndim - axis - 1))
    return np.where(mask, taken, -1)


def random_chain(
    seed: int, *, is_biased: bool = False
) -> tuple[tuple[int, ...], list[Step], Gathered]:
    """A shape, a chain of operations that fit it, and what they make of it.

    Biased, most of them flatten, pad, reverse, or count from the end.
    """
    choose = random.Random(seed)
    rank = choose.choice((0, 1, 1, 2, 2, 2, 3, 3, 4))
    shape = tuple(choose.choice((0, 1, 1, 2, 3, 3, 4, 5, 6, 7)) for _ in range(rank))
    if choose.random() < 0.8:
        shape = tuple(max(size, 1) for size in shape)
    current, steps = Gathered.source(shape), []
    for _ in range(choose.randint(1, 7)):
        for _attempt in itertools.repeat(None, 20):
            step = random_step(choose, current, _BIASED if is_biased else _WEIGHTED)
            if step is None:
                continue
            result = _bounded(current, step)
            if result is not None:
                steps.append(step)
                current = result
                break
    return shape, steps, current


def _bounded(current: Gathered, step: Step) -> Gathered | None:
    if step.name == "tile" and _count_after(current, step) > MOST_ELEMENTS:
        return None
    result = current.apply(step)
    return result if result.data.size <= MOST_ELEMENTS and result.data.ndim <= 12 else None


def _count_after(current: Gathered, step: Step) -> int:
    shape = current.shape(step.depth)
    tile_shape = step.arguments[0]
    strides = step.keywords.get("strides") or (-1,) * len(shape)
    dilation = step.keywords.get("dilation") or (1,) * len(shape)
    floor = step.keywords.get("floor_mode", False)
    count = current.data.size // max(math.prod(shape), 1)
    for arguments in zip(shape, tile_shape, strides, dilation):
        count *= tile_positions(*arguments, floor).size
    return count


def random_step(choose: random.Random, current: Gathered, weighted: _Operations) -> Step | None:
    """An operation that fits a level of the tensor; None where the choice does not fit."""
    depth = choose.choice(range(len(current.ranks)))
    shape = current.shape(depth)
    name, arguments = choose.choice(weighted)
    made = arguments(choose, shape)
    return None if made is None else Step(depth, name, *made)


def _tile(choose, shape):
    sizes = tuple(choose.choice((-1, 1, 1, 2, 2, 3, 4, size + 1, max(size, 1))) for size in shape)
    keywords: dict[str, Any] = {}
    if choose.random() < 0.4:
        keywords["strides"] = tuple(choose.choice((-1, 1, 1, 2, 3)) for _ in shape)
    if choose.random() < 0.3:
        keywords["dilation"] = tuple(choose.choice((1, 1, 2, 3)) for _ in shape)
    if choose.random() < 0.3:
        keywords["floor_mode"] = True
    gaps = keywords.get("dilation", (1,) * len(shape))
    # A whole dimension of no element has no stride to default to.
    if any(t == -1 and gap != 1 and size == 0 for t, gap, size in zip(sizes, gaps, shape)):
        return None
    return (sizes,), keywords


def _expand(choose, shape):
    if 1 not in shape:
        return None
    sizes = tuple(choose.choice((-1, 1, 2, 3)) if s == 1 else choose.choice((-1, s)) for s in shape)
    return (sizes,), {}, (tuple(-1 if new == old else new for new, old in zip(sizes, shape)),)


def _squeeze(choose, shape):
    singles = [dim for dim, size in enumerate(shape) if size == 1]
    if not singles:
        return None
    chosen = choose.sample(singles, choose.randint(1, len(singles)))
    dims = tuple(choose.choice((dim, dim - len(shape))) for dim in chosen)
    return (dims[0] if len(dims) == 1 and choose.random() < 0.5 else dims,), {}


def _unsqueeze(choose, shape):
    return (choose.randint(-len(shape) - 1, len(shape)),), {}


def _permute(choose, shape):
    dims = choose.sample(range(len(shape)), len(shape))
    return (tuple(choose.choice((dim, dim - len(shape))) for dim in dims),), {}


def _flatten(choose, shape):
    if not shape:
        return None
    start = choose.randrange(len(shape))
    end = choose.randint(start + 1, len(shape))
    keywords: dict[str, Any] = {}
    if start or choose.random() < 0.5:
        keywords["start_dim"] = choose.choice((start, start - len(shape)))
    if end < len(shape) or choose.random() < 0.5:
        keywords["end_dim"] = end if end == len(shape) else choose.choice((end, end - len(shape)))
    return (), keywords


def _ravel(choose, shape):
    return (), {}


def _pad(choose, shape):
    return (tuple((choose.choice((0, 0, 1, 2)), choose.choice((0, 1, 3))) for _ in shape),), {}


def subscript(choose, shape):
    entries: list[Any] = []
    for size in shape:
        if size and choose.random() < 0.2:
            entries.append(choose.randint(-size, size - 1))
            continue
        start, stop = (choose.choice((None, choose.randint(-size - 2, size + 2))) for _ in "ab")
        entries.append(slice(start, stop, choose.choice((None, 1, 1, 2, 3, -1, -1, -2))))
    if choose.random() < 0.4:
        cut = choose.randint(0, len(entries))
        end = choose.randint(cut, len(entries))
        entries[cut:end] = [Ellipsis]
    for _ in range(choose.choice((0, 0, 0, 1, 2))):
        entries.insert(choose.randint(0, len(entries)), None)
    if len(entries) == 1 and choose.random() < 0.5:
        return (entries[0],), {}
    return (tuple(entries),), {}


def from_the_end(choose, shape):
    entries: list[Any] = []
    for size in shape:
        draw = choose.random()
        if size and draw < 0.3:
            entries.append(choose.randint(-size, -1))
        elif draw < 0.7:
            first, last = choose.choice((None, -1, size - 1)), choose.choice((None, None, -size))
            entries.append(slice(first, last, choose.choice((-1, -1, -2))))
        else:
            entries.append(slice(choose.choice((None, -size, 1 - size)), choose.choice((None, -1))))
    return (tuple(entries),), {}


_Operations = list[tuple[str, Any]]

_WEIGHTED: _Operations = [
    *[("tile", _tile)] * 6,
    *[("__getitem__", subscript)] * 3,
    *[("flatten", _flatten)] * 2,
    *[("pad", _pad)] * 2,
    *[("permute", _permute)] * 2,
    ("expand", _expand),
    ("expand", _expand),
    ("squeeze", _squeeze),
    ("squeeze", _squeeze),
    ("unsqueeze", _unsqueeze),
    ("ravel", _ravel),
]

_BIASED: _Operations = [
    *[("tile", _tile)] * 4,
    *[("__getitem__", from_the_end)] * 5,
    *[("flatten", _flatten)] * 4,
    *[("pad", _pad)] * 4,
    ("__getitem__", subscript),
    ("permute", _permute),
    ("expand", _expand),
    ("squeeze", _squeeze),
    ("unsqueeze", _unsqueeze),
    ("ravel", _ravel),
]
