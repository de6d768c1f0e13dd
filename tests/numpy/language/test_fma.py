"""``ntl.fma`` of float64 against fractions, which are exact."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.language import dtypes


def _fused(a, b, c):
    tiles = [Tile(np.array(each), dtypes.float64) for each in (a, b, c)]
    return ntl.fma(*tiles).data


def test_a_product_is_added_before_it_is_rounded():
    random = np.random.default_rng(0)
    a, b = random.standard_normal((2, 5000)) * 2.0 ** random.integers(-200, 200, (2, 5000))
    near = -a * b * random.choice([1, 1 + 2**-50, 1e-9], 5000)
    for c in (near, random.standard_normal(5000), np.zeros(5000)):
        exact = [float(Fraction(x) * Fraction(y) + Fraction(z)) for x, y, z in zip(a, b, c)]
        assert _fused(a, b, c).tolist() == exact


@pytest.mark.parametrize(
    ("a", "b", "c", "expected"),
    [
        (1e300, 1e300, 0.0, "inf"),
        (1e300, 1e8, -1e308, "4.1525696625763965e+291"),
        (float("inf"), 1.0, float("-inf"), "nan"),
        (-0.0, 1.0, -0.0, "-0.0"),
        (1.0, 1.0, -1.0, "0.0"),
    ],
)
def test_of_what_is_near_the_ends(a, b, c, expected):
    assert str(_fused([a], [b], [c])[0]) == expected
