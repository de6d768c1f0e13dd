"""What the estimate ranks first is near the best that was measured on a device.

`rankings.json` holds times of an H200, of the paper's tasks at its sizes and of some others: what the
estimate ranked high, a spread of the rest, with and without each option. No time is taken here: a
change to the estimate, to what is counted or to an option's cost shows as another ranking.
"""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.cache import Cache
from ninetoothed.language import dtypes
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.results import Results
from ninetoothed.tuning.search import Search
from ninetoothed.tuning.space import Config, Space, effort
from tests.golden.kernels import TEN
from tests.triton.emitted import given_by
from tests.tuning.machines import H100, H200

MEASURED = json.loads((Path(__file__).parent / "rankings.json").read_text(encoding="utf-8"))
TASKS = {task["name"]: task for task in MEASURED["tasks"]}

#: Products of 1 to 1000 rows, as `benchmarks.tuner.rankings` measured them on two devices.
RESULTS = Path(__file__).parents[2] / "benchmarks" / "results" / "tuning"
FEW_ROWS = {
    limits: [
        task
        for file in sorted(RESULTS.glob(f"*-{device}-few-rows-*.json"))
        for task in json.loads(file.read_text(encoding="utf-8"))["tasks"]
    ]
    for device, limits in {"h200": H200, "h100": H100}.items()
}

#: The ten tasks at the paper's sizes, as far as there is a choice.
PAPERS = (
    "mm 4096 4096 4096", "addmm", "bmm", "conv2d", "sdpa False (4, 48, 1024, 64)",
    "softmax (4096, 4096)", "rms (4096, 4096)", "rope", "add 16777216 1024",
)  # fmt: skip


def argument(shape: list[int], is_transposed: bool) -> Argument:
    strides = [math.prod(shape[dim + 1 :]) for dim in range(len(shape))]
    if is_transposed:
        strides = [1, shape[0]]
    return Argument(tuple(shape), tuple(strides), dtypes.float16)


def ranked(task: dict[str, Any], limits: DeviceLimits = H200) -> tuple[Space, dict[Config, float]]:
    """The configurations as the estimate ranks them, and their times in microseconds."""
    kernel = TEN[task["kernel"]]
    transposed = task.get("transposed", ())
    arguments = {
        name: argument(shape, name in transposed) for name, shape in task["arguments"].items()
    }
    call = Call(arguments, constants=task["constants"], device=Device("cuda"))
    times = {
        Config(tuple(zip(task["symbols"], values)), warps, stages, tuple(options.items())): time
        for values, warps, stages, options, time in task["times"]
    }
    estimator = Estimator(given_by(kernel, call), call, limits)
    return Space({config: estimator.seconds(config) for config in times}), times


def slowdown(task: dict[str, Any], count: int = 1) -> float:
    """The best of so many that are tried first, over the best of all."""
    space, times = ranked(task)
    return min(times[config] for config in space.starts(count)) / min(times.values())


def first_choice(task: dict[str, Any], limits: DeviceLimits = H200) -> float:
    """The speed of what a call takes that searches for nothing, over the best of all."""
    space, times = ranked(task, limits)
    return min(times.values()) / times[space.first]


@pytest.mark.parametrize("name", PAPERS)
def test_the_first_choice_is_near_the_best(name: str) -> None:
    assert first_choice(TASKS[name]) >= 0.95


@pytest.mark.parametrize("name", [name for name in TASKS if name not in PAPERS])
def test_the_first_choice_is_reasonable_elsewhere(name: str) -> None:
    assert first_choice(TASKS[name]) >= 0.95


def test_first_choices_are_near_the_best_in_the_mean() -> None:
    assert statistics.mean(map(first_choice, TASKS.values())) >= 0.985


@pytest.mark.parametrize(
    ("limits", "count", "least"), [(H200, 16, 0.89), (H100, 15, 0.88)], ids=("H200", "H100")
)
def test_first_choices_for_few_rows_are_reasonable(
    limits: DeviceLimits, count: int, least: float
) -> None:
    speeds = [first_choice(task, limits) for task in FEW_ROWS[limits]]
    assert len(speeds) == count
    assert min(speeds) >= least
    assert statistics.mean(speeds) >= 0.97


@pytest.mark.parametrize("name", TASKS)
def test_a_quick_search_begins_with_one_of_the_best(name: str) -> None:
    assert slowdown(TASKS[name], effort("quick").num_starts) <= 1.06


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if len(task["times"]) > 20])
def test_slow_configurations_are_ranked_low(name: str) -> None:
    """Those that take twice as long are, on average, in the lower half."""
    space, times = ranked(TASKS[name])
    best = min(times.values())
    places = [place for place, config in enumerate(space.ranked) if times[config] > 2 * best]
    assert not places or sum(places) / len(places) > len(space) / 2


@pytest.mark.parametrize("name", TASKS)
def test_a_quick_search_finds_one_of_the_best_in_few_steps(name: str, tmp_path: Path) -> None:
    """As far as it goes: what it may choose from is what was measured."""
    space, times = ranked(TASKS[name])
    measured = set()

    def measure(config: Config, budget_ms: float) -> float:
        measured.add(config)
        return times[config]

    results = Results("key", store=Cache("tuning", tmp_path))
    search = Search(name, space, lambda config: config, measure, results, effort("quick"), 1)
    assert times[search.run()] <= 1.03 * min(times.values())
    assert len(measured) <= 48


@pytest.mark.parametrize("name", PAPERS)
def test_an_estimate_is_about_the_time(name: str) -> None:
    space, times = ranked(TASKS[name])
    best = min(times, key=times.__getitem__)
    assert 0.6 < 1e6 * space.costs[best] / times[best] < 1.6
