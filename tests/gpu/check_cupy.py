"""The ten kernels on CuPy's arrays on a real GPU, in a process that cannot import PyTorch.

Run it by hand: ``python tests/gpu/check_cupy.py``. It prints a line a check and ends with status 1
if one failed. CuPy and Triton are needed.
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

for _framework in ("torch", "paddle", "jax"):
    sys.modules[_framework] = None  # type: ignore[assignment]
_ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(_ROOT), str(_ROOT / "plugins" / "ninetoothed-cupy")]
# Results of an earlier run would hide that the tuner works.
_CACHE = tempfile.TemporaryDirectory(prefix="ninetoothed-check-")
os.environ["NINETOOTHED_CACHE_DIR"] = _CACHE.name

import cupy  # noqa: E402
import numpy as np  # noqa: E402
import triton  # noqa: E402

from ninetoothed import plugins  # noqa: E402
from ninetoothed.errors import ArgumentError  # noqa: E402
from ninetoothed.language import dtypes  # noqa: E402
from tests.gpu.ten_kernels import TOLERANCE, InOut, Output, Task, tasks  # noqa: E402

#: Keeps one stream of the device busy for so many clock ticks.
SPIN = cupy.RawKernel(
    'extern "C" __global__ void spin(long long ticks) {'
    "  long long start = clock64(); while (clock64() - start < ticks) {} }",
    "spin",
)
TICKS = 200_000_000


def spin(ticks: int = TICKS) -> None:
    """The current stream is busy for about a tenth of a second."""
    SPIN((1,), (1,), (np.int64(ticks),))


class Arguments:
    """A task's arguments as CuPy's arrays, and where the result is."""

    def __init__(self, task: Task, dtype: Any = np.float16) -> None:
        self.task = task
        self.values: list[Any] = []
        #: The arrays that are read, with what is in them.
        self.inputs: list[tuple[cupy.ndarray, cupy.ndarray]] = []
        for argument in task.arguments:
            value = argument
            if isinstance(argument, Output):
                value = self.result = cupy.full(argument.shape, np.nan, dtype)
            elif isinstance(argument, InOut):
                value = self.result = cupy.asarray(argument.value)
                self.inputs.append((value, value.copy()))
            elif isinstance(argument, np.ndarray):
                value = cupy.asarray(argument)
                self.inputs.append((value, value.copy()))
            self.values.append(value)

    def call(self) -> None:
        self.task.kernel(*self.values, **self.task.constants)

    def clear(self) -> None:
        """Zeros for what is read: a launch that came too early would see them."""
        for array, _ in self.inputs:
            array.fill(0)
        cupy.cuda.Device().synchronize()

    def fill(self) -> None:
        for array, content in self.inputs:
            cupy.copyto(array, content)

    def error(self) -> float:
        return self.task.error_of(self.result.get())


def right(name: str, error: float) -> str:
    assert error < TOLERANCE, f"{name}: the largest error is {error:.2e} of the largest element"
    return f"{error:.1e}"


def one_kernel(task: Task) -> str:
    """Right, tuned, and ordered by a stream that is not the default one."""
    arguments = Arguments(task)
    start = time.perf_counter()
    arguments.call()
    error = right("the first call", arguments.error())
    spent = time.perf_counter() - start
    measured = task.measured()
    assert measured > 1 or not task.is_tunable, "nothing was tuned"

    stream = cupy.cuda.Stream(non_blocking=True)
    arguments.clear()
    with stream:
        spin()
        arguments.fill()
        arguments.call()
        # Nothing of this is on the default stream, and all of it waits for the busy kernel.
        assert not stream.done, "the busy kernel ended too early to show anything"
        assert cupy.cuda.Stream.null.done, "something was launched on the default stream"
    stream.synchronize()
    ordered = right("on a stream of its own", arguments.error())
    chosen = f"{measured} configurations tried in {spent:.1f} s" if task.is_tunable else "no choice"
    return f"error {error}; on another stream {ordered}; {chosen}"


def two_streams() -> str:
    """Two streams at once: each call is on the one that is current for it."""
    task = tasks()[0]
    first, second = Arguments(task), Arguments(task)
    first.call()
    streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
    cupy.cuda.Device().synchronize()
    with streams[0]:
        spin()
        first.call()
    with streams[1]:
        second.call()
    streams[1].synchronize()
    assert not streams[0].done, "the second stream waited for the first"
    right("the second stream", second.error())
    streams[0].synchronize()
    right("the first stream", first.error())
    return "the second was done while the first was busy"


def threads() -> str:
    """A current stream is a thread's own."""
    task = tasks()[0]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with cupy.cuda.Stream(non_blocking=True) as stream:
                arguments = Arguments(task)
                for _ in range(100):
                    arguments.call()
                stream.synchronize()
                right("in a thread", arguments.error())
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failures:
        raise failures[0]
    return "8 threads, 100 calls each"


