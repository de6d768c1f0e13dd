"""The suite's tables, sizes and measures, without a device."""

from __future__ import annotations

import json
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
pytest.importorskip("triton", reason="needs Triton")

from benchmarks import published, sweep, tasks, training  # noqa: E402
from benchmarks.common.inputs import BUILDERS, normal  # noqa: E402
from benchmarks.common.measure import DoBench, Timer, num_turns  # noqa: E402
from benchmarks.common.report import figure  # noqa: E402
from benchmarks.host import compile_growth  # noqa: E402
from benchmarks.llama import figure as experiment  # noqa: E402
from benchmarks.peers import best  # noqa: E402
from benchmarks.peers.contenders import NAMES, PUBLISHED, TASKS  # noqa: E402
from benchmarks.peers.idiomatic.configs import ATTENTION_CONFIGS, PRODUCT_CONFIGS  # noqa: E402
from benchmarks.tuner import first_call  # noqa: E402
from tests.examples.maker import Maker  # noqa: E402

ROOT = Path(__file__).parents[2]


def result(task: str, **milliseconds: list[float]) -> dict[str, Any]:
    """What `tasks.run` gives, of these times."""
    ours = milliseconds["ours"]
    return {
        "task": task,
        "size": "small",
        "first_call_seconds": {"ours": 1.25},
        "milliseconds": milliseconds,
        "ratios": {
            name: vars(tasks.ratios(milliseconds, "ours", name))
            for name in milliseconds
            if name != "ours" and ours
        },
    }


def test_there_are_ten_tasks_and_rope_in_place_beside_them() -> None:
    assert [task.name for task in TASKS] == list(BUILDERS)
    assert sum(tasks.is_of_the_ten({"task": task.name}) for task in TASKS) == 10
    assert all(set(task.contenders) == {*NAMES, PUBLISHED} for task in TASKS)


def test_the_idiomatic_kernels_have_as_much_to_choose_from_as_the_papers() -> None:
    assert len(PRODUCT_CONFIGS) >= 200
    assert len(ATTENTION_CONFIGS) >= 90


def test_best_triton_marks_results_to_stay_where_it_is_told_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hints = {"", "evict_first", "evict_last"}
    kernels = [best.add_kernel, best.silu_kernel, best.rope_kernel]
    kernels += [best.softmax_kernel, best.rms_norm_kernel]
    for kernel in kernels:
        assert {c.kwargs["KEEP"] for c in kernel.configs} == hints
        monkeypatch.setattr(kernel, "configs", kernel.configs)
    best.mark_results()
    for kernel in kernels:
        assert {c.kwargs["KEEP"] for c in kernel.configs} == {*hints, "kept", "kept_first"}


def test_the_geometric_mean_is_over_the_ten_tasks() -> None:
    found = [
        result("mm", ours=[1.0, 1.0], idiomatic=[2.0, 2.0]),
        result("add", ours=[1.0, 1.0], idiomatic=[8.0, 8.0]),
        result("rope_", ours=[1.0, 1.0], idiomatic=[100.0, 100.0]),
    ]
    assert tasks.geometric_means(found) == {"idiomatic": pytest.approx(0.25)}
    last = tasks.as_table(found).splitlines()[-1]
    assert last.startswith("| geometric mean") and "0.250" in last and "of 2 tasks" in last


def test_a_contender_that_failed_leaves_a_gap_in_the_table() -> None:
    found = [
        result("mm", ours=[0.002], best=[0.001], PyTorch=[0.004]),
        result("add", ours=[0.002], PyTorch=[0.001]),
    ]
    header, _, mm, add, _ = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in tasks.as_table(found).splitlines()
    )
    assert header[:6] == ["task", "ours", "best", "PyTorch", "ours / best", "ours / PyTorch"]
    assert mm[1:5] == ["2.00", "1.00", "4.00", "2.000 (2.000–2.000)"]
    assert add[2] == add[4] == "–"


def test_ours_meets_the_published_package_through_pytorch() -> None:
    """Its process ran with clocks of half the speed."""
    ours = [result("mm", ours=[1.0, 1.0], PyTorch=[2.0, 2.0])]
    times = {"published": [8.0, 8.0, 16.0], "PyTorch": [4.0, 4.0, 4.0]}
    published.merge(ours, [{"task": "mm", "milliseconds": times}])
    assert ours[0]["ratios"]["published"] == {"median": 0.25, "least": 0.125, "greatest": 0.25}
    assert "0.250 (0.125–0.250)" in tasks.as_table(ours)


