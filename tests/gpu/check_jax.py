"""The ten kernels on JAX's arrays on a real GPU, in a process that cannot import PyTorch.

Run it by hand: ``python tests/gpu/check_jax.py``. It prints a line a check and ends with status 1
if one failed. JAX with its CUDA plugin and Triton are needed. With ``JAX_PLATFORMS=cpu`` the checks
that need no GPU run on the NumPy backend.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path
from typing import Any

for _framework in ("torch", "paddle", "cupy"):
    sys.modules[_framework] = None  # type: ignore[assignment]
_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "plugins" / "ninetoothed-jax")]
# Results of an earlier run would hide that the tuner works.
_CACHE = tempfile.TemporaryDirectory(prefix="ninetoothed-check-")
os.environ["NINETOOTHED_CACHE_DIR"] = _CACHE.name
# The tuner takes memory of its own.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402

from ninetoothed import plugins  # noqa: E402
from ninetoothed.errors import ArgumentError, ArrangementError  # noqa: E402
from tests.gpu.ten_kernels import TOLERANCE, InOut, Output, Task, tasks  # noqa: E402

IS_GPU = jax.default_backend() == "gpu"

#: The streams that custom calls were made on from Python, one for each.
STREAMS: list[int] = []


def arguments_of(task: Task, dtype: Any = jnp.float16) -> list[Any]:
    values: list[Any] = []
    for argument in task.arguments:
        if isinstance(argument, Output):
            values.append(jax.ShapeDtypeStruct(argument.shape, dtype))
        elif isinstance(argument, InOut):
            values.append(jnp.asarray(argument.value))
        elif isinstance(argument, np.ndarray):
            values.append(jnp.asarray(argument))
        else:
            values.append(argument)
    return values


def right(name: str, task: Task, result: Any) -> str:
    assert isinstance(result, jax.Array), f"{name}: {type(result)} came back"
    assert result.devices() == {jax.devices()[0]}, f"{name}: {result.devices()}"
    error = task.error_of(np.asarray(result))
    assert error < TOLERANCE, f"{name}: the largest error is {error:.2e} of the largest element"
    return f"{error:.1e}"


def busy(x: Any) -> Any:
    """Zero, after the device has worked for a while. Only to be called under jit."""
    size, count = (4096, 60) if IS_GPU else (64, 10)
    square = jnp.full((size, size), 1.0 / size, jnp.float32) + 0 * x.ravel()[0].astype(jnp.float32)
    result = jax.lax.fori_loop(0, count, lambda i, y: y @ square, square)
    return (result[0, 0] * 0).astype(x.dtype)


def one_kernel(task: Task) -> str:
    """Right and tuned outside of jit; and within, after work that takes the device long."""
    values = arguments_of(task)
    start = time.perf_counter()
    error = right("outside of jit", task, task.kernel(*values, **task.constants))
    spent = time.perf_counter() - start
    chosen = "no choice"
    if IS_GPU:
        measured = task.measured()
        assert measured > 1 or not task.is_tunable, "nothing was tuned"
        if task.is_tunable:
            chosen = f"{measured} configurations tried in {spent:.1f} s"

    places = [place for place, value in enumerate(values) if isinstance(value, jax.Array)]

    @jax.jit
    def function(*arrays: Any) -> Any:
        given = list(values)
        # What the kernel reads is there only once the long work has been done.
        nothing = busy(arrays[0])
        for place, array in zip(places, arrays, strict=True):
            given[place] = array + nothing
        return task.kernel(*given, **task.constants) + nothing

    arrays = [values[place] for place in places]
    right("under jit", task, function(*arrays))
    start = time.perf_counter()
    result = function(*arrays)
    dispatched = time.perf_counter() - start
    result.block_until_ready()
    done = time.perf_counter() - start
    ordered = right("under jit, again", task, result)
    for place, array in zip(places, arrays, strict=True):
        assert np.array_equal(np.asarray(array), np.asarray(arguments_of(task)[place])), (
            "an operand was overwritten"
        )
    return (
        f"error {error}; under jit {ordered}, given in {1e3 * dispatched:.1f} ms and done in "
        f"{1e3 * done:.1f} ms; {chosen}"
    )


def streams() -> str:
    """XLA's own stream, which nothing orders with the default one."""
    if not IS_GPU:
        return "not checked: it needs a GPU"
    assert STREAMS and 0 not in STREAMS, STREAMS
    return f"{len(set(STREAMS))} stream(s), none the default one"


