"""What the sizes of a call make of a kernel that a backend cannot run with them.

A backend finds out as it runs or compiles the kernel, and says so in words of its own. The types of the
kernel's values with these sizes tell which of them do not fit, in the same words for all backends.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from ninetoothed.errors import ApplicationError, CompilationError, ShapeError
from ninetoothed.kernels.definition import Definition
from ninetoothed.passes.rewriting import Draft
from ninetoothed.program.inference import infer
from ninetoothed.symbols.expr import Symbol


@contextlib.contextmanager
def explained(kernel: Definition, values: Mapping[Symbol, Any]) -> Iterator[None]:
    """An error of what is done with a kernel says which shapes do not fit, where that is why.

    Args:
        values: those of sizes and constants.

    Raises:
        ShapeError: located.
    """
    try:
        yield
    except (ApplicationError, CompilationError) as error:
        sizes = {symbol: value for symbol, value in values.items() if isinstance(value, int)}
        try:
            infer(Draft(kernel.program), is_checked=True, sizes=sizes)
        except ApplicationError as reason:
            raise ShapeError(reason.message, reason.location) from error
        raise
