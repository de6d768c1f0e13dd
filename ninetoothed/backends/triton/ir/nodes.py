"""What a program may have besides the nodes of `program.nodes` when it is about to be printed.

Up to the end are those of a lowered program, in which tiles have become addresses: plain Python, and
nodes for what each of the languages that it is printed in writes in its own way.
"""

from __future__ import annotations

import ast

from ninetoothed.backends.triton.analysis.full_iterations import FullIterations
from ninetoothed.program import nodes
from ninetoothed.records import dataclass
from ninetoothed.tensors.access import Access
from ninetoothed.tensors.meta_operation import Shape

#: The most counters that a launch has in its workspace.
MOST_COUNTERS = 16384

_MARK = "holds_at_first"


@dataclass(frozen=True)
class Pair:
    """Two tiles that take turns along their last dimension, as one.

    Attributes:
        access: where the elements of both lie; the last lane goes through both in turn.
        tile_shape: of each of the two.
    """

    access: Access
    tile_shape: Shape


class PairLoad(nodes.Load):
    """The values of two tiles that take turns; ``tile`` is the first of them."""

    pair: Pair


class PairStore(nodes.Store):
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


class SliceStore(nodes.Store):
    """Stores a value to a slice of a tile, whose number is the last of the tile's indices."""

    tile_slice: TileSlice


class SplitLoop(ast.For):
    """A loop of which the first rounds are done without what holds in them."""

    full: FullIterations


class LibraryRef(nodes.ExternRef):
    """A function of the library of device functions."""


class Workspace(nodes.Expression):
    """A pointer into the workspace: ``"arrivals"`` or ``"partials"``."""

    _fields = ("what",)
    what: str


class PartPosition(nodes.Expression):
    """Of the programs that share a reduction: which ``"tile"`` a program does, or ``"part"`` of it."""

    _fields = ("what",)
    what: str


class TritonRef(nodes.LanguageRef):
    """A name of Triton's language, ``where`` or ``libdevice.tanh``."""


class PointedType(nodes.ElementType):
    """The element type of a parameter's source, as that of what its pointer points to."""

    _fields = ("parameter", "pointer")
    pointer: ast.expr


class DescriptorLoad(nodes.Expression):
    """What the descriptor of a parameter's source loads at a corner, a list of indices."""

    _fields = ("parameter", "descriptor", "corner")
    parameter: str
    descriptor: ast.expr
    corner: ast.List


class DescriptorStore(nodes.Statement):
    """Stores a value, in the shape of the descriptor's box, at a corner."""

    _fields = ("parameter", "descriptor", "corner", "value")
    parameter: str
    descriptor: ast.expr
    corner: ast.List
    value: ast.expr


# A split loop where Gluon is written: both parts are one, with the conditions of both.


class MarkedLoop(ast.For):
    """A loop over a range; in its rounds before ``middle``, a name, the marked comparisons hold."""

    middle: str


def marked_loop(loop: ast.For, middle: str) -> MarkedLoop:
    """A loop whose first rounds end at ``middle``."""
    result = MarkedLoop(loop.target, loop.iter, loop.body, loop.orelse)
    result.middle = middle
    return nodes.at(result, loop)


def mark(comparison: ast.Compare) -> None:
    """Notes that a comparison holds in the first rounds. Copies of it are marked too."""
    setattr(comparison, _MARK, True)


def is_marked(value: ast.expr) -> bool:
    """Whether this is a comparison that holds in the first rounds."""
    return getattr(value, _MARK, False)
