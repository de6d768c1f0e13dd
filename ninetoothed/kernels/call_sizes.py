"""What the sizes of a call make of a kernel that a backend cannot run with them.

A backend finds out as it runs or compiles the kernel, and says so in words of its own. The types of the
kernel's values with these sizes tell which of them do not fit, in the same words for all backends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ninetoothed.errors import ApplicationError, CompilationError, NineToothedError, ShapeError
from ninetoothed.kernels.definition import Definition
from ninetoothed.kernels.verified_bounds import empty_slices
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.inference import infer
from ninetoothed.symbols.expr import Symbol


@contextlib.contextmanager
def explained(kernel: Definition, values: Mapping[Symbol, Any]) -> Iterator[None]:
    """An error of what is done with a kernel says which slices are empty or which shapes do not fit, where
    that is why.

    Args:
        values: those of sizes and constants.

    Raises:
        ApplicationError: there is a slice without an element; located.
        ShapeError: shapes do not fit; located.
    """
    try:
        yield
    except (ApplicationError, CompilationError) as error:
        for reason in empty_slices(kernel, kernel.program, values):
            if _line_of(reason) == _line_of(error):
                raise reason from error
        sizes = {symbol: value for symbol, value in values.items() if isinstance(value, int)}
        try:
            infer(Draft(kernel.program), is_checked=True, sizes=sizes)
        except ApplicationError as reason:
            raise ShapeError(reason.message, reason.location) from error
        raise


def _line_of(error: NineToothedError) -> tuple[str, int] | None:
    """The line that an error points at."""
    place = error.location
    return None if place is None else (place.file, place.line)
