"""Layer normalisation of rows on two devices, by `jax.shard_map`; prints how many, and `right`."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import ninetoothed
from examples import layer_norm
from ninetoothed import like, plugins

if "jax" not in {listed.name for listed in plugins.listing()}:
    plugins.register(importlib.import_module("ninetoothed_jax"), "jax")


def main():
    """Compares values and gradients with those of one device, and what JAX checks of results with what it should."""
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    given = [jax.random.normal(jax.random.key(n), s) for n, s in enumerate([(8, 5), (5,), (5,)])]
    rows, whole = PartitionSpec("rows"), PartitionSpec()
    specs = {"mesh": mesh, "in_specs": (rows, whole, whole)}

    def operator(name, **options):
        made = ninetoothed.op(
            f"jax_tests::{name}", layer_norm.kernel, {"output": like("input")}, **options
        )
        return lambda *arrays: made(*arrays, 1e-5)

    def loss(function):
        return lambda *arrays: jnp.sin(function(*arrays)).sum()

    def check(found, wanted):
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, wanted
        )

    everything = operator("everything", backward="derive")
    of_weight = operator("of_weight", backward="derive", wrt=("weight",))
    wanted = jax.value_and_grad(loss(everything), (0, 1, 2))(*given)
    # What is the same on all devices: its gradient is the sum of what each has.
    of_devices = jax.shard_map(jax.grad(loss(of_weight), 1), **specs, out_specs=whole)
    for compiled in (jax.jit, lambda function: function):
        for checks in (False, True):
            divided = jax.shard_map(everything, **specs, out_specs=rows, check_vma=checks)
            check(compiled(jax.value_and_grad(loss(divided), (0, 1, 2)))(*given), wanted)
            divided = jax.shard_map(of_weight, **specs, out_specs=rows, check_vma=checks)
            check(compiled(jax.grad(loss(divided), 1))(*given), wanted[1][1])
        check(compiled(of_devices)(*given), wanted[1][1])
    try:
        jax.shard_map(everything, **specs, out_specs=whole)(*given)
    except ValueError as error:
        assert "replica" in str(error)
    else:
        raise AssertionError("rows that differ are taken for one another")
    print(len(jax.devices()), "right")


main()
