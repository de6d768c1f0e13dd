"""The NumPy implementation of Triton's language: one table, from name to function.

`implementation` gives the function of a name of `ninetoothed.language`. Tiles get the functions
that Triton's tensors have as members.
"""

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
from ninetoothed.backends.numpy.values.pointer import PointerTile
from ninetoothed.backends.numpy.values.promotion import refuse
from ninetoothed.backends.numpy.values.tile import Tile

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

#: The functions that are members of Triton's tensors, called with the tile first.
TILE_MEMBERS = """
    abs argmax argmin associative_scan broadcast_to cdiv ceil cos cumprod cumsum erf exp exp2
    expand_dims flip floor gather histogram item log log2 logical_and logical_or max min permute
    ravel reduce reduce_or reshape rsqrt sigmoid sin softmax sort split sqrt sqrt_rn sum trans view
    xor_sum
""".split()

POINTER_MEMBERS = """
    atomic_add atomic_and atomic_cas atomic_max atomic_min atomic_or atomic_xchg atomic_xor store
""".split()


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


for _name in TILE_MEMBERS:
    setattr(Tile, _name, FUNCTIONS[_name])
for _name in POINTER_MEMBERS:
    setattr(PointerTile, _name, FUNCTIONS[_name])
