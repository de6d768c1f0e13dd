"""What options gain, without a device: every step of the trials but the launches themselves."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from benchmarks.common.inputs import normal, rotations  # noqa: E402
from benchmarks.common.measure import Timer  # noqa: E402
from benchmarks.option_trials import __main__ as option_trials  # noqa: E402
from benchmarks.option_trials import tables, timing  # noqa: E402
from benchmarks.option_trials import tasks as trial_tasks  # noqa: E402
from benchmarks.option_trials.contenders import Contender, same_values  # noqa: E402
from benchmarks.option_trials.tables import Summary  # noqa: E402
from benchmarks.option_trials.tasks import BY_NAME, TASKS, Data, Kernels, Step, Task  # noqa: E402
from benchmarks.option_trials.trials import GROUPS, SETTINGS, STEPS, TRIALS  # noqa: E402
from ninetoothed.backends.base import Device  # noqa: E402
from ninetoothed.backends.triton.planning import planner as planning  # noqa: E402
from ninetoothed.backends.triton.planning.choices import defaults  # noqa: E402
from ninetoothed.backends.triton.planning.planner import Planner  # noqa: E402
from ninetoothed.backends.triton.runtime import benchmark  # noqa: E402
from ninetoothed.backends.triton.translation import specialize  # noqa: E402
from ninetoothed.frontends.torch import FRONTEND  # noqa: E402
from ninetoothed.tuning.space import Config  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402
from tests.tuning.machines import H200  # noqa: E402

pytestmark = pytest.mark.fixes_options("it tries options itself")

#: What a launch takes that nothing makes quicker, in milliseconds.
MILLISECONDS = 1.0


class Machine:
    """An H200 in the CPU's memory: a launch does nothing but say how long it would have taken.

    Each option of a configuration saves a tenth.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.planned: list[tuple[Config, str]] = []
        patch.setattr(planning.driver, "device_limits", lambda *_: H200)
        patch.setattr(planning.driver, "is_capturing", lambda *_: False)
        patch.setattr(planning, "runtime", lambda _: self)
        patch.setattr(benchmark, "runtime", lambda _: self)
        patch.setattr(benchmark.driver, "flush_bytes", lambda *_: 0)
        patch.setattr(benchmark.driver, "measure", lambda launch, *_, **__: launch())
        machine = self
        patch.setattr(Planner, "_candidate", lambda *given, **_: machine.candidate(*given[:2]))
        frontend = vars(FRONTEND)
        patch.setitem(frontend, "device_of", lambda _: Device("cuda"))
        patch.setitem(frontend, "names", {**FRONTEND.names, "current_stream": lambda _: 7})
        patch.setitem(frontend, "current_stream", lambda _: 7)

    def candidate(self, planner: Any, config: Config) -> SimpleNamespace:
        """What a planner launches: emitted, and not compiled."""
        specialized = specialize(planner._kernel, planner._call, config)
        self.planned.append((config, specialized.emitted.text))
        milliseconds = MILLISECONDS * 0.9 ** len(config.options)
        return SimpleNamespace(
            specialized=specialized,
            launchable=None,
            binder=SimpleNamespace(bind=None, symbols=(), launches_alone=True),
            run=lambda *_: milliseconds,
        )

    # What of the driver's library is used.

    @contextlib.contextmanager
    def device(self, index: int) -> Iterator[None]:
        yield

    def device_count(self) -> int:
        return 1

    def allocate(self, size: int) -> int:
        return 1

    def free(self, address: int) -> None:
        pass

    def copy(self, *_: int) -> None:
        pass

    def synchronize(self, stream: int) -> None:
        pass


