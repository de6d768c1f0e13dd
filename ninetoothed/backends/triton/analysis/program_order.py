"""What the order of programs may be: whether grouping rows helps, and how positions are computed."""

from __future__ import annotations

import math

from ninetoothed.tensors.arrange import Arrangement

#: Inverses are so many bits of a fraction, rounded up.
INVERSE_BITS = 30


def is_grouped(arrangement: Arrangement) -> bool:
    """Whether one operand follows the grid's rows and another its columns, and neither both."""
    if len(arrangement.grid) < 2:
        return False
    row, column = arrangement.programs[-2:]
    accesses = arrangement.accesses.values()
    follows = [{leaf for index in each.indices for leaf in index.leaves()} for each in accesses]
    return any(row in leaves and column not in leaves for leaves in follows) and any(
        column in leaves and row not in leaves for leaves in follows
    )


def are_inverses_exact(grid: tuple[int, ...]) -> bool:
    """Whether multiplying by inverses gives the positions in a grid."""
    later = [math.prod(grid[dim + 1 :]) for dim in range(len(grid))]
    # A program's number times what rounding added to the inverse, less than the divisor.
    return 0 < math.prod(grid) * max(later) < 1 << INVERSE_BITS
