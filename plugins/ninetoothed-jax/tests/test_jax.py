"""Kernels on JAX's arrays, where JAX makes them: through XLA's custom calls, in and out of jax.jit."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import ninetoothed
import ninetoothed.language as ntl
from ninetoothed import Symbol, Tensor, block_size, plugins
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError, ArrangementError
from ninetoothed.language import dtypes

jax = pytest.importorskip("jax", reason="needs JAX")

import jax.numpy as jnp  # noqa: E402

BLOCK_SIZE = Symbol("BLOCK_SIZE", constexpr=True)

#: Where JAX makes its arrays here.
DEVICE = Device("cuda" if jax.default_backend() == "gpu" else "cpu", 0)


def elementwise(application, count, block=BLOCK_SIZE):
    def arrangement(*tensors):
        return tuple(tensor.tile((block,)) for tensor in tensors)

    return ninetoothed.make(arrangement, application, tuple(Tensor(1) for _ in range(count)))


def like(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


@pytest.fixture(scope="module")
def add():
    def application(x, y, output):
        output = x + y

    return elementwise(application, 3)


@pytest.fixture(scope="module")
def accumulate():
    def application(x, output):
        output += x

    return elementwise(application, 2)


@pytest.fixture(scope="module")
def scale():
    def arrangement(x, factor, output):
        return x.tile((64,)), factor, output.tile((64,))

    def application(x, factor, output):
        output = x * factor

    return ninetoothed.make(arrangement, application, (Tensor(1), Tensor(0), Tensor(1)))


@pytest.fixture
def x():
    return jnp.arange(100, dtype=jnp.float32)


def test_the_output_comes_back_as_a_new_array(add, x):
    result = add(x, x, like(x), BLOCK_SIZE=32)
    assert isinstance(result, jax.Array)
    assert np.array_equal(result, 2 * np.arange(100))


def test_an_array_given_for_an_output_is_what_it_starts_as_and_is_left_as_it_was(accumulate, x):
    start = jnp.full_like(x, 7)
    result = accumulate(x, start, BLOCK_SIZE=32)
    assert np.array_equal(result, np.arange(100) + 7)
    assert np.array_equal(start, np.full(100, 7))


def test_one_array_may_be_operand_and_output(accumulate, x):
    assert np.array_equal(accumulate(x, x, BLOCK_SIZE=32), 2 * np.arange(100))
    assert np.array_equal(x, np.arange(100))


def test_several_outputs_come_back_in_the_order_of_the_parameters(x):
    def application(first, x, second):
        first = x + 1
        second = x * 2

    kernel = elementwise(application, 3)
    first, second = kernel(like(x), x, like(x), BLOCK_SIZE=32)
    assert np.array_equal(first, np.arange(100) + 1)
    assert np.array_equal(second, np.arange(100) * 2)


def test_under_jit_with_operations_of_jax_around_it(add, x):
    @jax.jit
    def function(x, y):
        return add(x * 2, jnp.sin(y), like(x), BLOCK_SIZE=32) + 1

    expected = np.arange(100) * 2 + np.sin(np.arange(100)) + 1
    assert np.allclose(function(x, x), expected, rtol=1e-5)


def test_under_jit_an_output_that_starts_as_an_array_leaves_it_be(accumulate, x):
    @jax.jit
    def function(x):
        return x, accumulate(x, x, BLOCK_SIZE=32), x + 1

    same, doubled, more = function(x)
    assert np.array_equal(same, np.arange(100))
    assert np.array_equal(doubled, 2 * np.arange(100))
    assert np.array_equal(more, np.arange(100) + 1)


def test_in_a_loop_of_jaxs(accumulate, x):
    result = jax.lax.fori_loop(0, 5, lambda i, y: accumulate(x, y, BLOCK_SIZE=32), x)
    assert np.array_equal(result, 6 * np.arange(100))


def test_under_vmap_it_runs_once_an_example(add):
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    result = jax.vmap(lambda row: add(row, row, like(row), BLOCK_SIZE=4))(x)
    assert np.array_equal(result, 2 * np.arange(12).reshape(3, 4))


def test_a_product_of_slices_and_transposes():
    def arrangement(input, other, output, M=block_size(), N=block_size()):
        return (
            input.tile((M, -1)).expand(
                (-1, output.shape[1] // N * 0 + other.tile((-1, N)).shape[1])
            ),
            other.tile((-1, N)).expand((input.tile((M, -1)).shape[0], -1)),
            output.tile((M, N)),
        )

    def application(input, other, output):
        output = ntl.dot(input, other)

    kernel = ninetoothed.make(arrangement, application, tuple(Tensor(2) for _ in range(3)))
    a = np.random.default_rng(0).standard_normal((40, 20)).astype(np.float32)
    x, y = jnp.asarray(a)[1:34], jnp.asarray(a)[:24, 3:].T
    result = kernel(x[:, :20], y[:, :20].T[:20, :17], jax.ShapeDtypeStruct((33, 17), x.dtype))
    expected = np.asarray(x[:, :20]) @ np.asarray(y[:, :20].T[:20, :17])
    assert np.allclose(result, expected, atol=1e-5)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32", "uint8", "int8"])
def test_element_types(accumulate, name):
    x = jnp.arange(40).astype(name)
    result = accumulate(x, x, BLOCK_SIZE=32)
    assert result.dtype == x.dtype
    assert np.array_equal(result.astype(jnp.float32), 2 * np.arange(40))


@pytest.mark.parametrize("factor", [2.5, 3, jnp.float32(2.5), jnp.int32(3)], ids=repr)
def test_a_scalar_is_a_number_or_an_array_without_dimensions(scale, x, factor):
    expected = np.arange(100) * np.float32(factor)
    assert np.allclose(scale(x, factor, like(x)), expected)


def test_a_scalar_may_be_traced_and_is_no_reason_to_compile_again(scale, x):
    traces = []

    @jax.jit
    def function(x, factor):
        traces.append(factor)
        return scale(x, factor, like(x))

    for factor in (2.0, 3.0, 4.5):
        assert np.allclose(function(x, factor), np.arange(100) * factor)
    assert len(traces) == 1


def test_a_scalar_with_dimensions_is_refused(scale, x):
    with pytest.raises(ArgumentError, match=r"`factor` is passed by value.*shape \(100,\)"):
        scale(x, x, like(x))


def test_empty_arrays_launch_nothing(add):
    x = jnp.zeros(0)
    assert add(x, x, like(x), BLOCK_SIZE=32).shape == (0,)


def test_only_an_output_may_be_described(add, x):
    with pytest.raises(
        ArgumentError, match="`y` is only read.*The kernel writes to: output"
    ) as raised:
        add(x, like(x), like(x), BLOCK_SIZE=32)
    assert raised.value.location.file == __file__


def test_shapes_that_do_not_fit_are_told_before_anything_runs(add, x):
    with pytest.raises(ArrangementError, match=r"x: \(4,\).*y: \(1,\)|y: \(1,\)") as raised:
        add(x, x[:5], like(x), BLOCK_SIZE=32)
    assert raised.value.location.file == __file__
    with pytest.raises(ArrangementError, match=r"y: \(1,\)"):
        jax.jit(lambda x: add(x, x[:5], like(x), BLOCK_SIZE=32))(x)


def test_a_constant_that_cannot_be_hashed_is_named(add, x):
    with pytest.raises(ArgumentError, match="`BLOCK_SIZE` is a compile-time constant"):
        add(x, x, like(x), BLOCK_SIZE=[32])


@pytest.mark.skipif(DEVICE.kind != "cpu", reason="what is planned when it is launched: the CPU's")
def test_an_error_within_the_custom_call_comes_out_as_it_was(monkeypatch, x):
    def application(x, output):
        output = x

    kernel = elementwise(application, 2)
    backend = plugins.backend_for(DEVICE.kind)
    original = backend.plan

    def plan(kernel, call, values=None):
        # The values are given where it is planned for a launch, not where it is only checked.
        if values is not None:
            raise ArgumentError("told from within")
        return original(kernel, call)

    monkeypatch.setattr(backend, "plan", plan)
    with pytest.raises(ArgumentError, match="told from within"):
        kernel(x, like(x), BLOCK_SIZE=32)


def test_arrays_of_two_frameworks_are_refused_naming_both(add, x):
    with pytest.raises(ArgumentError, match="tensor of jax and `y` one of numpy"):
        add(x, np.arange(100, dtype=np.float32), like(x), BLOCK_SIZE=32)


def test_calls_from_several_threads(add, x):
    failures = []

    def work(number):
        try:
            for _ in range(20):
                result = add(x, x + number, like(x), BLOCK_SIZE=32)
                assert np.array_equal(result, 2 * np.arange(100) + number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


@pytest.mark.skipif(DEVICE.kind != "cpu", reason="the addresses are NumPy's")
def test_a_plan_serves_all_addresses_of_one_alignment(add):
    """XLA's buffers are aligned; what runs there does not rely on it."""
    from ninetoothed_jax.ffi import Invocation
    from ninetoothed_jax.launcher import _calls

    x = jnp.arange(72, dtype=jnp.float32)
    add(x, x, like(x), BLOCK_SIZE=8)
    call = _calls[max(_calls)]
    for start in (0, 4, 1, 5, 8, 3):
        memory = np.arange(100, dtype=np.float32)
        offset = start + (-memory.ctypes.data % 16) // 4
        first, output = memory[offset:][:72], np.empty(72, np.float32)
        operands = [first.ctypes.data, memory.ctypes.data]
        call.run("cpu", Invocation(call.identity, operands, [output.ctypes.data], 0, 0))
        assert np.array_equal(output, first + memory[:72])
    assert 2 <= len(call.plans) <= 4


