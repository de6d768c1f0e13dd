"""The Triton driver on a real NVIDIA GPU, in a process that cannot import a framework.

Run it by hand: ``python tests/gpu/check_driver.py``. It prints a line a check and ends with status
1 if one failed. Memory comes from the CUDA driver itself.
"""

from __future__ import annotations

import ctypes
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

for _framework in ("torch", "paddle", "jax", "cupy"):
    sys.modules[_framework] = None  # type: ignore[assignment]
sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np  # noqa: E402

from ninetoothed.backends.triton.compiler.compile import compile_source  # noqa: E402
from ninetoothed.backends.triton.runtime import driver  # noqa: E402
from ninetoothed.backends.triton.runtime.device_api import runtime  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from ninetoothed.errors import DeviceError  # noqa: E402

SCALE = """import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, BLOCK: tl.constexpr, n, factor, big, flag):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    if flag:
        value = value * factor + big
    tl.store(y + offsets, value, mask=offsets < n)
"""

PRODUCT = """import triton
import triton.language as tl


@triton.jit
def product_kernel(a, b, c, size, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    program = tl.program_id(0)
    rows = (program // (size // N)) * M + tl.arange(0, M)
    columns = (program % (size // N)) * N + tl.arange(0, N)
    depths = tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, size, K):
        left = tl.load(a + rows[:, None] * size + (start + depths)[None, :])
        right = tl.load(b + (start + depths)[:, None] * size + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * size + columns[None, :], total)
"""

DESCRIPTOR = """import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, size, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE
    source = tl.make_tensor_descriptor(x, [size, size], [size, 1], [TILE, TILE])
    target = tl.make_tensor_descriptor(y, [size, size], [size, 1], [TILE, TILE])
    for column in range(0, size, TILE):
        target.store([row, column], source.load([row, column]))
"""

#: Addresses that are told to be multiples of so many bytes.
ALIGNED = {"x": 16, "y": 16}

CUDA = runtime("cuda")
LIBRARY = CUDA._library


def check(status: int) -> None:
    assert status == 0, f"CUDA error {status}"


@contextmanager
def memory(*arrays: np.ndarray) -> Iterator[list[int]]:
    """The arrays on device 0, as addresses."""
    addresses = [CUDA.allocate(max(array.nbytes, 1)) for array in arrays]
    try:
        for address, array in zip(addresses, arrays, strict=True):
            CUDA.copy_to_device(address, array.tobytes())
        yield addresses
    finally:
        for address in addresses:
            CUDA.free(address)


@contextmanager
def new_stream() -> Iterator[int]:
    handle = ctypes.c_void_p()
    # Non-blocking: nothing orders it with the default stream.
    check(LIBRARY.cuStreamCreate(ctypes.byref(handle), ctypes.c_uint(1)))
    try:
        yield handle.value or 0
    finally:
        check(LIBRARY.cuStreamDestroy_v2(handle))


def fetch(address: int, like: np.ndarray) -> np.ndarray:
    return np.frombuffer(CUDA.copy_to_host(address, like.nbytes), like.dtype).reshape(like.shape)


def target() -> Target:
    return Target.parse(("cuda", driver.device_limits(0).arch))


def scale(num_warps: int = 4, block: int = 1024) -> driver.Launchable:
    signature = {
        "x": "*fp32", "y": "*fp32", "BLOCK": "constexpr", "n": "i32", "factor": "fp32",
        "big": "i64", "flag": "i1",
    }  # fmt: skip
    compiled = compile_source(
        SCALE, "scale_kernel", signature, {"BLOCK": block}, ALIGNED, target(), num_warps
    )
    return driver.Launchable(compiled, 0)


def product(m: int, n: int, k: int, num_warps: int, num_stages: int) -> object:
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "size": "i32"}
    constants = {"M": m, "N": n, "K": k}
    return compile_source(
        PRODUCT,
        "product_kernel",
        {**signature, **dict.fromkeys(constants, "constexpr")},
        constants,
        dict.fromkeys(("a", "b", "c", "size"), 16),
        target(),
        num_warps,
        num_stages,
    )


def refusal(action: Callable[[], object]) -> str:
    try:
        action()
    except DeviceError as error:
        return str(error)
    raise AssertionError("no DeviceError")


def limits() -> str:
    found = driver.device_limits(0)
    assert found.warp_size == 32 and found.multiprocessors > 0 and found.arch >= 75
    assert found.shared_memory_per_block >= 49152 and found.l2_bytes > 0
    return str(found)


