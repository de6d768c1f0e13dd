"""What a first kernel needs beside its own code is made while it is planned, and made once."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

pytest.importorskip("triton")

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.planning import planner as planning
from ninetoothed.backends.triton.runtime import ready
from ninetoothed.backends.triton.runtime.ready import Ahead
from ninetoothed.language import dtypes
from tests.golden.kernels import TEN
from tests.tuning.machines import H200


def test_it_is_made_once_in_another_thread_and_waited_for() -> None:
    made, may_end = [], threading.Event()

    def make() -> None:
        may_end.wait(10)
        made.append(threading.current_thread())

    ahead = Ahead(make)
    ahead.wait()
    ahead.begin()
    ahead.begin()
    assert not made
    may_end.set()
    ahead.wait()
    assert len(made) == 1 and made[0] is not threading.current_thread()


def test_an_error_is_that_of_whoever_needs_it() -> None:
    def fails() -> None:
        raise RuntimeError("no compiler")

    ahead = Ahead(fails)
    ahead.begin()
    ahead.wait()


def test_a_first_plan_begins_before_it_ranks_and_waits_before_it_compiles_and_loads(
    monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    order: list[str] = []

    class Launchable:
        scratch_size, resident, index, backend, bind = 0, 264, 0, "cuda", None
        names = {"launch": print}

        def __init__(self, compiled, index) -> None:
            order.append("load")

        def call(self, programs: str, stream: str, arguments: list[str]) -> str:
            return "launch()"

        def describing(self, name):
            return print

    def noting(what: str, inner=lambda *given: None):
        return lambda *given, **keywords: (order.append(what), inner(*given))[1]

    monkeypatch.setenv("NINETOOTHED_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("NINETOOTHED_TUNE", "none")
    monkeypatch.setattr(planning.driver, "device_limits", lambda *_: H200)
    monkeypatch.setattr(planning.driver, "Launchable", Launchable)
    monkeypatch.setattr(planning, "runtime", lambda _: SimpleNamespace(device_count=lambda: 1))
    monkeypatch.setattr(planning, "compiled_for", noting("compile"))
    monkeypatch.setattr(planning.choosing, "space_of", noting("rank", planning.choosing.space_of))
    monkeypatch.setattr(ready, "begin", noting("begin"))
    monkeypatch.setattr(ready.COMPILER, "wait", noting("wait for the compiler"))
    monkeypatch.setattr(ready.LAUNCHERS["cuda"], "wait", noting("wait for the launcher"))
    nothing = SimpleNamespace(get=lambda key: None, put=lambda key, code: None)
    monkeypatch.setattr(planning.binaries, "Binaries", lambda: nothing)

    shapes = {"input": (512, 512), "other": (512, 512), "output": (512, 512)}
    arguments = {n: Argument(shape, (512, 1), dtypes.float16) for n, shape in shapes.items()}
    kernel = TEN["mm"].specializations.of({})
    planning.Planner(kernel, Call(arguments, device=Device("cuda", 0))).plan(None)

    assert order[:7] == [
        "begin",
        "rank",
        "begin",  # where nothing was ranked
        "wait for the compiler",
        "compile",
        "wait for the launcher",
        "load",
    ]
