"""Jitted operators on arrays that two devices have halves of; prints what was gathered and added up by case."""

from __future__ import annotations

import importlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ninetoothed
from examples import layer_norm, mm, softmax, swiglu
from ninetoothed import like, plugins

if "jax" not in {listed.name for listed in plugins.listing()}:
    plugins.register(importlib.import_module("ninetoothed_jax"), "jax")

MESH = Mesh(np.array(jax.devices()), ("halves",))
ROWS, COLUMNS, WHOLE = PartitionSpec("halves"), PartitionSpec(None, "halves"), PartitionSpec()


def made(kernel, outputs, **options):
    return ninetoothed.op(f"jax_tests::{kernel.name}_divided", kernel, outputs, **options)


def random(*shape):
    return jax.random.normal(jax.random.key(len(shape)), shape)


def tell(name, function, arrays, specs):
    """Compares a function of arrays in halves with that of the whole, and prints what devices exchange."""
    divided = [jax.device_put(a, NamedSharding(MESH, s)) for a, s in zip(arrays, specs)]
    compiled = jax.jit(function).lower(*divided).compile()
    found, wanted = compiled(*divided), jax.jit(function)(*arrays)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, wanted)
    text = compiled.as_text()
    counts = [sum(f" {word}(" in line for line in text.splitlines()) for word in WORDS]
    spec = jax.tree.leaves(found)[0].sharding.spec
    print(f"{name}: gathered {counts[0]}, added up {counts[1]}, divided {[*spec]}")


WORDS = "all-gather", "all-reduce"


def main():
    """All cases."""
    shape = (mm.tensors[0].shape[0], mm.tensors[1].shape[1])
    product = made(mm.kernel, {"output": (shape, "input")}, backward="derive")
    factors = random(8, 6), random(6, 4) * 2
    for name, specs in (
        ("rows", (ROWS, WHOLE)),
        ("columns", (WHOLE, COLUMNS)),
        ("sums", (COLUMNS, ROWS)),
        ("whole", (WHOLE, WHOLE)),
    ):
        tell(f"product by {name}", product, factors, specs)
    tell(
        "gradients of a product",
        jax.grad(lambda a, b: jnp.sin(product(a, b)).sum(), (0, 1)),
        factors,
        (ROWS, WHOLE),
    )
    normal = made(layer_norm.kernel, {"output": like("input")}, backward="derive")
    vectors = random(8, 6), random(6), random(6)
    for name, eps in (("number", 1e-5), ("array", jnp.float32(1e-5))):
        specs = (ROWS, WHOLE, WHOLE)
        tell(f"norm, {name}", lambda *a, e=eps: normal(*a, e), vectors, specs)
    tell("norm by columns", lambda *a: normal(*a, 1e-5), vectors, (COLUMNS, WHOLE, WHOLE))

    def loss(x):
        return jnp.sin(rows(x)).sum()

    rows = made(softmax.kernel, {"output": like("input")}, backward="derive")
    tell("gradient of softmax", jax.grad(loss), (random(8, 6),), (ROWS,))
    batch = jax.vmap(rows)
    tell("batch", batch, (random(4, 8, 6),), (ROWS,))
    gated = made(swiglu.kernel, {"output": like("input")}, constants={"BLOCK_SIZE": 4})
    tell("elements", gated, (random(8), random(8) + 1), (ROWS, ROWS))


main()
