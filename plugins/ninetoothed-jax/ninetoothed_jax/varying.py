"""Under `jax.shard_map` a value's type says along which axes of the mesh it differs; a custom call's does not.

What a kernel makes differs along all axes that something given to it does. What differs along fewer is told
to differ along all of them first, so that the sum over devices, which its gradient is, is JAX's affair.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import jax


def axes_of(values: Iterable[Any]) -> frozenset[Any]:
    """The axes along which any of these differs."""
    traced = (value.aval for value in values if isinstance(value, jax.core.Tracer))
    return frozenset().union(*map(_axes_of_type, traced))


def _axes_of_type(kind: Any) -> frozenset[Any]:
    """As JAX says it since 0.10, as it did before, or none: before 0.6 there were no such types."""
    known = getattr(kind, "manual_axis_type", None)
    return getattr(kind, "vma", frozenset()) if known is None else known.varying


def varying(values: Iterable[Any], axes: frozenset[Any]) -> tuple[Any, ...]:
    """The values, each differing along these axes."""
    return tuple(_along(value, axes) for value in values) if axes else tuple(values)


def _along(value: Any, axes: frozenset[Any]) -> Any:
    missing = tuple(sorted(axes - axes_of([value]), key=str))
    if not missing:
        return value
    if hasattr(jax.lax, "pcast"):
        return jax.lax.pcast(value, missing, to="varying")
    return jax.lax.pvary(value, missing)
