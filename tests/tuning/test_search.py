"""The search for the fastest configuration, on kernels that are only times."""

from __future__ import annotations

import io
import math
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ninetoothed.cache import Cache
from ninetoothed.errors import CompilationError, DeviceError, Location, ShapeError
from ninetoothed.tuning import search as search_module
from ninetoothed.tuning.results import Results
from ninetoothed.tuning.search import Budget, Search, first_working
from ninetoothed.tuning.space import Config, Effort, Space

FULL = Effort("full", math.inf, sys.maxsize)
QUICK = Effort("quick", math.inf, 4)


def config(size: int, warps: int = 4) -> Config:
    return Config((("SIZE", size),), warps, 3)


@pytest.fixture
def store(tmp_path: Path) -> Cache:
    return Cache("tuning", tmp_path)


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def search(times: dict[Config, float], store: Cache, effort: Effort = FULL, **hooks) -> Search:
    """A search among configurations that take the given times, ranked as they are given."""

    def compile_config(chosen: Config) -> Config:
        found = times[chosen]
        if isinstance(found, Exception):
            raise found
        return chosen

    def measure(compiled: Config, budget_ms: float) -> float:
        hooks.get("measured", []).append((compiled, budget_ms))
        return times[compiled]

    space = Space(hooks.get("costs") or {chosen: 1 + place for place, chosen in enumerate(times)})
    return Search(
        "kernel",
        space,
        hooks.get("compile_config", compile_config),
        hooks.get("measure", measure),
        hooks.get("results") or Results("key", store=store),
        effort,
        workers=2,
        clock=hooks.get("clock", Clock()),
    )


def sized(times: dict[int, float]) -> dict[Config, float]:
    return {config(size): found for size, found in times.items()}


def test_the_fastest_is_found(store: Cache) -> None:
    assert search(sized({32: 3.0, 64: 1.0, 128: 2.0}), store).run() == config(64)


def test_what_was_measured_while_others_compiled_is_measured_again(store: Cache) -> None:
    """The fastest is measured first, and slow: compilers hold Python's lock."""
    may_end, seen = threading.Event(), []
    times = sized({32: 1.0, 64: 2.0})

    def compile_config(chosen: Config) -> Config:
        assert chosen == config(32) or may_end.wait(10)
        return chosen

    def measure(chosen: Config, budget_ms: float) -> float:
        if may_end.is_set():
            return times[chosen]
        seen.append(chosen)
        if len(seen) == 2:
            # The brief measurement and the long one are both over.
            threading.Timer(0.2, may_end.set).start()
        return 9.0

    results = Results("key", store=store)
    hooks = {"measure": measure, "compile_config": compile_config, "results": results}

    assert search(times, store, **hooks).run() == config(32)
    assert seen == [config(32)] * 2
    assert results.times[config(32)] == 1.0


def test_what_fails_is_passed_over(store: Cache) -> None:
    times = {32: CompilationError("no"), 64: DeviceError("too large"), 128: 2.0}
    assert search(sized(times), store).run() == config(128)


def test_when_the_first_all_fail_the_next_are_tried(store: Cache) -> None:
    times = {16 << place: DeviceError("too large") for place in range(9)} | {16 << 9: 2.0}
    assert search(sized(times), store, QUICK).run() == config(16 << 9)


def test_when_all_fail_the_reasons_are_listed(store: Cache) -> None:
    times = {32: CompilationError("no such\nthing"), 64: DeviceError("too large")}
    with pytest.raises(
        CompilationError, match="None of the 2 configurations of 'kernel'"
    ) as caught:
        search(sized(times), store).run()
    assert "SIZE=32, num_warps=4, num_stages=3: no such\n" in str(caught.value)
    assert "SIZE=64, num_warps=4, num_stages=3: too large" in str(caught.value)


def test_where_all_fail_at_one_place_the_error_says_where(store: Cache) -> None:
    place = Location("kernels.py", 7)
    times = {32: CompilationError("no", place), 64: CompilationError("nor this", place)}
    with pytest.raises(CompilationError, match="None of the 2 configurations") as caught:
        search(sized(times), store).run()
    assert caught.value.location == place

    times[64] = CompilationError("nor this", Location("kernels.py", 8))
    with pytest.raises(CompilationError, match="None of the 2 configurations") as caught:
        search(sized(times), store).run()
    assert caught.value.location is None


def test_what_keeps_all_from_compiling_is_told_once(store: Cache) -> None:
    place = Location("kernels.py", 7)
    times = {size: ShapeError(f"shapes differ\nwith {size}", place) for size in (32, 64)}
    with pytest.raises(ShapeError) as caught:
        search(sized(times), store).run()
    assert (caught.value.message, caught.value.location) == ("shapes differ\nwith 32", place)


def test_other_errors_are_not_hidden(store: Cache) -> None:
    with pytest.raises(ZeroDivisionError):
        search(sized({32: 1.0, 64: ZeroDivisionError()}), store).run()