def test_a_kernel_may_be_called_with_one_framework_after_another(add, x):
    array = np.arange(100, dtype=np.float32)
    output = np.empty_like(array)
    for _ in range(2):
        assert add(array, array, output, BLOCK_SIZE=32) is None
        assert np.array_equal(output, add(x, x, like(x), BLOCK_SIZE=32))


def test_a_kernel_made_for_jax_takes_nothing_else(x):
    def arrangement(x, output):
        return x.tile((64,)), output.tile((64,))

    def application(x, output):
        output = x

    kernel = ninetoothed.make(arrangement, application, (Tensor(1), Tensor(1)), caller="jax")
    assert np.array_equal(kernel(x, like(x)), x)
    with pytest.raises(ArgumentError, match="caller='jax', but got tensors of numpy"):
        kernel(np.zeros(3, np.float32), np.zeros(3, np.float32))


def test_the_frontend_reads_an_array(x):
    frontend = plugins.frontend_of(type(x))
    y = jnp.zeros((2, 3, 4), jnp.bfloat16)
    assert frontend.name == "jax"
    assert tuple(frontend.evaluate("shape", y)) == (2, 3, 4)
    assert frontend.evaluate("strides", y) == (12, 4, 1)
    assert frontend.dtype_of(frontend.evaluate("dtype", y)) is dtypes.bfloat16
    assert frontend.device_of(frontend.evaluate("device", y)) == DEVICE
    empty = frontend.empty((2, 3), dtypes.float16, DEVICE)
    assert (empty.shape, empty.dtype) == ((2, 3), jnp.float16)


