"""The NumPy implementation of Triton's language: one table, from name to function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from ninetoothed.backends.numpy.language import (
    blocks,
    combining,
    creation,
    dot,
    hints,
    math,
    memory,
    random,
    reduction,
    scan,
    shape,
)
from ninetoothed.backends.numpy.language.math import elementwise_of
from ninetoothed.language import operations
from ninetoothed.language.operations import Operation
from ninetoothed.language.promotion import refuse

_MODULES = (blocks, combining, creation, dot, hints, math, memory, random, reduction, scan, shape)


def _functions_of(module: ModuleType) -> dict[str, Callable[..., Any]]:
    """A module's functions that are called as the language calls them, and those it has a table of."""
    own = {
        name: value
        for name, value in vars(module).items()
        if name in operations.TABLE and getattr(value, "__module__", "") == module.__name__
    }
    return own | getattr(module, "FUNCTIONS", {})


FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: function for module in _MODULES for name, function in _functions_of(module).items()
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
