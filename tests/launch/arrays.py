"""A framework of NumPy arrays, its plugin, and a kernel to call with them."""

from __future__ import annotations

import contextlib

import numpy as np

import ninetoothed
from ninetoothed import Symbol, Tensor
from ninetoothed.backends.base import Device
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import CONTRACT_VERSION, hookimpl

B = Symbol("B", constexpr=True)


class _Held:
    def __init__(self, data, place="cpu"):
        self.data = np.asarray(data)
        self.place = place

    @property
    def shape(self):
        return self.data.shape

    def __repr__(self):
        return f"{type(self).__name__}({self.data.dtype}{list(self.shape)}, {self.place!r})"


class Array(_Held):
    """A tensor of a framework that there is not."""


class Numbered(_Held):
    """A tensor of one whose frontends come and go."""


class Other:
    """A tensor of another one."""

    shape = (5,)


def frontend(name, type_):
    return Frontend(
        name=name,
        owns=owns_types((type_.__module__, type_.__qualname__)),
        dtypes=lambda: {
            name: dtypes.by_name(name) for name in ("float32", "float64", "int32", "int64")
        },
        device_of=lambda place: Device(place, 0),
        empty=lambda shape, dtype, device: Array(np.empty(shape, dtype.numpy)),
        device_guard=lambda index: contextlib.nullcontext(),
        synchronize=lambda index: None,
        strides="tuple(stride // {x}.data.itemsize for stride in {x}.data.strides)",
        pointer="{x}.data.ctypes.data",
        dtype="{x}.data.dtype.name",
        device="{x}.place",
    )


class Plugin:
    NINETOOTHED_CONTRACT = CONTRACT_VERSION

    @staticmethod
    @hookimpl
    def ninetoothed_frontends():
        return (frontend("arrays", Array), frontend("others", Other))


def one_frontend(made):
    """A plugin of one frontend."""

    class OneFrontend:
        NINETOOTHED_CONTRACT = CONTRACT_VERSION

        @hookimpl
        def ninetoothed_frontends(self):
            return (made,)

    return OneFrontend()


class Nowhere(_Held):
    """A tensor whose memory may have been freed."""


def scaled(x, scale, flag, y):
    y = x * scale if flag else x  # noqa: F841


def make(application=scaled, tensors=None, size=B):
    tensors = tensors or (Tensor(1), Tensor(0), Tensor(0, constexpr=True), Tensor(1))

    def arrangement(*tensors):
        return tuple(t.tile((size,)) if t.ndim else t for t in tensors)

    return ninetoothed.make(arrangement, application, tensors)


def floats(count=5, dtype=np.float32):
    return Array(np.arange(count, dtype=dtype))


def called(kernel, x=None, scale=2.0, flag=True, block=4, of=Array):
    x = floats() if x is None else x
    y = of(np.zeros(x.shape, x.data.dtype))
    kernel(x, scale, flag, y, B=block)
    np.testing.assert_array_equal(y.data, x.data * scale if flag else x.data)
