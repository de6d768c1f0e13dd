"""How far the positions of a call's tiles reach, and so which type they have where a program asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.program.nodes import Offsets
from ninetoothed.symbols.bounds import Interval, interval
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated, padded
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.access import Access, reads_sequences
from ninetoothed.tensors.arrange import Parameter

#: The largest index or offset that 32 bits hold.
LARGEST_INT32 = 2**31 - 1


#: Offsets that a program asks for: of a tensor's tiles, along a dimension of the source or, with None, linear ones.
Asked = tuple[str, "int | None"]


def reach_of(
    expression: Expression, environment: Mapping[Symbol, int], ranges: Mapping[Symbol, Interval]
) -> float:
    """The largest magnitude of an expression of an access.

    Args:
        ranges: the values of its positions.
    """
    low, high = interval(simplify(as_symbol(expression).substitute(environment)), ranges)
    return max(abs(low), abs(high))


def far_offsets(
    kernel: Definition, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> frozenset[Asked]:
    """The offsets that are int64 in a call: those of which 32 bits do not hold one, or a size or a stride that
    they are made of, and, in any call, where a sequence of a jagged tensor begins."""
    found = set()
    for name, dim in asked_offsets(kernel):
        parameter, access = kernel.program.parameter(name), kernel.arrangement.accesses[name]
        ranges = positions(parameter, access, environment, grid)
        offset = as_symbol(access.of(dim))
        numbers = [abs(environment[leaf]) for leaf in offset.leaves() if leaf in environment]
        farthest = max(reach_of(offset, environment, ranges), *numbers, 0)
        if reads_sequences(offset) or farthest > LARGEST_INT32:
            found.add((name, dim))
    return frozenset(found)


@analysis
def asked_offsets(kernel: Definition) -> frozenset[Asked]:
    """The offsets that the program asks for."""
    nodes = kernel.program.nodes()
    return frozenset((n.tile.parameter, n.dim) for n in nodes if isinstance(n, Offsets))


def positions(
    parameter: Parameter, access: Access, environment: Mapping[Symbol, int], grid: tuple[int, ...]
) -> dict[Symbol, Interval]:
    """The values that each position takes."""
    return {
        leaf: (0, max(evaluated(count, environment) - 1, 0))
        for leaf, count in counts(parameter, access, grid)
    }


def counts(
    parameter: Parameter, access: Access, grid: Sequence[Expression]
) -> list[tuple[Symbol, Expression]]:
    """How many values each position takes; a lane goes on to the next power of two."""
    return [
        *zip(access.programs, grid, strict=True),
        *zip(access.selections, parameter.middle_sizes, strict=True),
        *zip(access.coordinates, map(padded, parameter.tile_shape), strict=True),
    ]
