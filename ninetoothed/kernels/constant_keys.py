"""Keys of compile-time constants: equal only where nothing can tell the constants apart.

``1``, ``1.0`` and ``True`` are equal to Python, also within tuples, and so are ``0.0`` and ``-0.0``.
A kernel may come out differently for each.
"""

from __future__ import annotations

from typing import Any

from ninetoothed.language.dtypes import DType

#: Of these classes a value and its class are key enough.
PLAIN: frozenset[type] = frozenset({int, bool, str, bytes, type(None), DType})


def constant_key(value: Any) -> Any:
    """A key for a constant, beside its class; hashable where the constant is."""
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, complex):
        return value.real.hex(), value.imag.hex()
    if isinstance(value, tuple):
        return tuple([(item.__class__, constant_key(item)) for item in value])
    if isinstance(value, frozenset):
        return frozenset((item.__class__, constant_key(item)) for item in value)
    if value.__class__.__module__ == "numpy" and hasattr(value, "tobytes"):
        return hash(value), value.tobytes()
    return value
