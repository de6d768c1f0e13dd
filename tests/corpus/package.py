"""What the corpus uses of the package, in one file: the only one here that names its modules.

Whoever moves or renames something in the package changes this file and no other, and the stored
corpus stays as it is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.planning import choices
from ninetoothed.backends.triton.planning import space as choosing
from ninetoothed.backends.triton.planning.cost_features import Estimator
from ninetoothed.backends.triton.specialization.size_classes import general_call
from ninetoothed.backends.triton.translation import environment_of, specialize
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.call_types import as_given
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.launch.kernel import Kernel
from ninetoothed.launch.recorded_calls import definition_of
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.space import Config
from tests.tuning.machines import H200

__all__ = [
    "Call", "Config", "DEFAULTS", "DEVICES", "Kernel", "NineToothedError", "Specialized",
    "call_of", "config_of", "defined", "estimators", "general_call", "location_of", "offered", "ranked", "scalar_types",
    "specialize", "symbol_text", "tensor",
]  # fmt: skip

#: A device with neither descriptors nor marks of the cache's lines, and with wavefronts of 64.
MI300X = DeviceLimits(
    name="AMD Instinct MI300X",
    backend="hip",
    arch="gfx942",
    warp_size=64,
    multiprocessors=304,
    shared_memory_per_block=65536,
    shared_memory_per_multiprocessor=65536,
    l2_bytes=4194304,
    memory_bandwidth=5.3e12,
    clock_hz=2.1e9,
)

#: What is emitted for, by the name that the corpus has for it.
DEVICES = {"H200": H200, "MI300X": MI300X}

#: Each option's value where nothing is chosen.
DEFAULTS: dict[str, int] = choices.defaults()


def tensor(
    *shape: int, dtype: str = "float16", strides: tuple[int, ...] | None = None, alignment: int = 16
) -> Argument:
    """A tensor argument; row-major unless its strides are given."""
    if strides is None:
        strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
    return Argument(shape, strides, dtypes.by_name(dtype), alignment)


def call_of(
    arguments: Mapping[str, Argument],
    scalars: Mapping[str, str] | None = None,
    constants: Mapping[str, Any] | None = None,
    device: str = "H200",
) -> Call:
    """A call; ``scalars`` has the names of the element types of what is passed by value, scales if floats."""
    types = {name: dtypes.by_name(dtype) for name, dtype in (scalars or {}).items()}
    backend, scales = DEVICES[device].backend, (n for n in types if types[n].kind == "float")
    return Call(arguments, types, dict(constants or {}), Device(backend), scales=frozenset(scales))


def defined(kernel: Kernel, call: Call) -> Definition:
    """A kernel as a call gives it."""
    return as_given(definition_of(kernel, call), call)


def config_of(
    values: Mapping[str, int], num_warps: int, num_stages: int, chosen: Mapping[str, int]
) -> Config:
    """A configuration."""
    return Config(tuple(values.items()), num_warps, num_stages, tuple(chosen.items()))


@functools.cache
def _estimator(kernel: Kernel, number: int, device: str) -> Estimator:
    call = _CALLS[number]
    return Estimator(defined(kernel, call), call, DEVICES[device])


#: The calls that were estimated, by their addresses: they are kept, so that none is another's.
_CALLS: dict[int, Call] = {}


def estimators(kernel: Kernel, call: Call, device: str) -> Estimator:
    """The estimator of a call on a device; there is one for all configurations."""
    _CALLS[id(call)] = call
    return _estimator(kernel, id(call), device)


def scalar_types(kernel: Kernel, default: str = "float32") -> dict[str, str]:
    """For each parameter that is passed by value, the type that a Python float has there."""
    return {p.name: default for p in kernel.definition.parameters if p.kind == "scalar"}


def symbol_text(kernel: Kernel, symbol: Any) -> str:
    """A kernel's symbol, or what is computed from some, as text."""
    return str(kernel.names.get(symbol, symbol))


def location_of(location: Any) -> tuple[str, int, int | None, int | None]:
    """A place in the user's source: its file's name, line and columns."""
    file = str(location.file).replace("\\", "/").rpartition("/")[2]
    return file, location.line, location.column, location.end_column


def offered(kernel: Kernel, call: Call, values: Mapping[str, int], device: str) -> list[str]:
    """The sets of options that are tried for a call on a device, in order."""
    definition = defined(kernel, call)
    environment = environment_of(definition, call, config_of(values, 4, 3, {}))
    with _gluon():
        found = choices.choices(definition, call, environment, DEVICES[device], given={})
    return [" ".join(f"{name}={value}" for name, value in chosen) for chosen in found]


def ranked(kernel: Kernel, call: Call, device: str) -> list[str]:
    """All configurations that may be chosen for a call on a device, the most promising first."""
    definition = defined(kernel, call)
    with _gluon():
        return list(map(str, choosing.space_of(definition, call, DEVICES[device]).ranked))


class _gluon:
    """While it holds, rings of buffers are offered as with a Triton that has Gluon: to see whether it
    has, Triton would be imported."""

    def __enter__(self) -> None:
        self._asked, versions.has_gluon = versions.has_gluon, lambda: True

    def __exit__(self, *_: object) -> None:
        versions.has_gluon = self._asked