class Stopwatch(Timer):
    """Asks the calls how long they take."""

    def __init__(self) -> None:
        pass

    @staticmethod
    def forget_kept() -> None:
        pass

    def repetitions_for(self, *_: object, **__: object) -> int:
        return 10

    def milliseconds(self, turns: Sequence[Any], repetitions: int) -> float:
        return sum(turn() for turn in turns)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    for name in ("TUNE", "OPTIONS", "TUNE_SECONDS"):
        monkeypatch.delenv(f"NINETOOTHED_{name}", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(trial_tasks, "num_turns", lambda _: 2)
    monkeypatch.setattr(option_trials, "Maker", lambda dtype, _: Maker(dtype))
    monkeypatch.setattr(timing, "timers", lambda: dict.fromkeys(SETTINGS, Stopwatch()))
    monkeypatch.setattr(timing, "captured", lambda calls: lambda: sum(c() for c in calls))
    # Nothing is computed.
    monkeypatch.setattr(option_trials, "same_values", lambda *_: True)
    monkeypatch.setattr(
        option_trials, "environment", lambda: {"device": "NVIDIA H200", "date": "2026-01-02"}
    )
    return Machine(monkeypatch)


def tried(tmp_path: Path, *arguments: str) -> dict[str, Any]:
    """The results of a run."""
    given = ["--rounds", "2", "--output", str(tmp_path), "--label", "here", *arguments]
    assert option_trials.main(given) == 0
    path = tmp_path / "2026-01-02-nvidia-h200-option-trials-here.json"
    return json.loads(path.read_text())["option-trials"]


# All of it.


def test_an_option_is_tried_in_all_settings_where_the_tuner_takes_it(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (result,) = tried(
        tmp_path, "--tasks", "silu", "--options", "eviction_policy,dependent_launch,split_k"
    )["results"]
    assert result["not taken"] == ["split_k"]
    assert "eviction_policy=0" in result["configs"]["eviction_policy=0"]["0: silu"]
    assert "dependent_launch" not in result["configs"]["dependent_launch off, same"]["0: silu"]
    found = {(each["trial"], each["without"]): each["ratios"] for each in result["trials"]}
    assert set(found) == {
        (name, way) for name in ("eviction_policy", "dependent_launch") for way in ("tuned", "same")
    }
    for (name, _), spreads in found.items():
        assert list(spreads) == list(SETTINGS)
        # To have no hints is an option more to this machine.
        medians = [spread["median"] for spread in spreads.values()]
        assert name == "eviction_policy" or medians == [pytest.approx(1 / 0.9)] * len(SETTINGS)
    assert {len(each) for each in result["milliseconds"]["chain"].values()} == {2}
    told = capsys.readouterr().out
    assert "Taken in none of these tasks: split_k." in told
    assert re.search(r"\| eviction_policy, tuned +\| +1 \|", told)
    assert told.count(" stays |") >= 2


def test_a_step_is_tried_where_it_changes_what_is_emitted(machine: Machine, tmp_path: Path) -> None:
    (result,) = tried(tmp_path, "--tasks", "rope", "--options", "interleaved_pairs,folded_gather")[
        "results"
    ]
    assert result["not taken"] == ["folded_gather"]
    assert sorted(result["configs"]) == [
        "interleaved_pairs off, same",
        "no interleaved_pairs",
        "with",
    ]
    split = [config for config, text in machine.planned if "tl.split" in text]
    plain = [config for config, text in machine.planned if "tl.split" not in text]
    assert split and plain
    ratios = [each["ratios"]["row"]["median"] for each in result["trials"]]
    assert ratios == [pytest.approx(1.0)] * 2


def test_a_chain_is_of_several_kernels_and_has_one_setting(
    machine: Machine, tmp_path: Path
) -> None:
    (result,) = tried(tmp_path, "--tasks", "chain", "--options", "eviction_policy")["results"]
    kernels = [name.partition(": ")[2] for name in result["configs"]["with"]]
    assert kernels == ["silu", "rms_norm", "add", "softmax"]
    assert all(list(each["ratios"]) == ["chain"] for each in result["trials"])


def test_a_kernel_is_tried_whose_constants_decide_what_it_does(
    machine: Machine, tmp_path: Path
) -> None:
    (result,) = tried(tmp_path, "--tasks", "sdpa", "--options", "size_ratios,dependent_launch")[
        "results"
    ]
    assert not result["wrong"]
    assert "dependent_launch" in {each["trial"] for each in result["trials"]}


def test_a_backward_is_tried_whose_rows_a_loop_reduces(machine: Machine, tmp_path: Path) -> None:
    (result,) = tried(
        tmp_path,
        "--tasks",
        "rms_norm_backward",
        "--options",
        "loop_pipelining",
        "--without",
        "same",
    )["results"]
    assert [each["trial"] for each in result["trials"]] == ["loop_pipelining"]


def test_what_was_tuned_is_found_again(machine: Machine, tmp_path: Path) -> None:
    arguments = (
        "--tasks",
        "silu",
        "--options",
        "eviction_policy",
        "--caches",
        str(tmp_path / "caches"),
    )
    first = tried(tmp_path, *arguments)
    machine.planned.clear()
    assert tried(tmp_path, *arguments)["results"][0]["configs"] == first["results"][0]["configs"]
    # Nothing is searched: each contender's configuration is made once.
    assert len(machine.planned) == 3


def test_a_contender_that_fails_does_not_hide_the_others(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        option_trials, "same_values", lambda contender, _: contender.label != "eviction_policy=0"
    )
    given = [
        "--tasks",
        "silu",
        "--options",
        "eviction_policy",
        "--rounds",
        "1",
        "--output",
        str(tmp_path),
    ]
    assert option_trials.main(given) == 1
    text = (tmp_path / "2026-01-02-nvidia-h200-option-trials-eviction_policy.md").read_text()
    assert "eviction_policy=0 and with do not compute the same" in text
    assert "| eviction_policy, same" in text and "| eviction_policy, tuned" not in text


# Parts of it.


def test_every_option_and_step_is_tried_by_some_group() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert sorted(names) == sorted(TRIALS)
    assert set(defaults()) <= set(TRIALS) and set(STEPS) <= set(TRIALS)


def test_what_needs_an_option_goes_with_it() -> None:
    config = Config((), 4, 3, (("descriptors", 1), ("loop_splitting", 1), ("tma_pipeline", 2)))
    assert TRIALS["descriptors"].without(config).options == (("loop_splitting", 1),)
    assert TRIALS["tma_pipeline"].without(config).options == (
        ("descriptors", 1),
        ("loop_splitting", 1),
    )
    kept = replace(config, options=(*config.options, ("dependent_launch", 1)))
    changed = dict(TRIALS["eviction_policy"].without(kept).options)
    assert changed == {**dict(config.options), "eviction_policy": 0, "dependent_launch": 1}
    assert TRIALS["one_loop"].without(config) == config


def test_a_step_is_left_out_within_its_trial() -> None:
    for name, (module, decides, _) in STEPS.items():
        before = getattr(module, decides)
        with TRIALS[name].switched_off():
            assert getattr(module, decides) is not before
        assert getattr(module, decides) is before


def test_contenders_compute_the_same_but_for_rounding() -> None:
    values = torch.randn(64)
    one, other, wrong, unwritten = (
        Contender("", [], {}, [each])
        for each in (values, values * (1 + 2**-10), -values, values * float("nan"))
    )
    assert same_values(one, other)
    assert not same_values(wrong, one)
    assert not same_values(unwritten, one)


def test_the_mean_is_over_the_settings_and_the_worst_is_named() -> None:
    add = {"do_bench": 1.21, "row": 1.0, "chain": 0.98}
    mixed = {"chain": 1.0}
    found = Summary.of({"add": add, "mixed": mixed})
    assert found.settings["chain"] == pytest.approx(0.98**0.5)
    assert found.mean == pytest.approx((1.21 * 0.98**0.5) ** (1 / 3))
    assert found.verdict == "goes: add, chain -2.0%"
    assert Summary.of({"add": {**add, "chain": 1.0}}).verdict == "stays"
    assert Summary.of({"mixed": mixed}).verdict == "goes: gains +0.0%"


def test_results_of_several_runs_are_one_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(name: str, left: tuple[str, ...] = (), **tasks: float) -> str:
        results: list[Any] = [
            {"task": task, "not taken": ["split_k"], "trials": []} for task in left
        ]
        results += [
            {
                "task": task,
                "not taken": [],
                "trials": [
                    {
                        "trial": "split_k",
                        "without": "same",
                        "ratios": {setting: {"median": ratio} for setting in SETTINGS},
                    }
                ],
            }
            for task, ratio in tasks.items()
        ]
        path = tmp_path / name
        path.write_text(json.dumps({"option-trials": {"results": results}}))
        return str(path)

    tables.main([run("one.json", mm=0.5, conv2d=2.0, bmm=0.5), run("other.json", ("bmm",), mm=2.0)])
    *_, line = capsys.readouterr().out.strip().splitlines()
    assert [cell.strip() for cell in line.split("|")[1:4]] == ["split_k, same", "2", "2.000"]
    assert line.endswith("stays |")


def test_a_chain_reads_what_the_last_call_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU kernels run in NumPy."""
    monkeypatch.setattr(trial_tasks, "num_turns", lambda _: 3)
    small = Step(trial_tasks.ADD, normal((8, 128), (8, 128)))
    task = Task("add", "", (small,), small, segments=2)
    data, kernels = Data(task, Maker(torch.float32)), Kernels()
    calls = data.calls(kernels)
    assert [len(calls[setting]) for setting in SETTINGS] == [1, 15, 16]
    for call in calls["chain"]:
        call()
    # The second segment begins with the second set of arguments.
    sets = data.sets(small)
    expected = sets[1][0] + sum(sets[(1 + link) % 3][1] for link in range(8))
    torch.testing.assert_close(data._buffers[1], expected)


def test_a_chain_that_grows_beyond_its_type_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_tasks, "num_turns", lambda _: 1)
    step = Step(trial_tasks.ADD, lambda make: (make(8, 128), 1e4 * make(8, 128)))
    data, kernels = Data(Task("add", "", (step,), step), Maker(torch.float16)), Kernels()
    for call in data.calls(kernels)["chain"]:
        call()
    assert not data.is_finite()


def test_what_a_kernel_in_place_is_compared_on_are_numbers() -> None:
    step = Step(trial_tasks.ROPE_IN_PLACE, rotations(1, 1024, 2, 64))
    data = Data(Task("rope_", "", (step,), step), Maker(torch.float16))
    assert all(value.isfinite().all() for value in data.values(Kernels()))


def test_tasks_have_names_of_their_own() -> None:
    assert len(BY_NAME) == len(TASKS)
