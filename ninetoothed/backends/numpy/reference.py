"""What a parameter's name stands for in a running program: a tile's place, not its value."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.numpy.pointer import PointerTile
from ninetoothed.backends.numpy.tile import Tile
from ninetoothed.dtypes import DType
from ninetoothed.errors import ApplicationError, ArgumentError, OutOfBoundsError, caller_location

if TYPE_CHECKING:
    from ninetoothed.backends.numpy.execute import Argument


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

    __slots__ = ("_argument", "_selection")

    def __init__(self, argument: Argument, selection: tuple[Any, ...] = ()) -> None:
        self._argument = argument
        self._selection = selection

    @property
    def _is_complete(self) -> bool:
        return len(self._selection) == len(self._argument.selectable)

    def _remaining(self) -> list[tuple[int, ...]]:
        """The shapes from here inwards: what is left of the middle levels, then the tile's."""
        shapes, start = [], 0
        for level in self._argument.levels[:-1]:
            left = level[max(0, len(self._selection) - start) :]
            start += len(level)
            if left:
                shapes.append(left)
        return [*shapes, self._argument.levels[-1]]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what is selected: the tile's own, not the widened one."""
        return self._remaining()[0]

    @property
    def ndim(self) -> int:
        """The number of dimensions of what is selected."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The inner level where the elements are tiles, else the element type."""
        dtype: Any = self._argument.dtype
        for shape in reversed(self._remaining()[1:]):
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

    def offsets(self, dim: int | None = None) -> Tile:
        """Each element's index along the source's dimension ``dim``, or its linear offset."""
        self._require_complete("`.offsets()`")
        if dim is None:
            return self._argument.linear_offsets(self._selection)
        ndim = len(self._argument.shape)
        if not -ndim <= (dim := operator.index(dim)) < ndim:
            raise ApplicationError(
                f"`{self._argument.name}` has no source dimension {dim}; it has {ndim}.",
                caller_location(),
            )
        return self._argument.offsets_along(self._selection, dim % ndim)

    def __getitem__(self, key: Any) -> Any:
        if self._is_complete:
            return self._load()[key]
        keys = key if isinstance(key, tuple) else (key,)
        selectable = self._argument.selectable
        selection = (*self._selection, *(_index(item, self._argument.name) for item in keys))
        if len(selection) > len(selectable):
            raise ApplicationError(
                f"`{self._argument.name}` takes {len(selectable)} indices, one for each dimension "
                f"of its levels of shape {self._argument.levels[:-1]}, but got {len(selection)}.",
                caller_location(),
            )
        if self._argument.is_checked:
            for place in range(len(self._selection), len(selection)):
                if not 0 <= selection[place] < selectable[place]:
                    raise OutOfBoundsError(
                        f"Index {selection[place]} is out of bounds for dimension {place} of the "
                        f"levels of `{self._argument.name}`, whose size is {selectable[place]}.",
                        caller_location(),
                    )
        return TileReference(self._argument, selection)

    def __setitem__(self, key: Any, value: Any) -> None:
        if self._is_complete:
            raise ApplicationError(
                f"Elements of the tile `{self._argument.name}` cannot be assigned one by one. "
                f"Assign the whole tile, or use `{self._argument.name}.source[...] = ...`.",
                caller_location(),
            )
        self[key]._store(value)

    def _load(self) -> Tile:
        self._require_complete("Its value")
        return self._argument.load(self._selection)

    def _store(self, value: Any) -> None:
        self._require_complete("An assignment")
        self._argument.store(self._selection, value)

    def _value(self) -> Any:
        return self._load() if self._is_complete else self

    def _require_complete(self, what: str) -> None:
        if not self._is_complete:
            raise ApplicationError(
                f"{what} needs a tile, but `{self._argument.name}` has levels of shape "
                f"{self._argument.levels[:-1]} above its tile. Select one with "
                f"`{self._argument.name}[...]`.",
                caller_location(),
            )

    def __iter__(self) -> Any:
        raise ApplicationError(
            f"`{self._argument.name}` is not iterable. Use `for k in "
            f"range({self._argument.name}.shape[0])` and `{self._argument.name}[k]`.",
            caller_location(),
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


def _on_value(name: str) -> Callable[..., Any]:
    def operate(self: TileReference, *others: Any) -> Any:
        values = [other._value() if type(other) is TileReference else other for other in others]
        return getattr(self._load(), name)(*values)

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

    def __init__(self, argument: Argument) -> None:
        self._argument = argument

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's sizes."""
        return self._argument.shape

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
        return self._argument.strides

    def stride(self, dim: int) -> int:
        """The stride along ``dim``, in elements."""
        return self._argument.strides[operator.index(dim)]

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
                f"got {len(keys)}.",
                caller_location(),
            )
        return tuple(item._value() if type(item) is TileReference else item for item in keys)

    def __repr__(self) -> str:
        return f"<source of {self._argument.name}: shape {self.shape}, {self.dtype}>"


def _index(item: Any, name: str) -> int:
    if type(item) is TileReference:
        item = item._value()
    try:
        return operator.index(item)
    except TypeError as error:
        raise ArgumentError(
            f"An index of `{name}` must be an integer, got {type(item).__name__} {item!r}.",
            caller_location(),
        ) from error
