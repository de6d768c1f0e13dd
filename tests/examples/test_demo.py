"""The demo runs, says so when a kernel is wrong, and fits the terminal."""

from __future__ import annotations

import dataclasses
import sys

import pytest

from benchmarks.common.fresh import figures
from examples.demo import __main__ as demo
from examples.demo.side_by_side import GAP, side_by_side

CODE = [("Left", "def f(x):\n    return x"), ("Below", "f(" + "argument, " * 20 + ")")]
LONG = [("Right", "\n".join(f"line {number} " + "word " * 30 for number in range(5)))]


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_demo_runs_all_ten_kernels_and_shows_one(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    framework = pytest.importorskip(name, reason=f"needs {name}")

    wrong = demo.main([name])

    printed = capsys.readouterr().out
    assert wrong == 0, printed
    assert [f"{number}/10" in printed for number in range(1, 11)] == [True] * 10
    assert "10 kernels, all right" in printed
    assert "@triton.jit" in printed
    assert "def arrangement" in printed and "def application" in printed
    # A build of PyPI's calls itself 2.11.0+cu130, its package 2.11.0.
    assert framework.__version__.split("+")[0] in printed


def test_demo_on_paddles_tensors_imports_no_torch() -> None:
    pytest.importorskip("paddle", reason="needs PaddlePaddle")
    program = (
        "import json, sys; from examples.demo import __main__ as demo; sys.modules['torch'] = None\n"
        "wrong = demo.main(['paddle']); print(json.dumps(wrong))"
    )
    assert figures(program) == 0


def test_demo_names_the_frameworks_that_there_are() -> None:
    with pytest.raises(SystemExit, match=r"\[torch \| paddle\]"):
        demo.main(["torhc"])


@pytest.mark.parametrize("name", ["torch", "paddle"])
def test_demo_says_that_a_framework_is_not_there(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, name, None)

    with pytest.raises(SystemExit, match=f"needs the module '{name}'"):
        demo.main([name])


@pytest.fixture
def with_torch() -> None:
    pytest.importorskip("torch", reason="needs PyTorch")


@pytest.mark.usefixtures("with_torch")
def test_demo_counts_a_kernel_that_is_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(task for task in demo.TASKS if task.name == "add")
    broken = dataclasses.replace(task, ours=lambda x, y: x + y + 1e-3)
    monkeypatch.setattr(demo, "TASKS", (task, broken))

    wrong = demo.main()

    assert wrong == 1
    assert "WRONG" in capsys.readouterr().out


@pytest.mark.usefixtures("with_torch")
def test_demo_counts_a_result_that_is_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    task = next(task for task in demo.TASKS if task.name == "add")
    monkeypatch.setattr(
        demo, "TASKS", (dataclasses.replace(task, ours=lambda x, y: x * float("nan")),)
    )

    assert demo.main() == 1


@pytest.mark.parametrize("width", [60, 100, 120, 160])
def test_texts_fit_the_terminal(width: int) -> None:
    shown = side_by_side([CODE, LONG], width)

    assert max(map(len, shown.splitlines())) <= width
    assert "line 4" in shown and "Below" in shown


def test_texts_stand_beside_each_other_where_there_is_room() -> None:
    assert side_by_side([CODE, LONG], 120).splitlines()[0].split(GAP.strip())[1].strip() == "Right"
    assert GAP not in side_by_side([CODE, LONG], 60)


def test_nothing_of_the_text_is_lost() -> None:
    shown = side_by_side([CODE], 60)

    assert shown.count("argument,") == 20
