"""A tensor argument of one launch: its memory, and how its tiles are loaded and stored."""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np

from ninetoothed import threads
from ninetoothed.backends.numpy.execution.addressing import Addressing, Sequences, Shape
from ninetoothed.backends.numpy.execution.elements import completed, positions, shape_of_all
from ninetoothed.backends.numpy.language.elements import load_elements, store_elements
from ninetoothed.backends.numpy.language.identities import all_of, in_other_lanes
from ninetoothed.backends.numpy.values.casting import cast_array
from ninetoothed.backends.numpy.values.empty import EmptyMask
from ninetoothed.backends.numpy.values.memory import Memory
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import (
    LevelMask,
    LoadedLevelMask,
    LoadedMask,
    Tile,
    Validity,
    as_tile,
    joined_validity,
)
from ninetoothed.errors import ApplicationError, OutOfBoundsError
from ninetoothed.language.dtypes import DType, int32, int64
from ninetoothed.records import dataclass


@dataclass
class Running:
    """The program that runs.

    Attributes:
        program: its index.
        linear: its number in the order in which programs run.
        loads: the tiles loaded since the last store.
        positions: where the elements exist whose positions were asked for, while that is checked.
    """

    program: Shape = ()
    linear: int = 0
    loads: dict[Any, Tile] = field(default_factory=dict)
    positions: list[np.ndarray] = field(default_factory=list)


@dataclass(frozen=True)
class TensorPlan:
    """What a plan knows of a tensor parameter: all but where its memory is.

    Attributes:
        sizes: the shape as an application has it, in which those that only a call tells are a `Size`.
        is_padded: whether `pad` adds positions beside its tiles.
        far: the dimensions along which its offsets have 64 bits; None for linear ones.
        is_viewed: whether all names of its tiles read what the tile is now: see `Program.viewed`.
    """

    name: str
    addressing: Addressing
    shape: Shape
    sizes: Shape
    strides: Shape
    dtype: DType
    other: Any
    jagged_dim: int | None
    is_padded: bool = False
    is_viewed: bool = False
    far: frozenset[int | None] = frozenset()

    @threads.cached_property
    def fill(self) -> Any:
        """What lanes outside read as."""
        tile = as_tile(0 if self.other is None else self.other)
        return np.asarray(cast_array(tile.data, tile.dtype, self.dtype))[()]


class Place(NamedTuple):
    """Elements of a tensor, for an atomic operation.

    Attributes:
        pointer: where they are.
        masks: those of the elements that are there.
        validity: those of the elements that exist when they are read.
        fill: what an element that takes no part is read as.
        report: given the masks of the elements that take part, raises where one lies outside; None
            where nothing is checked.
    """

    pointer: PointerTile
    masks: tuple[Any, ...]
    validity: Validity
    fill: Any
    report: Callable[[Validity], Any] | None = None


