"""What of the benchmarks can be tested without a device: the peers, the figures, the tables."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from benchmarks import launch
from benchmarks.common import quiet
from benchmarks.common.fresh import ROOT, figures
from benchmarks.common.report import table, write
from benchmarks.common.spread import Spread, ratios
from benchmarks.frontends import available, paths_of, report, too_slow
from tests.processes import assert_none, told_by


def test_the_hand_written_triton_kernels_are_right() -> None:
    pytest.importorskip("triton", reason="needs Triton")
    failures = told_by("tests.benchmarks.peers_in_interpreter")
    assert_none(failures)


def test_a_ratio_is_taken_round_by_round() -> None:
    """The clocks halve between the rounds; the ratio does not see it."""
    times = {"ours": [1.0, 2.0, 4.2], "theirs": [2.0, 4.0, 8.0]}
    assert ratios(times, "ours", "theirs") == Spread(0.5, 0.5, 0.525)


def test_the_hosts_time_is_taken_on_the_fastest_core(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = [{3, 5, 8}]
    monkeypatch.setattr(quiet.os, "sched_getaffinity", lambda _: chosen[-1], raising=False)
    monkeypatch.setattr(
        quiet.os, "sched_setaffinity", lambda _, cores: chosen.append(cores), raising=False
    )
    monkeypatch.setattr(quiet, "_nanoseconds", lambda: {3: 70, 5: 40, 8: 60}[min(chosen[-1])])
    with pytest.raises(KeyError), quiet.on_the_quietest_core():
        assert chosen[-1] == {5}
        raise KeyError
    assert chosen[-1] == {3, 5, 8}


def test_the_columns_of_a_table_line_up() -> None:
    text = table(("task", "ms"), (("mm", "0.2"), ("a longer one", "12.25")))
    assert text.splitlines() == [
        "| task         |    ms |",
        "| ------------ | ----: |",
        "| mm           |   0.2 |",
        "| a longer one | 12.25 |",
    ]


def test_results_are_written_with_the_machine_in_their_names(tmp_path: Path) -> None:
    environment = {"device": "NVIDIA H200", "date": "2026-01-02 03:04 UTC"}
    raw, readable = write("tasks", environment, "the table", [1, 2], tmp_path)
    assert readable.name == "2026-01-02-nvidia-h200-tasks.md"
    assert readable.read_text() == "the table\n"
    assert json.loads(raw.read_text()) == {"environment": environment, "tasks": [1, 2]}


def test_a_fresh_process_that_fails_is_reported() -> None:
    assert figures("print([1, 2])") == [1, 2]
    with pytest.raises(RuntimeError, match="no such thing"):
        figures("raise SystemExit('no such thing')")
    with pytest.raises(RuntimeError, match="status 7:\nso far"):
        figures("import os; print('so far', flush=True); os._exit(7)")
    with pytest.raises(RuntimeError, match="printed nothing"):
        figures("pass")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--stub", "--beside", "no-such-commit"], "no folder no-such-commit, and git"),
        (["--stub", "--beside", str(Path(__file__).parent)], "has no ninetoothed/__init__.py"),
        (["--beside", "HEAD"], "a CUDA device, and PyTorch finds none here; --stub"),
    ],
)
def test_a_comparison_of_launches_that_cannot_run_says_why(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    why: str,
) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["benchmarks.launch", *arguments, "--rounds", "1"])
    assert launch.main() == 2
    assert why in capsys.readouterr().err


def test_launches_of_another_checkout_are_told_as_they_are_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    for part in ("ninetoothed", "examples"):
        shutil.copytree(ROOT / part, tmp_path / part)
    times = launch.times_alone("cpu", str(tmp_path), 1)
    told = capsys.readouterr().err.splitlines()
    assert [line.rpartition(", process 1 of 1: ")[0] for line in told] == sorted(times)
    shutil.rmtree(tmp_path / "examples")
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "add.py").touch()
    with pytest.raises(RuntimeError, match="examples/add.py is not in"):
        launch.times_alone("cpu", str(tmp_path), 1)


def test_the_frontends_are_compared_in_processes_of_their_own() -> None:
    pytest.importorskip("torch", reason="needs PyTorch")
    times = figures(
        "import json; from benchmarks.frontends import measure\n"
        "print(json.dumps([measure(name, 'cpu', 2) for name in ('torch', 'numpy')]))"
    )
    assert [sorted(each) for each in times] == [["call", "own"]] * 2
    rounds = [rounds for each in times for rounds in each.values()]
    assert [len(each) for each in rounds] == [2, 2, 2, 2]
    assert all(0 < time < 1000 for each in rounds for time in each)


def test_a_frontend_that_costs_more_than_is_allowed_is_named() -> None:
    calls = {"torch": [4.0, 5.0, 6.0], "cupy": [6.4, 6.4, 6.4], "paddle": [6.6, 6.6, 6.6]}
    times = {name: {"call": rounds, "own": [2.5]} for name, rounds in calls.items()}
    assert too_slow(times) == ["paddle"]
    told = "| paddle     |   6.60 |  6.60 |      +1.60 |    2.50 | reading three tensors |"
    assert told in report(times)


def test_a_frontend_is_not_judged_where_one_new_array_costs_too_much() -> None:
    times = {
        "torch": {"call": [4.0], "own": [1.0]},
        "jax": {"call": [30.0], "own": [25.0], "new array by magic": [5.4, 5.4]},
    }
    assert too_slow(times) == ["jax"]
    assert "jax takes at least 5.40 µs (least 5.40) for one new array: magic." in report(times)
    times["jax"]["new array by magic"] = [5.6, 5.7]
    assert too_slow(times) == []
    times["jax"]["new array by hand"] = [5.4, 5.7]
    assert too_slow(times) == ["jax"]


def test_a_framework_may_be_installed_apart_from_the_others(tmp_path: Path) -> None:
    (tmp_path / "apart.py").write_text("PLACE = 'apart'\n")
    paths = paths_of([f"paddle={tmp_path}"])
    assert paths == {"paddle": str(tmp_path)}
    assert "paddle" in available("cpu", paths)
    assert figures("import apart; print(f'\"{apart.PLACE}\"')", path=str(tmp_path)) == "apart"
    with pytest.raises(SystemExit, match="FRONTEND=FOLDERS"):
        paths_of(["padle=/somewhere"])


def test_the_tasks_say_what_they_need() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    from benchmarks.tasks import main

    assert main(["--tasks", "add"]) == 1


def test_an_unknown_task_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("triton", reason="needs Triton")
    from benchmarks.tasks import main

    with pytest.raises(SystemExit):
        main(["--tasks", "mm,sofmax"])
    assert "sofmax" in capsys.readouterr().err


def test_the_readme_has_the_table_of_the_last_results() -> None:
    from benchmarks import readme

    text = readme.README.read_text()
    assert readme.updated(text, readme.results_of(readme.last_results())) == text


def test_first_choices_are_those_of_the_estimate_and_can_be_written() -> None:
    pytest.importorskip("triton", reason="needs Triton")
    from benchmarks.sweep import POINTS
    from benchmarks.tuner.choices import config_of, firsts_of, name_of, space_for

    [point] = [point for point in POINTS if name_of(point) == "mm 128 × 128 × 128"]
    [(_, written)] = firsts_of([name_of(point)]).items()
    assert config_of(json.loads(json.dumps(written))) == space_for(point).first