def test_a_loser_is_measured_briefly(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    # What is measured while others compile is measured again; here all have compiled.
    monkeypatch.setattr(Search, "_is_compiling", lambda self: False)
    measured: list[tuple[Config, float]] = []
    search(sized({32: 1.0, 64: 5.0, 128: 1.1}), store, measured=measured).run()
    counts = [sum(1 for c, _ in measured if c == config(size)) for size in (32, 64, 128)]
    assert counts == [2, 1, 2]


# The neighbourhood.


def plane(best: tuple[int, int]) -> dict[Config, float]:
    """Two sizes and the warps, the time growing with the distance from the best."""
    sizes = (16, 32, 64, 128, 256)
    return {
        Config((("M", m), ("N", n)), warps, 3): 1.0
        + abs(math.log2(m / best[0]))
        + abs(math.log2(n / best[1]))
        + 0.1 * (warps == 8)
        for m in sizes
        for n in sizes
        for warps in (4, 8)
    }


def test_the_neighbours_of_the_best_are_tried_until_none_is_better(store: Cache) -> None:
    """The estimate takes 64 × 64 for the best, which is three steps from what is."""
    times = plane((256, 32))
    costs = plane((64, 64))
    measured: list[tuple[Config, float]] = []
    found = search(times, store, QUICK, costs=costs, measured=measured).run()
    assert found == Config((("M", 256), ("N", 32)), 4, 3)
    assert len({chosen for chosen, _ in measured}) < len(times)


def test_hopeless_neighbours_are_not_tried(store: Cache) -> None:
    costs = {config(32): 1.0, config(64): 5.0} | {config(128 << n): 9.0 for n in range(9)}
    measured: list[tuple[Config, float]] = []
    search(
        dict.fromkeys(costs, 1.0), store, Effort("quick", 9.0, 1), costs=costs, measured=measured
    ).run()
    assert {chosen for chosen, _ in measured} == {config(32)}


def test_a_full_search_tries_everything(store: Cache) -> None:
    times = plane((256, 32))
    measured: list[tuple[Config, float]] = []
    search(times, store, FULL, costs=plane((16, 256)), measured=measured).run()
    assert {chosen for chosen, _ in measured} == set(times)


# The decision.


def test_close_ones_are_compared_in_turns(store: Cache) -> None:
    """The first measurement of 32 was lucky; in turns 64 is the faster."""
    seen: dict[Config, int] = {}

    def measure(compiled: Config, budget_ms: float) -> float:
        seen[compiled] = seen.get(compiled, 0) + 1
        lucky = compiled == config(32) and seen[compiled] <= 2
        return 0.98 if lucky else {32: 1.05, 64: 1.0}[compiled["SIZE"]]

    times = sized({32: 1.0, 64: 1.0})
    results = Results("key", store=store)
    assert search(times, store, measure=measure, results=results).run() == config(64)
    assert results.times == {config(32): 1.05, config(64): 1.0}


def test_a_tie_goes_to_the_estimates_favourite(store: Cache) -> None:
    times = sized({32: 1.0, 64: 0.995, 128: 1.0})
    assert search(times, store).run() == config(32)
    assert Results("key", store=store).best() == config(32)


def test_an_outlier_decides_nothing(store: Cache) -> None:
    seen: list[Config] = []

    def measure(compiled: Config, budget_ms: float) -> float:
        seen.append(compiled)
        noise = 1.0 if len(seen) == 7 else 0.0
        return {32: 1.0, 64: 1.03}[compiled["SIZE"]] + noise

    assert search(sized({32: 1.0, 64: 1.0}), store, measure=measure).run() == config(32)


# The budget.


def test_the_budget_ends_the_search_once_something_was_found(store: Cache) -> None:
    clock = Clock()
    measured: list[Config] = []

    def measure(compiled: Config, budget_ms: float) -> float:
        measured.append(compiled)
        clock.now += 3.0
        return float(compiled["SIZE"])

    times = sized({16: CompilationError("no"), 128: 1.0, 64: 1.0, 32: 1.0})
    effort = Effort("quick", 5.0, 100)
    found = search(times, store, effort, measure=measure, clock=clock).run()
    assert found == config(128) and set(measured) == {config(128)}


def test_a_search_without_time_tries_one(store: Cache) -> None:
    assert search(sized({32: 2.0, 64: 1.0}), store, Effort("quick", 0.0, 9)).run() == config(32)


def test_a_process_has_so_much_to_spend() -> None:
    budget = Budget()
    budget.pay(2.0)
    assert budget.has(3.0)
    budget.pay(2.0)
    assert not budget.has(3.0)
    assert budget.is_first_refusal() and not budget.is_first_refusal()


# Threads.


def test_compilations_run_beside_one_another(store: Cache) -> None:
    meeting = threading.Barrier(2, timeout=10)

    def compile_config(chosen: Config) -> Config:
        meeting.wait()
        return chosen

    times = sized({32: 1.0, 64: 2.0})
    assert search(times, store, compile_config=compile_config).run() == config(32)


def test_measurements_run_one_at_a_time_in_the_callers_thread(store: Cache) -> None:
    threads = set()

    def measure(compiled: Config, budget_ms: float) -> float:
        threads.add(threading.get_ident())
        return 1.0

    search(sized({32: 1.0, 64: 1.0, 128: 1.0}), store, measure=measure).run()
    assert threads == {threading.get_ident()}


# What is kept.


def counting(times: dict[Config, float]) -> tuple[list[Config], Callable[[Config], Config]]:
    compiled: list[Config] = []

    def compile_config(chosen: Config) -> Config:
        compiled.append(chosen)
        return chosen

    return compiled, compile_config


def test_a_time_that_is_known_is_not_measured_again(store: Cache) -> None:
    times = sized({32: 4.0, 64: 1.0, 128: 2.0})
    search(times, store, Effort("quick", math.inf, 2)).run()
    compiled, compile_config = counting(times)
    search(times, store, FULL, compile_config=compile_config).run()
    # Of those that are known the best alone is compiled, for the comparison.
    assert compiled == [config(64)]


def test_an_interrupted_search_loses_nothing_and_goes_on(store: Cache) -> None:
    def interrupted(compiled: Config, budget_ms: float) -> float:
        if compiled == config(64):
            raise KeyboardInterrupt
        return 4.0

    times = sized({32: 4.0, 64: 1.0, 128: 2.0})
    with pytest.raises(KeyboardInterrupt):
        search(times, store, measure=interrupted).run()
    kept = Results("key", store=store)
    assert kept.times == {config(32): 4.0} and kept.finished is None

    compiled, compile_config = counting(times)
    found = search(times, store, compile_config=compile_config).run()
    assert found == config(64) and sorted(map(str, compiled)) == sorted(
        map(str, [config(64), config(128)])
    )


def test_losers_are_let_go(store: Cache) -> None:
    """A loaded kernel takes memory of the device."""
    times = sized({32: 1.0, 64: 5.0, 128: 0.5})
    searched = search(times, store)
    searched.run()
    assert list(searched._compiled) == [config(128)]


def test_without_a_search_the_first_that_works_is_taken() -> None:
    def compile_config(chosen: Config) -> str:
        if chosen["SIZE"] == 32:
            raise DeviceError("too large")
        return "compiled"

    space = Space({config(size): size for size in (32, 64, 128)})
    assert first_working("kernel", space, compile_config) == (config(64), "compiled")
    with pytest.raises(CompilationError, match="None of the 1 configurations"):
        first_working("kernel", Space({config(32): 1.0}), compile_config)


def test_where_all_that_count_fail_smaller_ones_are_tried(store: Cache) -> None:
    """The most promising of those that are smaller than all that failed; then the rest."""
    costs = {config(size): 1.0 / size for size in (32, 64, 128, 256, 512)}
    compiled: list[int] = []

    def compile_config(chosen: Config) -> Config:
        compiled.append(chosen["SIZE"])
        if chosen["SIZE"] > 64:
            raise CompilationError("out of shared memory")
        return chosen

    assert first_working("kernel", Space(costs, 2), compile_config)[0] == config(64)
    assert compiled == [512, 256, 128, 64]
    compiled.clear()
    some = {chosen: cost for chosen, cost in costs.items() if chosen["SIZE"] > 200}
    found = Search(
        "kernel",
        Space(some, 1, costs),
        compile_config,
        lambda chosen, budget: 1.0,
        Results("key", store=store),
        QUICK,
        workers=1,
    ).run()
    assert found == config(64) and compiled == [512, 256, 128, 64]


def test_where_everything_fails_the_error_lists_what_was_tried() -> None:
    def compile_config(chosen: Config) -> Config:
        raise CompilationError("out of shared memory")

    space = Space({config(size): 1.0 for size in (32, 64, 128)}, 1)
    with pytest.raises(CompilationError, match="None of the 3 configurations"):
        first_working("kernel", space, compile_config)


def test_progress_is_for_terminals_only(store: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {}
    for terminal in (False, True):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal, raising=False)
        monkeypatch.setattr(search_module.sys, "stderr", stream)
        times = sized({32: 1.0, 64: DeviceError("too large")})
        search(times, Cache("tuning", store.path_of(str(terminal)))).run()
        shown[terminal] = stream.getvalue()
    assert shown[False] == ""
    assert "tuning kernel: 1 measured, 1 failed, best 1 ms: SIZE=32" in shown[True]
    assert shown[True].endswith("\r\033[K")


def test_what_compiles_longer_than_the_search_may_take_is_left(store: Cache) -> None:
    times = sized({32: 2.0, 64: 1.0, 128: 3.0})
    may_end = threading.Event()

    def compile_config(chosen: Config) -> Config:
        assert chosen != config(64) or may_end.wait(30)
        return chosen

    effort = Effort("quick", 0.2, 3)
    begun = time.monotonic()
    try:
        found = search(
            times, store, effort, compile_config=compile_config, clock=time.monotonic
        ).run()
        taken = time.monotonic() - begun
    finally:
        may_end.set()

    assert found == config(32)
    assert taken < 10
