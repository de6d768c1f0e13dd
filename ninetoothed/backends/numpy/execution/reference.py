"""What a parameter's name stands for in a running program: a tile's place, not its value."""

from __future__ import annotations

import enum
import operator
import weakref
from collections.abc import Callable
from typing import Any

from ninetoothed.backends.numpy.execution.elements import is_reshaped_only
from ninetoothed.backends.numpy.execution.tensors import Tensor
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.size import Size
from ninetoothed.backends.numpy.values.tile import Member, Tile, member_value
from ninetoothed.errors import ApplicationError, ArgumentError, OutOfBoundsError
from ninetoothed.language.dtypes import DType


class Level:
    """An inner level, as ``x.dtype`` shows it where the elements of ``x`` are tiles."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape = shape
        self.dtype = dtype

    @property
    def ndim(self) -> int:
        """The level's number of dimensions."""
        return len(self.shape)

    def __repr__(self) -> str:
        return f"Level(shape={self.shape}, dtype={self.dtype!r})"


class TileReference:
    """A parameter, or what ``x[k]`` selects in it. Complete once every middle level is selected.

    Metadata is read off it; anything else that is asked of it acts on the loaded value.
    """

    __slots__ = ("__weakref__", "_argument", "_before", "_level", "_made_from", "_selection")

    def __init__(self, argument: Tensor, selection: tuple[int, ...] = (), level: int = 0) -> None:
        self._argument = argument
        #: The name that this one was made from, where it is not the application's own.
        self._made_from: TileReference | None = None
        #: What the tile was before it was stored to under another name.
        self._before: Tile | None = None
        self._selection = selection
        #: The level that is named: 0 is the one below the grid's.
        self._level = level

    @property
    def _selected_level(self) -> int:
        """The level that a subscript selects in; levels without dimensions are passed by."""
        levels, level = self._argument.levels, self._level
        while level < len(levels) - 1 and not levels[level]:
            level += 1
        return level

    @property
    def _is_complete(self) -> bool:
        return self._selected_level >= len(self._argument.levels) - 1

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is named: of a tile its own, not the padded one."""
        levels = self._argument.levels
        return levels[self._level] if self._level < len(levels) else ()

    @property
    def ndim(self) -> int:
        """The number of dimensions of what is named."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The inner level where the elements are tiles, else the element type."""
        dtype: Any = self._argument.dtype
        for shape in reversed(self._argument.levels[self._level + 1 :]):
            dtype = Level(shape, dtype)
        return dtype

    @property
    def source(self) -> Source:
        """The whole tensor."""
        return Source(self._argument)

    def data_ptr(self) -> PointerTile:
        """The pointer to the first element of the whole tensor."""
        return PointerTile(self._argument.memory, 0)

    def stride(self, dim: int) -> int:
        """The whole tensor's stride along ``dim``, in elements."""
        return self.source.stride(dim)

    @property
    def strides(self) -> tuple[int, ...]:
        """The whole tensor's strides, in elements."""
        return self.source.strides

    def offsets(self, dim: int | None = None) -> Tile:
        """Each element's index along the source's dimension ``dim``, or its linear offset."""
        self._require_complete("`.offsets()`")
        if dim is None:
            return self._argument.linear_offsets(self._selection)
        ndim = len(self._argument.shape)
        if not -ndim <= (dim := operator.index(dim)) < ndim:
            raise ApplicationError(
                f"`{self._argument.name}` has no source dimension {dim}; it has {ndim}."
            )
        return self._argument.offsets_along(self._selection, dim % ndim)

    def __getitem__(self, key: Any) -> Any:
        if self._is_complete:
            keys = key if isinstance(key, tuple) else (key,)
            if is_reshaped_only(keys):
                return self._load()[key]
            return self._argument.load_positions(self._selection, tuple(map(read, keys)))
        level, name = self._selected_level, self._argument.name
        shape = self._argument.levels[level]
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != len(shape):
            raise ApplicationError(
                f"`{name}` names tiles of shape {shape} here, so it takes {len(shape)} indices, "
                f"but got {len(keys)}."
            )
        chosen = tuple(_index(item, size, name) for item, size in zip(keys, shape, strict=True))
        selected = TileReference(self._argument, self._selection + chosen, level + 1)
        if self._argument.plan.other is None:
            selected._require_within()
        return selected

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._is_complete:
            keys = key if isinstance(key, tuple) else (key,)
            if is_reshaped_only(keys):
                self._store(value)
            else:
                keys = tuple(map(read, keys))
                self._argument.store_positions(self._selection, keys, value)
            return
        self[key]._assigned(value)

    def _named(self) -> TileReference:
        """The same for another name, which goes on seeing what the tile is now: see `parsing.holds`."""
        if not self._is_complete or self._argument.plan.is_viewed:
            return self
        named = TileReference(self._argument, self._selection, self._level)
        named._made_from, named._before = self, self._before
        names = self._argument.names.setdefault(self._selection, [])
        if len(names) > 8:
            names[:] = [ref for ref in names if ref() is not None]
        names.append(weakref.ref(named))
        return named

    def _assigned(self, value: Any) -> None:
        """Stores a value; names that this one was not made from keep what the tile was."""
        seen_by = set[int]()
        name: TileReference | None = self
        while name is not None:
            seen_by.add(id(name))
            name = name._made_from
        names = self._argument.names
        others = [other for ref in names.pop(self._selection, ()) if (other := ref()) is not None]
        for other in others:
            if id(other) not in seen_by and other._before is None:
                other._before = other._load()
        if others:
            names[self._selection] = [weakref.ref(other) for other in others]
        self._store(value)

    def _load(self) -> Tile:
        self._require_complete("Its value")
        if self._before is not None:
            return self._before
        return self._argument.load(self._selection)

    def _store(self, value: Any) -> None:
        self._require_complete("An assignment")
        self._require_within()
        self._argument.store(self._selection, value)

    def _value(self) -> Any:
        return self._load() if self._is_complete else self

    def _require_complete(self, what: str) -> None:
        if not self._is_complete:
            raise ApplicationError(
                f"{what} needs one tile, but `{self._argument.name}` names tiles of shape "
                f"{self._argument.levels[self._selected_level]} here. Select one with "
                f"`{self._argument.name}[...]`."
            )

    def _require_within(self) -> None:
        """Raises where it is beyond a level; a read there is no mistake where the tensor has `other`."""
        if not self._argument.is_checked:
            return
        selection = iter(self._selection)
        for shape in self._argument.levels[: self._level]:
            for dim, (size, index) in enumerate(zip(shape, selection)):
                if not 0 <= index < size:
                    raise OutOfBoundsError(
                        f"`{self._argument.name}` is indexed with {index} in dimension {dim}, whose size "
                        f"is {size}."
                    )

    def __iter__(self) -> Any:
        raise ApplicationError(
            f"`{self._argument.name}` is not iterable. Use `for k in "
            f"range({self._argument.name}.shape[0])` and `{self._argument.name}[k]`."
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._load(), name)

    def __repr__(self) -> str:
        place = f"[{', '.join(str(item) for item in self._selection)}]" if self._selection else ""
        return (
            f"<{self._argument.name}{place} of program {self._argument.program()}: "
            f"shape {self.shape}, {self._argument.dtype}>"
        )

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        return bool(self._load())

    def __index__(self) -> int:
        return operator.index(self._load())

    def __int__(self) -> int:
        return int(self._load())

    def __float__(self) -> float:
        return float(self._load())


