"""The estimate behaves as a device does; what it ranks is compared with times in test_ranking."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from ninetoothed.tuning.estimate import (
    CostFeatures,
    DeviceLimits,
    Product,
    estimate,
    resident_programs,
)
from tests.tuning.machines import H200


def product(size: int, m: int, n: int, k: int, warps: int, stages: int) -> CostFeatures:
    """A product of square float16 matrices, a tile of m × n a program."""
    threads = 32 * warps
    step = (m + n) * k * 2
    return CostFeatures(
        limits=H200,
        programs=math.ceil(size / m) * math.ceil(size / n),
        bytes_moved=(m + n) * size * 2 + m * n * 2,
        distinct_bytes=3 * size * size * 2,
        copies=(m + n) * size * 2 / 16,
        accesses=m * n * 2 / 16,
        products=(Product(m, n, k, times=size / k),),
        iterations=size / k,
        stages=stages,
        threads=threads,
        registers=m * n / threads + 40,
        shared_bytes=stages * step,
    )


def elementwise(elements: int, block: int, warps: int) -> CostFeatures:
    threads = 32 * warps
    return CostFeatures(
        limits=H200,
        programs=math.ceil(elements / block),
        bytes_moved=block * 6,
        accesses=block * 6 / 16,
        flops=block,
        threads=threads,
        registers=24 + block * 1.25 / threads,
    )


def test_a_large_product_prefers_the_tiles_that_won_on_hopper() -> None:
    tiles = [
        (m, n, k, warps, stages)
        for m in (32, 64, 128, 256)
        for n in (32, 64, 128, 256)
        for k in (32, 64, 128)
        for warps in (4, 8)
        for stages in (2, 3, 4)
    ]
    ranked = sorted(tiles, key=lambda tile: estimate(product(4096, *tile)))
    winners = [(128, 256, 64, 8, 3), (128, 128, 64, 4, 3)]
    assert all(ranked.index(tile) < 12 for tile in winners)
    assert ranked.index((32, 32, 32, 8, 2)) > 0.75 * len(ranked)


def test_a_small_product_prefers_smaller_tiles() -> None:
    """With 512 × 512, 128 × 256 would leave all but 8 of the multiprocessors idle."""
    small = estimate(product(512, 64, 64, 64, 4, 4))
    assert small < estimate(product(512, 128, 256, 64, 8, 3))


def test_sums_that_no_thread_can_hold_make_a_product_several_times_slower() -> None:
    """On an H200 256 × 256 by eight warps took 1,761 µs where 128 × 256 took 305."""
    held, spilled = product(2048, 128, 256, 64, 8, 3), product(2048, 256, 256, 64, 8, 3)
    assert estimate(spilled) > 3 * estimate(held)
    # Blackwell has a memory for sums.
    arch = replace(H200, arch=100)
    assert estimate(replace(spilled, limits=arch)) < 2 * estimate(replace(held, limits=arch))


def test_an_estimate_is_near_what_was_measured() -> None:
    assert estimate(product(4096, 128, 256, 64, 8, 3)) == pytest.approx(0.190e-3, rel=0.4)
    assert estimate(elementwise(2**24, 1024, 4)) == pytest.approx(0.0293e-3, rel=0.2)


def test_a_wave_that_is_begun_is_paid_for() -> None:
    """132 programs run at once, one more has them all wait for it."""
    one = product(4096, 128, 256, 64, 8, 3)
    times = [estimate(replace(one, programs=count)) for count in (100, 132, 133, 264)]
    assert times[0] == times[1] < times[2] == times[3]
    assert times[2] > 1.6 * times[1]


def bound_by_memory(**changes: object) -> CostFeatures:
    """A product of few rows: what it reads is read once, and little is done with it."""
    known = {"bytes_moved": 2**19, "distinct_bytes": 2.0**27, "programs": 128, "iterations": 64.0}
    return CostFeatures(H200, **{**known, "stages": 4, **changes})  # type: ignore[arg-type]


def test_no_way_to_load_is_faster_than_the_memory() -> None:
    times = [estimate(bound_by_memory(share=share)) for share in (1.0, 0.8)]
    assert times[1] == pytest.approx(times[0], rel=0.01)


def test_what_is_done_when_all_is_loaded_is_added_to_the_time_of_the_memory() -> None:
    """On an H200 six parts of 1 × 14336 × 4096 took 1.09 of eight parts' time: not all run at once."""
    for programs in (128, 128 * 64):
        plain, more = (bound_by_memory(programs=programs, ending=each) for each in (0.0, 6.0))
        added = estimate(more) - estimate(plain)
        assert added == pytest.approx(6 * 960 / (0.927 * 1.98e9), rel=0.05)