def element_types() -> str:
    """Every element type that CuPy can make arrays of."""
    found, missing = [], []
    for name in ("float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"):
        dtype = dtypes.by_name(name).numpy
        try:
            cupy.empty(3, dtype)
        except (TypeError, ValueError, NotImplementedError):
            missing.append(name)
            continue
        random = np.random.default_rng(0)
        x, y = (random.standard_normal(1000).astype(dtype) for _ in range(2))
        output = cupy.asarray(np.zeros(1000, dtype))
        tasks()[0].kernel(cupy.asarray(x), cupy.asarray(y), output, BLOCK_SIZE=1024)
        wide = x.astype(np.float64) + y.astype(np.float64)
        error = np.abs(output.get().astype(np.float64) - wide).max()
        assert error < 0.5, (name, error)
        found.append(name)
    return f"{', '.join(found)}; CuPy has no arrays of: {', '.join(missing) or 'none'}"


def views() -> str:
    """Strides in elements: transposed, sliced and reversed arrays."""
    base = cupy.asarray(np.random.default_rng(0).standard_normal((64, 96)).astype(np.float32))
    add = tasks()[0].kernel
    for view in (base[3], base[:, 5], base[5, ::3], base.T[7, 1::2], base[9, ::-1], base[:0, 0]):
        output = cupy.zeros(view.shape, view.dtype)
        add(view, view, output, BLOCK_SIZE=32)
        assert np.array_equal(output.get(), 2 * view.get()), view.strides
    return "six of them"


def refusal() -> str:
    x = cupy.zeros(10, np.complex64)
    try:
        tasks()[0].kernel(x, x, x, BLOCK_SIZE=32)
    except ArgumentError as error:
        return error.message.splitlines()[0]
    raise AssertionError("an array of complex numbers was taken")


def host_cost() -> str:
    arguments = Arguments(tasks()[0])
    arguments.call()
    times = []
    for _ in range(15):
        cupy.cuda.Device().synchronize()
        start = time.perf_counter()
        for _ in range(500):
            arguments.call()
        times.append((time.perf_counter() - start) / 500)
    return f"{1e6 * sorted(times)[len(times) // 2]:.2f} µs a call"


def main() -> int:
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(
        f"python {sys.version.split()[0]}, cupy {cupy.__version__}, triton {triton.__version__}, "
        f"numpy {np.__version__}, {device}"
    )
    if "cupy" not in {listed.name for listed in plugins.listing()}:
        import ninetoothed_cupy

        plugins.register(ninetoothed_cupy, "cupy")
    checks = {task.name: lambda task=task: one_kernel(task) for task in tasks()}
    for function in (two_streams, threads, element_types, views, refusal, host_cost):
        checks[function.__name__] = function
    failed = 0
    for name, check in checks.items():
        try:
            print(f"ok    {name}: {check()}", flush=True)
        except BaseException:
            failed += 1
            print(f"FAIL  {name}\n{traceback.format_exc()}", flush=True)
    loaded = [name for name in ("torch", "paddle", "jax") if sys.modules.get(name)]
    failed += bool(loaded)
    print(f"{len(checks)} checks, {failed} failed; other frameworks imported: {loaded or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