def named(value: Any) -> Any:
    """What another name stands for from here on: tiles stay tiles."""
    kind = type(value)
    if kind is TileReference:
        return value._named()
    if kind in (tuple, list):
        return kind(map(named, value))
    if kind is dict:
        return {key: named(item) for key, item in value.items()}
    return value


def read(value: Any) -> Any:
    """The value of a tile; anything else is its own."""
    return value._value() if type(value) is TileReference else value


def _on_value(name: str) -> Callable[..., Any]:
    def operate(self: TileReference, *others: Any) -> Any:
        return getattr(self._load(), name)(*map(read, others))

    return operate


for _name in (
    *(f"__{r}{n}__" for n in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "and", "or", "xor", "lshift", "rshift"
    ) for r in ("", "r")),
    *(f"__{n}__" for n in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert")),
):  # fmt: skip
    setattr(TileReference, _name, _on_value(_name))


class Source:
    """The whole tensor behind a parameter: ``x.source``."""

    __slots__ = ("_argument",)

    def __init__(self, argument: Tensor) -> None:
        self._argument = argument

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's sizes; along a jagged dimension that of the program's sequence."""
        return self._argument.own_shape()

    @property
    def ndim(self) -> int:
        """The tensor's number of dimensions."""
        return len(self._argument.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self._argument.dtype

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements."""
        return tuple(map(Size, self._argument.strides))

    def size(self, dim: int) -> int:
        """The size of ``dim``, as in the shape."""
        return self.shape[operator.index(dim)]

    def stride(self, dim: int) -> int:
        """The stride along ``dim``, in elements."""
        return Size(self._argument.strides[operator.index(dim)])

    def data_ptr(self) -> PointerTile:
        """The pointer to the first element."""
        return PointerTile(self._argument.memory, 0)

    def __getitem__(self, key: Any) -> Tile:
        return self._argument.load_elements(self._keys(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._argument.store_elements(self._keys(key), value)

    def _keys(self, key: Any) -> tuple[Any, ...]:
        keys = key if isinstance(key, tuple) else (key,)
        if len(keys) != self.ndim:
            raise ApplicationError(
                f"`{self._argument.name}.source` needs {self.ndim} indices, one a dimension, but "
                f"got {len(keys)}."
            )
        return tuple(
            item + size if type(item) is int and item < 0 else read(item)
            for item, size in zip(keys, self._argument.shape, strict=True)
        )

    def __repr__(self) -> str:
        return f"<source of {self._argument.name}: shape {self._argument.shape}, {self.dtype}>"


def place(value: Any, key: Any = ()) -> Any:
    """Where ``value[key]`` is, for an atomic operation: of a tile or a source; a pointer is one by itself."""
    keys = key if isinstance(key, tuple) else (key,)
    if type(value) is Source:
        return value._argument.place_of_elements(value._keys(key))
    if type(value) is not TileReference:
        return value[key] if keys else value
    if not value._is_complete:
        if not keys:
            value._require_complete("An atomic operation")
        return place(value[key])
    value._require_within()
    return value._argument.place(value._selection, tuple(map(read, keys)))


def position(value: Any) -> Any:
    """An index that depends on a variable, as it is; of an enumeration's member, that it is one."""
    return Member(value) if isinstance(value, enum.Enum) and not isinstance(value, int) else value


#: No level goes as far, and 64 bits hold it times a tile's size.
_FARTHEST = 1 << 44


def _index(item: Any, size: int, name: str) -> int:
    """An index as an int; a constant one that is negative counts from the end."""
    if type(item) is TileReference:
        item = item._value()
    item = member_value(item)
    try:
        index = operator.index(item)
    except TypeError as error:
        raise ArgumentError(
            f"An index of `{name}` must be an integer, got {type(item).__name__} {item!r}."
        ) from error
    if type(item) is int and index < 0:
        return index + operator.index(size)
    return max(-_FARTHEST, min(index, _FARTHEST))
