"""Symbolic tensors: what an arrangement works on.

A `Tensor` is one level: a shape, and an element that is another level or an element type. It
remembers the meta-operation that made it and the levels that one was given, and that chain is the
only account of how its elements lie in the source: offsets, masks and evaluation are read off it.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from ninetoothed.errors import ArrangementError, caller_location
from ninetoothed.language import dtypes
from ninetoothed.symbols.expr import Expression, Symbol, as_expression, is_expression, leaf
from ninetoothed.symbols.leaf import Leaf, serials
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors import metaop_arguments, metaops
from ninetoothed.tensors.metaops import Indices, MetaOperation, Misfit, Shape, shape_text

_UNSET: Any = object()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a level comes from: the operation, the levels it was given, which of its results it is."""

    operation: MetaOperation
    operands: tuple[Tensor, ...]
    result: int


class Tensor:
    """A symbolic tensor.

    Args:
        ndim: the number of dimensions; may be left out where ``shape`` is given.
        shape: an int, a Symbol or None ("symbolic") for each dimension.
        dtype: an element type, Python's int, float or bool, or None for "whatever is given".
        jagged_dim: the tensor is packed values with offsets, and this dimension varies.
        other: what an out-of-bounds element reads as.
        shape_options: keywords of the sizes' Symbols: one dict, or a tuple of dict-or-None.
        constexpr: with ``ndim=0``, a compile-time constant of any type, given at the call.
        value: the constant's default.
        name: how it and its sizes print; the application's parameter name is used in kernels.

    Raises:
        ArrangementError: the arguments do not describe a tensor.

    ``.shape`` and ``.dtype`` may be assigned: that is how an inner level is rearranged.
    """

    def __init__(
        self,
        ndim: int | None = None,
        shape: Any = None,
        dtype: Any = None,
        jagged_dim: int | None = None,
        other: Any = None,
        shape_options: Any = None,
        constexpr: bool | None = None,
        value: Any = _UNSET,
        name: str | None = None,
    ) -> None:
        if shape is None and ndim is None:
            raise ArrangementError(
                "a Tensor needs `ndim` or `shape`, as in Tensor(2) or Tensor(shape=(None, 64))",
                caller_location(),
            )
        entries: tuple[Any, ...]
        entries = (None,) * _checked_ndim(ndim) if shape is None else _checked_shape(shape)
        if ndim is not None and len(entries) != ndim:
            raise ArrangementError(
                f"a Tensor got ndim={ndim} and a shape of {len(entries)} dimensions; they must agree",
                caller_location(),
            )
        if jagged_dim is not None:
            jagged_dim = _checked_jagged_dim(jagged_dim, len(entries))
        if constexpr and entries:
            raise ArrangementError(
                f"constexpr=True is for scalars, as in Tensor(0, constexpr=True), not for {len(entries)} "
                "dimensions; pass shape_options={'constexpr': True} to have constant sizes",
                caller_location(),
            )
        if value is not _UNSET and not constexpr:
            raise ArrangementError(
                "`value` is the default of a constant: it needs constexpr=True", caller_location()
            )
        self.name = name
        #: The application's name for it, where it has none of its own.
        self.display_name = name
        self.jagged_dim = jagged_dim
        self.other = _checked_other(other)
        self.constexpr = bool(constexpr)
        self.default = value
        self._origin: Origin | None = None
        self._source: Tensor | None = None
        options = _checked_options(shape_options, len(entries))
        label, serial = name or "tensor", next(serials)
        self._shape: Shape = tuple(
            leaf(_size_leaf(f"{label}_size_{dim}", self, dim, options[dim], serial))
            if entry is None
            else as_expression(entry)
            for dim, entry in enumerate(entries)
        )
        self._strides: Shape = tuple(
            leaf(
                Leaf(
                    f"{label}_stride_{dim}",
                    role="stride",
                    owner=_Identity(self),
                    dim=dim,
                    serial=serial,
                )
            )
            for dim in range(len(entries))
        )
        self._dtype: Any = _checked_dtype(dtype)

    @property
    def value(self) -> Any:
        """The default of a compile-time constant, or None."""
        return None if self.default is _UNSET else self.default

    @property
    def has_default(self) -> bool:
        return self.default is not _UNSET

    @property
    def shape(self) -> Shape:
        """This level's sizes: ints and Symbols."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        entries = tuple(shape)
        if len(entries) != len(self._shape) or not all(map(is_expression, entries)):
            raise ArrangementError(
                f"a level of shape {shape_text(self._shape)} cannot be given the shape "
                f"{shape_text(entries)}; it keeps its {len(self._shape)} dimensions",
                caller_location(),
            )
        self._shape = tuple(map(simplify, entries))

    @property
    def ndim(self) -> int:
        """This level's number of dimensions."""
        return len(self._shape)

    @property
    def dtype(self) -> Any:
        """The inner level where there is one, else the element type (None: whatever is given)."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        self._dtype = dtype if isinstance(dtype, Tensor) else _checked_dtype(dtype)

    @property
    def source(self) -> Tensor:
        """The tensor that this one was arranged from."""
        return self if self._source is None else self._source

    @property
    def strides(self) -> Shape:
        """The source's strides, in elements."""
        return self.source._strides

    @property
    def origin(self) -> Origin | None:
        """The operation that made this level; None for a source."""
        return self._origin

    @property
    def levels(self) -> tuple[Tensor, ...]:
        """This level and those within it, outermost first."""
        result = [self]
        while isinstance(result[-1].dtype, Tensor):
            result.append(result[-1].dtype)
        return tuple(result)

    @property
    def element_dtype(self) -> dtypes.DType | None:
        """The element type of the innermost level."""
        return self.levels[-1].dtype

    # Meta-operations.

    def tile(
        self, tile_shape: Any, strides: Any = None, dilation: Any = None, floor_mode: bool = False
    ) -> Tensor:
        """Two levels: the outer counts tiles, the inner is one tile.

        Args:
            tile_shape: the tile's sizes; -1 takes a dimension whole.
            strides: steps between tiles, in elements; -1, the default, is the tile size.
            dilation: steps between a tile's elements; 1 by default.
            floor_mode: leave out a last tile that is not full.

        The outer size is ``ceil((size - dilation * (tile - 1) - 1) / stride) + 1``, with floor
        instead of ceil in floor mode.
        """
        operation: MetaOperation = self._checked("tile", tile_shape, strides, dilation, floor_mode)
        outer, inner = self._made(operation)
        inner._dtype = _cloned(self._dtype)
        outer._dtype = inner
        return outer

    def expand(self, *shape: Any) -> Tensor:
        """Repeats dimensions of size 1; -1 keeps a dimension."""
        return self._level(self._checked("expand", _variadic(shape)))

    def squeeze(self, dim: Any) -> Tensor:
        """Removes one dimension of size 1, or several."""
        return self._level(self._checked("squeeze", dim))

    def unsqueeze(self, dim: Any) -> Tensor:
        """Inserts a dimension of size 1."""
        return self._level(self._checked("unsqueeze", dim))

    def permute(self, *dims: Any) -> Tensor:
        """Reorders the dimensions."""
        return self._level(self._checked("permute", _variadic(dims)))

    def flatten(self, start_dim: int | None = None, end_dim: int | None = None) -> Tensor:
        """Merges the dimensions from ``start_dim`` up to ``end_dim``, exclusive."""
        return self._level(self._checked("flatten", start_dim, end_dim))

    def ravel(self) -> Tensor:
        """Merges all levels into one, outermost first."""
        levels = self.levels
        operation = metaops.Ravel(
            tuple(level._shape for level in levels), location=caller_location()
        )
        (result,) = self._made(operation, levels)
        result._dtype = levels[-1]._dtype
        return result

    def pad(self, pad: Any) -> Tensor:
        """Adds ``((left, right), …)`` positions; they read as ``other``, stores there are dropped."""
        return self._level(self._checked("pad", pad))

    def __getitem__(self, key: Any) -> Tensor:
        return self._level(self._checked("subscript", key))

    def __iter__(self) -> Iterator[Tensor]:
        raise TypeError("a Tensor is symbolic and cannot be iterated over; index it instead")

    def __len__(self) -> int:
        raise TypeError("a Tensor's sizes are symbolic; use `.shape[0]`")

    def __bool__(self) -> bool:
        return True

    def eval(self, subs: Mapping[Any, Any] | None = None) -> Any:
        """The source index of each element as a NumPy array; see `ninetoothed.eval`."""
        from ninetoothed.tensors.evaluate import eval

        return eval(self, subs)

    def subs(self, subs: Mapping[Any, Any]) -> Tensor:
        """This tensor with symbols replaced; see `ninetoothed.subs`."""
        from ninetoothed.tensors.evaluate import subs as substitute

        return substitute(self, subs)

    def __repr__(self) -> str:
        label = "" if self.source.name is None else f"{self.source.name}: "
        return f"Tensor({label}{' of '.join(shape_text(level._shape) for level in self.levels)})"

    @property
    def label(self) -> str:
        """How error texts name this tensor: by its name, or its place in the arrangement."""
        name = self.source.name or _names.get().get(id(self.source))
        return "a tensor" if name is None else f"`{name}`"

    def _checked(self, function: str, *arguments: Any) -> MetaOperation:
        """The operation that a user asks for on this level."""
        try:
            return getattr(metaop_arguments, function)(self._shape, *arguments)
        except Misfit as misfit:
            name = "[...]" if function == "subscript" else function
            raise misfit.error(name, self.label, self._shape) from None

    def _made(
        self, operation: MetaOperation, operands: tuple[Tensor, ...] | None = None
    ) -> tuple[Tensor, ...]:
        """The levels that an operation makes, without their elements."""
        return tuple(
            _level_of(shape, Origin(operation, operands or (self,), position), self.source)
            for position, shape in enumerate(operation.results())
        )

    def _level(self, operation: MetaOperation) -> Tensor:
        (result,) = self._made(operation)
        result._dtype = _cloned(self._dtype)
        return result


