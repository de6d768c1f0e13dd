"""What the claims of driver_script.py share: a CUDA driver that is a fake, sources, and what it was given."""

from __future__ import annotations

import ctypes

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.errors import DeviceError
from ninetoothed.language import dtypes
from ninetoothed.tuning.space import Config
from tests.triton.runtime.claims import Launch

FAKE = ctypes.CDLL("libcuda.so.1")

SOURCE = """import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, BLOCK: tl.constexpr, n, factor, big, half, flag):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets + big, mask=offsets < n).to(tl.float32)
    if flag:
        value = value * factor + half
    tl.store(x + offsets + big, value, mask=offsets < n)
"""

PRODUCT = """import triton
import triton.language as tl


@triton.jit
def product_kernel(a, b, c, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    at = i[:, None] * SIZE + i[None, :]
    total = tl.zeros((SIZE, SIZE), tl.float32)
    for k in range(4):
        total += tl.dot(tl.load(a + at + k), tl.load(b + at + k))
    tl.store(c + at, total)
"""

DESCRIPTOR = """import triton
import triton.language as tl


@triton.jit
def copy_kernel(x, y, SIZE: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [SIZE, SIZE], [SIZE, 1], [64, 64])
    target = tl.make_tensor_descriptor(y, [SIZE, SIZE], [SIZE, 1], [64, 64])
    target.store([0, 0], source.load([0, 0]))
"""


class Map(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint),
        ("replaced", ctypes.c_uint),
        ("rank", ctypes.c_uint),
        ("boxes", ctypes.c_uint * 5),
        ("address", ctypes.c_uint64),
        ("sizes", ctypes.c_uint64 * 5),
        ("strides", ctypes.c_uint64 * 4),
    )


def launched() -> Launch:
    return Launch.in_dll(FAKE, "fake_launch")


def set_fake(name: str, value: int) -> None:
    ctypes.c_int.in_dll(FAKE, name).value = value


def values(*sizes: int) -> list[bytes]:
    found = (ctypes.c_uint8 * 128).in_dll(FAKE, "fake_values")
    return [bytes(found[8 * i : 8 * i + size]) for i, size in enumerate(sizes)]


def expect_sizes(*sizes: int) -> None:
    ctypes.memmove(
        (ctypes.c_uint * 16).in_dll(FAKE, "fake_sizes"), (ctypes.c_uint * 16)(*sizes), 64
    )


def scale(num_warps: int = 4):
    signature = {
        "x": "*fp16", "BLOCK": "constexpr", "n": "i32", "factor": "fp32", "big": "i64",
        "half": "fp16", "flag": "i1",
    }  # fmt: skip
    target = Target.parse(("cuda", 90))
    divisors = {"x": 16}
    return compile_source(
        SOURCE, "scale_kernel", signature, {"BLOCK": 256}, divisors, target, num_warps
    )


def refusal(action) -> str:
    try:
        action()
    except DeviceError as error:
        return str(error)
    raise AssertionError("no DeviceError")


def matrices(rows: int = 1024) -> tuple[Call, Config]:
    """A product of (rows, 96) and (96, 512), row-major, and a configuration by descriptor."""
    shapes = {"input": (rows, 96), "other": (96, 512), "output": (rows, 512)}
    arguments = {
        name: Argument(shape, (shape[1], 1), dtypes.float16) for name, shape in shapes.items()
    }
    values = (("BLOCK_SIZE_M", 64), ("BLOCK_SIZE_N", 32), ("BLOCK_SIZE_K", 32))
    options = (("descriptors", 1), ("persistent", 1))
    return Call(arguments, device=Device("cuda", 0)), Config(values, 4, 2, options)
