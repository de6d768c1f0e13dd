"""The launch path makes no plugin call, and asks no frontend what its expressions say already."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter

import pytest

import ninetoothed
from ninetoothed import Symbol, Tensor, plugins
from tests.plugins.test_ten_kernels import registered as registering

torch = pytest.importorskip("torch", reason="needs PyTorch")

LAUNCHES = 1000

registered = contextlib.contextmanager(registering)


def make():
    BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)

    def arrangement(x, factor, y):
        return x.tile((BLOCK_SIZE,)), factor, y.tile((BLOCK_SIZE,))

    def application(x, factor, y):
        y = x * factor

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))


def calls_during(function) -> Counter:
    """How often the functions of each module were called while ``function`` ran."""
    counter: Counter = Counter()

    def seen(frame, event, argument):
        if event == "call":
            counter[frame.f_globals.get("__name__", "").split(".")[0]] += 1
            counter[frame.f_globals.get("__name__", "")] += 1

    sys.setprofile(seen)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counter


@pytest.fixture
def launch():
    # Empty tensors: all of the launch is made but the kernel's own work.
    kernel, x, y = make(), torch.ones(0), torch.empty(0)
    # The first call plans; what guards its plan is made when it serves a second one in turn.
    for _ in range(3):
        kernel(x, 2.0, y, BLOCK_SIZE=4)

    def launch():
        for _ in range(LAUNCHES):
            kernel(x, 2.0, y, BLOCK_SIZE=4)

    return launch


def test_nothing_of_pluggy_the_manager_or_a_frontend_runs_in_a_thousand_launches(launch) -> None:
    calls = calls_during(launch)
    assert calls["ninetoothed.launch.generate"] >= LAUNCHES, "the launches were not seen"
    asked = {
        name: count
        for name, count in calls.items()
        if name.startswith(("pluggy", "ninetoothed.plugins", "ninetoothed.frontends"))
    }
    assert asked == {}


def test_the_counting_sees_hooks_where_they_are_called() -> None:
    manager = plugins.PluginManager(group=None)
    calls = calls_during(manager.frontends)
    assert calls["pluggy"] > 0
    assert calls["ninetoothed.plugins.manager"] > 0


def test_nothing_of_pluggy_or_the_manager_runs_where_a_frontend_takes_over_the_launch() -> None:
    jax = pytest.importorskip("jax", reason="needs JAX")
    with registered("ninetoothed_jax", "ninetoothed-jax", "jax"):
        kernel, x = make(), jax.numpy.ones(8)
        output = jax.ShapeDtypeStruct(x.shape, x.dtype)

        def launch():
            for _ in range(100):
                kernel(x, 2.0, output, BLOCK_SIZE=4).block_until_ready()

        launch()
        calls = calls_during(launch)
    assert calls["ninetoothed_jax.launcher"] >= 100, "the launches were not seen"
    asked = {n: c for n, c in calls.items() if n.startswith(("pluggy", "ninetoothed.plugins"))}
    assert asked == {}
