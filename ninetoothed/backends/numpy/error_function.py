"""The error function and its complements, in NumPy and double precision.

Source: W. J. Cody, "Rational Chebyshev Approximations for the Error Function", Mathematics of
Computation 23 (1969). Relative errors are near 1e-16, so that a result rounded to float32 is right.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_SMALL = 0.46875
_LARGE = 4.0
_INVERSE_ROOT_PI = 5.6418958354775628695e-1

#: Numerators and denominators, the highest power first. |x| <= 0.46875, in x²:
_NEAR_ZERO = (
    (
        1.85777706184603153e-1,
        3.16112374387056560e00,
        1.13864154151050156e02,
        3.77485237685302021e02,
        3.20937758913846947e03,
    ),
    (
        1.0,
        2.36012909523441209e01,
        2.44024637934444173e02,
        1.28261652607737228e03,
        2.84423683343917062e03,
    ),
)
#: 0.46875 <= x <= 4, in x:
_MIDDLE = (
    (
        2.15311535474403846e-8,
        5.64188496988670089e-1,
        8.88314979438837594e00,
        6.61191906371416295e01,
        2.98635138197400131e02,
        8.81952221241769090e02,
        1.71204761263407058e03,
        2.05107837782607147e03,
        1.23033935479799725e03,
    ),
    (
        1.0,
        1.57449261107098347e01,
        1.17693950891312499e02,
        5.37181101862009858e02,
        1.62138957456669019e03,
        3.29079923573345963e03,
        4.36261909014324716e03,
        3.43936767414372164e03,
        1.23033935480374942e03,
    ),
)
#: x >= 4, in 1 / x²:
_FAR = (
    (
        1.63153871373020978e-2,
        3.05326634961232344e-1,
        3.60344899949804439e-1,
        1.25781726111229246e-1,
        1.60837851487422766e-2,
        6.58749161529837803e-4,
    ),
    (
        1.0,
        2.56852019228982242e00,
        1.87295284992346725e00,
        5.27905102951428412e-1,
        6.05183413124413191e-2,
        2.33520497626869185e-3,
    ),
)


def _ratio(coefficients: Sequence[Sequence[float]], x: Any) -> Any:
    numerator, denominator = coefficients
    return np.polyval(numerator, x) / np.polyval(denominator, x)


def _near_zero(x: Any) -> Any:
    return x * _ratio(_NEAR_ZERO, x * x)


def _scaled_complement(y: Any) -> Any:
    """exp(y²)·erfc(y), for y >= 0.46875."""
    inner = np.clip(y, _SMALL, _LARGE)
    middle = _ratio(_MIDDLE, inner)
    outer = np.maximum(y, _LARGE)
    z = 1.0 / (outer * outer)
    far = (_INVERSE_ROOT_PI - z * _ratio(_FAR, z)) / outer
    return np.where(y <= _LARGE, middle, far)


def _exp_of_minus_square(y: Any) -> Any:
    """exp(-y²), with y² split in two so that its rounding error is not magnified."""
    y = np.minimum(y, 1e4)
    high = np.trunc(y * 16.0) / 16.0
    return np.exp(-high * high) * np.exp(-(y - high) * (y + high))


def erf(x: Any) -> Any:
    """The error function of float64 ``x``."""
    y = np.abs(x)
    tail = 1.0 - _exp_of_minus_square(y) * _scaled_complement(np.maximum(y, _SMALL))
    return np.where(y <= _SMALL, _near_zero(np.clip(x, -_SMALL, _SMALL)), np.copysign(tail, x))


def erfc(x: Any) -> Any:
    """1 - erf(x), without cancellation for large x."""
    y = np.abs(x)
    tail = _exp_of_minus_square(y) * _scaled_complement(np.maximum(y, _SMALL))
    complement = np.where(x < 0, 2.0 - tail, tail)
    return np.where(y <= _SMALL, 1.0 - _near_zero(np.clip(x, -_SMALL, _SMALL)), complement)


def erfcx(x: Any) -> Any:
    """exp(x²)·erfc(x), which does not underflow for large x."""
    return np.where(x >= _SMALL, _scaled_complement(np.maximum(x, _SMALL)), np.exp(x * x) * erfc(x))
