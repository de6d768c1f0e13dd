"""From a call to its configuration: what is searched, what is found again, what is put back.

No device: launches are only times, and memory is a list of what was done to it.
"""

from __future__ import annotations

import functools
import math
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

import ninetoothed
from examples import mm, silu, softmax
from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.planning import planner as planning
from ninetoothed.backends.triton.planning.planner import Planner
from ninetoothed.backends.triton.runtime import benchmark
from ninetoothed.errors import CompilationError, DeviceError
from ninetoothed.language import dtypes
from ninetoothed.tuning import space as tuning
from ninetoothed.tuning.results import Results, entries
from ninetoothed.tuning.search import Budget
from ninetoothed.tuning.space import Config
from tests.tuning.machines import H200

pytestmark = pytest.mark.fixes_options("its tests fix what is tried")

STREAM = 7

#: Twice the second-level cache: what is written to before each launch that is timed.
FLUSH = 2 * H200.l2_bytes


def tensor(*shape: int, dtype=dtypes.float16, aligned: bool = True) -> Argument:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Argument(shape, tuple(strides), dtype, 16 if aligned else dtype.itemsize)


def product(m: int, n: int, k: int, **changed: Argument) -> Call:
    arguments = {"input": tensor(m, k), "other": tensor(k, n), "output": tensor(m, n)}
    return Call({**arguments, **changed}, device=Device("cuda"))


def addresses(call: Call) -> tuple[int, ...]:
    """What a plan of the call is called with."""
    return (STREAM, *(1 << (30 + place) for place in range(len(call.arguments))))