class Tensor:
    """A tensor argument of one launch."""

    def __init__(
        self,
        plan: TensorPlan,
        pointer: int,
        sequences: Sequences | None,
        running: Running,
        is_checked: bool,
    ) -> None:
        self.plan = plan
        self.name = plan.name
        self.shape = plan.shape
        self.strides = plan.strides
        self.dtype = plan.dtype
        self.levels = plan.addressing.levels
        self.selectable = plan.addressing.selectable
        self.is_checked = is_checked
        self.sequences = sequences
        self._running = running
        #: The names that stand for tiles, by what selects the tile.
        self.names: dict[Shape, list[weakref.ref[Any]]] = {}
        self.memory = Memory(plan.name, pointer, *self._extent(), plan.dtype)

    def program(self) -> Shape:
        """The index of the running program."""
        return self._running.program

    def own_shape(self) -> Shape:
        """The sizes; along a jagged dimension that of the program's sequence, if it has but one."""
        dim, sequences = self.plan.jagged_dim, self.sequences
        if dim is None or sequences is None:
            return self.plan.sizes
        number = np.asarray(self._indices((0,) * len(self.selectable))[0])
        if number.size != 1:
            return self.plan.sizes
        own = Size(sequences.length(number.item()))
        return (*self.plan.sizes[:dim], own, *self.plan.sizes[dim + 1 :])

    def load(self, selection: Shape) -> Tile:
        """The value of a tile: padded, 0 or ``other`` where it leaves the source or the tile."""
        loads = self._running.loads
        found = loads.get((self, selection))
        if found is None:
            masks = self._masks(selection)
            found = self._gather(self._offsets(self._indices(selection)), _in_place(masks))
            loads[self, selection] = found
        return found

    def store(self, selection: Shape, value: Any) -> None:
        """Stores a value to a tile, cast to the element type; lanes outside are left out."""
        padded = self.plan.addressing.padded
        note = "" if self.levels[-1] == padded else f", padded to {padded}"
        place = f"`{self.name}`, whose tile's shape is {self.levels[-1]}{note}"
        data = self._fitting(value, padded, place)
        offsets = self._offsets(self._indices(selection))
        missing = [m for m in as_tile(value).validity if not isinstance(m, LoadedMask)]
        masks = (*self._masks(selection), *missing)
        self._scatter(np.broadcast_to(offsets, padded), masks, data)

    def load_positions(self, selection: Shape, keys: Sequence[Any]) -> Tile:
        """``x[keys]``: elements of a tile."""
        self._check_positions(keys, "read")
        offsets, masks, shape, given = self._positions(selection, keys)
        if any(isinstance(key, Tile) and key.ndim for key in keys):
            # What positions select exists where any of it does, when it is reduced: all of it where no mask says less.
            masks = (np.broadcast_to(all_of((np.True_, *masks)), shape),)
        if self.plan.is_padded:
            # What `pad` adds is there to be read; a position that does not exist reads nothing.
            masks = (*_in_place(masks), *given)
        loaded = self._gather(offsets, masks, shape)
        # What lies beyond the tile is `other`, where there is one; a position that does not exist is nowhere.
        return loaded if self.plan.other is None else Tile(loaded.data, loaded.dtype, given)

    def store_positions(self, selection: Shape, keys: Sequence[Any], value: Any) -> None:
        """``x[keys] = value``: what of the value does not exist is left out."""
        self._check_positions(keys, "written", as_tile(value).validity)
        offsets, masks, shape, _ = self._positions(selection, keys)
        data = self._fitting(value, shape, f"elements of `{self.name}` of shape {shape}")
        masks = (*masks, *as_tile(value).validity)
        self._scatter(np.broadcast_to(offsets, shape), masks, data)

    def place(self, selection: Shape, keys: Sequence[Any]) -> Place:
        """Where ``x[keys]`` is, for an atomic operation; with no keys the whole tile."""
        offsets, masks, shape, given = self._positions(selection, keys)
        pointer = PointerTile(self.memory, np.broadcast_to(offsets, shape))
        return Place(
            pointer,
            masks,
            masks if self.plan.other is None else given,
            self.plan.fill,
            functools.partial(self._check_positions, keys, "written") if self.is_checked else None,
        )

    def place_of_elements(self, keys: Sequence[Any]) -> Place:
        """Where ``x.source[keys]`` is, for an atomic operation."""
        indices, masks, validity = self._elements(keys)
        shape = self._shape_of_all(indices)
        return Place(
            PointerTile(self.memory, np.broadcast_to(self._offsets(indices), shape)),
            masks,
            in_other_lanes(validity),
            self.plan.fill,
            functools.partial(self._elements, keys, "written") if self.is_checked else None,
        )

    def _positions(
        self, selection: Shape, keys: Sequence[Any]
    ) -> tuple[Any, tuple[Any, ...], Shape, Validity]:
        """The offsets of elements of a tile, where they exist, their shape, and where the positions do."""
        found = positions(self.name, self.levels[-1], keys)
        where = (self.sequences, self._running.program, selection, found.along)
        addressing = self.plan.addressing
        masks = addressing.masks(*where, rank=len(found.shape))
        offsets = self._offsets(addressing.indices(*where))
        return offsets, (*found.validity, *masks), found.shape, found.given

    def _check_positions(
        self, keys: Sequence[Any], access: str, taking_part: Validity = ()
    ) -> None:
        """Raises where a position is beyond a tile: what of a tile lies beyond the tensor is no mistake.

        Args:
            access: how the elements are used.
            taking_part: the masks of what is stored there.
        """
        if not self.is_checked or (access == "read" and self.plan.other is not None):
            return
        tile = self.levels[-1]
        found = positions(self.name, tile, keys)
        scalars = [key for key in keys if isinstance(key, Tile) and not key.ndim]
        exists = (*found.given, *(mask for key in scalars for mask in key.validity), *taking_part)
        for dim, (key, along) in enumerate(
            zip(completed(keys, len(tile)), found.along, strict=True)
        ):
            if isinstance(key, slice):
                continue
            is_outside = functools.reduce(operator.and_, exists, (along < 0) | (along >= tile[dim]))
            for mask in self._running.positions if access == "read" else ():
                is_outside = _at_elements(is_outside, mask)
            if is_outside.any():
                first = np.broadcast_to(along, is_outside.shape)[is_outside].reshape(-1)[0]
                raise OutOfBoundsError(
                    f"`{self.name}` is {access} at position {int(first)} in dimension {dim} of its tile, "
                    f"whose size is {tile[dim]}."
                )

    def linear_offsets(self, selection: Shape) -> Tile:
        """The linear offset in the source of each element of a tile."""
        self._note_positions(selection, range(len(self.plan.addressing.padded)))
        offsets = self._offsets(self._indices(selection))
        data = np.broadcast_to(offsets, self.plan.addressing.padded)
        return self._integers(data, None)

    def offsets_along(self, selection: Shape, dim: int) -> Tile:
        """The index along a source dimension, with the tile's dimensions that it depends on."""
        addressing = self.plan.addressing
        dims = addressing.dependences[dim]
        self._note_positions(selection, dims)
        data = np.asarray(self._indices(selection)[dim])
        if data.ndim:
            # Where the index does not depend on a lane, that dimension has size 1.
            data = data[tuple(slice(None) if d in dims else 0 for d in range(data.ndim))]
        return self._integers(np.broadcast_to(data, [addressing.padded[d] for d in dims]), dim)

    def _note_positions(self, selection: Shape, dims: Sequence[int]) -> None:
        """Where elements of a tile exist, over some of its dimensions: what is read for others is of
        no consequence."""
        mask = _conjunction(self._masks(selection)) if self.is_checked else None
        if mask is None:
            return
        rest = tuple(d for d in range(len(self.plan.addressing.padded)) if d not in dims)
        exists = np.broadcast_to(mask, self.plan.addressing.padded).any(axis=rest)
        self._running.positions.append(np.asarray(exists))

    def load_elements(self, keys: Sequence[Any]) -> Tile:
        """``x.source[keys]``: the elements at these indices, one a dimension."""
        indices, masks, validity = self._elements(keys, "read")
        shape = self._shape_of_all(indices)
        loaded = self._gather(self._offsets(indices), masks, shape)
        return Tile(loaded.data, loaded.dtype, in_other_lanes(validity))

    def store_elements(self, keys: Sequence[Any], value: Any) -> None:
        """``x.source[keys] = value``: what of the value does not exist is left out."""
        validity = as_tile(value).validity
        indices, masks, _ = self._elements(keys, "written", validity)
        shape = self._shape_of_all(indices)
        place = f"`{self.name}.source` at indices of shape {shape}"
        data = self._fitting(value, shape, place)
        self._scatter(np.broadcast_to(self._offsets(indices), shape), masks, data)

    def _shape_of_all(self, indices: Sequence[Any]) -> Shape:
        return shape_of_all(f"{self.name}.source", indices)

    def _elements(
        self, keys: Sequence[Any], access: str | None = None, taking_part: Validity = ()
    ) -> tuple[list[Any], tuple[Any, ...], Validity]:
        """Indices, the masks of those that exist, and the masks of the indices themselves.

        Args:
            keys: one a dimension.
            access: how the elements are used, where one that lies outside is to be reported.
            taking_part: the masks of what is stored there.
        """
        tiles = [as_tile(key) for key in keys]
        for dim, tile in enumerate(tiles):
            if tile.dtype.kind == "float":
                raise ApplicationError(
                    f"The index of dimension {dim} of `{self.name}.source` must be an integer, got "
                    f"{tile.dtype}."
                )
        validity = (*joined_validity(*tiles), *taking_part)
        indices = [np.asarray(tile.data).astype(np.int64) for tile in tiles]
        masks = []
        for dim, index in enumerate(indices):
            size: Any = self.shape[dim]
            if dim == self.plan.jagged_dim and self.sequences is not None:
                size = self.sequences.length(indices[0])
            is_inside = (index >= 0) & (index < size)
            if not is_inside.all():
                masks.append(is_inside)
                if self.is_checked and access is not None:
                    self._check_inside(is_inside, validity, indices, access)
        return indices, (*masks, *validity), validity

    def _check_inside(
        self, is_inside: Any, validity: Validity, indices: list[Any], access: str
    ) -> None:
        is_outside = functools.reduce(operator.and_, validity, ~is_inside)
        if access == "read":
            if self.plan.other is not None:
                return
            for exists in self._running.positions:
                is_outside = _at_elements(is_outside, exists)
        if not is_outside.any():
            return
        shape = np.broadcast_shapes(is_outside.shape, *(index.shape for index in indices))
        lane = tuple(int(place) for place in np.argwhere(np.broadcast_to(is_outside, shape))[0])
        at = tuple(int(np.broadcast_to(index, shape)[lane]) for index in indices)
        raise OutOfBoundsError(
            f"`{self.name}.source` is {access} at {at}, which is outside of its shape "
            f"{self.shape}" + (f" (lane {lane} of the index)." if lane else ".")
        )

    def _extent(self) -> tuple[Shape, Shape]:
        """Sizes and strides of what lies behind the pointer."""
        if self.sequences is None:
            return self.shape, self.strides
        sizes = list(self.shape)
        sizes[self.plan.jagged_dim or 0] = int(self.sequences.offsets[-1])
        return tuple(sizes[1:]), self.strides[1:]

    def _indices(self, selection: Shape) -> tuple[Any, ...]:
        return self.plan.addressing.indices(self.sequences, self._running.program, selection)

    def _masks(self, selection: Shape) -> tuple[Any, ...]:
        return self.plan.addressing.masks(self.sequences, self._running.program, selection)

    def _offsets(self, indices: Sequence[Any]) -> Any:
        """The offset from the tensor's first element at these indices."""
        total: Any = 0
        for dim, (index, stride) in enumerate(zip(indices, self.strides, strict=True)):
            if self.sequences is not None:
                if dim == 0:
                    continue
                if dim == self.plan.jagged_dim:
                    index = index + self.sequences.start(indices[0])
            total = total + index * stride
        return np.asarray(total, dtype=np.int64)

    def _gather(self, offsets: Any, masks: tuple[Any, ...], shape: Shape | None = None) -> Tile:
        shape = self.plan.addressing.padded if shape is None else shape
        pointer = PointerTile(self.memory, np.broadcast_to(offsets, shape))
        data = load_elements(pointer, _conjunction(masks), self.plan.fill)
        return Tile(data, self.dtype, masks if self.plan.other is None else ())

    def _scatter(self, offsets: np.ndarray, masks: tuple[Any, ...], data: Any) -> None:
        store_elements(PointerTile(self.memory, offsets), data, _conjunction(masks))

    def _fitting(self, value: Any, shape: Shape, place: str) -> Any:
        """A value's elements as those of the tensor, where they fit such a shape."""
        data = np.asarray(as_tile(value).to(self.dtype).data)
        if not _broadcasts(data.shape, shape):
            raise ApplicationError(f"A value of shape {data.shape} cannot be stored to {place}.")
        return data

    def _integers(self, data: np.ndarray, dim: int | None) -> Tile:
        dtype = int64 if dim in self.plan.far else int32
        return Tile(data.astype(dtype.numpy)[()], dtype)


def _at_elements(is_outside: Any, exists: np.ndarray) -> Any:
    """The lanes that lie outside, but those of positions of a tile where it has no element."""
    if exists.shape == is_outside.shape:
        return is_outside & exists
    if exists.ndim == 1:
        for dim, size in enumerate(is_outside.shape):
            if size == exists.size:
                beside = [-1 if d == dim else 1 for d in range(is_outside.ndim)]
                is_outside = is_outside & exists.reshape(beside)
    return is_outside


def _in_place(masks: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(
        mask
        if isinstance(mask, EmptyMask)
        else mask.view(LoadedLevelMask if isinstance(mask, LevelMask) else LoadedMask)
        for mask in masks
    )


def _conjunction(masks: Sequence[Any]) -> Any:
    """Where all masks hold; None for everywhere."""
    return functools.reduce(operator.and_, masks) if masks else None


def _broadcasts(shape: Shape, target: Shape) -> bool:
    if len(shape) > len(target):
        return False
    ends = zip(reversed(shape), reversed(target), strict=False)
    return all(size in (1, wanted) for size, wanted in ends)
