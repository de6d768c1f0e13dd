"""What may be chosen: symbols' values, spaces, efforts."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ninetoothed.errors import NineToothedError
from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.space import Config, Space, space, thin


def symbol(name: str, lower=None, upper=None, power_of_two=None) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, lower_bound=lower, upper_bound=upper, power_of_two=power_of_two
    )


def config(size: int) -> Config:
    return Config((("SIZE", size),), 4, 3)


# The space.


@pytest.mark.parametrize(
    ("lower", "upper", "power_of_two", "expected"),
    [
        (None, None, None, [32, 64, 128, 256, 512, 1024]),
        (16, 64, True, [16, 32, 64]),
        (1, 4, None, [1, 2, 4]),
        (17, 100, None, [32, 64]),
        (48, 100, False, [48, 64, 100]),
        (48, 48, False, [48]),
        (128, 128, None, [128]),
        (512, None, None, [512, 1024]),
    ],
)
def test_the_candidates_lie_between_the_bounds(lower, upper, power_of_two, expected) -> None:
    assert tuning.candidates(symbol("SIZE", lower, upper, power_of_two)) == expected


@pytest.mark.parametrize("bounds", [(33, 63), (64, 32)])
def test_a_symbol_without_candidates_is_an_error(bounds) -> None:
    with pytest.raises(NineToothedError, match=f"SIZE.*{bounds[0]} and {bounds[1]}"):
        tuning.candidates(symbol("SIZE", *bounds))


def test_the_space_is_the_product_of_its_axes() -> None:
    configs = space([symbol("N", 32, 64), symbol("M", 16, 64)])
    assert len(configs) == len(set(configs)) == 2 * 3
    assert Config((("M", 16), ("N", 64)), 1, 1) in configs


def test_the_space_of_a_kernel_without_meta_symbols_is_one_configuration() -> None:
    assert space([]) == [Config((), 1, 1)]


def by_warps_and_stages(*symbols: SimpleNamespace) -> list[Config]:
    """The space with what may be chosen of warps and stages besides."""
    return [
        replace(chosen, num_warps=warps, num_stages=stages)
        for chosen in space(symbols)
        for warps in tuning.DEFAULT_NUM_WARPS
        for stages in tuning.DEFAULT_NUM_STAGES
    ]


def test_the_order_of_the_symbols_does_not_matter() -> None:
    m, n, k = symbol("M"), symbol("N"), symbol("K")
    assert space([m, n, k]) == space([k, m, n])
    assert Config((("B", 1), ("A", 2)), 4, 3) == Config((("A", 2), ("B", 1)), 4, 3)


def test_a_large_space_is_thinned_to_what_does_well_and_a_spread() -> None:
    symbols = [symbol(name, 16, 1024) for name in ("M", "N", "K")]
    configs = thin(by_warps_and_stages(*symbols), 40)

    assert len(configs) == len(set(configs)) == 40
    values = {(("K", 64), ("M", 128), ("N", 256)), (("K", 64), ("M", 128), ("N", 128))}
    assert values <= {chosen.values for chosen in configs}
    assert len({chosen["K"] for chosen in configs}) > 3


def test_one_configuration_is_the_one_that_does_well() -> None:
    (only,) = thin(by_warps_and_stages(*(symbol(name) for name in ("M", "N", "K"))), 1)
    assert sorted(dict(only.values).values()) == [64, 128, 256]
    assert (only.num_warps, only.num_stages) == (8, 3)


def test_thinning_keeps_the_order() -> None:
    configs = [config(size) for size in (32, 512, 64, 2048, 128, 1024)]
    kept = thin(configs, 3)
    assert kept == [chosen for chosen in configs if chosen in kept] and len(kept) == 3


# Spaces.


def product(*axes: str) -> list[Config]:
    """Two sizes of 32 to 256, 4 or 8 warps, 2 to 4 stages; with an option where one is named."""
    return [
        Config((("M", m), ("N", n)), warps, stages, options)
        for m in (32, 64, 128, 256)
        for n in (32, 64, 128, 256)
        for warps in (4, 8)
        for stages in (2, 3, 4)
        for options in [(), *(((axis, 1),) for axis in axes)]
    ]


def far(config: Config) -> float:
    """How far a configuration is from 128 × 64, 8 warps and 3 stages."""
    steps = abs(math.log2(config["M"] / 128)) + abs(math.log2(config["N"] / 64))
    return 1 + steps + abs(config.num_warps - 8) / 4 + abs(config.num_stages - 3)


def test_a_space_puts_the_cheapest_first_and_leaves_out_what_cannot_fit() -> None:
    space = Space({config(32): 2.0, config(64): math.inf, config(128): 1.0})
    assert space.ranked == [config(128), config(32)]


def test_a_space_leaves_something_to_try() -> None:
    space = Space({config(size): math.inf for size in (32, 64)})
    assert set(space.ranked) == {config(32), config(64)}


def test_a_space_may_be_limited_to_the_most_promising() -> None:
    assert Space({config(size): size for size in (32, 64, 128)}, 2).ranked == [
        config(32),
        config(64),
    ]
    with pytest.raises(NineToothedError, match="max_num_configs must be at least 1, got 0"):
        Space({config(32): 1.0}, 0)


def test_a_search_starts_with_tiles_that_differ() -> None:
    space = Space({chosen: far(chosen) for chosen in product()})
    starts = space.starts(12)
    assert starts[0] == Config((("M", 128), ("N", 64)), 8, 3)
    assert len(starts) == 12 and len({chosen.values for chosen in starts}) >= 4
    assert [space.ranked.index(chosen) for chosen in starts] == sorted(
        space.ranked.index(chosen) for chosen in starts
    )


def test_a_small_space_is_tried_whole() -> None:
    assert len(Space({config(size): size for size in (32, 64)}).starts(12)) == 2


def test_neighbours_differ_by_a_step_or_by_two_and_the_promising_come_first() -> None:
    space = Space({chosen: far(chosen) for chosen in product()})
    here = Config((("M", 64), ("N", 64)), 4, 2)
    found = space.neighbours(here)
    assert Config((("M", 128), ("N", 64)), 4, 2) in found
    assert Config((("M", 64), ("N", 64)), 4, 3) in found
    assert Config((("M", 128), ("N", 32)), 4, 2) in found
    assert Config((("M", 64), ("N", 64)), 4, 4) not in found and here not in found
    assert [far(chosen) for chosen in found] == sorted(far(chosen) for chosen in found)


def test_each_option_is_a_neighbour() -> None:
    space = Space({chosen: far(chosen) for chosen in product("fast", "split")})
    here = Config((("M", 64), ("N", 64)), 4, 2)
    there = Config((("M", 64), ("N", 64)), 4, 2, (("split", 1),))
    assert there in space.neighbours(here) and here in space.neighbours(there)


def test_a_configuration_prints_what_was_chosen() -> None:
    assert str(Config((("N", 64), ("M", 32)), 8, 3)) == "M=32, N=64, num_warps=8, num_stages=3"


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (1000, 1024), (1025, 2048)]
)
def test_near_sizes_share_a_bucket(size: int, expected: int) -> None:
    assert tuning.bucket(size) == expected


# Effort.


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "none"), ("", "none"), ("quick", "quick"), ("full", "full")]
)
def test_the_effort_is_the_users_choice(monkeypatch, given, expected) -> None:
    monkeypatch.delenv("NINETOOTHED_TUNE", raising=False)
    if given is not None:
        monkeypatch.setenv("NINETOOTHED_TUNE", given)
    assert tuning.effort().name == expected


def test_an_unknown_effort_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "ful")
    with pytest.raises(NineToothedError, match=r"none, quick, full.*Did you mean 'full'"):
        tuning.effort()


def test_an_effort_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    assert tuning.effort("full").name == "full"
    with pytest.raises(NineToothedError, match="effort='quik' is unknown.*Did you mean 'quick'"):
        tuning.effort("quik")


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, 300), ("", 300), ("7.5", 7.5), ("inf", math.inf), ("0", 0)]
)
def test_the_seconds_of_a_process_are_the_users_choice(monkeypatch, given, seconds) -> None:
    monkeypatch.delenv("NINETOOTHED_TUNE_SECONDS", raising=False)
    if given is not None:
        monkeypatch.setenv("NINETOOTHED_TUNE_SECONDS", given)
    assert tuning.allowance() == seconds


@pytest.mark.parametrize("given", ["long", "-1", "nan"])
def test_what_is_no_number_of_seconds_is_an_error(monkeypatch, given) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE_SECONDS", given)
    with pytest.raises(NineToothedError, match="NINETOOTHED_TUNE_SECONDS"):
        tuning.allowance()
