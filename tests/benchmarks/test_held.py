"""The bounds that are held are told beside what benchmarks have written."""

import json
import shutil

import pytest

from benchmarks import held
from benchmarks.common.report import RESULTS

TASKS = "2026-11-27-nvidia-h200-tasks"


@pytest.fixture
def folder(tmp_path):
    for path in (RESULTS / "tasks" / "2026-11-27").glob("*.json"):
        shutil.copy(path, tmp_path)
    return tmp_path


def told(folder):
    return {bound.what: bound for bound in held.bounds(folder)}


def test_what_is_bound_by_memory_counts_by_the_mean_of_three_settings(folder):
    found = told(folder)["PyTorch, memory-bound"]
    # Cold, add alone is at .954; timed by `do_bench` at 1.005.
    assert (round(found.found, 3), found.holds) == (0.950, True)
    (folder / f"{TASKS}-do_bench.json").unlink()
    assert told(folder)["PyTorch, memory-bound"].holds is None


def test_what_is_lost_is_told(folder, capsys):
    path = folder / f"{TASKS}.json"
    data = json.loads(path.read_text())
    for result in data["tasks"]["results"]:
        if result["task"] == "bmm":
            result["ratios"]["PyTorch"]["median"] = 1.03
    path.write_text(json.dumps(data))
    assert told(folder)["PyTorch, products"].holds is False
    assert held.main(["--read", "--output", str(folder)]) == 1
    assert "DOES NOT HOLD" in capsys.readouterr().out


def test_of_fewer_tasks_nothing_is_told(folder):
    path = folder / f"{TASKS}.json"
    data = json.loads(path.read_text())
    data["tasks"]["results"] = [r for r in data["tasks"]["results"] if r["task"] != "bmm"]
    path.write_text(json.dumps(data))
    assert {told(folder)[what].found for what in ("PyTorch, products", "PyTorch, attention")} == {
        None
    }


def test_what_was_not_measured_does_not_hold(folder, capsys):
    assert held.main(["--read", "--output", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "not measured" in out
    assert "DOES NOT HOLD" not in out


def test_what_else_is_held(folder):
    for path in (
        "launch/2026-11-22-nvidia-h200-launch.json",
        "sweeps/2026-11-21-nvidia-h200-sweep-large-float16.json",
        "tuning/2026-11-21-nvidia-h200-first-call.json",
        "host/2026-11-28-x86-64-2-cores-make.json",
        "host/2026-11-23-x86-64-2-cores-import.json",
    ):
        shutil.copy(RESULTS / path, folder)
    found = told(folder)
    assert found["2 GiB: least share of the copy's bandwidth"].holds
    assert found["one call of add on the host, µs"].holds is False
    assert [bound.what for bound in found.values() if bound.holds is None] == []
