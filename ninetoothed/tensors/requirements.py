"""What sizes must fulfil for an arrangement to fit them, as expressions: `Arrangement.verify` says the
same of numbers, and refuses them with a better message. For who asks where there is no Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, maximum
from ninetoothed.symbols.simplify import difference, product, simplify
from ninetoothed.tensors.arrange import Arrangement
from ninetoothed.tensors.grids import Places
from ninetoothed.tensors.level import operations
from ninetoothed.tensors.meta_operation import Shape


@dataclass(frozen=True)
class Requirement:
    """An expression that must be at least so much, and at most, None where that is open.

    Attributes:
        parameter: whose arrangement asks for it.
        text: what must be, for people.
    """

    parameter: str
    expression: Symbol
    low: int
    high: int | None
    text: str

    def given(self, values: Mapping[Symbol, int]) -> Requirement | None:
        """The same where some values are known; None where it holds whatever the others are."""
        known = as_symbol(simplify(self.expression.substitute(values)))
        low, high = interval(known)
        is_certain = low >= self.low and (self.high is None or high <= self.high)
        return None if is_certain else replace(self, expression=known)


def requirements(
    arrangement: Arrangement, touched: Collection[str] | None = None
) -> Iterator[Requirement]:
    """All that must hold, what holds for every size too.

    Args:
        touched: the tensors that take part, by default all.
    """
    for parameter in arrangement.tensors:
        name, tensor = parameter.name, parameter.tensor
        if tensor is None or (touched is not None and name not in touched):
            continue
        for operation in operations(tensor):
            for need in operation.needs:
                expression = as_symbol(simplify(need.expression))
                text = f"`{operation.name}` needs {need.text}"
                yield Requirement(name, expression, need.low, need.high, text)
        for own, shared in _pairs(parameter.levels[0], arrangement.grid, arrangement.places[name]):
            apart = difference(maximum(own, 0), maximum(shared, 0))
            text = f"the outermost shapes must be the same: {own} must be {shared}"
            yield Requirement(name, as_symbol(apart), 0, 0, text)


def _pairs(shape: Shape, grid: Shape, placed: Places) -> Iterator[tuple[Expression, Expression]]:
    """The sizes of an outermost shape and of the grid that are the same, as `grids.agrees` has it.

    Where it shows only in a call which dimensions are of size 1, the number of elements is.
    """
    if placed is None:
        yield product(shape), product(grid)
        return
    for size, dim in zip(shape, placed):
        yield size, 1 if dim is None else grid[dim]
    for dim, size in enumerate(grid):
        if dim not in placed:
            yield size, 1