def test_a_published_package_that_finds_no_device_is_reported(tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    # Nothing of ours is imported where that package is: it has our package's name.
    (tmp_path / "ninetoothed").mkdir()
    (tmp_path / "ninetoothed" / "__init__.py").touch()
    with pytest.raises(RuntimeError, match="failed:\n.*CUDA device"):
        published.measure(tmp_path, ("--tasks", "add", "--processes", "1"))


def test_the_figure_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    found = [
        result("mm", ours=[1.0, 1.1], best=[1.0, 1.0], PyTorch=[2.0, 2.0]),
        result("add", ours=[1.0, 1.1], PyTorch=[2.0, 2.0]),
    ]
    text = figure(tmp_path / "figure.svg", found).read_text()
    assert "<svg" in text


def test_the_experiment_is_drawn_from_several_files(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    for file, count, names in zip(files, (128, 512), (("ours", "PyTorch"), ("ours",))):
        entries = {name: {"tokens_per_second": [3.0, 1.0, 2.0]} for name in names}
        found = {"decode, batch 1": {}, f"paper, {count} out": entries}
        file.write_text(json.dumps({"environment": {"device": "a card"}, "model": found}))
    experiments = experiment.experiments(files)
    assert {count: list(found) for count, found in experiments.items()} == {
        "128 out": ["ours", "PyTorch"],
        "512 out": ["ours"],
    }
    assert "<svg" in experiment.draw(files).read_text()


def test_small_arguments_take_turns_and_large_ones_need_not() -> None:
    assert (num_turns(1), num_turns(96 * 2**20), num_turns(2**31)) == (8, 6, 1)


def test_the_sweep_has_the_sizes_that_were_asked_for() -> None:
    sizes = {(point.task, point.size) for point in sweep.POINTS}
    for m in (1, 16, 2048):
        for k, n in ((4096, 6144), (4096, 4096), (4096, 14336), (14336, 4096)):
            assert ("mm", f"{m} × {k} × {n}") in sizes
    for task in ("add", "silu", "softmax", "rms_norm", "rope"):
        elements = [point.moved for point in sweep.POINTS if point.task == task]
        assert min(elements) <= 2 * 4096 and max(elements) >= 2 * 2**30  # Of 2 GiB each.
    heads = [point for point in sweep.POINTS if point.task == "sdpa"]
    assert len(heads) == 20 and sum(bool(point.options) for point in heads) == 10


def test_a_selection_is_a_few_sizes() -> None:
    large = sweep.selected(["large"])
    assert [point.task for point in large] == ["add", "silu", "softmax", "rms_norm", "rope"]
    assert all(point.moved in (2 * 2**30, 3 * 2**30) for point in large)
    assert {point.task for point in sweep.selected(["layers", "heads"])} == {"mm", "sdpa"}
    assert len(sweep.selected(["layers"])) == 12
    heads = [point.options for point in sweep.selected(["heads"])]
    assert len(heads) == 12 and sum(map(bool, heads)) == 6
    assert len(sweep.selected(["llama"])) == 24
    assert list(sweep.selected([])) == list(sweep.POINTS)


def test_a_wrong_result_is_found_against_float64_and_against_pytorch() -> None:
    for work in (2**20, 2**50):
        point = sweep.Point("mm", "", normal((64, 64), (64, 64)), operations=work, reduction=64)
        a, b = point.build(Maker(torch.float16))
        right = a @ b
        sweep.check(point, "ours", right, (a, b), right)
        with pytest.raises(AssertionError, match="float64|relative|expected"):
            sweep.check(point, "ours", right + 0.5, (a, b), right)


def test_the_sweep_tells_the_share_of_the_copys_bandwidth() -> None:
    found = {
        **result("add", ours=[0.2], PyTorch=[0.25], copy=[0.1]),
        "moved_bytes": 4 * 10**8,
        "operations": 0,
    }
    del found["ratios"]["copy"]
    row, mean = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in sweep.as_table([found]).splitlines()[-2:]
    )
    assert row == ["add small", "200.0", "0.800 (0.800–0.800)", "2.00 TB/s", "0.500"]
    assert mean == ["geometric mean", "", "0.800, at most 0.800", "", ""]


@pytest.mark.parametrize(
    "name",
    [
        "sweep",
        "tuner.first_call",
        "tuner.first_calls",
        "tasks",
        "option_trials",
        "option_trials.sizes",
    ],
)
def test_what_needs_a_device_says_so(name: str) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "CUDA device" in done.stdout


def test_first_calls_and_choices_are_two_tables() -> None:
    text = first_call.as_tables(
        {
            "mm": {
                "seconds": {"quick": {"cold": [[1, 1, 9.5, 1]], "warm": [[1, 1, 0.3, 1]]}},
                "milliseconds": {"quick": [0.21], "full": [0.20]},
            }
        }
    )
    assert "| mm, quick    | 9.50 | 0.300 |      0.300 |" in text
    assert "| mm, quick    |  210.0 |           1.050 (1.050–1.050) |" in text


def test_a_program_grows_by_its_statements() -> None:
    for kind in compile_growth.KINDS:
        lines = [len(compile_growth.program(kind, count).splitlines()) for count in (1, 9)]
        assert lines[1] - lines[0] == 8


def test_a_grown_program_is_made_and_compiled() -> None:
    ((make, ours, triton),) = compile_growth.measure("accesses", 3, 1)
    assert min(make, ours, triton) > 0


def test_the_size_of_code_is_measured_as_in_the_paper() -> None:
    """For these kernels the paper's program and ours read the same."""
    pytest.importorskip("radon", reason="needs radon")
    from benchmarks.host import code_size

    sizes = code_size.measure()
    assert list(sizes) == list(code_size.PAPER)
    for name, triton, ours in (("add", 79.95, 4.75), ("silu", 66.61, 4.75)):
        assert sizes[name]["Triton"].volume == pytest.approx(triton, abs=0.01)
        assert sizes[name]["ours"].volume == pytest.approx(ours, abs=0.01)
    assert sizes["mm"]["ours"].complexity == 3
    # What an example takes from another is counted in the last column alone.
    assert sizes["conv2d"]["ours"].lloc < sizes["conv2d"]["ours, with what it uses"].lloc
    assert "def mm_kernel" in code_size.triton_kernel("bmm")
    assert "def product" in code_size.triton_kernel("addmm")
    assert "import" not in code_size.example("sdpa")


def test_results_can_be_read_back_for_their_configurations(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"tasks": {"configurations": {"x": {"config": {"A": 1}}}}}))
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    from benchmarks.common import search

    assert tasks.main(["--tasks", "add", "--configs", str(path), "--processes", "1"]) == 1
    assert search.CHOICES.pop("x").config == {"A": 1}


