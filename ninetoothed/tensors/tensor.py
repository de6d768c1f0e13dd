"""Symbolic tensors: how a user declares one, and the meta-operations on it.

A `Tensor` is a `Level` that can be arranged. What its levels are and how they hang together is
``level``'s; what an operation means is ``metaops``'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ninetoothed.errors import (
    ArgumentError,
    ArrangementError,
    caller_location,
    located_where_too_deep,
    shown,
)
from ninetoothed.symbols.expr import Symbol, as_expression, as_symbol, is_expression, leaf
from ninetoothed.symbols.leaf import Leaf, serials
from ninetoothed.tensors import evaluate, metaop_arguments, metaops
from ninetoothed.tensors.level import (
    UNSET,
    Identity,
    Level,
    Origin,
    checked_dtype,
    cloned,
    made_level,
)
from ninetoothed.tensors.meta_operation import MetaOperation, Misfit, Shape

#: As many as NumPy's and PyTorch's tensors may have.
_MOST_DIMENSIONS = 64


class Tensor(Level):
    """A symbolic tensor.

    Args:
        ndim: the number of dimensions; may be left out where ``shape`` is given.
        shape: an int, a Symbol or None ("symbolic") for each dimension.
        dtype: an element type of ours, of a framework's or NumPy's, the name of one, Python's int, float
            or bool, or None for "whatever is given". A promise: another is warned of, and taken.
        jagged_dim: the tensor is packed values with offsets, and this dimension varies.
        other: what an out-of-bounds element reads as.
        shape_options: keywords of the sizes' Symbols: one dict, or a tuple of dict-or-None.
        constexpr: with ``ndim=0``, a compile-time constant of any type, given at the call.
        value: the constant's default.
        name: how it and its sizes print; the application's parameter name is used in kernels.

    Raises:
        ArrangementError: the arguments do not describe a tensor.

    ``.shape`` and ``.dtype`` may be assigned: that is how an inner level is rearranged. A shape that is
    assigned takes the level's first positions.
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
        value: Any = UNSET,
        name: str | None = None,
    ) -> None:
        if shape is None and ndim is None:
            raise ArrangementError(
                "a Tensor needs `ndim` or `shape`, as in Tensor(2) or Tensor(shape=(None, 64))"
            )
        entries: tuple[Any, ...]
        entries = (None,) * _checked_ndim(ndim) if shape is None else _checked_shape(shape)
        if ndim is not None and len(entries) != ndim:
            raise ArrangementError(
                f"a Tensor got ndim={ndim} and a shape of {len(entries)} dimensions; they must agree"
            )
        if jagged_dim is not None:
            jagged_dim = _checked_jagged_dim(jagged_dim, len(entries))
        if constexpr and entries:
            raise ArrangementError(
                f"constexpr=True is for scalars, as in Tensor(0, constexpr=True), not for {len(entries)} "
                "dimensions; pass shape_options={'constexpr': True} to have constant sizes"
            )
        if value is not UNSET and not constexpr:
            raise ArrangementError("`value` is the default of a constant: it needs constexpr=True")
        options = _checked_options(shape_options, len(entries))
        label, serial = _checked_name(name) or "tensor", next(serials)
        sizes = tuple(
            leaf(_size_leaf(f"{label}_size_{dim}", self, dim, options[dim], serial))
            if entry is None
            else as_expression(entry)
            for dim, entry in enumerate(entries)
        )
        super().__init__(
            sizes,
            checked_dtype(dtype, caller_location()),
            name=name,
            jagged_dim=jagged_dim,
            other=_checked_other(other),
            constexpr=bool(constexpr),
            default=value,
        )

    def _resized_to(self, shape: tuple[Any, ...]) -> MetaOperation:
        return self._checked("resize", shape)

    def resized(self, shape: Shape) -> Tensor:
        return Tensor(
            shape=shape,
            dtype=self.dtype,
            jagged_dim=self.jagged_dim,
            other=self.other,
            name=self.name,
        )

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
        inner._dtype = cloned(self._dtype)
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
        return self._level(self._checked("subscript", key, self._jagged_dims()))

    def __iter__(self) -> Iterator[Tensor]:
        raise ArgumentError("a Tensor is symbolic and cannot be iterated over; index it instead")

    def __len__(self) -> int:
        raise ArgumentError("a Tensor's sizes are symbolic; use `.shape[0]`")

    def __bool__(self) -> bool:
        return True

    def eval(self, subs: Mapping[Any, Any] | None = None) -> Any:
        """The source index of each element as a NumPy array; see `ninetoothed.eval`."""
        return evaluate.eval(self, subs)

    def subs(self, subs: Mapping[Any, Any]) -> Tensor:
        """This tensor with symbols replaced; see `ninetoothed.subs`."""
        return evaluate.subs(self, subs)

    @located_where_too_deep("An integer expression", ArrangementError)
    def _checked(self, function: str, *arguments: Any) -> MetaOperation:
        """The operation that a user asks for on this level."""
        try:
            return getattr(metaop_arguments, function)(self._shape, *arguments)
        except Misfit as misfit:
            name = {"subscript": "[...]", "resize": ".shape"}.get(function, function)
            raise misfit.error(name, self.label, self._shape) from None

    def _jagged_dims(self) -> set[int]:
        """The dimensions whose sizes are made of the longest sequence's length."""
        source, jagged = self.source, self.source.jagged_dim
        if jagged is None:
            return set()
        longest = as_symbol(source.shape[jagged])
        made_of = {d for d, size in enumerate(self._shape) if longest in as_symbol(size).walk()}
        return made_of | {jagged} if self is source else made_of

    @located_where_too_deep("An integer expression", ArrangementError)
    def _made(
        self, operation: MetaOperation, operands: tuple[Tensor, ...] | None = None
    ) -> tuple[Tensor, ...]:
        """The levels that an operation makes, without their elements."""
        return tuple(
            made_level(shape, Origin(operation, operands or (self,), position), self.source)
            for position, shape in enumerate(operation.shapes)
        )

    def _level(self, operation: MetaOperation) -> Tensor:
        (result,) = self._made(operation)
        result._dtype = cloned(self._dtype)
        return result


