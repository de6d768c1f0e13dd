"""`warm_up`, and the list of what a process called."""

from __future__ import annotations

import json

import pytest

import ninetoothed
from examples import add, softmax
from ninetoothed import __main__ as command_line
from ninetoothed.backends.base import Plan
from ninetoothed.errors import ArgumentError, NineToothedError
from ninetoothed.launch import warm_up as warming
from ninetoothed.plugins import backend_for

torch = pytest.importorskip("torch")


@pytest.fixture
def planned(monkeypatch):
    """The kernels' names and sizes of what was planned ahead."""
    calls = []

    class Backend:
        def plan(self, kernel, call, values):
            assert values is None
            calls.append((kernel.name, *(a.shape for a in call.arguments.values()), call.constants))
            return Plan(print)

    monkeypatch.setattr(warming, "backend_for", lambda kind: Backend())
    return calls


def pair(*shape):
    return torch.ones(shape), torch.empty(shape)


def test_each_call_is_planned(planned):
    assert ninetoothed.warm_up(softmax.kernel, pair(3, 5), pair(2, 7)) == 2
    assert sorted(planned) == [("softmax", (2, 7), (2, 7), {}), ("softmax", (3, 5), (3, 5), {})]


def test_nothing_is_run():
    x, y = pair(3, 5)
    y[:] = torch.nan

    assert ninetoothed.warm_up(softmax.kernel, (x, y)) == 1
    assert y.isnan().all()


def test_what_is_no_call_is_an_error():
    x, y = pair(3, 5)
    for wrong in (
        lambda: ninetoothed.warm_up(softmax.kernel, x, y),
        lambda: ninetoothed.warm_up(x),
    ):
        with pytest.raises(ArgumentError, match="warm_up"):
            wrong()
    with pytest.raises(ArgumentError):
        ninetoothed.warm_up(softmax.kernel, (x,))


def test_what_a_process_called_is_listed_once_and_found_again(
    planned, monkeypatch, tmp_path, capsys
):
    path = tmp_path / "calls.jsonl"
    monkeypatch.setenv("NINETOOTHED_RECORD", str(path))
    softmax.kernel.forget_launches()
    add.kernel.forget_launches()
    x, y = pair(11)
    for _ in range(2):
        softmax.kernel(*pair(3, 11))
        add.kernel(x, x, y, BLOCK_SIZE=4)
        softmax.kernel.forget_launches()
    monkeypatch.delenv("NINETOOTHED_RECORD")

    assert len(path.read_text().splitlines()) == 2
    assert command_line.main(["warm-up", str(path)]) == 0
    assert capsys.readouterr().out == "2 calls are ready\n"
    assert sorted(planned) == [
        ("add", (11,), (11,), (11,), {"BLOCK_SIZE": 4}),
        ("softmax", (3, 11), (3, 11), {}),
    ]


def test_what_another_process_could_not_make_is_left_out(monkeypatch, tmp_path):
    path = tmp_path / "calls.jsonl"
    monkeypatch.setenv("NINETOOTHED_RECORD", str(path))
    kernel = ninetoothed.make(softmax.arrangement, softmax.application, softmax.tensors)
    kernel(*pair(3, 11))

    assert not path.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("nonsense", "line 1, is no recorded call"),
        ("[" * 200_000, "line 1, is no recorded call"),
        (b"\xff\xfe", "cannot be read: .*utf-8"),
        (json.dumps({"kernel": ["examples.softmax", "other"]}), "has no kernel other"),
        (json.dumps({"kernel": ["no.such.module", "kernel"]}), "module no.such.module"),
        (json.dumps({"kernel": ["examples.softmax", "kernel"]}), "is no recorded call"),
    ],
    ids=range(6),
)
def test_a_wrong_list_is_told_with_its_line(line, words, tmp_path, capsys):
    path = tmp_path / "calls.jsonl"
    path.write_bytes(line if isinstance(line, bytes) else line.encode())
    with pytest.raises(NineToothedError, match=words):
        warming.warm_up_from(path)

    assert command_line.main(["warm-up", str(tmp_path / "none")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_a_plan_of_the_numpy_backend_is_made():
    assert backend_for("cpu").name == "numpy"
    assert ninetoothed.warm_up(add.kernel) == 0
