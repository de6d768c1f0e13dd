"""Plugins that come, go or are exchanged while a first call is under way: the calls after it are right."""

import dataclasses

import numpy as np
import pytest

import ninetoothed
from ninetoothed import Tensor, plugins
from ninetoothed.errors import NineToothedError
from tests.launch.arrays import Numbered, Plugin, frontend, one_frontend


@pytest.fixture(autouse=True)
def clean():
    plugins.register(Plugin)
    yield
    plugins.unregister(Plugin)


def doubled(x, out):
    out = x * 2  # noqa: F841


def called(kernel, size):
    x, out = np.arange(size, dtype=np.float32), np.full(size, np.nan, np.float32)
    kernel(Numbered(x), Numbered(out))
    np.testing.assert_array_equal(out, 2 * x)


@pytest.mark.parametrize("field", ["device_of", "dtypes", "namespace", "device_guard"])
@pytest.mark.parametrize("change", ["exchanged", "gone and come", "another beside", "preferred"])
def test_the_calls_after_an_exchange_in_a_first_call_are_right(field, change):
    plain = frontend("numbered", Numbered)
    registered = []

    def register(made):
        registered.append(one_frontend(made))
        plugins.register(registered[-1])

    def disturb():
        if changes:
            return
        changes.append(change)
        if change == "preferred":
            plugins.prefer("numbered")
        elif change == "another beside":
            register(frontend("beside", type("Unknown", (), {})))
        else:
            plugins.unregister(registered.pop(0))
            register(plain if change == "exchanged" else disturbing)

    def disturbed(*arguments):
        disturb()
        return getattr(plain, field)(*arguments)

    changes = []
    disturbing = dataclasses.replace(plain, **{field: disturbed})
    register(disturbing)
    kernel = ninetoothed.make(
        lambda x, out: (x.tile((4,)), out.tile((4,))), doubled, (Tensor(1), Tensor(1))
    )
    try:
        try:
            called(kernel, 5)
        except NineToothedError as error:
            assert len(error.message) > 15
        for size in (5, 5, 7, 5):
            called(kernel, size)
    finally:
        for module in registered:
            plugins.unregister(module)
