"""One level of a symbolic tensor, and the chain of levels that an arrangement makes.

A `Level` is a shape, and an element that is another level or an element type. It remembers the
meta-operation that made it and the levels that one was given, and that chain is the only account of
how its elements lie in the source: offsets, masks and evaluation are read off it. What a user can
*do* with a level is ``tensor``'s.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from ninetoothed.errors import ArrangementError, Location, caller_location, warn_of_declaration
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, is_expression, leaf
from ninetoothed.symbols.leaf import Leaf, serials
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.meta_operation import (
    Evaluate,
    MetaOperation,
    Misfit,
    Rewrite,
    Shape,
    shape_text,
)

LevelT = TypeVar("LevelT", bound="Level")

#: The default of a constant that has none.
UNSET: Any = object()


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a level comes from: the operation, the levels it was given, which of its results it is."""

    operation: MetaOperation
    operands: tuple[Level, ...]
    result: int


class Level:
    """A shape and an element, and where they come from.

    Args:
        shape: an int or a Symbol for each dimension.
        dtype: the level within, an element type, or None for "whatever is given".
        name: how it and its sizes print.
        jagged_dim: of a source, the dimension that varies.
        other: what an out-of-bounds element reads as.
        constexpr: of a source, whether it is a constant given at the call.
        default: the constant's, or `UNSET`.

    ``.shape`` and ``.dtype`` may be assigned: that is how an inner level is rearranged. A shape that is
    assigned takes the level's first positions.

    Attributes:
        display_name: the application's name for it, where it has none of its own.
        origin: the operation that made this level; None for a source.
        location: where the user declared the source, or assigned its element type.
    """

    def __init__(
        self,
        shape: Shape,
        dtype: Any,
        *,
        name: str | None = None,
        jagged_dim: int | None = None,
        other: Any = None,
        constexpr: bool = False,
        default: Any = UNSET,
    ) -> None:
        self.name = name
        self.display_name = name
        self.jagged_dim = jagged_dim
        self.other = other
        self.constexpr = constexpr
        self.default = default
        self.origin: Origin | None = None
        self.location = caller_location()
        self._source: Level | None = None
        self._shape = shape
        self._dtype = dtype
        serial = next(serials)
        self._strides: Shape = tuple(
            leaf(
                Leaf(
                    f"{name or 'tensor'}_stride_{dim}",
                    role="stride",
                    owner=Identity(self),
                    dim=dim,
                    serial=serial,
                )
            )
            for dim in range(len(shape))
        )

    @property
    def shape(self) -> Shape:
        """This level's sizes: ints and Symbols."""
        return self._shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        try:
            entries = tuple(shape)
        except TypeError:
            entries = (shape,)
        if len(entries) != len(self._shape) or not all(map(is_expression, entries)):
            raise ArrangementError(
                f"a level of shape {shape_text(self._shape)} cannot be given the shape "
                f"{shape_text(entries)}; it keeps its {len(self._shape)} dimensions"
            )
        if self.origin is None:
            self._shape = tuple(map(simplify, entries))
            return
        operation = self._resized_to(entries)
        before = object.__new__(type(self))
        before.__dict__.update(self.__dict__)
        self.origin, self._shape = Origin(operation, (before,), 0), operation.shapes[0]

    def _resized_to(self, shape: tuple[Any, ...]) -> MetaOperation:
        """The operation that takes the first positions of this level."""
        raise NotImplementedError

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
        if isinstance(dtype, Level):
            if dtype.source is not self.source or any(level is self for level in dtype.levels):
                raise ArrangementError(
                    f"the inner level of {self.label}, {self!r}, cannot be {dtype!r}, which is not of its "
                    "elements; rearrange the level that is there, as in `t.dtype = t.dtype.squeeze(0)`"
                )
            self._dtype = dtype
            return
        self.location = caller_location()
        self._dtype = checked_dtype(dtype, self.location)

    @property
    def source(self: LevelT) -> LevelT:
        """The tensor that this one was arranged from."""
        return self if self._source is None else self._source  # type: ignore[return-value]

    @property
    def strides(self) -> Shape:
        """The source's strides, in elements."""
        return self.source._strides

    @property
    def levels(self: LevelT) -> tuple[LevelT, ...]:
        """This level and those within it, outermost first."""
        result = [self]
        while isinstance(result[-1].dtype, Level):
            result.append(result[-1].dtype)  # type: ignore[arg-type]
        return tuple(result)

    @property
    def value(self) -> Any:
        """The default of a compile-time constant, or None."""
        return None if self.default is UNSET else self.default

    @property
    def has_default(self) -> bool:
        return self.default is not UNSET

    def resized(self: LevelT, shape: Shape) -> LevelT:
        """A new source like this one, of other sizes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        label = "" if self.source.name is None else f"{self.source.name}: "
        return f"Tensor({label}{' of '.join(shape_text(level._shape) for level in self.levels)})"

    @property
    def label(self) -> str:
        """How error texts name this tensor: by its name, or its place in the arrangement."""
        name = self.source.name or _names.get().get(id(self.source))
        return "a tensor" if name is None else f"`{name}`"


_NO_NAMES: Mapping[int, str] = MappingProxyType({})
_names: ContextVar[Mapping[int, str]] = ContextVar("names", default=_NO_NAMES)


@contextmanager
def named(names: Mapping[str, Any]) -> Iterator[None]:
    """Within it, error texts call those tensors that have no name of their own by these."""
    token = _names.set(
        {id(value): name for name, value in names.items() if isinstance(value, Level)}
    )
    try:
        yield
    finally:
        _names.reset(token)


class Identity:
    """A source tensor's identity: equal for one tensor only. It does not keep the tensor alive."""

    __slots__ = ("_reference", "_hash")

    def __init__(self, tensor: Level) -> None:
        self._reference = weakref.ref(tensor)
        self._hash = id(tensor)

    @property
    def tensor(self) -> Level | None:
        return self._reference()

    @property
    def label(self) -> str | None:
        """How the tensor is called where its sizes are printed."""
        return None if self.tensor is None else self.tensor.display_name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Identity) and other._reference == self._reference

    def __hash__(self) -> int:
        return self._hash


