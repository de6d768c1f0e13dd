"""PaddlePaddle on a real NVIDIA GPU, in a process that cannot import PyTorch.

Run it by hand, with a GPU build of Paddle installed: ``python tests/gpu/check_paddle.py``. It prints
a line a check and ends with status 1 if one failed. Results are compared on the host, in NumPy:
nothing here relies on Paddle's own arithmetic.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

for _framework in ("torch", "jax", "cupy"):
    sys.modules[_framework] = None  # type: ignore[assignment]
sys.path.insert(0, str(Path(__file__).parents[2]))
# Nothing that an earlier run compiled or tuned hides what happens here.
os.environ["NINETOOTHED_CACHE_DIR"] = tempfile.mkdtemp(prefix="ninetoothed-check-")

import numpy as np  # noqa: E402
import paddle  # noqa: E402

import ninetoothed  # noqa: E402
from ninetoothed import plugins  # noqa: E402
from ninetoothed.backends.base import Device  # noqa: E402
from ninetoothed.backends.triton.backend import TritonBackend  # noqa: E402
from ninetoothed.backends.triton.runtime.device_api import runtime  # noqa: E402
from ninetoothed.errors import NineToothedError  # noqa: E402
from ninetoothed.testing import failures  # noqa: E402
from tests.frontends.kits import PaddleGpuKit  # noqa: E402
from tests.frontends.paper_kernels import PAPER_KERNELS, relative_error  # noqa: E402

#: How far a result may lie from the float64 reference, relative to its largest element.
ALLOWED = {"float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}

#: cuStreamQuery's answers.
DONE, BUSY = 0, 600

CUDA = runtime("cuda")
KIT = PaddleGpuKit()

_planned: list[tuple[Any, Any]] = []
_plan = TritonBackend.plan


def _noted_plan(backend: TritonBackend, kernel: Any, call: Any, values: Any = None) -> Any:
    plan = _plan(backend, kernel, call, values)
    _planned.append((kernel.name, plan.details.get("config")))
    return plan


TritonBackend.plan = _noted_plan  # type: ignore[method-assign]


@contextmanager
def tuning(effort: str) -> Iterator[None]:
    os.environ["NINETOOTHED_TUNE"] = effort
    yield


_STREAMS: list[Any] = []


@contextmanager
def second_stream() -> Iterator[int]:
    """Makes a new stream of Paddle's current; gives its handle as Paddle tells it."""
    stream = paddle.device.Stream(KIT.place)
    # Its handle is asked about afterwards too.
    _STREAMS.append(stream)
    with paddle.device.stream_guard(stream):
        yield stream._as_parameter_.value or 0


def state_of(stream: int) -> int:
    return CUDA._library.cuStreamQuery(ctypes.c_void_p(stream))


def versions() -> str:
    frontend = plugins.frontend_named("paddle")
    tensor = KIT.tensor((2, 3))
    device = frontend.device_of(frontend.evaluate("device", tensor))
    assert device == Device("cuda", 0), device
    return f"paddle {paddle.__version__}, CUDA {paddle.version.cuda()}, {tensor.place}"


def reading() -> str:
    """Shape, strides and pointer of views; the place's key does not change from tensor to tensor."""
    frontend = plugins.frontend_named("paddle")
    base = KIT.tensor((6, 8))
    view = KIT.sliced(base, (slice(2, None), slice(1, None, 2)))
    turned = KIT.transposed(base)
    found = [frontend.evaluate(field, view) for field in ("shape", "strides")]
    assert found == [(4, 4), (8, 2)], found
    assert frontend.evaluate("pointer", view) - frontend.evaluate("pointer", base) == 4 * 17
    assert frontend.evaluate("strides", turned) == (1, 8)
    places = {frontend.evaluate("device", KIT.tensor((3,))) for _ in range(5)}
    assert len(places) == 1, places
    return f"shape {found[0]}, strides {found[1]}, 68 bytes in"


def ran(dtype: str) -> Iterator[tuple[str, float, float, str]]:
    """Each kernel: name, error, seconds of the first call, configuration."""
    numpy_dtype = getattr(ninetoothed, dtype).numpy
    for paper in PAPER_KERNELS:
        _planned.clear()
        launch, output, expected = paper.run(paper.large, numpy_dtype, KIT.made)
        start = time.perf_counter()
        launch()
        found = KIT.found(output, getattr(ninetoothed, dtype))
        seconds = time.perf_counter() - start
        config = ", ".join(str(config) for _, config in _planned) or "planned before"
        yield paper.name, relative_error(found, expected), seconds, config


def ten_kernels(dtype: str) -> str:
    wrong = []
    for name, error, seconds, config in ran(dtype):
        is_right = error <= ALLOWED[dtype]  # False for a NaN too
        wrong += [] if is_right else [name]
        verdict = "right" if is_right else "WRONG"
        print(
            f"        {name:<9} error {error:.1e}  {verdict}  {seconds:6.2f} s  {config}",
            flush=True,
        )
    assert not wrong, wrong
    return f"{len(PAPER_KERNELS)} kernels in {dtype}"


def ten_kernels_tuned_in_float16() -> str:
    with tuning("quick"):
        return ten_kernels("float16") + ", tuned, on Paddle's current stream"


def ten_kernels_in_float32() -> str:
    with tuning("none"):
        return ten_kernels("float32")


