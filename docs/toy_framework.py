"""A framework that nobody knows, and its frontend: docs/write-a-frontend.md in one file."""

import ctypes
import math

TYPES = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "uint8": ctypes.c_uint8,
}


class Array:
    """An array of the toy framework: sizes, steps between elements, a start within some memory."""

    def __init__(self, sizes, kind, memory=None, start=0, steps=None):
        self.sizes, self.kind, self.start = tuple(sizes), kind, start
        self.width = ctypes.sizeof(TYPES[kind])
        self.memory = memory or (ctypes.c_char * max(math.prod(sizes) * self.width, 1))()
        self.steps = steps or tuple(math.prod(sizes[d + 1 :]) for d in range(len(sizes)))

    def address(self):
        return ctypes.addressof(self.memory) + self.start * self.width

    def number(self, *place):
        distance = sum(index * step for index, step in zip(place, self.steps))
        return TYPES[self.kind].from_address(self.address() + distance * self.width).value

    def swapped(self):
        sizes, steps = self.sizes[::-1], self.steps[::-1]
        return Array(sizes, self.kind, self.memory, self.start, steps)

    @staticmethod
    def of(numbers, kind="float32"):
        array = Array((len(numbers),), kind)
        array.memory[:] = bytes((TYPES[kind] * len(numbers))(*numbers))
        return array


# The frontend.

import contextlib

from ninetoothed.backends.base import Device
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl

NINETOOTHED_CONTRACT = 1


def known_types():
    return {kind: dtypes.by_name(kind) for kind in TYPES}


def empty(shape, dtype, device):
    return Array(shape, dtype.name)


FRONTEND = Frontend(
    name="toy",
    owns=owns_types((__name__, "Array")),
    # Expressions: each launch function has them inlined.
    shape="{x}.sizes",
    strides="{x}.steps",
    pointer="{x}.address()",
    dtype="{x}.kind",
    device="place_of({x})",
    item="{x}.number()",
    # The names that they use besides the tensor.
    namespace=lambda: {"place_of": lambda array: "here"},
    # Functions: asked for a new kind of call, never in a launch.
    dtypes=known_types,
    device_of=lambda place: Device("cpu"),
    empty=empty,
    device_guard=lambda index: contextlib.nullcontext(),
    synchronize=lambda index: None,
)


@hookimpl
def ninetoothed_frontends():
    return (FRONTEND,)