def without_python() -> str:
    """What was launched once is launched from C, in programs and outside, by all threads."""
    if not IS_GPU:
        return "not checked: it needs a GPU"
    add = tasks()[0].kernel
    x = jnp.arange(1000, dtype=jnp.float32)
    output = jax.ShapeDtypeStruct(x.shape, x.dtype)

    @jax.jit
    def program(y: Any) -> Any:
        for _ in range(20):
            y = add(x, y, output, BLOCK_SIZE=1024)
        return y

    first = program(x), add(x, x, output, BLOCK_SIZE=1024)
    before = len(STREAMS)
    for _ in range(5):
        again = program(x + 1), add(x, x + 1, output, BLOCK_SIZE=1024)
    assert len(STREAMS) == before, f"Python was asked {len(STREAMS) - before} times"
    for result, expected in zip((*first, *again), (21 * x, 2 * x, 21 * x + 1, 2 * x + 1)):
        assert np.array_equal(np.asarray(result), np.asarray(expected))
    return f"{before} launches from Python until then, none of 105 after that"


def element_types() -> str:
    add = tasks()[0].kernel
    names = ("float16", "bfloat16", "float32", "int8", "int32", "uint8")
    for name in names:
        x = jnp.arange(100).astype(name)
        result = add(x, x, jax.ShapeDtypeStruct(x.shape, x.dtype), BLOCK_SIZE=1024)
        assert result.dtype == x.dtype
        assert np.array_equal(np.asarray(result), np.asarray(x + x)), name
    return ", ".join(names)


def scalars() -> str:
    """Numbers, arrays without dimensions, and traced ones."""
    task = next(task for task in tasks() if task.name == "addmm")
    z, x, y, beta, alpha, output = arguments_of(task)
    right("numbers", task, task.kernel(z, x, y, beta, alpha, output))
    right("arrays", task, task.kernel(z, x, y, jnp.float32(beta), jnp.float32(alpha), output))

    @jax.jit
    def function(beta: Any, alpha: Any) -> Any:
        return task.kernel(z, x, y, beta, alpha, output)

    right("traced", task, function(beta, alpha))
    return "as numbers, as arrays, and traced"


def threads() -> str:
    task = tasks()[0]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            values = arguments_of(task)
            for _ in range(50 if IS_GPU else 2):
                result = task.kernel(*values, **task.constants)
            right("in a thread", task, result)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return "8 threads"


def errors() -> str:
    add = tasks()[0].kernel
    x = jnp.zeros(2000, jnp.float16)
    output = jax.ShapeDtypeStruct(x.shape, x.dtype)
    for given, error in (
        ((x, output, output), ArgumentError),
        ((x, x[:5], output), ArrangementError),
        ((x, x.reshape(2, -1), output), ArgumentError),
        ((x.astype(jnp.complex64), x, output), ArgumentError),
    ):
        try:
            add(*given, BLOCK_SIZE=1024)
        except error:
            continue
        raise AssertionError(f"no {error.__name__}")
    return "typed, and before anything ran"


def host_cost() -> str:
    task = tasks()[0]
    x = jnp.zeros(1024, jnp.float16)
    output = jax.ShapeDtypeStruct(x.shape, x.dtype)
    count, times = (500 if IS_GPU else 5), []
    for _ in range(15):
        task.kernel(x, x, output, BLOCK_SIZE=1024).block_until_ready()
        start = time.perf_counter()
        for _ in range(count):
            result = task.kernel(x, x, output, BLOCK_SIZE=1024)
        times.append((time.perf_counter() - start) / count)
        result.block_until_ready()
    return f"{1e6 * sorted(times)[len(times) // 2]:.2f} µs a call"


def watch_streams() -> None:
    from ninetoothed_jax import launcher

    original = launcher._run_on

    def run_on(kind: str, invocation: Any) -> None:
        STREAMS.append(invocation.stream)
        original(kind, invocation)

    launcher._run_on = run_on


def main() -> int:
    device = jax.devices()[0]
    print(
        f"python {sys.version.split()[0]}, jax {jax.__version__}, numpy {np.__version__}, "
        f"{device.device_kind} ({device.platform})"
    )
    if "jax" not in {listed.name for listed in plugins.listing()}:
        import ninetoothed_jax

        plugins.register(ninetoothed_jax, "jax")
    watch_streams()
    checks = {task.name: lambda task=task: one_kernel(task) for task in tasks()}
    for function in (
        streams, without_python, element_types, scalars, threads, errors, host_cost,
    ):  # fmt: skip
        checks[function.__name__] = function
    failed = 0
    for name, check in checks.items():
        try:
            print(f"ok    {name}: {check()}", flush=True)
        except BaseException:
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
    loaded = [name for name in ("torch", "paddle", "cupy") if sys.modules.get(name)]
    failed += bool(loaded)
    print(f"{len(checks)} checks, {failed} failed; other frameworks imported: {loaded or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