def test_a_round_goes_there_and_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second turn is slower: nobody has more of them."""
    taken: list[int] = []

    class Alternating(Timer):
        def __init__(self) -> None:
            pass

        def forget_kept(self) -> None:  # type: ignore[override]
            taken.append(len(taken))

        def repetitions_for(self, *_: object, **__: object) -> int:
            return 10

        def milliseconds(self, *_: object, **__: object) -> float:
            return 1.0 + len(taken) % 2

    functions = {name: [lambda: None] for name in ("ours", "idiomatic", "best", "PyTorch")}
    assert Alternating().rounds(functions, 3) == dict.fromkeys(functions, [1.5] * 3)


def test_do_bench_times_the_first_arguments_and_takes_nothing_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.common.measure.do_bench", lambda function, **_: function())
    timer = object.__new__(DoBench)
    timer.forget_kept()
    assert timer.milliseconds([lambda: 2.0, lambda: 3.0], 10) == 2.0


def test_do_bench_has_no_results_in_turns(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tasks.main(["--flush", "do_bench", "--results", "kept"])
    assert "one set of arguments" in capsys.readouterr().err


def test_a_kept_result_is_alive_until_the_next_one_is() -> None:
    class Result:
        """Something that can be referred to weakly."""

    made: list[weakref.ref[Result]] = []

    def function() -> Result:
        result = Result()
        made.append(weakref.ref(result))
        return result

    call = tasks.keeping(function)
    call()
    assert made[0]() is not None
    call()
    assert made[0]() is None and made[1]() is not None


def test_a_chain_gives_each_call_what_the_last_one_gave() -> None:
    seen: list[tuple[int, int]] = []

    def function(value: int, other: int) -> int:
        seen.append((value, other))
        return value + other

    call = tasks.chaining(function, 1, 10)
    call(), call(), call()
    assert seen == [(1, 10), (11, 10), (21, 10)]


def test_the_losses_of_a_training_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    losses = {name: {"losses": [3.0, 2.0, 1.5]} for name in ("ours", "PyTorch, compiled")}
    kept = tmp_path / "training.json"
    kept.write_text(json.dumps({"environment": {"device": "a device"}, "training": losses}))
    text = training.draw(kept).read_text()
    assert "<svg" in text and text.count("<!-- PyTorch, compiled -->") == 1
