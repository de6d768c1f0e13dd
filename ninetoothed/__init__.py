"""NineToothed: machine-learning kernels as serial Python about tiles.

The names below are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ninetoothed.evaluation import ELEMENT_TYPES as _ELEMENT_TYPES
from ninetoothed.evaluation import EVALUATOR as _EVALUATOR

if TYPE_CHECKING:
    from ninetoothed import debugging as debugging
    from ninetoothed import language as language
    from ninetoothed import visualization as visualization
    from ninetoothed.aot.build import build
    from ninetoothed.errors import DeclarationWarning
    from ninetoothed.kernels.operator import like
    from ninetoothed.language.dtypes import (
        bfloat16,
        bool,
        float8_e4m3,
        float8_e5m2,
        float16,
        float32,
        float64,
        int8,
        int16,
        int32,
        int64,
        uint8,
        uint16,
        uint32,
        uint64,
    )
    from ninetoothed.launch.make import jit, make
    from ninetoothed.launch.operator import op
    from ninetoothed.launch.tune import tune
    from ninetoothed.launch.warm_up import warm_up
    from ninetoothed.symbols.expr import Symbol, block_size
    from ninetoothed.tensors.evaluate import eval, subs
    from ninetoothed.tensors.tensor import Tensor

__version__ = "1.0.0"

_DTYPES = (
    "bfloat16 bool float8_e4m3 float8_e5m2 float16 float32 float64 "
    "int8 int16 int32 int64 uint8 uint16 uint32 uint64"
).split()

#: name -> the module that has it
_HOME = {
    "DeclarationWarning": "errors",
    "Symbol": "symbols.expr",
    "Tensor": "tensors.tensor",
    "block_size": "symbols.expr",
    "build": "aot.build",
    "eval": "tensors.evaluate",
    "jit": "launch.make",
    "like": "kernels.operator",
    "make": "launch.make",
    "op": "launch.operator",
    "subs": "tensors.evaluate",
    "tune": "launch.tune",
    "warm_up": "launch.warm_up",
    **dict.fromkeys(_DTYPES, "language.dtypes"),
}
_MODULES = ("debugging", "language", "visualization")

_NAMES = sorted([*_HOME, *_MODULES])

#: Without `bool`: a star import leaves Python's alone, which would be called where it is hidden.
__all__ = [name for name in _NAMES if name != "bool"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"ninetoothed.{name}")
    if name not in _HOME:
        from ninetoothed.errors import near

        raise AttributeError(f"module 'ninetoothed' has no attribute {name!r}.{near(name, _NAMES)}")
    from ninetoothed.threads import without_collections

    with without_collections():
        value = getattr(importlib.import_module(f"ninetoothed.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return _NAMES


_EVALUATOR.give(lambda: importlib.import_module("ninetoothed.plugins").evaluator())
_ELEMENT_TYPES.give(lambda item: importlib.import_module("ninetoothed.plugins").element_type(item))