def ten_kernels_in_bfloat16() -> str:
    with tuning("none"):
        return ten_kernels("bfloat16")


def ten_kernels_on_a_second_stream() -> str:
    with tuning("none"), second_stream() as handle:
        frontend = plugins.frontend_named("paddle")
        assert frontend.current_stream(0) == handle, (frontend.current_stream(0), handle)
        return ten_kernels("float16") + f", on the stream {handle:#x}"


def streams_by_query() -> str:
    """After many launches the current stream is busy and every other one is idle."""
    frontend = plugins.frontend_named("paddle")
    default = frontend.current_stream(0)
    kernel = KIT.kernels["increment"]
    tensor = KIT.made(np.zeros(1 << 24, np.float32))
    with tuning("none"):
        kernel(tensor, BLOCK_SIZE=1024)
        paddle.device.synchronize()
        with second_stream() as handle:
            for _ in range(500):
                kernel(tensor, BLOCK_SIZE=1024)
            states = state_of(handle), state_of(default)
            assert states == (BUSY, DONE), f"second, default: {states}"
            assert int(KIT.found(tensor).min()) == int(KIT.found(tensor).max()) == 501
        for _ in range(500):
            kernel(tensor, BLOCK_SIZE=1024)
        states = state_of(handle), state_of(default)
        assert states == (DONE, BUSY), f"second, default: {states}"
        assert int(KIT.found(tensor).min()) == int(KIT.found(tensor).max()) == 1001
    return f"500 launches: {handle:#x} busy and {default:#x} idle in it, the other way round after"


def conformance() -> str:
    with tuning("none"):
        found = failures(PaddleGpuKit)
    if paddle.__version__.startswith("2.") and "tell the time" in found.get("test_event", ""):
        print(f"        not in Paddle 2: {found.pop('test_event')}", flush=True)
    for name, message in found.items():
        print(f"        {name}: {message}", flush=True)
    assert not found, f"{len(found)} checks failed"
    return f"{sum(name.startswith('test_') for name in dir(PaddleGpuKit))} checks of the kit"


def host_cost() -> str:
    """What a call costs the host, add on 1024 elements."""
    from examples import add

    tensors = [KIT.tensor((1024,)) for _ in range(3)]
    times = []
    for _ in range(20):
        paddle.device.synchronize()
        start = time.perf_counter()
        for _ in range(200):
            add.kernel(*tensors, BLOCK_SIZE=1024)
        times.append((time.perf_counter() - start) / 200)
    paddle.device.synchronize()
    return f"{1e6 * sorted(times)[len(times) // 2]:.2f} µs a launch"


def another_place_is_seen() -> str:
    """Tensors of the host, where calls like the last one would make no key."""
    from examples import add

    def tensors(place: Any) -> list[Any]:
        return [paddle.to_tensor(np.ones(1024, np.float16), place=place) for _ in range(3)]

    device = tensors(paddle.CUDAPlace(0))
    for elsewhere in (paddle.CPUPlace(), paddle.CUDAPinnedPlace()):
        for place, other in enumerate(tensors(elsewhere)):
            for _ in range(4):
                add.kernel(*device, BLOCK_SIZE=1024)
            mixed = [*device[:place], other, *device[place + 1 :]]
            try:
                add.kernel(*mixed, BLOCK_SIZE=1024)
            except NineToothedError:
                continue
            raise AssertionError(f"argument {place} on {elsewhere} was not seen")
    on_host = tensors(paddle.CPUPlace())
    for _ in range(3):
        for each in (on_host, device):
            add.kernel(*each, BLOCK_SIZE=1024)
            assert (each[2].numpy() == 2).all()
    return "on the CPU and pinned, each argument of three"


def several_devices() -> str:
    count = CUDA.device_count()
    if count < 2:
        return f"not checked: it needs two devices, there is {count}"
    second = paddle.CUDAPlace(1)
    arrays = [np.full(1000, value, np.float32) for value in (1, 2, 0)]
    tensors = [paddle.to_tensor(array, place=second) for array in arrays]
    from examples import add

    add.kernel(*tensors, BLOCK_SIZE=1024)
    paddle.device.synchronize("gpu:1")
    assert (tensors[2].numpy() == 3).all()
    return "launched on the second device while the first was current"


CHECKS = [
    versions, reading, ten_kernels_tuned_in_float16, ten_kernels_in_float32,
    ten_kernels_in_bfloat16, ten_kernels_on_a_second_stream, streams_by_query, conformance,
    another_place_is_seen, host_cost, several_devices,
]  # fmt: skip


def main() -> int:
    import triton

    print(f"python {sys.version.split()[0]}, triton {triton.__version__}, numpy {np.__version__}")
    print(f"on {CUDA.limits(0).name}, the import of torch blocked")
    paddle.device.set_device("gpu:0")
    failed = 0
    for check in CHECKS:
        try:
            print(f"ok    {check.__name__}: {check()}", flush=True)
        except BaseException:
            failed += 1
            print(f"FAIL  {check.__name__}\n{traceback.format_exc()}", flush=True)
    loaded = [name for name in sys.modules if name.split(".")[0] == "torch" and sys.modules[name]]
    failed += bool(loaded)
    print(f"{len(CHECKS)} checks, {failed} failed; of PyTorch imported: {loaded or 'nothing'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
