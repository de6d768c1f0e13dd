"""Element types, neutral: no framework and no backend is known here.

Each element type is one object, so ``x.dtype is ntl.float16`` is a plain identity test on every
backend. The NumPy equivalent is looked up on first use, since ``ml_dtypes`` is only needed for
the narrow floats.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.evaluation import ELEMENT_TYPES

if TYPE_CHECKING:
    import numpy

#: name -> (kind, width in bits, Triton's name, NumPy's name, the short name used in signatures)
_TABLE = {
    "bool": ("bool", 1, "int1", "bool", "i1"),
    "int8": ("int", 8, "int8", "int8", "i8"),
    "int16": ("int", 16, "int16", "int16", "i16"),
    "int32": ("int", 32, "int32", "int32", "i32"),
    "int64": ("int", 64, "int64", "int64", "i64"),
    "uint8": ("uint", 8, "uint8", "uint8", "u8"),
    "uint16": ("uint", 16, "uint16", "uint16", "u16"),
    "uint32": ("uint", 32, "uint32", "uint32", "u32"),
    "uint64": ("uint", 64, "uint64", "uint64", "u64"),
    "float8_e4m3": ("float", 8, "float8e4nv", "float8_e4m3fn", "fp8e4nv"),
    "float8_e5m2": ("float", 8, "float8e5", "float8_e5m2", "fp8e5"),
    "float16": ("float", 16, "float16", "float16", "fp16"),
    "bfloat16": ("float", 16, "bfloat16", "bfloat16", "bf16"),
    "float32": ("float", 32, "float32", "float32", "fp32"),
    "float64": ("float", 64, "float64", "float64", "fp64"),
}


class DType:
    """One element type. Compare by identity; there is one object a type.

    Attributes:
        name: the public name, as in ``ninetoothed.float16``.
        kind: ``"bool"``, ``"int"``, ``"uint"`` or ``"float"``.
        bits: the width in bits.
        triton_name: the name in Triton's language.
        signature: the short name in Triton's signatures (``"fp16"``).
    """

    __slots__ = ("name", "kind", "bits", "triton_name", "signature", "_numpy_name", "__dict__")

    def __init__(self, name: str) -> None:
        self.name = name
        self.kind, self.bits, self.triton_name, self._numpy_name, self.signature = _TABLE[name]

    @threads.cached_property
    def numpy(self) -> numpy.dtype:
        """The NumPy dtype of the same representation."""
        import numpy

        if self._numpy_name.startswith(("bfloat", "float8")):
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, self._numpy_name))
        return numpy.dtype(self._numpy_name)

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return max(self.bits // 8, 1)

    @property
    def primitive_bitwidth(self) -> int:
        """The width in bits, under the name that Triton's language has for it."""
        return self.bits

    def is_floating(self) -> builtins.bool:
        """Whether this is a floating-point type."""
        return self.kind == "float"

    def is_int_signed(self) -> builtins.bool:
        """Whether this is an integer type with a sign."""
        return self.kind == "int"

    def is_int_unsigned(self) -> builtins.bool:
        """Whether this is an integer type without a sign; ``bool`` counts, as it does in Triton."""
        return self.kind in ("uint", "bool")

    def is_int(self) -> builtins.bool:
        """Whether this is an integer type; ``bool`` counts, as it does in Triton."""
        return self.kind != "float"

    def __eq__(self, other: object) -> builtins.bool:
        # A framework's stands for one of ours; a name does not.
        is_own = other is None or isinstance(other, DType | str | builtins.int)
        return self is other or (not is_own and element_type(other) is self)

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return (by_name, (self.name,))


_BY_NAME = {name: DType(name) for name in _TABLE}
_BY_TRITON_NAME = {dtype.triton_name: dtype for dtype in _BY_NAME.values()}

bool = _BY_NAME["bool"]
int8 = _BY_NAME["int8"]
int16 = _BY_NAME["int16"]
int32 = _BY_NAME["int32"]
int64 = _BY_NAME["int64"]
uint8 = _BY_NAME["uint8"]
uint16 = _BY_NAME["uint16"]
uint32 = _BY_NAME["uint32"]
uint64 = _BY_NAME["uint64"]
float8_e4m3 = _BY_NAME["float8_e4m3"]
float8_e5m2 = _BY_NAME["float8_e5m2"]
float16 = _BY_NAME["float16"]
bfloat16 = _BY_NAME["bfloat16"]
float32 = _BY_NAME["float32"]
float64 = _BY_NAME["float64"]

#: What Python's own types mean as a ``Tensor``'s element type.
_PYTHON_TYPES = {builtins.int: int64, builtins.float: float64, builtins.bool: bool}

NAMES = tuple(_TABLE)

#: By every name that one has: ours, Triton's, NumPy's, that of signatures, and Python's types'.
_BY_TEXT = {
    **{dtype.signature: dtype for dtype in _BY_NAME.values()},
    **{dtype._numpy_name: dtype for dtype in _BY_NAME.values()},
    **_BY_TRITON_NAME,
    **_BY_NAME,
    **{type_.__name__: dtype for type_, dtype in _PYTHON_TYPES.items()},
}


def by_name(name: str) -> DType:
    """The element type called ``name``, by its own name or Triton's; ``KeyError`` if there is none."""
    return _BY_NAME[name] if name in _BY_NAME else _BY_TRITON_NAME[name]


def element_type(item: Any) -> DType | None:
    """The element type that an object stands for, else None.

    Args:
        item: one of ours, Python's int, float or bool, an element type of NumPy's (those of
            ``ml_dtypes`` are) or of a framework, or a name of one, as its own package prints it.
    """
    if isinstance(item, DType):
        return item
    if isinstance(item, str):
        return _by_text(item)
    if isinstance(item, type) and item in _PYTHON_TYPES:
        return _PYTHON_TYPES[item]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        if isinstance(item, type):
            # A class of NumPy's numbers, or one that says which of NumPy's types it is, as JAX's do.
            found = numpy.dtype(item) if issubclass(item, numpy.generic) else None
            item = found or getattr(item, "dtype", item)
        if isinstance(item, numpy.dtype):
            return _BY_TEXT.get(item.name) if item.isnative else None
    return ELEMENT_TYPES.of(item)


def _by_text(text: str) -> DType | None:
    """The element type of a name: "float16", "fp16", "torch.float16", "int"."""
    package, _, name = text.rpartition(".")
    if package in sys.modules and (meant := getattr(sys.modules[package], name, None)) is not None:
        return None if isinstance(meant, str) else element_type(meant)
    return _BY_TEXT.get(name)
