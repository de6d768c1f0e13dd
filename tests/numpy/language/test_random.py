"""Random numbers: every bit as Triton's."""

from __future__ import annotations

import numpy as np
import pytest

import ninetoothed.language as ntl
from tests.numpy.language.cases import Table, case, needs_triton

_SEEDS = (0, 1, 42, -5, 2**31 - 1, 2**40 + 17)

_TABLE = Table(
    [
        *(
            case(f"tl.{name}({seed}, tl.arange(0, 64) + {offset})")
            for name in "rand randn randint rand4x randn4x randint4x".split()
            for seed in _SEEDS
            for offset in (0, 12345)
        ),
        case("tl.rand(x, tl.arange(0, 16))", x="i32[]"),
        case("tl.rand(x, tl.arange(0, 16))", x="i64[]"),
        case("tl.rand(7, tl.arange(0, 16), n_rounds=6)"),
        case("tl.randint(7, y)", y="i64[16]"),
        case("tl.randint(7, y)", y="u32[16]"),
        case("tl.rand(7, tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :])"),
        case("tl.rand(7, tl.program_id(0))"),
        case("tl.rand(x, tl.arange(0, 16))", x="i32[16]"),
        case("tl.rand(x, tl.arange(0, 4)[:, None] + tl.arange(0, 8))", x="i64[8]"),
        case("tl.philox(3, x, y, x, y)", x="u32[8]", y="u32[8]"),
        case("tl.philox(3, x, y, x, y)", x="u64[8]", y="u64[8]"),
        case("tl.uint_to_uniform_float(x)", x="u32[32]"),
        case("tl.uint_to_uniform_float(x)", x="u64[32]"),
        case("tl.pair_uniform_to_normal(x, y)", x="fp32[16]+", y="fp32[16]+"),
    ]
)


@needs_triton
@pytest.mark.parametrize("asked", _TABLE.cases, ids=str)
def test_random_numbers_have_the_bits_of_tritons(asked):
    _TABLE.check(asked)


def test_uniform_numbers_fill_the_unit_interval():
    found = ntl.rand(3, ntl.arange(0, 65536)).data

    assert found.dtype == np.float32
    assert 0 <= found.min() < 1e-3 and 1 - 1e-3 < found.max() < 1
    counts = np.histogram(found, 16)[0]
    # 4096 expected in each; six standard deviations are 372.
    assert np.abs(counts - 4096).max() < 372


def test_normal_numbers_have_mean_zero_and_variance_one():
    found = ntl.randn(3, ntl.arange(0, 65536)).data.astype(np.float64)

    assert abs(found.mean()) < 0.025 and abs(found.var() - 1) < 0.04
