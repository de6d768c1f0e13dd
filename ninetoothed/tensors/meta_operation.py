"""What a meta-operation is: it gives its results' shapes, maps indices, and says what it needs of sizes.

An operation stands between *levels*: it takes the indices of the levels that it made back to the
indices of the levels that it was given. Nothing here knows of tensors' data, programs or backends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, fields, replace
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ArrangementError, Location
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol

Shape = tuple[Expression, ...]
Indices = tuple[Symbol, ...]
#: A comparison that must hold for an element to exist.
Condition = Symbol
#: Gives the known size that an expression has.
Evaluate = Callable[[Expression], int]
#: Gives what is to stand for an expression.
Rewrite = Callable[[Expression], Expression]


@dataclass(frozen=True)
class Need:
    """What sizes must fulfil for an operation to fit them.

    Attributes:
        value: what it is about.
        low, high: between which numbers it must be, None where that is open.
        dim: in which dimension of the operand.
        what: what is needed, for people.
        found: what a value is that does not fit, with a place for its number.
        remedy: what to do then.
        bounded: what lies between the numbers, where it is not the value alone.
    """

    value: Expression
    low: int
    high: int | None
    dim: int
    what: str
    found: str
    remedy: str = ""
    bounded: Expression | None = None

    @property
    def expression(self) -> Expression:
        return self.value if self.bounded is None else self.bounded

    @property
    def text(self) -> str:
        """What is needed, and where."""
        return f"{self.what} in dimension {self.dim}"


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

    @threads.cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """The results, found once."""
        return self.results()

    def operand_indices(self, *indices: Indices) -> tuple[Indices, ...]:
        """The operand levels' indices at the given indices of the result's levels."""
        raise NotImplementedError

    def conditions(self, *operands: Indices) -> list[Condition]:
        """What must hold for the operand's element to exist, by the operand levels' indices."""
        return []

    def conditions_of_sizes(self, *operands: Indices) -> list[Condition]:
        """Those of `conditions` that a size alone decides.

        Positions that `pad` adds and windows that overlap may lie beyond a size on purpose.
        """
        return []

    @threads.cached_property
    def needs(self) -> tuple[Need, ...]:
        """What sizes must fulfil for it to fit them."""
        return tuple(self._needed())

    def _needed(self) -> Iterator[Need]:
        yield from ()

    def verify(self, evaluate: Evaluate) -> None:
        """Checks, on known sizes, what could not be proved symbolically.

        Raises:
            Misfit: the sizes do not fit the operation.
        """
        for need in self.needs:
            known = evaluate(need.expression)
            if known < need.low or (need.high is not None and known > need.high):
                found = need.found.format(evaluate(need.value))
                raise Misfit(found, need.what, need.remedy)

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
