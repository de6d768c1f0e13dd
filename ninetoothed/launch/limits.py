"""Sizes of a call that a derived backward is not right of: what is repeated where it meets more is known then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ninetoothed.derivatives.tape import Widened, place_of
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.operator import OperatorDefinition
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol

#: What a backward has: by the name of what the forward operator has, and whether its gradient is meant.
Known = Mapping[tuple[str, bool], Any]


@dataclass(frozen=True)
class Size:
    """Where a call has a size.

    Attributes:
        key: of what the backward has it.
        dim: along which dimension.
        name: the tensor that it is declared of.
        entry: as `Tensor` takes it where it is declared to be 1.
    """

    key: tuple[str, bool]
    dim: int
    name: str
    entry: str

    def of(self, known: Known) -> Any:
        return known[self.key].shape[self.dim]


@dataclass(frozen=True)
class Limit:
    """That a size is not 1 where another is more: what is repeated would have a sum as its gradient.

    Attributes:
        sizes: where those are that both are made of.
    """

    widened: Widened
    sizes: Mapping[Symbol, Size]

    def is_passed(self, known: Known) -> bool:
        own, whole = self.widened.own, as_symbol(self.widened.whole)
        at = self.sizes.get(own)
        if at is not None and at.of(known) != 1:
            return False
        values = {symbol: size.of(known) for symbol, size in self.sizes.items()}
        return bool(own.evaluate(values) == 1 and whole.evaluate(values) != 1)

    def error(self, known: Known) -> ArgumentError:
        own = {*self.widened.own.leaves()}
        small = next(at for symbol, at in self.sizes.items() if symbol in own)
        large = [at for at in self.sizes.values() if at.of(known) != 1]
        more = f"`{large[0].name}` has {large[0].of(known)}" if large else "there is more"
        return ArgumentError(
            f"No backward is derived: `{small.name}` has size 1 where {more}, and is repeated. Declare it so, as in "
            f"`Tensor(shape={small.entry})`, or tile it by 1 there and not by -1: then its gradient is summed.",
            place_of(self.widened.node),
        )


def limits_of(operator: OperatorDefinition, widened: Sequence[Widened]) -> tuple[Limit, ...]:
    """The limits of an operator's backward of which a call has the sizes; others are of tiles."""
    sources = {p.name: p.source.shape for p in operator.kernel.tensor_parameters}
    named: dict[Symbol, tuple[str, str]] = {}
    for entry in operator.tensors:
        for dim, size in enumerate(sources[entry.name]):
            declared = tuple(1 if at == dim else None for at in range(len(sources[entry.name])))
            named.setdefault(as_symbol(size), (entry.name, repr(declared)))
    # Gradients first: they are there in any case.
    places: dict[Symbol, Size] = {}
    for output in operator.outputs:
        made = sources[output.shape] if isinstance(output.shape, str) else output.shape
        for dim, pair in enumerate(zip(map(as_symbol, made), map(as_symbol, sources[output.name]))):
            name = next((named[size] for size in pair if size in named), (output.name, "(1,)"))
            for size in pair:
                places.setdefault(size, Size((output.name, True), dim, *name))
    for entry in operator.tensors:
        for dim, size in enumerate(map(as_symbol, sources[entry.name])):
            places.setdefault(size, Size((entry.name, False), dim, *named[size]))
    limits = []
    for each in widened:
        leaves = {*each.own.leaves(), *as_symbol(each.whole).leaves()}
        if leaves <= places.keys():
            limits.append(Limit(each, {symbol: places[symbol] for symbol in leaves}))
    return tuple(limits)
