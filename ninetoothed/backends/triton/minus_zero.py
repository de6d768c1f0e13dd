"""The number -0.0 as Triton's compiler keeps it, which takes every number that equals 0 for 0.0.

It asks by ``==``. So does what keeps compiled kernels, to which 0.0 and -0.0 are two constants. What a kernel
itself asks of a number is emitted as ``!=``, to which -0.0 is 0.
"""

from __future__ import annotations

import math
from typing import Any


class MinusZero(float):
    """-0.0, of which ``== 0`` is false, as ``!= 0`` is."""

    def __eq__(self, other: object) -> bool:
        # Triton's interpreter leaves it to a tile on the right.
        return isinstance(other, MinusZero) if isinstance(other, float | int) else NotImplemented

    __ne__ = float.__ne__
    __hash__ = float.__hash__


def is_minus_zero(value: object) -> bool:
    """Whether this is -0.0."""
    return isinstance(value, float) and value == 0 and math.copysign(1, value) < 0


def kept(value: Any) -> Any:
    """A constant of a kernel as a compiler keeps it."""
    return MinusZero(-0.0) if is_minus_zero(value) else value
