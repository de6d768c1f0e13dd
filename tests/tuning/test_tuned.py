"""Tuning ahead, and the command that carries its results."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

import ninetoothed
from ninetoothed.__main__ import main
from ninetoothed.errors import ArgumentError, DeviceError, NineToothedError
from ninetoothed.launch.kernel import Kernel
from ninetoothed.tuning.results import Results, Subject
from ninetoothed.tuning.space import Config, Tuned


def arrangement(input, output):
    return input.tile((8,)), output.tile((8,))


def application(input, output):
    output = input + 1  # noqa: F841


@pytest.fixture
def kernel() -> Kernel:
    return ninetoothed.make(arrangement, application, (ninetoothed.Tensor(1),) * 2)


class Backend:
    """A backend that searches for nothing and says what it was asked."""

    def tune(self, kernel, call, values, effort):
        self.asked = (kernel.name, call.arguments["input"].shape, len(values), effort.name)
        config = Config((), 4, 3)
        return Tuned(kernel.name, "a device", config, {config: 0.5})


def test_nothing_is_chosen_on_the_cpu(kernel) -> None:
    pytest.importorskip("torch")
    import torch

    with pytest.raises(DeviceError, match="cannot be tuned for cpu tensors.*tensors on a GPU"):
        ninetoothed.tune(kernel, torch.zeros(9), torch.zeros(9))


def test_a_backend_is_asked_once_and_plans_are_made_anew(kernel, monkeypatch) -> None:
    torch = pytest.importorskip("torch")
    from ninetoothed import plugins

    output = torch.zeros(9)
    kernel(torch.zeros(9), output)
    before = kernel.launch_function(kernel.frontend_of({"input": output, "output": output}))
    backend = Backend()
    monkeypatch.setattr("ninetoothed.launch.tune.backend_for", lambda kind: backend)
    tuned = ninetoothed.tune(kernel, torch.zeros(9), output=output, effort="quick")
    monkeypatch.undo()

    assert backend.asked == ("test_tuned", (9,), 3, "quick") and tuned.milliseconds == 0.5
    assert kernel.launch_function(plugins.find_frontend(torch.Tensor)) is not before
    kernel(torch.zeros(9), output)
    assert numpy.array_equal(output.numpy(), numpy.ones(9))


@pytest.mark.parametrize(("effort", "message"), [("none", "searches for nothing"), ("ful", "full")])
def test_an_effort_that_is_none_is_an_error(kernel, effort, message) -> None:
    with pytest.raises(NineToothedError, match=message):
        ninetoothed.tune(kernel, effort=effort)


def test_arguments_are_checked_as_in_a_call(kernel) -> None:
    with pytest.raises(ArgumentError, match="missing: input, output"):
        ninetoothed.tune(kernel)


# The command.


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path / "cache"))
    results = Results("key", Subject("mm", "NVIDIA H200", "triton 3.6", "input 4096x4096 float16"))
    config = Config((("BLOCK_SIZE_M", 128),), 8, 3)
    results.record(config, 0.2)
    results.finish("quick", config)


def test_what_was_found_is_listed(found, capsys) -> None:
    assert main(["tuning", "list"]) == 0
    header, _, line = capsys.readouterr().out.splitlines()
    assert header.split() == "kernel device compiler arguments effort measured ms chosen".split()
    assert line.split()[0] == "mm" and "BLOCK_SIZE_M=128, num_warps=8, num_stages=3" in line

    assert main(["tuning", "list", "--json"]) == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry["device"] == "NVIDIA H200" and entry["milliseconds"] == 0.2


def test_what_was_chosen_and_not_measured_is_listed(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path / "cache"))
    Results("key", Subject("mm")).finish("none", Config((), 8, 3))
    assert main(["tuning", "list"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    assert line.split()[-5:] == ["none", "0", "-", "num_warps=8,", "num_stages=3"]


def test_results_are_carried_by_the_command(found, capsys, monkeypatch, tmp_path: Path) -> None:
    file = str(tmp_path / "tuning.json")
    assert main(["tuning", "export", file, "--device", "NVIDIA H200"]) == 0
    assert f"1 entry written to {file}" in capsys.readouterr().out

    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path / "other"))
    assert main(["tuning", "import", file]) == 0
    assert f"1 entry taken in from {file}" in capsys.readouterr().out
    assert Results("key").serve("quick")


def test_a_file_without_results_is_told(found, capsys, tmp_path: Path) -> None:
    assert main(["tuning", "import", str(tmp_path / "missing.json")]) == 1
    assert "missing.json cannot be read" in capsys.readouterr().err
