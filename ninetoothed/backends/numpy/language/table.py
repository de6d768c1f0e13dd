"""The NumPy implementation of Triton's language: one table, from name to function."""

from __future__ import annotations

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
from ninetoothed.backends.numpy.values.promotion import refuse

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

#: Namespaces whose names are also, and mean the same, at the top.
_ALIASES = ("math", "random", "standard", "core")


def implementation(name: str) -> Callable[..., Any]:
    """The function behind a name such as ``"exp"``, ``"math.exp"`` or ``"libdevice.tanh"``.

    Raises:
        CompilationError: there is none; what calls it is named in the error.
    """
    namespace, _, rest = name.rpartition(".")
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    if namespace in _ALIASES and rest in FUNCTIONS:
        return FUNCTIONS[rest]
    if namespace == "libdevice":
        from ninetoothed.backends.numpy.language import libdevice  # large, and few kernels need it

        if rest in libdevice.FUNCTIONS:
            return libdevice.FUNCTIONS[rest]

    def missing(*arguments: Any, **keywords: Any) -> Any:
        raise refuse(
            f"The NumPy backend, which runs CPU tensors, has no ntl.{name}. "
            "Use another function, or run the kernel on a GPU."
        )

    return missing
