"""The space of configurations and the search in it, on kernels that are only times."""

from __future__ import annotations

import io
import math
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from ninetoothed import tuning
from ninetoothed.cache import Cache
from ninetoothed.errors import CompilationError, DeviceError, NineToothedError
from ninetoothed.tuning import Config, Effort, Results, Search, rank, space, thin

FULL = Effort("full", math.inf, sys.maxsize, sys.maxsize)


def symbol(name: str, lower=None, upper=None, power_of_two=None) -> SimpleNamespace:
    return SimpleNamespace(
        name=name, lower_bound=lower, upper_bound=upper, power_of_two=power_of_two
    )


def config(size: int) -> Config:
    return Config((("SIZE", size),), 4, 3)


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache("tuning", tmp_path)


def search(times: dict[int, float], store: Cache, effort: Effort = FULL, **hooks) -> Search:
    """A search among configurations that are told apart by one size and take the given times."""

    def compile_config(chosen: Config) -> float:
        found = times[chosen["SIZE"]]
        if isinstance(found, Exception):
            raise found
        return found

    def measure(compiled: float, budget_ms: float) -> float:
        hooks.get("measured", []).append((compiled, budget_ms))
        return compiled

    configs = [config(size) for size in times]
    results = Results("key", store)
    compile_config = hooks.get("compile_config", compile_config)
    return Search("kernel", configs, compile_config, measure, results, effort, workers=2)


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
    configs = space([symbol("N", 32, 64), symbol("M", 16, 64)], (4, 8), 2)
    assert len(configs) == len(set(configs)) == 2 * 3 * 2
    assert Config((("M", 16), ("N", 64)), 8, 2) in configs
    assert {chosen.num_stages for chosen in configs} == {2}


def test_the_space_of_a_kernel_without_meta_symbols_is_warps_and_stages() -> None:
    assert space([], 4, 3) == [Config((), 4, 3)]
    assert len(space([])) == len(tuning.DEFAULT_NUM_WARPS) * len(tuning.DEFAULT_NUM_STAGES)


def test_the_order_of_the_symbols_does_not_matter() -> None:
    m, n, k = symbol("M"), symbol("N"), symbol("K")
    assert space([m, n, k], max_num_configs=50) == space([k, m, n], max_num_configs=50)
    assert Config((("B", 1), ("A", 2)), 4, 3) == Config((("A", 2), ("B", 1)), 4, 3)


def test_a_large_space_is_thinned_to_what_does_well_and_a_spread() -> None:
    symbols = [symbol(name, 16, 1024) for name in ("M", "N", "K")]
    configs = space(symbols, max_num_configs=40)

    assert len(configs) == len(set(configs)) == 40
    values = {(("K", 64), ("M", 128), ("N", 256)), (("K", 64), ("M", 128), ("N", 128))}
    assert values <= {chosen.values for chosen in configs}
    assert len({chosen["K"] for chosen in configs}) > 3


def test_one_configuration_is_the_one_that_does_well() -> None:
    (only,) = space([symbol(name) for name in ("M", "N", "K")], max_num_configs=1)
    assert sorted(dict(only.values).values()) == [64, 128, 256]
    assert (only.num_warps, only.num_stages) == (8, 3)


def test_no_configuration_cannot_be_asked_for() -> None:
    with pytest.raises(NineToothedError, match="max_num_configs must be at least 1, got 0"):
        space([], max_num_configs=0)


def test_thinning_keeps_the_order() -> None:
    configs = [config(size) for size in (32, 512, 64, 2048, 128, 1024)]
    kept = thin(configs, 3)
    assert kept == [chosen for chosen in configs if chosen in kept] and len(kept) == 3


def test_ranking_puts_the_cheapest_first_and_leaves_out_what_cannot_fit() -> None:
    configs = [config(size) for size in (32, 64, 128)]
    costs = {32: 2.0, 64: math.inf, 128: 1.0}
    assert rank(configs, lambda chosen: costs[chosen["SIZE"]]) == [config(128), config(32)]


def test_ranking_leaves_something_to_try() -> None:
    configs = [config(size) for size in (32, 64)]
    assert set(rank(configs, lambda chosen: math.inf)) == set(configs)


def test_a_configuration_prints_what_was_chosen() -> None:
    assert str(Config((("N", 64), ("M", 32)), 8, 3)) == "M=32, N=64, num_warps=8, num_stages=3"


@pytest.mark.parametrize(
    ("size", "expected"), [(0, 0), (1, 1), (2, 2), (3, 4), (1000, 1024), (1025, 2048)]
)
def test_near_sizes_share_a_bucket(size: int, expected: int) -> None:
    assert tuning.bucket(size) == expected


# The search.


def test_the_fastest_is_found(store: Cache) -> None:
    assert search({32: 3.0, 64: 1.0, 128: 2.0}, store).run() == config(64)


def test_what_fails_is_passed_over(store: Cache) -> None:
    times = {32: CompilationError("no"), 64: DeviceError("too large"), 128: 2.0}
    assert search(times, store).run() == config(128)


def test_when_all_fail_the_reasons_are_listed(store: Cache) -> None:
    times = {32: CompilationError("no such\nthing"), 64: DeviceError("too large")}
    with pytest.raises(
        CompilationError, match="None of the 2 configurations of 'kernel'"
    ) as caught:
        search(times, store).run()
    assert "SIZE=32, num_warps=4, num_stages=3: no such\n" in str(caught.value)
    assert "SIZE=64, num_warps=4, num_stages=3: too large" in str(caught.value)


