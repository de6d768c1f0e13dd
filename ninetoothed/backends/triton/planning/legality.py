"""Whether a kernel can be written with some options at all."""

from __future__ import annotations

from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.products import Needs
from ninetoothed.backends.triton.printers.bodies import body_of
from ninetoothed.backends.triton.printers.gluon.forms import NotPossibleError
from ninetoothed.backends.triton.printers.gluon.translation import understood
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition


@analysis
def needs_of(kernel: Definition, lowered: Lowered) -> Needs | str:
    """What a call must fulfil for programs in Gluon; the reason where there can be none."""
    try:
        return understood(body_of(lowered)).needs
    except NotPossibleError as reason:
        return str(reason)