class Machine:
    """A device on which a configuration takes a time, and nothing is launched."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.launched: list[Config] = []
        self.measured: list[Config] = []
        self.room = math.inf
        self.memory: list[tuple[str, int]] = []
        self.capturing = False
        self.limits = H200
        self.time = lambda config: 1.0 + abs(config["BLOCK_SIZE_M"] - 64) / 64
        self.fails = lambda config: False
        monkeypatch.setattr(planning.driver, "device_limits", lambda *_: self.limits)
        monkeypatch.setattr(planning.driver, "is_capturing", lambda *_: self.capturing)
        monkeypatch.setattr(planning, "runtime", lambda backend: self)
        monkeypatch.setattr(benchmark, "runtime", lambda backend: self)
        monkeypatch.setattr(planning, "_BUDGET", Budget())
        monkeypatch.setattr(Planner, "_candidate", self._candidate)
        monkeypatch.setattr(benchmark.driver, "measure", self._measure)

    def _candidate(self, config: Config, is_kept: bool = True) -> SimpleNamespace:
        if self.fails(config):
            raise DeviceError("it does not fit")
        emitted = SimpleNamespace(text="source")
        specialized = SimpleNamespace(emitted=emitted, constants={})
        return SimpleNamespace(
            config=config,
            run=lambda *_: self.launched.append(config),
            specialized=specialized,
            launchable=None,
            binder=SimpleNamespace(symbols=(), bind=None, launches_alone=True),
        )

    def _measure(self, launch, stream, index, *, backend, budget_ms, prepare) -> float:
        assert (stream, index, backend) == (STREAM, 0, "cuda")
        if prepare is not None:
            prepare()
        launch()
        self.measured.append(self.launched[-1])
        return self.time(self.launched[-1])

    # What of the driver's library is used.

    @contextmanager
    def device(self, index):
        yield

    def device_count(self) -> int:
        return 1

    def allocate(self, size) -> int:
        if size > self.room:
            raise DeviceError("out of memory")
        if size == FLUSH:
            return 0
        self.memory.append(("allocate", size))
        return 99

    def free(self, address) -> None:
        if address:
            self.memory.append(("free", address))

    def copy(self, target, source, size, stream) -> None:
        self.memory.append(("keep" if target == 99 else "restore", size))

    def synchronize(self, stream) -> None:
        pass


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Machine:
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    monkeypatch.delenv("NINETOOTHED_OPTIONS", raising=False)
    monkeypatch.delenv("NINETOOTHED_TUNE_SECONDS", raising=False)
    for kernel in (mm.kernel, silu.kernel, softmax.kernel):
        monkeypatch.setitem(kernel.definition.__dict__, "answers", {})
    return Machine(monkeypatch)


def chosen(call: Call, kernel=mm.kernel, is_given: bool = True) -> Config:
    plan = Planner(kernel.definition, call).plan(addresses(call) if is_given else None)
    return plan.details["config"]


# When is searched.


def test_the_fastest_is_found_and_found_again(machine: Machine) -> None:
    first = chosen(product(512, 512, 512))
    assert first["BLOCK_SIZE_M"] == 64 and machine.measured
    machine.measured.clear()
    assert chosen(product(512, 512, 512)) == first
    assert machine.measured == []


def test_without_values_nothing_is_measured_but_what_was_found_is_used(machine: Machine) -> None:
    machine.time = lambda config: 1.0 / config.num_stages
    call = product(2048, 2048, 2048)
    untuned = chosen(call, is_given=False)
    assert machine.measured == [] and untuned.num_stages < 5
    tuned = chosen(call)
    assert chosen(call, is_given=False) == tuned != untuned


def test_a_call_searches_for_nothing_unless_it_is_told_to(machine: Machine, monkeypatch) -> None:
    monkeypatch.delenv("NINETOOTHED_TUNE")
    chosen(product(512, 512, 512))
    assert machine.measured == []


def test_the_effort_none_measures_nothing(machine: Machine, monkeypatch) -> None:
    machine.time = lambda config: 1.0 / config.num_stages
    call = product(2048, 2048, 2048)
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    untuned = chosen(call)
    assert machine.measured == []
    monkeypatch.setenv("NINETOOTHED_TUNE", "quick")
    tuned = chosen(call)
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    assert chosen(call) == tuned != untuned


def test_nothing_is_measured_while_a_graph_is_captured(machine: Machine) -> None:
    machine.capturing = True
    call = product(512, 512, 512)
    chosen(call)
    assert machine.measured == [] and machine.memory == []
    with pytest.raises(DeviceError, match="`mm` cannot be tuned while a graph is captured"):
        Planner(mm.kernel.definition, call).tune(addresses(call), tuning.effort("quick"))


def test_a_process_does_not_tune_for_ever(machine: Machine, monkeypatch) -> None:
    monkeypatch.setenv("NINETOOTHED_TUNE_SECONDS", "0")
    with pytest.warns(RuntimeWarning, match="NINETOOTHED_TUNE_SECONDS") as caught:
        chosen(product(512, 512, 512))
        chosen(product(1024, 1024, 1024))
    assert len(caught) == 1 and machine.measured == []
    monkeypatch.setenv("NINETOOTHED_TUNE", "full")
    chosen(product(512, 512, 512))
    assert machine.measured


def test_an_empty_grid_needs_no_configuration(machine: Machine) -> None:
    machine.fails = lambda config: True
    plan = Planner(mm.kernel.definition, product(0, 512, 512)).plan(None)
    assert plan.run(STREAM, 1, 2, 3) is None and "config" not in plan.details
    assert machine.measured == []


def test_what_does_not_fit_is_passed_over(machine: Machine) -> None:
    machine.fails = lambda config: config["BLOCK_SIZE_M"] == 64
    assert chosen(product(512, 512, 512))["BLOCK_SIZE_M"] != 64
    assert chosen(product(4096, 4096, 4096), is_given=False)["BLOCK_SIZE_M"] != 64


def test_where_nothing_fits_the_error_says_so(machine: Machine) -> None:
    machine.fails = lambda config: True
    with pytest.raises(CompilationError, match="None of the .* configurations of 'mm'"):
        chosen(product(512, 512, 512))


# What is searched.


def test_warps_are_chosen_where_there_is_no_meta_symbol(machine: Machine) -> None:
    machine.time = lambda config: {2: 0.5}.get(config.num_warps, 1.0)
    call = Call(
        {"input": tensor(1 << 20), "output": tensor(1 << 20)},
        constants={"BLOCK_SIZE": 1024},
        device=Device("cuda"),
    )
    assert chosen(call, silu.kernel).num_warps == 2
    assert {config.num_warps for config in machine.measured} == {1, 2, 4, 8, 16, 32}
    # There is no loop to pipeline.
    assert {config.num_stages for config in machine.measured} == {3}


def test_many_warps_are_not_left_without_an_element(machine: Machine) -> None:
    machine.time = lambda config: 1.0
    call = Call({"input": tensor(99, 64), "output": tensor(99, 64)}, device=Device("cuda"))
    chosen(call, softmax.kernel)
    assert {config.num_warps for config in machine.measured} == {1, 2, 4}


def test_stages_are_chosen_where_a_loop_of_products_can_be_pipelined(machine: Machine) -> None:
    chosen(product(512, 512, 512))
    assert len({config.num_stages for config in machine.measured}) > 2
    machine.measured.clear()
    # Rows of 999 elements begin anywhere: no copy to shared memory can be begun ahead.
    chosen(product(999, 999, 999))
    assert {config.num_stages for config in machine.measured} == {3}


def test_more_stages_are_tried_where_programs_are_few_and_small(machine: Machine) -> None:
    machine.time = lambda config: 1.0 / config.num_stages
    assert chosen(product(512, 1024, 4096)).num_stages == 6
    machine.measured.clear()
    assert chosen(product(4096, 4096, 4096)).num_stages == 5


def test_what_the_user_fixed_stays(machine: Machine, monkeypatch) -> None:
    monkeypatch.setitem(mm.kernel.definition.__dict__, "num_warps", 8)
    monkeypatch.setitem(mm.kernel.definition.__dict__, "num_stages", (2, 3))
    chosen(product(512, 512, 512))
    assert {config.num_warps for config in machine.measured} == {8}
    assert {config.num_stages for config in machine.measured} <= {2, 3}


# Shapes that change.


def searches(machine: Machine, calls) -> int:
    """How many of the calls were searched for."""
    count = 0
    for call in calls:
        machine.measured.clear()
        chosen(call)
        count += bool(machine.measured)
    return count


def test_a_shape_of_a_known_bucket_is_not_searched_for(machine: Machine) -> None:
    machine.time = lambda config: 1.0
    assert searches(machine, [product(m, 512, 512) for m in (1000, 1001, 970, 1023)]) == 1
    assert searches(machine, [product(777, 512, 512)]) == 1


def test_a_growing_sequence_is_tuned_so_often_as_its_length_doubles(machine: Machine) -> None:
    """Three times at most: by how wide its accesses may be."""
    machine.time = lambda config: 1.0
    lengths = [*range(1, 40), *range(40, 1025, 61), 1024]
    count = searches(machine, [product(1, 128, length) for length in lengths])
    assert count <= 3 * (math.log2(1024) + 1)


def test_what_was_found_must_fit_the_new_shape(machine: Machine, monkeypatch) -> None:
    """The next best is taken where an option does not apply to the sizes at hand."""
    call = product(1024, 512, 512)
    chosen(call)
    results = Planner(mm.kernel.definition, call)._results()
    results.chosen = None
    best = results.best()
    strange = replace(best, options=(("no such option", 1),))
    results.record(strange, 1e-6)
    results.finish("quick", strange)
    assert chosen(product(1000, 512, 512)) == best


def test_unaligned_tensors_are_tuned_apart(machine: Machine) -> None:
    calls = [product(64, 64, 64), product(64, 64, 64, input=tensor(64, 64, aligned=False))]
    assert searches(machine, calls) == 2


def test_the_untuned_choice_is_ranked_once_for_a_bucket(machine: Machine, monkeypatch) -> None:
    ranked = []
    space_of = planning.choosing.space_of
    monkeypatch.setattr(
        planning.choosing, "space_of", lambda *given: ranked.append(1) or space_of(*given)
    )
    for m in (1000, 1001, 977):
        chosen(product(m, 512, 512), is_given=False)
    assert len(ranked) == 1
    # Another process finds it on disk.
    first = chosen(product(1000, 512, 512), is_given=False)
    mm.kernel.definition.answers.clear()
    assert chosen(product(1000, 512, 512), is_given=False) == first
    assert len(ranked) == 1
    # It is no search's result: where a search is wanted there is one.
    assert machine.measured == []
    chosen(product(1000, 512, 512))
    assert machine.measured and len(ranked) == 2


def test_results_say_what_they_are_about(machine: Machine) -> None:
    chosen(product(1000, 512, 512))
    (entry,) = entries().values()
    assert entry.subject.kernel == "mm" and entry.subject.device == "NVIDIA H200"
    assert entry.subject.arguments.startswith("input 1024x512 float16; other 512x512")
    assert entry.finished == "quick" and entry.chosen in entry.times


def test_fixed_options_are_tuned_apart(machine: Machine, monkeypatch) -> None:
    call = product(512, 512, 512)
    first = Planner(mm.kernel.definition, call)._results_key
    monkeypatch.setenv("NINETOOTHED_OPTIONS", "swizzle=1")
    assert Planner(mm.kernel.definition, call)._results_key != first


# What launches that are timed overwrite.


def in_place(call: Call) -> tuple[int, ...]:
    """The output is the input."""
    return (STREAM, 1 << 30, 1 << 30)


def test_what_is_read_and_written_is_restored(machine: Machine) -> None:
    machine.time = lambda config: 1.0
    call = Call({"input": tensor(64, 64), "output": tensor(64, 64)}, device=Device("cuda"))
    Planner(softmax.kernel.definition, call).plan(in_place(call))
    assert machine.memory[:2] == [("allocate", 8192), ("keep", 8192)]
    assert machine.memory[-2:] == [("restore", 8192), ("free", 99)]
    # Before each measurement, and at the end.
    restored = sum(1 for what, _ in machine.memory if what == "restore")
    assert restored == len(machine.measured) + 1


def test_what_is_only_written_is_not_kept(machine: Machine) -> None:
    chosen(product(512, 512, 512))
    assert machine.memory == []


def test_an_interrupt_leaves_the_arguments_as_they_were(machine: Machine) -> None:
    def interrupted(config: Config) -> float:
        raise KeyboardInterrupt

    machine.time = interrupted
    call = Call({"input": tensor(64, 64), "output": tensor(64, 64)}, device=Device("cuda"))
    with pytest.raises(KeyboardInterrupt):
        Planner(softmax.kernel.definition, call).plan(in_place(call))
    assert machine.memory[-2:] == [("restore", 8192), ("free", 99)]


def test_without_room_a_call_runs_untuned_and_says_so(machine: Machine) -> None:
    machine.room = FLUSH - 1
    call = Call({"input": tensor(64, 64), "output": tensor(64, 64)}, device=Device("cuda"))
    with pytest.warns(RuntimeWarning, match="`softmax` cannot be tuned.*no memory.*runs untuned"):
        plan = Planner(softmax.kernel.definition, call).plan(in_place(call))
    assert plan.details["config"].num_warps and machine.measured == []
    with pytest.raises(DeviceError, match="no memory left"):
        Planner(softmax.kernel.definition, call).tune(in_place(call), tuning.effort("full"))


# Tuning ahead.


def test_tuning_ahead_measures_all_and_tells(machine: Machine) -> None:
    machine.time = lambda config: 1.0 / config.num_warps
    call = Call({"input": tensor(99, 4096), "output": tensor(99, 4096)}, device=Device("cuda"))
    tuned = Planner(softmax.kernel.definition, call).tune(addresses(call), tuning.effort("full"))
    assert tuned.kernel == "softmax" and tuned.device == "NVIDIA H200"
    assert tuned.config.num_warps == 32 and tuned.milliseconds == 1 / 32
    assert set(tuned.times) == set(machine.measured)
    assert str(tuned).startswith("softmax on NVIDIA H200: 0.03125 ms, the best of 6 measured: num")
    assert chosen(call, softmax.kernel) == tuned.config


def test_tuning_ahead_where_there_is_one_choice_measures_it(machine: Machine, monkeypatch) -> None:
    machine.time = lambda config: 0.25
    monkeypatch.setitem(softmax.kernel.definition.__dict__, "num_warps", 4)
    call = Call({"input": tensor(99, 4096), "output": tensor(99, 4096)}, device=Device("cuda"))
    tuned = Planner(softmax.kernel.definition, call).tune(addresses(call), tuning.effort("full"))
    assert tuned.times == {tuned.config: 0.25} and tuned.config.num_warps == 4


def test_a_search_elsewhere_is_waited_for_and_read(machine: Machine, monkeypatch) -> None:
    """What another process finishes while this one waits for the lock is not searched again."""
    call = product(512, 512, 512)
    planner = Planner(mm.kernel.definition, call)
    other = planning.choosing.space_of(mm.kernel.definition, call, H200).ranked[5]

    @contextmanager
    def alone(results: Results, patience: float):
        found = Results(planner._results_key)
        found.record(other, 0.5)
        found.finish("quick", other)
        results.read()
        yield

    monkeypatch.setattr(Results, "alone", alone)
    assert chosen(call) == other and machine.measured == []


@pytest.mark.parametrize("effort", ["none", "quick"])
def test_where_all_that_count_fail_smaller_ones_are_tried(machine: Machine, monkeypatch, effort):
    """Whatever the estimate thinks of them."""
    monkeypatch.setenv("NINETOOTHED_TUNE", effort)
    definition = replace(mm.kernel.definition, max_num_configs=2)
    machine.fails = lambda config: config["BLOCK_SIZE_M"] * config["BLOCK_SIZE_N"] > 32 * 32
    call = product(4096, 4096, 4096)
    chosen = Planner(definition, call).plan(addresses(call)).details["config"]

    assert chosen["BLOCK_SIZE_M"] == chosen["BLOCK_SIZE_N"] == 32


@pytest.mark.parametrize("given", [2, (2, 8)])
def test_compiled_for_a_target_it_has_the_warps_and_stages_that_make_was_given(given) -> None:
    torch = pytest.importorskip("torch")
    arranged = functools.partial(silu.arrangement, BLOCK_SIZE=64)
    options = {"num_warps": given, "num_stages": given}
    kernel = ninetoothed.make(arranged, silu.application, silu.tensors, **options)
    compiled = kernel.compile(torch.zeros(99), torch.zeros(99), target=("cuda", 90))
    assert (compiled.metadata.num_warps, compiled.metadata.num_stages) == (2, 2)