def test_other_errors_are_not_hidden(store: Cache) -> None:
    with pytest.raises(ZeroDivisionError):
        search({32: 1.0, 64: ZeroDivisionError()}, store).run()


def test_a_loser_is_measured_briefly(store: Cache) -> None:
    measured: list[tuple[float, float]] = []
    search({32: 1.0, 64: 5.0, 128: 1.05}, store, measured=measured).run()
    assert [sum(1 for t, _ in measured if t == time) for time in (1.0, 5.0, 1.05)] == [2, 1, 2]


def test_no_gain_for_long_ends_the_search(store: Cache) -> None:
    measured: list[tuple[float, float]] = []
    times = {32 + size: 2.0 - 0.001 * size for size in range(20)}
    search(times, store, Effort("quick", math.inf, 100, patience=3), measured=measured).run()
    assert len({found for found, _ in measured}) == 4


def test_the_budget_ends_the_search_once_something_was_found(store: Cache) -> None:
    measured: list[tuple[float, float]] = []
    times = {16: CompilationError("no"), 32: 1.0, 64: 0.5}
    found = search(times, store, Effort("quick", 0.0, 100, 100), measured=measured).run()
    assert found == config(32) and {time for time, _ in measured} == {1.0}


def test_only_so_many_are_tried(store: Cache) -> None:
    assert search({32: 2.0, 64: 1.0}, store, Effort("quick", 9.0, 1, 9)).run() == config(32)


def test_compilations_run_beside_one_another(store: Cache) -> None:
    meeting = threading.Barrier(2, timeout=10)

    def compile_config(chosen: Config) -> float:
        meeting.wait()
        return float(chosen["SIZE"])

    assert search({32: 0.0, 64: 0.0}, store, compile_config=compile_config).run() == config(32)


def test_measurements_run_one_at_a_time_in_the_callers_thread(store: Cache) -> None:
    threads = set()

    def measure(compiled: float, budget_ms: float) -> float:
        threads.add(threading.get_ident())
        return compiled

    configs = [config(size) for size in (32, 64, 128)]
    Search("kernel", configs, lambda chosen: 1.0, measure, Results("key", store), FULL).run()
    assert threads == {threading.get_ident()}


def test_a_finished_search_is_not_repeated(store: Cache) -> None:
    search({32: 2.0, 64: 1.0}, store).run()

    def compile_config(chosen: Config) -> float:
        raise AssertionError("compiled again")

    assert search({32: 2.0, 64: 1.0}, store, compile_config=compile_config).run() == config(64)


def test_a_quick_search_does_not_stand_for_a_full_one(store: Cache) -> None:
    times = {32: 2.0, 64: 1.0}
    quick = Effort("quick", math.inf, 1, 1)
    assert search(times, store, quick).run() == config(32)
    assert search(times, store, FULL).run() == config(64)
    assert search(times, store, quick).run() == config(64)


def test_an_interrupted_search_loses_nothing(store: Cache) -> None:
    compiled = []

    def interrupted(chosen: Config) -> float:
        if chosen["SIZE"] == 64:
            raise KeyboardInterrupt
        compiled.append(chosen["SIZE"])
        return 1.0

    with pytest.raises(KeyboardInterrupt):
        search({32: 1.0, 64: 2.0}, store, compile_config=interrupted).run()

    def resumed(chosen: Config) -> float:
        compiled.append(chosen["SIZE"])
        return 2.0

    assert search({32: 1.0, 64: 2.0}, store, compile_config=resumed).run() == config(32)
    assert compiled == [32, 64]


def test_results_of_two_processes_are_joined(store: Cache) -> None:
    first, second = Results("key", store), Results("key", store)
    first.record(config(32), 1.0)
    second.record(config(64), 2.0)
    assert Results("key", store).times == {config(32): 1.0, config(64): 2.0}
    assert Results("other key", store).times == {}


@pytest.mark.parametrize(
    "content",
    [
        b"", b"[]", b"{", b"\xff", b'{"times": 1}', b'{"times": [[1, 2]], "finished": null}',
        b'{"times": [[[[["S", 1]], 4], 2.0]], "finished": null}', b'{"times": {}}',
    ],
)  # fmt: skip
def test_results_that_make_no_sense_are_a_miss(store: Cache, content: bytes) -> None:
    store.put("key", content)
    results = Results("key", store)
    assert results.times == {} and results.finished is None and results.best() is None


def test_without_a_search_the_first_that_works_is_taken() -> None:
    def compile_config(chosen: Config) -> str:
        if chosen["SIZE"] == 32:
            raise DeviceError("too large")
        return "compiled"

    configs = [config(size) for size in (32, 64, 128)]
    assert tuning.first_working("kernel", configs, compile_config) == (config(64), "compiled")
    with pytest.raises(CompilationError, match="None of the 1 configurations"):
        tuning.first_working("kernel", configs[:1], compile_config)


# Effort and progress.


@pytest.mark.parametrize(
    ("given", "expected"), [(None, "quick"), ("", "quick"), ("none", "none"), ("full", "full")]
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


def test_progress_is_for_terminals_only(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for terminal in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal, raising=False)
        monkeypatch.setattr(sys, "stderr", stream)
        search({32: 1.0}, Cache("tuning", store.path_of(str(terminal)))).run()
        shown[terminal] = stream.getvalue()
    assert shown[False] == ""
    assert "tuning kernel: 1 of 1, best 1 ms: SIZE=32" in shown[True]
    assert shown[True].endswith("\r\033[K")