def owner_of(symbol: Symbol) -> Level | None:
    """The tensor whose size or stride a name is, else None."""
    if symbol.op != "leaf" or not isinstance(symbol.leaf.owner, Identity):
        return None
    return symbol.leaf.owner.tensor


def identity(tensor: Level) -> object:
    """What stands for a source tensor inside of expressions."""
    return Identity(tensor.source)


def made_level(shape: Shape, origin: Origin, source: LevelT) -> LevelT:
    """A level that an operation makes of a source's, without its elements."""
    result = object.__new__(type(source))
    result.name = source.name
    result.display_name = source.display_name
    result.jagged_dim = source.jagged_dim
    result.other = source.other
    result.constexpr = False
    result.default = UNSET
    result.origin = origin
    result.location = source.location
    result._source = source
    result._shape = shape
    result._strides = ()
    result._dtype = None
    return result


def cloned(dtype: Any) -> Any:
    """The levels below anew, so that assigning to one tensor's never shows in another's."""
    if not isinstance(dtype, Level):
        return dtype
    result = object.__new__(type(dtype))
    result.__dict__.update(dtype.__dict__)
    result._dtype = cloned(dtype._dtype)
    return result


def rebuilt(
    tensor: LevelT,
    function: Rewrite,
    source: LevelT,
    change: Callable[[MetaOperation], MetaOperation] = lambda operation: operation,
    start: LevelT | None = None,
) -> LevelT:
    """The same arrangement of ``source``, with ``function`` applied to every expression in it.

    Args:
        change: applied to every operation.
        start: the level of the source that is arranged; by default the source itself.
    """
    start = source if start is None else start
    memo: dict[int, LevelT] = {}
    operations: dict[int, MetaOperation] = {}

    def level(old: Level) -> LevelT:
        if id(old) in memo:
            return memo[id(old)]
        if old.origin is None:
            memo[id(old)] = start
            return start
        origin = old.origin
        operands = tuple(map(level, origin.operands))
        key = id(origin.operation)
        if key not in operations:
            operand = tuple(operand._shape for operand in operands)
            operations[key] = replace(
                change(origin.operation).substituted(function), operand=operand
            )
        # Not mapped from the old shape: a count is clamped at 0 once it is known.
        shape = operations[key].shapes[origin.result]
        new = made_level(shape, Origin(operations[key], operands, origin.result), source)
        memo[id(old)] = new
        new._dtype = old._dtype
        return new

    levels = [level(old) for old in tensor.levels]
    if len(levels) == 1 and levels[0] is start:
        return start
    for outer, inner in itertools.pairwise(levels):
        outer._dtype = inner
    return levels[0]


def verify_operations(tensor: Level, subject: str, evaluate: Evaluate) -> None:
    """Checks, on known sizes, all meta-operations that made a tensor.

    Raises:
        ArrangementError: the sizes do not fit one; ``subject`` is what it calls the tensor.
    """
    for operation in operations(tensor):
        try:
            operation.verify(evaluate)
        except Misfit as misfit:
            shape = tuple(map(evaluate, operation.operand[0]))
            raise misfit.error(operation.name, subject, shape, operation.location) from None


def operations(tensor: Level) -> Iterator[MetaOperation]:
    """All meta-operations that made a tensor, the last first, each once."""
    return (origin.operation for origin in origins(tensor))


def origins(tensor: Level) -> Iterator[Origin]:
    """The meta-operations that made a tensor, the last first, each once, with the levels they were given."""
    seen: set[int] = set()
    pending = list(tensor.levels)
    while pending:
        origin = pending.pop().origin
        if origin is not None and id(origin.operation) not in seen:
            seen.add(id(origin.operation))
            pending += origin.operands
            yield origin


def checked_dtype(dtype: Any, location: Location | None) -> DType | None:
    """What was declared as an element type, as ours; None, and a warning, for what is none."""
    found = None if dtype is None else dtypes.element_type(dtype)
    if dtype is not None and found is None:
        warn_of_declaration(
            f"dtype={dtype!r} is no element type and is ignored: the tensor takes any. Use one of "
            f"ninetoothed.{', '.join(dtypes.NAMES)}, one of a framework's, Python's int, float or "
            "bool, a name of these, or None for whatever is given",
            location,
        )
    return found
