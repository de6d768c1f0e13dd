"""The paper's ten kernels on the arrays of each plugin that runs on the CPU."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

from ninetoothed import plugins
from tests.gpu.ten_kernels import TOLERANCE, InOut, Output, tasks

PLUGINS = Path(__file__).resolve().parents[2] / "plugins"
TASKS = {task.name: task for task in tasks()}


def registered(module_name, folder, name):
    """Registers a plugin from its sources while a module's tests run, unless it is installed."""
    if name in {listed.name for listed in plugins.listing()}:
        yield
        return
    sys.path.insert(0, str(PLUGINS / folder))
    module = importlib.import_module(module_name)
    plugins.register(module, name)
    yield
    plugins.unregister(module)
    sys.path.remove(str(PLUGINS / folder))


@pytest.fixture(scope="module")
def numpy_plugin():
    yield from registered("ninetoothed_numpy", "ninetoothed-numpy", "numpy-arrays")


@pytest.fixture(scope="module")
def jax_plugin():
    pytest.importorskip("jax", reason="needs JAX")
    yield from registered("ninetoothed_jax", "ninetoothed-jax", "jax")


@pytest.mark.usefixtures("numpy_plugin")
@pytest.mark.parametrize("name", TASKS)
def test_on_numpys_arrays(name):
    task, values, result = TASKS[name], [], None
    for argument in task.arguments:
        if isinstance(argument, Output):
            argument = result = np.full(argument.shape, np.nan, np.float16)
        elif isinstance(argument, InOut):
            argument = result = argument.value.copy()
        values.append(argument)
    assert task.kernel(*values, **task.constants) is None
    assert task.error_of(result) < TOLERANCE


@pytest.mark.usefixtures("jax_plugin")
@pytest.mark.parametrize("name", TASKS)
def test_on_jaxs_arrays(name):
    import jax
    import jax.numpy as jnp

    task, values = TASKS[name], []
    for argument in task.arguments:
        if isinstance(argument, Output):
            argument = jax.ShapeDtypeStruct(argument.shape, jnp.float16)
        elif isinstance(argument, InOut):
            argument = jnp.asarray(argument.value)
        elif isinstance(argument, np.ndarray):
            argument = jnp.asarray(argument)
        values.append(argument)
    result = task.kernel(*values, **task.constants)
    assert task.error_of(np.asarray(result)) < TOLERANCE
