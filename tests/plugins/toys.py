"""Toy frontends, backends and plugins."""

from __future__ import annotations

import contextlib

from ninetoothed.backends.base import Backend, Device
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import CONTRACT_VERSION, hookimpl


class Toy:
    """A tensor of the toy framework."""


class Other:
    """A tensor of another framework."""


class ToyBackend(Backend):
    name = "toy_backend"
    device_kinds = ("toy",)

    def plan(self, kernel, call):
        raise NotImplementedError


def frontend(name="toy", type_=Toy, **changes):
    settings = {
        "name": name,
        "owns": owns_types((type_.__module__, type_.__qualname__)),
        "dtypes": lambda: {"f4": dtypes.float32},
        "device_of": lambda device: Device("toy", 0),
        "empty": lambda shape, dtype, device: Toy(),
        "device_guard": lambda index: contextlib.nullcontext(),
        "synchronize": lambda index: None,
    }
    return Frontend(**(settings | changes))


def plugin(frontends=(), backends=()):
    class Plugin:
        NINETOOTHED_CONTRACT = CONTRACT_VERSION

        @staticmethod
        @hookimpl
        def ninetoothed_frontends():
            return frontends

        @staticmethod
        @hookimpl
        def ninetoothed_backends():
            return backends

    return Plugin()
