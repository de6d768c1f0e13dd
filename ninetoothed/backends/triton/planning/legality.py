"""Whether a kernel can be written with some options at all, found out by writing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ninetoothed.backends.triton.printers.gluon.trees import NotPossibleError
from ninetoothed.backends.triton.printers.triton import emit
from ninetoothed.kernels.analysis import analysis

if TYPE_CHECKING:
    from ninetoothed.backends.triton.ir.lowered import Lowered
    from ninetoothed.backends.triton.ir.products import Needs
    from ninetoothed.kernels.definition import Definition


@analysis
def needs_of(kernel: Definition, lowered: Lowered) -> Needs | None:
    """What a call must fulfil for programs in Gluon; None where a program has no translation."""
    try:
        return emit(lowered).needs
    except NotPossibleError:
        return None