_NO_NAMES: Mapping[int, str] = MappingProxyType({})
_names: ContextVar[Mapping[int, str]] = ContextVar("names", default=_NO_NAMES)


@contextmanager
def named(names: Mapping[str, Any]) -> Iterator[None]:
    """Within it, error texts call those tensors that have no name of their own by these."""
    token = _names.set(
        {id(value): name for name, value in names.items() if isinstance(value, Tensor)}
    )
    try:
        yield
    finally:
        _names.reset(token)


class _Identity:
    """A source tensor's identity: equal for one tensor only. It does not keep the tensor alive."""

    __slots__ = ("_reference", "_hash")

    def __init__(self, tensor: Tensor) -> None:
        self._reference = weakref.ref(tensor)
        self._hash = id(tensor)

    @property
    def tensor(self) -> Tensor | None:
        return self._reference()

    @property
    def label(self) -> str | None:
        """How the tensor is called where its sizes are printed."""
        return None if self.tensor is None else self.tensor.display_name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other._reference == self._reference

    def __hash__(self) -> int:
        return self._hash


def owner_of(symbol: Symbol) -> Tensor | None:
    """The tensor whose size or stride a name is, else None."""
    if symbol.op != "leaf" or not isinstance(symbol.leaf.owner, _Identity):
        return None
    return symbol.leaf.owner.tensor