def _variadic(arguments: tuple[Any, ...]) -> Any:
    if len(arguments) == 1 and not is_expression(arguments[0]):
        return arguments[0]
    return arguments


def _checked_ndim(ndim: Any) -> int:
    if not isinstance(ndim, int) or isinstance(ndim, bool) or not 0 <= ndim <= _MOST_DIMENSIONS:
        raise ArrangementError(
            f"a Tensor's ndim is a number of dimensions, at most {_MOST_DIMENSIONS}, not {shown(ndim)}"
        )
    return ndim


def _checked_name(name: Any) -> str | None:
    if name and not (isinstance(name, str) and name.isidentifier()):
        raise ArrangementError(
            f"a Tensor's name is a Python identifier, as in Tensor(1, name='x'), not {shown(name)}"
        )
    return name or None


def _checked_shape(shape: Any) -> tuple[Any, ...]:
    if is_expression(shape):
        shape = (shape,)
    if not isinstance(shape, Iterable) or isinstance(shape, Level):
        shape = (shape,)
    entries = tuple(shape)
    for entry in entries:
        if entry is None or isinstance(entry, Symbol):
            continue
        if not is_expression(entry) or not 0 <= entry < 1 << 63:
            raise ArrangementError(
                f"a Tensor's shape has ints, Symbols or None for each dimension, not {shown(entry)}"
            )
    return entries


def _checked_other(other: Any) -> Any:
    """A number, also NumPy's or a framework's, as Python's; or None."""
    value = other.item() if getattr(other, "ndim", None) == 0 else other
    if value is None or isinstance(value, (bool, int, float)):
        return value
    raise ArrangementError(
        f"`other` of a Tensor is the number that elements out of bounds read as, not {other!r}"
    )


def _checked_jagged_dim(dim: Any, count: int) -> int:
    try:
        return metaop_arguments.normalized_dim(dim, count)
    except Misfit as misfit:
        raise ArrangementError(
            f"`jagged_dim` of a Tensor of {count} dimensions got {misfit.found}; it needs "
            f"{misfit.needed}"
        ) from None


def _checked_options(options: Any, ndim: int) -> tuple[dict[str, Any], ...]:
    if options is None or isinstance(options, dict):
        options = (options,) * ndim
    entries = tuple(options) if isinstance(options, Sequence) else (options,)
    if len(entries) != ndim or not all(each is None or isinstance(each, dict) for each in entries):
        raise ArrangementError(
            f"shape_options={options!r} has {len(entries)} entries for {ndim} dimensions; "
            "give one dict for all, or one dict or None for each"
        )
    return tuple({} if entry is None else dict(entry) for entry in entries)


def _size_leaf(name: str, tensor: Tensor, dim: int, options: dict[str, Any], serial: int) -> Leaf:
    try:
        made = Symbol(name, **options).leaf
    except (TypeError, ValueError) as error:
        said = getattr(error, "message", error)
        raise ArrangementError(
            f"shape_options[{dim}]={options!r}: {said}; the keywords are those of Symbol"
        ) from error
    return Leaf(
        name,
        role="size",
        owner=Identity(tensor),
        dim=dim,
        constexpr=made.constexpr,
        meta=False,
        lower_bound=options.get("lower_bound"),
        upper_bound=options.get("upper_bound"),
        power_of_two=bool(options.get("power_of_two")),
        serial=serial,
        location=made.location,
    )
