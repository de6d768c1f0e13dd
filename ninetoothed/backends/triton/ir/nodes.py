"""What a program may have besides the nodes of `program.nodes` when it is about to be printed."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ninetoothed.program.nodes import Expression, ExternRef, Load, Store
from ninetoothed.tensors.access import Access

if TYPE_CHECKING:
    from ninetoothed.backends.triton.analysis.full_iterations import FullIterations
    from ninetoothed.tensors.metaops import Shape

#: The most counters that a launch has in its workspace.
MOST_COUNTERS = 16384


@dataclass(frozen=True)
class Pair:
    """Two tiles that take turns along their last dimension, as one.

    Attributes:
        access: where the elements of both lie; the last lane goes through both in turn.
        tile_shape: of each of the two.
    """

    access: Access
    tile_shape: Shape


class PairLoad(Load):
    """The values of two tiles that take turns; ``tile`` is the first of them."""

    pair: Pair


class PairStore(Store):
    """Stores a tuple's two values to two tiles that take turns; ``tile`` is the first of them."""

    pair: Pair


@dataclass(frozen=True)
class TileSlice:
    """One of several slices of a tile, of the same size.

    Attributes:
        access: where its elements lie; the slice's number is the last selection.
        dim: the dimension of the tile that is cut.
        count: how many slices there are.
    """

    access: Access
    dim: int
    count: int


class SliceStore(Store):
    """Stores a value to a slice of a tile, whose number is the last of the tile's indices."""

    tile_slice: TileSlice


class SplitLoop(ast.For):
    """A loop of which the first rounds are done without what holds in them."""

    full: FullIterations


class LibraryRef(ExternRef):
    """A function of the library of device functions."""


class Workspace(Expression):
    """A pointer into the workspace: ``"arrivals"`` or ``"partials"``."""

    _fields = ("what",)
    what: str


class PartPosition(Expression):
    """Of the programs that share a reduction: which ``"tile"`` a program does, or ``"part"`` of it."""

    _fields = ("what",)
    what: str
