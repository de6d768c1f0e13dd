"""The number -0.0 as Triton's compiler keeps it, which takes every number that equals 0 for 0.0."""

from __future__ import annotations

import math
from typing import Any


class MinusZero(float):
    """-0.0, which does not equal 0."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MinusZero)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = float.__hash__


def is_minus_zero(value: object) -> bool:
    """Whether this is -0.0."""
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def kept(value: Any) -> Any:
    """A constant of a kernel as a compiler keeps it."""
    return MinusZero(-0.0) if is_minus_zero(value) else value
