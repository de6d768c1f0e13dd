"""bfloat16 and the 8-bit floats, which Triton's interpreter does not compute with: against float64."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import ninetoothed.language as ntl
from ninetoothed.backends.numpy.values.tile import Tile
from ninetoothed.language import dtypes
from tests.numpy.language.cases import random_array


def _tile(spec: str, seed: str) -> Tile:
    return Tile(*random_array(spec, seed))


@pytest.mark.parametrize("operation", ["+", "-", "*"])
def test_arithmetic_rounds_each_result_to_bfloat16(operation):
    x, y = _tile("bf16[64]", "x"), _tile("bf16[64]", "y")

    found = eval(f"x {operation} y")

    a, b = x.data.astype(np.float64), y.data.astype(np.float64)
    exact = eval(f"a {operation} b").astype(np.float32)
    assert found.dtype is ntl.bfloat16
    assert np.array_equal(found.data, exact.astype(ml_dtypes.bfloat16))


def test_division_of_bfloat16_is_done_in_float32():
    x, y = _tile("bf16[64]+", "x"), _tile("bf16[64]+", "y")

    found = x / y

    assert found.dtype is ntl.float32
    assert np.array_equal(found.data, x.data.astype(np.float32) / y.data.astype(np.float32))


@pytest.mark.parametrize(
    "other, expected",
    [
        ("bf16", "bfloat16"),
        ("fp16", "float16"),
        ("fp32", "float32"),
        ("i32", "bfloat16"),
        ("fp64", "float64"),
    ],
)
def test_what_bfloat16_meets_decides_the_type(other, expected):
    if other == "i32":
        assert (_tile("bf16[4]", "x") + 3).dtype is ntl.bfloat16
    else:
        assert (_tile("bf16[4]", "x") + _tile(f"{other}[4]", "y")).dtype.name == expected


@pytest.mark.parametrize("name", ["max", "min"])
def test_extrema_of_bfloat16_are_float32(name):
    x = _tile("bf16[4, 8]", "x")

    found = getattr(ntl, name)(x, 1)

    assert found.dtype is ntl.float32
    assert np.array_equal(found.data, getattr(x.data.astype(np.float32), name)(1))


def test_sum_of_bfloat16_is_rounded_once():
    x = _tile("bf16[256]", "x")

    found = ntl.sum(x)

    exact = x.data.astype(np.float64).sum()
    assert found.dtype is ntl.bfloat16
    assert abs(float(found) - exact) <= abs(exact) * 2**-8


def test_dot_of_bfloat16_accumulates_in_float32():
    x, y = _tile("bf16[16, 64]", "x"), _tile("bf16[64, 16]", "y")

    found = ntl.dot(x, y)

    assert found.dtype is ntl.float32
    exact = x.data.astype(np.float64) @ y.data.astype(np.float64)
    np.testing.assert_allclose(found.data, exact, rtol=1e-5, atol=1e-4)


def test_maximum_and_scans_of_bfloat16_are_float32():
    x = _tile("bf16[16]", "x")

    assert ntl.maximum(x, 0.0).dtype is ntl.float32
    assert ntl.cumsum(x).dtype is ntl.float32
    assert ntl.clamp(x, -1.0, 1.0).dtype is ntl.float32


@pytest.mark.parametrize(
    "dtype, largest", [(ntl.float8e4nv, 448.0), (ntl.float8e5, 57344.0)], ids=["e4m3", "e5m2"]
)
def test_the_8_bit_floats_saturate(dtype, largest):
    x = Tile(np.array([1e6, -np.inf, 0.0, 1.5], np.float32), dtypes.float32)

    found = x.to(dtype)

    assert found.to(ntl.float32).data.tolist() == [largest, -largest, 0.0, 1.5]


def test_not_a_number_stays_one_in_8_bits():
    found = Tile(np.array([np.nan], np.float32), dtypes.float32).to(ntl.float8e4nv)

    assert np.isnan(found.to(ntl.float32).data).all()


@pytest.mark.parametrize("dtype", [ntl.float16, ntl.bfloat16], ids=str)
def test_rounding_toward_zero_never_gains(dtype):
    x = _tile("fp64[256]", "x").to(ntl.float32)

    down = x.to(dtype, fp_downcast_rounding="rtz").data.astype(np.float64)
    nearest = x.to(dtype).data.astype(np.float64)

    assert np.all(np.abs(down) <= np.abs(x.data))
    step = np.abs(x.data) * 2.0 ** (-7 if dtype is ntl.bfloat16 else -10)
    assert np.all(np.abs(x.data - down) <= step)
    assert np.any(down != nearest)


def test_scaled_products_decode_their_formats():
    lhs = Tile(np.array([[0x21, 0x43] * 8], np.uint8).repeat(16, 0), dtypes.uint8)
    rhs = _tile("bf16[32, 16]", "y")
    scale = Tile(np.full((16, 1), 128, np.uint8), dtypes.uint8)

    found = ntl.dot_scaled(lhs, scale, "e2m1", rhs, None, "bf16")

    # 1, 2, 3 and 4 in the low and high halves of the bytes stand for 0.5, 1, 1.5 and 2; twice.
    left = np.tile([0.5, 1.0, 1.5, 2.0], (16, 8)) * 2
    np.testing.assert_allclose(found.data, left @ rhs.data.astype(np.float64), rtol=1e-5, atol=1e-4)


def test_products_of_8_bit_floats():
    x, y = _tile("fp8e4nv[16, 32]", "x"), _tile("fp8e4nv[32, 16]", "y")

    found = ntl.dot(x, y)

    exact = x.data.astype(np.float64) @ y.data.astype(np.float64)
    np.testing.assert_allclose(found.data, exact, rtol=1e-5, atol=1e-4)