def identity(tensor: Tensor) -> object:
    """What stands for a source tensor inside of expressions."""
    return _Identity(tensor.source)


def rebuilt(tensor: Tensor, function: Callable[[Expression], Expression], source: Tensor) -> Tensor:
    """The same arrangement of ``source``, with ``function`` applied to every expression in it."""
    memo: dict[int, Tensor] = {}
    operations: dict[int, MetaOperation] = {}

    def level(old: Tensor) -> Tensor:
        if id(old) in memo:
            return memo[id(old)]
        if old._origin is None:
            memo[id(old)] = source
            return source
        origin = old._origin
        operands = tuple(map(level, origin.operands))
        key = id(origin.operation)
        if key not in operations:
            operand = tuple(operand._shape for operand in operands)
            operations[key] = replace(origin.operation.substituted(function), operand=operand)
        if old._shape == origin.operation.results()[origin.result]:
            # Not mapped from the old shape: a count is clamped at 0 once it is known.
            shape = operations[key].results()[origin.result]
        else:
            shape = tuple(simplify(function(size)) for size in old._shape)
        new = _level_of(shape, Origin(operations[key], operands, origin.result), source)
        memo[id(old)] = new
        new._dtype = old._dtype
        return new

    levels = [level(old) for old in tensor.levels]
    if len(levels) == 1 and levels[0] is source:
        return source
    for outer, inner in itertools.pairwise(levels):
        outer._dtype = inner
    return levels[0]