def test_the_plugin_imports_no_jax_until_an_array_arrives():
    script = (
        "import sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "import ninetoothed_jax\n"
        "from ninetoothed import plugins\n"
        "if 'jax' not in {listed.name for listed in plugins.listing()}:\n"
        "    plugins.register(ninetoothed_jax, 'jax')\n"
        "plugins.find_frontend(list)\n"
        "print(sorted({'jax', 'numpy', 'torch'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.parametrize("is_donated", [False, True])
@pytest.mark.parametrize("is_known", [False, True])
def test_an_array_that_was_deleted_is_refused_by_name(is_donated, is_known):
    def double(x, out):
        out = x * 2  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, out: (x.tile((4,)), out.tile((4,))), double, (Tensor(1), Tensor(1))
    )
    out = jax.ShapeDtypeStruct((6,), jnp.float32)
    if is_known:
        kernel(jnp.ones(6), out)
    x = jnp.ones(6) + 0
    if is_donated:
        jax.jit(lambda array: array + 1, donate_argnums=0)(x)
    else:
        x.delete()

    with pytest.raises(ArgumentError, match="`x` has no memory: it was deleted, or donated"):
        kernel(x, out)
    assert kernel(jnp.ones(6), out).tolist() == [2.0] * 6


def test_a_derivative_through_a_plain_call_is_refused_by_name(x):
    def double(x, out):
        out = x * 2  # noqa: F841

    kernel = ninetoothed.make(
        lambda x, out: (x.tile((4,)), out.tile((4,))), double, (Tensor(1), Tensor(1))
    )

    with pytest.raises(ArgumentError, match="asked for a derivative.*ninetoothed.op"):
        jax.grad(lambda x: kernel(x, jnp.zeros(6)).sum())(jnp.ones(6))


def test_what_a_symbol_decides_against_may_be_none(x):
    """Inside of `jax.jit` as well."""

    def application(x, other, out):
        if BLOCK_SIZE == 64:
            out = x + other
        else:
            out = x  # noqa: F841

    kernel = elementwise(application, 3)
    for run in (kernel, jax.jit(lambda *given: kernel(*given, BLOCK_SIZE=32))):
        given = {} if run is not kernel else {"BLOCK_SIZE": 32}
        np.testing.assert_array_equal(run(x, None, jnp.zeros_like(x), **given), x)
    np.testing.assert_array_equal(kernel(x, x, jnp.zeros_like(x), BLOCK_SIZE=64), x + x)
    with pytest.raises(ArgumentError, match="`other` must be a tensor, not builtins.NoneType"):
        kernel(x, None, jnp.zeros_like(x), BLOCK_SIZE=64)