def test_the_last_round_is_computed_when_all_is_loaded() -> None:
    few, many = (estimate(bound_by_memory(iterations=rounds)) for rounds in (4.0, 64.0))
    assert few > 1.02 * many


def test_a_persistent_grid_shares_out_its_programs() -> None:
    features = product(4096, 128, 256, 64, 8, 3)
    assert estimate(replace(features, is_persistent=True)) < estimate(features)


def test_tiny_blocks_cost_more_than_the_memory_does() -> None:
    assert estimate(elementwise(2**24, 32, 4)) > 4 * estimate(elementwise(2**24, 1024, 4))


def test_what_does_not_fit_costs_infinitely() -> None:
    assert estimate(product(4096, 256, 256, 128, 8, 4)) == math.inf
    assert estimate(CostFeatures(H200, programs=1, bytes_moved=1, threads=2048)) == math.inf


def test_registers_that_do_not_fit_cost_time() -> None:
    kept = CostFeatures(H200, programs=1000, bytes_moved=1e5, registers=200)
    spilled = replace(kept, registers=300)
    assert estimate(spilled) > 1.15 * estimate(kept)
    # Sixteen warps have 128 registers a thread.
    many = replace(kept, threads=512)
    assert estimate(many) > 1.15 * estimate(replace(many, registers=100))


def test_residency_is_limited_by_what_runs_out_first() -> None:
    def resident(**features: int) -> int:
        return resident_programs(CostFeatures(H200, programs=1, bytes_moved=0, **features))

    assert resident(threads=32, registers=16) == 32
    assert resident(threads=256, registers=32) == 8
    assert resident(threads=256, registers=128) == 2
    assert resident(threads=64, shared_bytes=100_000) == 2


def test_more_work_never_costs_less() -> None:
    base = product(1024, 128, 128, 64, 4, 3)
    base = replace(base, flops=1e5, special=1e4, reductions=1.0)
    names = "programs bytes_moved distinct_bytes flops special reductions copies accesses launches"
    for name in names.split():
        costs = [
            estimate(replace(base, **{name: getattr(base, name) * by})) for by in (1, 2, 10, 100)
        ]
        assert costs == sorted(costs), name
        assert costs[0] < costs[-1], name


def test_loads_that_are_not_begun_ahead_are_waited_for() -> None:
    piped = product(4096, 64, 64, 64, 4, 3)
    waiting = replace(piped, stages=1, is_waiting=True, accesses=piped.copies, copies=0.0)
    assert estimate(waiting) > 1.2 * estimate(piped)


def test_no_program_costs_nothing() -> None:
    assert estimate(CostFeatures(H200, programs=0, bytes_moved=1e6)) == 0.0


def test_narrow_operands_multiply_faster_and_wide_ones_slower() -> None:
    def cost(bits: int) -> float:
        products = (Product(128, 128, 64, 1000, bits),)
        return estimate(CostFeatures(H200, programs=1320, bytes_moved=1, products=products))

    assert cost(8) < 0.7 * cost(16) and cost(32) > 8 * cost(16)


def test_a_device_that_does_not_tell_its_rates_can_be_estimated() -> None:
    silent = DeviceLimits("?", "hip", "gfx942", 64, 304, 65536, 65536)
    products = (Product(64, 64, 64, 10),)
    assert 0 < estimate(CostFeatures(silent, programs=1000, bytes_moved=1e4, products=products)) < 1
    assert silent.capability == (0, 0) and H200.capability == (9, 0)
