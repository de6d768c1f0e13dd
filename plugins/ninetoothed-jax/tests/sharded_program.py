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
    """Compares values and gradients with those of one device."""
    operator = ninetoothed.op(
        "jax_tests::sharded", layer_norm.kernel, {"output": like("input")}, backward="derive"
    )
    mesh = Mesh(np.array(jax.devices()), ("rows",))
    x, weight, bias = (
        jax.random.normal(jax.random.key(n), s) for n, s in enumerate([(8, 5), (5,), (5,)])
    )
    rows, whole = PartitionSpec("rows"), PartitionSpec()
    sharded = jax.shard_map(
        lambda *given: operator(*given, 1e-5),
        mesh=mesh,
        in_specs=(rows, whole, whole),
        out_specs=rows,
        check_vma=False,
    )

    def both(function):
        def loss(*given):
            return jnp.sin(function(*given)).sum()

        return jax.jit(jax.value_and_grad(loss, (0, 1, 2)))(x, weight, bias)

    found, wanted = both(sharded), both(lambda *given: operator(*given, 1e-5))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, wanted)
    print(len(jax.devices()), "right")


main()
