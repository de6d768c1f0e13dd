"""The estimate ranks what an H200 was seen to rank."""

from __future__ import annotations

import math

import pytest

from ninetoothed.costs import DeviceLimits, Facts, dot_registers, estimate, resident_programs
from ninetoothed.tuning import Config, rank

H200 = DeviceLimits(
    name="NVIDIA H200",
    backend="cuda",
    arch=90,
    warp_size=32,
    multiprocessors=132,
    shared_memory_per_block=232448,
    shared_memory_per_multiprocessor=233472,
    l2_bytes=62914560,
    memory_bandwidth=4.9e12,
    clock_hz=1.98e9,
)


def product(size: int, m: int, n: int, k: int, warps: int, stages: int) -> Facts:
    """A product of square float16 matrices, a tile of m × n a program."""
    threads = 32 * warps
    step = (m + n) * k * 2
    return Facts(
        limits=H200,
        programs=math.ceil(size / m) * math.ceil(size / n),
        bytes_moved=(m + n) * size * 2 + m * n * 2,
        dot_flops=2.0 * m * n * size,
        distinct_bytes=3 * size * size * 2,
        threads=threads,
        registers=dot_registers(m, n, threads),
        shared_bytes=stages * step,
        # One stage is being computed with, one is still being read.
        bytes_in_flight=max(stages - 2, 0.5) * step,
    )


def elementwise(elements: int, block: int, warps: int) -> Facts:
    threads = 32 * warps
    return Facts(
        limits=H200,
        programs=math.ceil(elements / block),
        bytes_moved=block * 6,
        flops=block,
        threads=threads,
        registers=16 + block * 3 / threads,
        bytes_in_flight=block * 4,
    )


def test_a_large_product_prefers_the_tiles_that_won_on_hopper() -> None:
    configs = [
        Config((("k", k), ("m", m), ("n", n)), warps, stages)
        for m in (32, 64, 128, 256)
        for n in (32, 64, 128, 256)
        for k in (32, 64, 128)
        for warps in (4, 8)
        for stages in (2, 3, 4)
    ]

    def cost(config: Config) -> float:
        m, n, k = (config[name] for name in "mnk")
        return estimate(product(4096, m, n, k, config.num_warps, config.num_stages))

    ranked = rank(configs, cost)
    places = [
        ranked.index(Config((("k", 64), ("m", m), ("n", n)), warps, 3))
        for m, n, warps in [(128, 256, 8), (256, 128, 8), (128, 128, 4)]
    ]
    # A quick search tries the first 24.
    assert sorted(places[:2]) == [0, 1] and places[2] < 24
    assert ranked.index(Config((("k", 32), ("m", 32), ("n", 32)), 8, 2)) > 0.75 * len(ranked)


def test_a_small_product_prefers_smaller_tiles() -> None:
    """With 512 × 512, 128 × 256 would leave all but 8 of the multiprocessors idle."""
    small = estimate(product(512, 64, 64, 64, 4, 4))
    assert small < estimate(product(512, 128, 256, 64, 8, 3))


def test_an_estimate_is_near_what_was_measured() -> None:
    measured = {"mm 4096": 0.200e-3, "add 2^24": 0.0275e-3}
    assert estimate(product(4096, 128, 256, 64, 8, 3)) == pytest.approx(
        measured["mm 4096"], rel=0.25
    )
    assert estimate(elementwise(2**24, 1024, 4)) == pytest.approx(measured["add 2^24"], rel=0.25)


def test_tiny_blocks_cost_more_than_the_memory_does() -> None:
    assert estimate(elementwise(2**24, 32, 4)) > 4 * estimate(elementwise(2**24, 1024, 4))


def test_what_does_not_fit_costs_infinitely() -> None:
    assert estimate(product(4096, 256, 256, 128, 8, 4)) == math.inf
    assert estimate(product(4096, 256, 256, 64, 16, 3)) == math.inf
    assert estimate(Facts(H200, programs=1, bytes_moved=1, threads=2048)) == math.inf


def test_registers_that_do_not_fit_cost_time() -> None:
    kept = Facts(H200, programs=1000, bytes_moved=1e5, registers=200)
    spilled = Facts(H200, programs=1000, bytes_moved=1e5, registers=300)
    assert estimate(spilled) > 2 * estimate(kept)


def test_residency_is_limited_by_what_runs_out_first() -> None:
    def resident(**facts: int) -> int:
        return resident_programs(Facts(H200, programs=1, bytes_moved=0, **facts))

    assert resident(threads=32, registers=16) == 32
    assert resident(threads=256, registers=32) == 8
    assert resident(threads=256, registers=128) == 2
    assert resident(threads=64, shared_bytes=100_000) == 2


def test_more_work_never_costs_less() -> None:
    base = {"limits": H200, "programs": 500, "bytes_moved": 1e5, "flops": 1e5, "dot_flops": 1e7}
    for name in ("programs", "bytes_moved", "flops", "dot_flops"):
        costs = [estimate(Facts(**{**base, name: base[name] * by})) for by in (1, 2, 10, 100)]
        assert costs == sorted(costs) and costs[0] < costs[-1]


def test_no_program_costs_nothing() -> None:
    assert estimate(Facts(H200, programs=0, bytes_moved=1e6)) == 0.0


def test_narrow_operands_multiply_faster_and_wide_ones_slower() -> None:
    def cost(bits: int) -> float:
        return estimate(Facts(H200, programs=1320, bytes_moved=1, dot_flops=1e9, dot_bits=bits))

    assert cost(8) == cost(16) / 2 and cost(32) > 8 * cost(16)


def test_a_device_that_does_not_tell_its_rates_can_be_estimated() -> None:
    silent = DeviceLimits("?", "hip", "gfx942", 64, 304, 65536, 65536)
    assert 0 < estimate(Facts(silent, programs=1000, bytes_moved=1e4, dot_flops=1e6)) < 1
    assert silent.capability == (0, 0) and H200.capability == (9, 0)