def _level_of(shape: Shape, origin: Origin, source: Tensor) -> Tensor:
    result = object.__new__(Tensor)
    result.name = source.name
    result.display_name = source.display_name
    result.jagged_dim = source.jagged_dim
    result.other = source.other
    result.constexpr = False
    result.default = _UNSET
    result._shape = shape
    result._strides = ()
    result._origin = origin
    result._source = source
    result._dtype = None
    return result


def _cloned(dtype: Any) -> Any:
    """The levels below anew, so that assigning to one tensor's never shows in another's."""
    if not isinstance(dtype, Tensor):
        return dtype
    result = object.__new__(Tensor)
    result.__dict__.update(dtype.__dict__)
    result._dtype = _cloned(dtype._dtype)
    return result


def _variadic(arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 1 and not is_expression(arguments[0]):
        return arguments[0]
    return arguments


def _checked_ndim(ndim: Any) -> int:
    if not isinstance(ndim, int) or isinstance(ndim, bool) or ndim < 0:
        raise ArrangementError(
            f"a Tensor's ndim is a number of dimensions, not {ndim!r}", caller_location()
        )
    return ndim


def _checked_shape(shape: Any) -> tuple[Any, ...]:
    if is_expression(shape):
        shape = (shape,)
    entries = tuple(shape)
    for entry in entries:
        if entry is None or isinstance(entry, Symbol):
            continue
        if not is_expression(entry) or entry < 0:
            raise ArrangementError(
                f"a Tensor's shape has ints, Symbols or None for each dimension, not {entry!r}",
                caller_location(),
            )
    return entries


def _checked_other(other: Any) -> Any:
    """A number, also NumPy's or a framework's, as Python's; or None."""
    value = other.item() if getattr(other, "ndim", None) == 0 else other
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ArrangementError(
        f"`other` of a Tensor is the number that elements out of bounds read as, not {other!r}",
        caller_location(),
    )


def _checked_jagged_dim(dim: Any, count: int) -> int:
    try:
        return metaop_arguments.normalized_dim(dim, count)
    except Misfit as misfit:
        raise ArrangementError(
            f"`jagged_dim` of a Tensor of {count} dimensions got {misfit.found}; it needs "
            f"{misfit.needed}",
            caller_location(),
        ) from None


def _checked_options(options: Any, ndim: int) -> tuple[dict[str, Any], ...]:
    if options is None or isinstance(options, dict):
        options = (options,) * ndim
    options = tuple({} if entry is None else dict(entry) for entry in options)
    if len(options) != ndim:
        raise ArrangementError(
            f"shape_options has {len(options)} entries for {ndim} dimensions; "
            "give one dict for all, or one dict or None for each",
            caller_location(),
        )
    return options


def _size_leaf(name: str, tensor: Tensor, dim: int, options: dict[str, Any], serial: int) -> Leaf:
    try:
        made = Symbol(name, **options).leaf
    except (TypeError, ValueError) as error:
        raise ArrangementError(
            f"shape_options[{dim}]={options!r}: {error}; the keywords are those of Symbol",
            caller_location(),
        ) from error
    lower = made.lower_bound if options.get("lower_bound") is not None else 0
    return Leaf(
        name,
        role="size",
        owner=_Identity(tensor),
        dim=dim,
        constexpr=made.constexpr,
        meta=False,
        lower_bound=lower,
        upper_bound=options.get("upper_bound"),
        power_of_two=made.power_of_two,
        serial=serial,
    )


def _checked_dtype(dtype: Any) -> Any:
    if dtype is None or isinstance(dtype, dtypes.DType):
        return dtype
    if isinstance(dtype, type) and dtypes.of_python(dtype) is not None:
        return dtypes.of_python(dtype)
    raise ArrangementError(
        f"{dtype!r} is not an element type; use one of ninetoothed.{', '.join(dtypes.NAMES)}, "
        "Python's int, float or bool, or None for whatever is given",
        caller_location(),
    )


__all__ = ["Indices", "Origin", "Tensor", "identity", "owner_of", "rebuilt"]
