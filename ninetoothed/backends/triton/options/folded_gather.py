"""Folded tiles: a gathered tile loaded in four dimensions, so that its positions cost little.

Triton spreads a tile of single elements over threads as it likes: each gets elements of many rows and
many columns and computes the position of every one. Here a tile of rows and columns is loaded as
(32, columns // 8, 8, rows // 32): the threads of a warp follow 32 neighbours, which lie close together
in memory, the warps divide the columns, and a thread has eight columns in succession, whose positions
serve all its rows and which it writes to shared memory at once. A permutation and a reshaping, which
move nothing, make the tile of it again. conv2d gained 12% in the mean of three settings on an
H200 (2026-11-22).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import replace

from ninetoothed.backends.triton.analysis.resources import lanes
from ninetoothed.backends.triton.ir.lowered import NEIGHBOURS, RUN, Lowered
from ninetoothed.backends.triton.options.option import Case, Option
from ninetoothed.kernels.definition import Definition
from ninetoothed.symbols.expr import Symbol
from ninetoothed.tensors.access import Access


def folds(
    kernel: Definition, parameters: Iterable[str], environment: Mapping[Symbol, int]
) -> frozenset[tuple[str, int]]:
    """Those of the tensors whose tiles should be folded, each with the dimension of the neighbours."""
    found = ((name, _neighbours(kernel, name, environment)) for name in parameters)
    return frozenset((name, dim) for name, dim in found if dim is not None)


def _neighbours(kernel: Definition, name: str, environment: Mapping[Symbol, int]) -> int | None:
    """The dimension along which a warp's threads should go; None where the tile is not gathered."""
    parameter = kernel.program.parameter(name)
    access = kernel.arrangement.accesses[name]
    if len(access.coordinates) != 2 or not _is_gathered(access):
        return None
    widths = [lanes(size, environment) for size in parameter.tile_shape]
    possible = [dim for dim in (0, 1) if widths[dim] >= NEIGHBOURS and widths[1 - dim] >= RUN]
    return max(possible, key=lambda dim: _adjacent(access, environment, dim), default=None)


def _is_gathered(access: Access) -> bool:
    """Whether the positions along both dimensions are taken apart by divisions."""
    divided = {
        leaf for node in access.offset.walk() if node.op in ("//", "%") for leaf in node.leaves()
    }
    return divided.issuperset(access.coordinates)


def _adjacent(access: Access, environment: Mapping[Symbol, int], dim: int) -> int:
    """How many of the first positions along a dimension lie right behind the one before."""
    base = access.first(environment)
    offsets = [
        access.offset.evaluate({**base, access.coordinates[dim]: place})
        for place in range(NEIGHBOURS)
    ]
    return sum(after - before == 1 for before, after in itertools.pairwise(offsets))


class FoldedGather(Option):
    """Done to the tiles that a loop loads one round ahead."""

    name = "folded_gather"
    default = 1
    is_offered = False

    def apply(self, lowered: Lowered, case: Case, value: int) -> Lowered:
        return replace(lowered, folds=folds(lowered.kernel, lowered.prefetched, case.environment))


OPTION = FoldedGather()
