"""The NumPy implementation of Triton's language: one table, from name to function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ninetoothed.backends.numpy.language import (
    combining,
    creation,
    dot,
    hints,
    random,
    reduction,
    scan,
    shape,
)
from ninetoothed.backends.numpy.language import math as language_math
from ninetoothed.backends.numpy.language import memory as language_memory
from ninetoothed.backends.numpy.language.math import elementwise_of
from ninetoothed.language import operations
from ninetoothed.language.operations import Operation
from ninetoothed.language.promotion import refuse

FUNCTIONS: dict[str, Callable[..., Any]] = {
    **combining.FUNCTIONS,
    **creation.FUNCTIONS,
    **dot.FUNCTIONS,
    **hints.FUNCTIONS,
    **language_math.FUNCTIONS,
    **language_memory.FUNCTIONS,
    **reduction.FUNCTIONS,
    **scan.FUNCTIONS,
    **shape.FUNCTIONS,
    **random.FUNCTIONS,
}


def implementation(name: str) -> Callable[..., Any]:
    """The function behind a name such as ``"exp"``, ``"math.exp"`` or ``"libdevice.tanh"``.

    Raises:
        CompilationError: there is none; what calls it is named in the error.
    """
    for known in (name, operations.without_alias(name)):
        if known in FUNCTIONS:
            return FUNCTIONS[known]
    operation = operations.find(name)
    if operation is not None:
        if operation.home == "libdevice":
            from ninetoothed.backends.numpy.language import libdevice  # large, and few need it

            rest = name.rpartition(".")[2]
            if rest in libdevice.FUNCTIONS:
                return libdevice.FUNCTIONS[rest]
        if operation.numpy is not None:
            return brought_along(operation)

    def missing(*arguments: Any, **keywords: Any) -> Any:
        raise refuse(
            f"The NumPy backend, which runs CPU tensors, has no ntl.{name}. "
            "Use another function, or run the kernel on a GPU."
        )

    return missing


@functools.cache
def brought_along(operation: Operation) -> Callable[..., Any]:
    """What an operation from elsewhere is; an element-wise one is given and gives bare arrays."""
    function = operation.numpy
    assert function is not None
    return elementwise_of(operation.name, function) if operation.is_elementwise else function
