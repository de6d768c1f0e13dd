"""Elements of tiles (``x[i]``, ``x[1:]``) as Triton expressions: where lanes and positions stand in them."""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence

from ninetoothed.backends.triton.ir.trees import arranged, element, language, spread, sum_of
from ninetoothed.backends.triton.printers.emission import Emission
from ninetoothed.language import dtypes
from ninetoothed.records import dataclass
from ninetoothed.tensors.views import View


@dataclass(frozen=True)
class Placement:
    """Where the dimensions of a view's value stand.

    Attributes:
        view: the view.
        chosen: the positions that the program gives: numbers or tiles, of which only the running
            compiler knows the number of dimensions.
    """

    emission: Emission
    view: View
    chosen: Sequence[ast.expr]

    def lane(self, lane: ast.expr, dim: int) -> ast.expr:
        """The positions along a slice, before as many dimensions as come after it."""
        after = len(self.view.shape) - 1 - dim
        if self.chosen and dim < self.view.before:
            together = functools.reduce(sum_of, self.chosen)
            return self.emission.call("before_others", lane, together, ast.Constant(after))
        if not after:
            return lane
        return spread(lane, [dim, *[None] * after])

    def positions(self) -> list[ast.expr]:
        """What is chosen, before the slices that come after it."""
        after = len(self.view.shape) - self.view.before
        if not after:
            return list(self.chosen)
        call = self.emission.call
        return [call("after_others", position, ast.Constant(after)) for position in self.chosen]


def rearranged(mask: ast.expr, rank: int, layout: Sequence[int | None]) -> ast.expr:
    """A mask over the dimensions of a view's value, over those in ``layout``.

    Of a dimension that is not there, as after a reduction, any element counts.
    """
    if tuple(layout) == tuple(range(rank)):
        return mask
    ones = ast.Tuple([ast.Constant(1)] * rank, ast.Load())
    true = language("full", ones, ast.Constant(True), element(dtypes.bool))
    mask = ast.BinOp(true, ast.BitAnd(), mask)
    present = [dim for dim in layout if dim is not None]
    for dim in reversed(range(rank)):
        if dim not in present:
            number = language("cast", mask, element(dtypes.int32))
            mask = ast.Compare(
                language("max", number, axis=ast.Constant(dim)), [ast.NotEq()], [ast.Constant(0)]
            )
    return arranged(mask, layout)
