"""Run in a process of its own by test_driver.py: the driver against an AMD driver that is a fake."""

from __future__ import annotations

import ctypes
import os
import sys

for _framework in ("torch", "paddle", "cupy", "jax"):
    sys.modules[_framework] = None  # type: ignore[assignment]

from ninetoothed.backends.triton.compiler.compile import compile_source  # noqa: E402
from ninetoothed.backends.triton.runtime import driver  # noqa: E402
from ninetoothed.backends.triton.runtime.device_api import runtime  # noqa: E402
from ninetoothed.backends.triton.specialization.target import Target  # noqa: E402
from tests.triton.runtime.claims import Launch, tell  # noqa: E402

FAKE = ctypes.CDLL(os.environ["TRITON_LIBHIP_PATH"])

SOURCE = """import triton
import triton.language as tl


@triton.jit
def shift_kernel(x, BLOCK: tl.constexpr, n, amount):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    tl.store(x + offsets, value + amount, mask=offsets < n)
"""


def launchable(index: int) -> driver.Launchable:
    signature = {"x": "*fp32", "BLOCK": "constexpr", "n": "i32", "amount": "fp32"}
    target = Target.parse(("hip", "gfx942"))
    aligned = {"x": 16}
    compiled = compile_source(SOURCE, "shift_kernel", signature, {"BLOCK": 256}, aligned, target)
    return driver.Launchable(compiled, index)


def limits_are_read() -> None:
    limits = driver.device_limits(1, "hip")
    assert (limits.name, limits.arch, limits.warp_size) == ("Fake MI300X", "gfx942", 64)
    assert (limits.multiprocessors, limits.shared_memory_per_block) == (304, 65536)
    assert limits.capability == (0, 0)


def a_launch_hands_over_every_argument() -> None:
    kernel = launchable(1)
    sizes = (ctypes.c_uint * 16).in_dll(FAKE, "fake_sizes")
    sizes[:4] = 8, 4, 4, 8
    with runtime("hip").device(1):
        kernel.run(7, 99, 0x1234_5670, -5, 0.5)
    launch = Launch.in_dll(FAKE, "fake_launch")
    assert list(launch.grid) == [7, 1, 1] and list(launch.block) == [256, 1, 1]
    assert (launch.stream, launch.function, launch.context) == (99, 4711, 1)
    values = bytes((ctypes.c_uint8 * 128).in_dll(FAKE, "fake_values"))
    assert int.from_bytes(values[:8], "little") == 0x1234_5670
    assert int.from_bytes(values[8:12], "little", signed=True) == -5
    assert values[16:20] == bytes(ctypes.c_float(0.5)) and values[24:32] == bytes(8)


def loading_leaves_the_current_device_as_it_was() -> None:
    current = ctypes.c_int()
    for before in (0, 1):
        FAKE.hipSetDevice(before)
        launchable(1)
        FAKE.hipGetDevice(ctypes.byref(current))
        assert current.value == before


def a_measurement_leaves_nothing() -> None:
    before = ctypes.c_int.in_dll(FAKE, "fake_live").value
    assert driver.measure(lambda: None, 0, 0, backend="hip", budget_ms=2.0) == 0.5
    assert ctypes.c_int.in_dll(FAKE, "fake_live").value == before


def a_stream_that_runs_is_not_capturing() -> None:
    assert driver.is_capturing(0, "hip") is False


CLAIMS = [
    limits_are_read,
    a_launch_hands_over_every_argument,
    loading_leaves_the_current_device_as_it_was,
    a_measurement_leaves_nothing,
    a_stream_that_runs_is_not_capturing,
]


if __name__ == "__main__":
    tell(CLAIMS)