def launch() -> str:
    kernel = scale()
    x = np.arange(100_003, dtype=np.float32)
    with memory(x, np.zeros_like(x)) as (source, result):
        kernel.run(98, 0, source, result, x.size, 0.5, 1 << 20, True)
        CUDA.synchronize(0)
        assert np.array_equal(fetch(result, x), x * np.float32(0.5) + np.float32(1 << 20))
        kernel.run(98, 0, source, result, x.size, 0.5, 1 << 20, False)
        CUDA.synchronize(0)
        assert np.array_equal(fetch(result, x), x)
        kernel.run(0, 0, source, result, x.size, 0.5, 0, True)
        CUDA.synchronize(0)
    return f"registers {kernel.registers}, spills {kernel.spills}"


def streams() -> str:
    """The stream that is given is the one that is used: it alone is waited for."""
    kernel = scale()
    x = np.ones(1 << 24, np.float32)
    with memory(x, np.zeros_like(x)) as (a, b), new_stream() as first, new_stream() as second:
        event = ctypes.c_void_p()
        check(LIBRARY.cuEventCreate(ctypes.byref(event), ctypes.c_uint(2)))
        for _ in range(50):
            kernel.run(x.size // 1024, first, a, b, x.size, 1.0, 1, True)
            kernel.run(x.size // 1024, first, b, a, x.size, 1.0, 1, True)
        check(LIBRARY.cuEventRecord(event, ctypes.c_void_p(first)))
        idle = LIBRARY.cuStreamQuery(ctypes.c_void_p(second))
        busy = LIBRARY.cuStreamQuery(ctypes.c_void_p(first))
        CUDA.synchronize(first)
        assert idle == 0 and busy == 600, (idle, busy)
        assert fetch(a, x)[[0, -1]].tolist() == [101.0, 101.0]
        check(LIBRARY.cuEventDestroy_v2(event))
    return "the given stream was busy, another one idle"


def a_new_thread() -> str:
    """A thread with no context of its own can load and launch."""
    x = np.ones(1024, np.float32)
    failures: list[BaseException] = []
    with memory(x, np.zeros_like(x)) as (a, b):

        def work() -> None:
            try:
                kernel = scale()
                current = ctypes.c_void_p(1)
                check(LIBRARY.cuCtxGetCurrent(ctypes.byref(current)))
                assert current.value is None, "loading left a context behind"
                with CUDA.device(0):
                    kernel.run(1, 0, a, b, x.size, 2.0, 3, True)
                    CUDA.synchronize(0)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        if failures:
            raise failures[0]
        assert fetch(b, x)[7] == 5.0
    return "loaded and launched"


def a_product() -> str:
    size = 1024
    random = np.random.default_rng(0)
    a, b = (random.standard_normal((size, size)).astype(np.float16) for _ in range(2))
    kernel = driver.Launchable(product(128, 256, 64, 8, 3), 0)
    with memory(a, b, np.zeros((size, size), np.float32)) as (left, right, result):
        kernel.run((size // 128) * (size // 256), 0, left, right, result, size)
        CUDA.synchronize(0)
        found = fetch(result, np.zeros((size, size), np.float32))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.abs(found - expected).max())
    assert error < 1e-2, error
    return (
        f"largest error {error:.2e}; shared {kernel.shared_memory}, registers {kernel.registers}, "
        f"spills {kernel.spills}"
    )


def scratch() -> str:
    """Descriptors made on the device need global memory, given in the stream's order."""
    size, tile = 512, 64
    signature = {"x": "*fp16", "y": "*fp16", "size": "i32", "TILE": "constexpr"}
    aligned = dict.fromkeys(("x", "y", "size"), 16)
    kernel = driver.Launchable(
        compile_source(DESCRIPTOR, "copy_kernel", signature, {"TILE": tile}, aligned, target()), 0
    )
    # Whole numbers that float16 holds, no two rows alike.
    x = (np.arange(size * size) % 2039).reshape(size, size).astype(np.float16)
    with memory(x, np.zeros_like(x)) as (source, result), new_stream() as stream:
        for _ in range(20):
            kernel.run(size // tile, stream, source, result, size)
        CUDA.synchronize(stream)
        assert np.array_equal(fetch(result, x), x)
    return f"{kernel.scratch_size} bytes a program"


def too_large() -> str:
    message = refusal(lambda: driver.Launchable(product(256, 256, 128, 8, 4), 0))
    assert "A tile is too large for" in message
    return message


def too_many_warps() -> str:
    message = refusal(lambda: driver.Launchable(scale(num_warps=64, block=4096), 0))
    assert "num_warps=64" in message
    return message


def capture() -> str:
    with new_stream() as stream:
        assert not driver.is_capturing(stream) and not driver.is_capturing(0)
        kernel = scale()
        x = np.ones(1024, np.float32)
        with memory(x, np.zeros_like(x)) as (a, b):
            handle, graph, ready = ctypes.c_void_p(stream), ctypes.c_void_p(), ctypes.c_void_p()
            check(LIBRARY.cuStreamBeginCapture_v2(handle, ctypes.c_int(2)))
            assert driver.is_capturing(stream)
            kernel.run(1, stream, a, b, x.size, 2.0, 1, True)
            check(LIBRARY.cuStreamEndCapture(handle, ctypes.byref(graph)))
            assert not driver.is_capturing(stream) and fetch(b, x)[0] == 0.0
            check(
                LIBRARY.cuGraphInstantiateWithFlags(
                    ctypes.byref(ready), graph, ctypes.c_ulonglong(0)
                )
            )
            check(LIBRARY.cuGraphLaunch(ready, handle))
            CUDA.synchronize(stream)
            assert fetch(b, x)[0] == 3.0
    return "seen, and the graph ran"


def timing() -> str:
    kernel = scale()
    elements = 1 << 28
    a, b = (CUDA.allocate(4 * elements) for _ in range(2))
    try:
        milliseconds = driver.measure(
            lambda: kernel.run(elements // 1024, 0, a, b, elements, 1.0, 0, True), 0, 0
        )
    finally:
        CUDA.free(a)
        CUDA.free(b)
    rate = 8 * elements / milliseconds * 1e-9
    peak = driver.device_limits(0).memory_bandwidth / 1e12
    assert 0.3 * peak < rate < 1.05 * peak, (rate, peak)
    return f"{milliseconds:.4f} ms for 2 GiB, {rate:.2f} TB/s of {peak:.2f}"


def host_cost() -> str:
    kernel = scale()
    x = np.ones(1024, np.float32)
    with memory(x, np.zeros_like(x)) as (a, b):
        times = []
        for _ in range(20):
            CUDA.synchronize(0)
            start = time.perf_counter()
            for _ in range(200):
                kernel.run(1, 0, a, b, 1024, 1.0, 0, True)
            times.append((time.perf_counter() - start) / 200)
        CUDA.synchronize(0)
    return f"{1e6 * sorted(times)[len(times) // 2]:.2f} µs a launch"


def several_devices() -> str:
    count = CUDA.device_count()
    if count < 2:
        return f"not checked: it needs two devices, there is {count}"
    kernel = driver.Launchable(
        compile_source(
            SCALE,
            "scale_kernel",
            {"x": "*fp32", "y": "*fp32", "BLOCK": "constexpr", "n": "i32", "factor": "fp32",
             "big": "i64", "flag": "i1"},
            {"BLOCK": 1024},
            ALIGNED,
            Target.parse(("cuda", driver.device_limits(1).arch)),
        ),
        1,
    )  # fmt: skip
    x = np.ones(1024, np.float32)
    with CUDA.device(1), memory(x, np.zeros_like(x)) as (a, b):
        kernel.run(1, 0, a, b, x.size, 2.0, 3, True)
        CUDA.synchronize(0)
        assert fetch(b, x)[7] == 5.0
    return "launched on the second device"


CHECKS = [
    limits, launch, streams, a_new_thread, a_product, scratch, too_large, too_many_warps, capture,
    timing, host_cost, several_devices,
]  # fmt: skip


def is_failing(check: Callable[[], object]) -> bool:
    try:
        print(f"ok    {check.__name__}: {check()}", flush=True)
    except BaseException:
        print(f"FAIL  {check.__name__}\n{traceback.format_exc()}", flush=True)
        return True
    return False


def main() -> int:
    import triton

    print(f"python {sys.version.split()[0]}, triton {triton.__version__}, no framework")
    with CUDA.device(0):
        failed = sum(map(is_failing, CHECKS))
    loaded = [name for name in ("torch", "paddle", "jax", "cupy") if sys.modules.get(name)]
    failed += bool(loaded)
    print(f"{len(CHECKS)} checks, {failed} failed; frameworks imported: {loaded or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
