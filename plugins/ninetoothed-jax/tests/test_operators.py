"""`ninetoothed.op` on JAX's arrays: outputs, gradients, batches, compiled and sharded programs."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ninetoothed
from examples import fused_rms_norm, layer_norm, mm, rope, softmax
from ninetoothed import Tensor, like
from ninetoothed.errors import ArgumentError

jax = pytest.importorskip("jax", reason="needs JAX")

import jax.numpy as jnp  # noqa: E402

NUMBERS = itertools.count()
ROOT = Path(__file__).parents[3]
LIKE = {"output": like("input")}
PRODUCT = {"output": ((mm.tensors[0].shape[0], mm.tensors[1].shape[1]), "input")}


def made(kernel, outputs, **options):
    name = f"jax_tests::{kernel.name}_{next(NUMBERS)}"
    return ninetoothed.op(name, kernel, outputs, **{"backward": "derive", **options})


def random(*shape):
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), jnp.float32)


def close(found, wanted):
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-4, atol=1e-5)


def normalized(x, weight, bias):
    centered = x - x.mean(-1, keepdims=True)
    return centered / jnp.sqrt((centered**2).mean(-1, keepdims=True) + 1e-5) * weight + bias


@pytest.fixture(scope="module")
def product():
    return made(mm.kernel, PRODUCT)


@pytest.fixture(scope="module")
def normal():
    operator = made(layer_norm.kernel, LIKE)
    return lambda *given: operator(*given, 1e-5)


def test_it_makes_its_output(product):
    x, y = random(5, 7), random(7, 3)

    close(product(x, y), x @ y)
    close(jax.jit(product)(x, y), x @ y)


@pytest.mark.parametrize("is_compiled", [False, True])
def test_gradients(product, normal, is_compiled):
    wrap = jax.jit if is_compiled else lambda function: function
    x, y, weight, bias = random(5, 7), random(7, 3), random(7), random(7)

    def loss(product, normal):
        return lambda x, y, weight, bias: jnp.sin(product(normal(x, weight, bias), y)).sum()

    found = wrap(jax.grad(loss(product, normal), (0, 1, 2, 3)))(x, y, weight, bias)

    wanted = jax.grad(loss(jnp.matmul, normalized), (0, 1, 2, 3))(x, y, weight, bias)
    for one, other in zip(found, wanted):
        close(one, other)


def test_a_gradient_of_a_gradient():
    operator = made(softmax.kernel, LIKE)
    x = random(3, 5)

    def twice(function):
        slope = jax.grad(lambda x: jnp.sin(function(x)).sum())
        return jax.grad(lambda x: (slope(x) ** 2).sum())

    close(twice(operator)(x), twice(lambda x: jax.nn.softmax(x, -1))(x))


@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0), (1, 2)])
def test_a_batch(product, in_axes):
    shapes = ((5, 7), (7, 3))
    x, y = (
        random(*shape) if axis is None else random(*shape[:axis], 4, *shape[axis:])
        for axis, shape in zip(in_axes, shapes)
    )

    text = str(jax.make_jaxpr(jax.vmap(product, in_axes))(x, y))

    close(jax.vmap(product, in_axes)(x, y), jax.vmap(jnp.matmul, in_axes)(x, y))
    assert text.count("ffi_call[") == 1 and "scan" not in text


def test_gradients_of_a_batch_and_batches_of_gradients(normal):
    x, weight, bias = random(4, 5, 9), random(9), random(4, 9)
    axes = (0, None, 0)

    def of_batch(function):
        batch = jax.vmap(function, axes)
        return jax.grad(lambda *given: jnp.sin(batch(*given)).sum(), (0, 1, 2))

    def each(function):
        return jax.vmap(jax.grad(lambda *given: jnp.sin(function(*given)).sum(), (0, 1, 2)), axes)

    for made in (of_batch, each):
        for one, other in zip(made(normal)(x, weight, bias), made(normalized)(x, weight, bias)):
            close(one, other)


def test_what_counts_elements_is_run_one_by_one():
    def numbered(input, output):
        output = input + output.offsets()

    def arrangement(*tensors):
        return tuple(tensor.tile((16,)) for tensor in tensors)

    kernel = ninetoothed.make(arrangement, numbered, (Tensor(1), Tensor(1)))
    operator = made(kernel, LIKE, backward=None)
    x = random(3, 20)

    close(jax.vmap(operator)(x), x + jnp.arange(20))


def test_integers_and_tables_have_no_gradient():
    operator = made(rope.kernel, LIKE, wrt=("input",))
    x, sin, cos = random(2, 5, 4, 8), random(5, 4), random(5, 4)

    of_x, of_sin = jax.grad(lambda x, sin: operator(x, sin, cos).sum(), (0, 1))(x, sin)

    assert of_x.shape == x.shape and not of_sin.any()


def test_a_number_may_be_traced():
    operator = made(fused_rms_norm.kernel, LIKE)
    x, weight = random(3, 5), random(5)

    found = jax.jit(lambda x, eps: operator(x, weight, eps))(x, jnp.float32(0.5))

    close(found, x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 0.5) * weight)


def test_a_wrong_number_of_gradients_is_named():
    operator = made(softmax.kernel, LIKE, backward=lambda gradient: (gradient, gradient))

    with pytest.raises(ArgumentError, match="gave 2 gradients, and there are 1"):
        jax.grad(lambda x: operator(x).sum())(random(3, 5))


def test_a_program_on_two_devices():
    """Each device has a part of the rows; weights are on both, and their gradients are summed."""
    assert on_two_devices("sharded_program.py").split() == ["2", "right"]


@pytest.fixture(scope="module")
def partitioned():
    """What the program prints, by its cases."""
    lines = on_two_devices("partitioned_program.py").splitlines()
    return dict(line.split(": ") for line in lines)


@pytest.mark.parametrize(
    ("case", "printed"),
    [
        ("product by rows", "gathered 0, added up 0, divided ['halves']"),
        ("product by columns", "gathered 0, added up 0, divided [None, 'halves']"),
        ("product by sums", "gathered 0, added up 1, divided []"),
        ("product by whole", "gathered 0, added up 0, divided []"),
        ("gradients of a product", "gathered 0, added up 1, divided ['halves']"),
        ("norm, number", "gathered 0, added up 0, divided ['halves']"),
        ("norm, array", "gathered 0, added up 0, divided ['halves']"),
        # A row is needed whole.
        ("norm by columns", "gathered 1, added up 0, divided []"),
        ("gradient of softmax", "gathered 0, added up 0, divided ['halves']"),
        ("batch", "gathered 0, added up 0, divided ['halves']"),
        ("elements", "gathered 0, added up 0, divided ['halves']"),
    ],
)
def test_a_jitted_program_divides_as_accesses_say(partitioned, case, printed):
    """The program compares values; here it is told what devices exchange."""
    assert partitioned[case] == printed


def on_two_devices(program):
    """What a program prints."""
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name(program))],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
            "XLA_FLAGS": "--xla_force_host_platform_device_count=2",
            "JAX_PLATFORMS": "cpu",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def scaled(x, s, z):
    z = x * s  # noqa: F841


def scaling(**options):
    kernel = ninetoothed.make(
        lambda x, s, z: (x.tile((4,)), s, z.tile((4,))), scaled, (Tensor(1), Tensor(0), Tensor(1))
    )
    return made(kernel, {"z": like("x")}, **options)


@pytest.mark.parametrize("number", [2.0, jnp.float32(2.0)])
def test_a_gradient_of_a_number_is_refused(number):
    operator, x = scaling(), random(5)

    close(jax.grad(lambda x: operator(x, number).sum())(x), jnp.full(5, 2.0))
    close(jax.jit(jax.grad(lambda x, s: operator(x, s).sum()))(x, number), jnp.full(5, 2.0))
    for argument in ((0, 1), 1):
        with pytest.raises(ArgumentError, match="`s` is a number of the kernel's, passed by value"):
            jax.grad(lambda x, s: operator(x, s).sum(), argument)(x, number)


def test_a_gradient_of_an_operator_without_backward_is_refused():
    operator, x = scaling(backward=None), random(5)

    close(jax.vmap(lambda x: operator(x, 2.0))(x[None]), 2 * x[None])
    with pytest.raises(ArgumentError, match="has no `backward`, and a gradient is asked of it"):
        jax.grad(lambda x: operator(x, 2.0).sum())(x)


def test_arguments_that_are_not_the_operators():
    operator, x = scaling(), random(5)

    for arguments in ((x,), (x, 1.0, x), (2.0, x)):
        with pytest.raises(ArgumentError, match="operator 'jax_tests::scaled"):
            operator(*arguments)
