"""JAX's arrays, which cannot be written to. JAX is imported only once an array of it has arrived.

The frontend takes over the launch: a call of a kernel becomes a custom call of XLA's, whose results
are new arrays. Within it the kernel is launched on XLA's own buffers; they have a frontend too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.base import Device
from ninetoothed.frontends.base import Frontend, owns_types
from ninetoothed.language import dtypes
from ninetoothed.plugins.hookspecs import hookimpl
from ninetoothed_jax.buffers import BUFFERS, KINDS, device_of, known_dtypes

if TYPE_CHECKING:
    from ninetoothed.kernels.operator import OperatorDefinition
    from ninetoothed.launch.kernel import Kernel

NINETOOTHED_CONTRACT = 1


def _device_of_array(array: Any) -> Any:
    return next(iter(array.devices()))


def _native_device(device: Device) -> Any:
    import jax

    platform = next(name for name, kind in KINDS.items() if kind == device.kind)
    devices = jax.local_devices(backend=platform)
    return next(each for each in devices if device_of(each) == device)


def _empty(shape: tuple[int, ...], dtype: dtypes.DType, device: Device) -> Any:
    import jax

    with jax.default_device(_native_device(device)):
        return jax.numpy.empty(shape, dtype.numpy)


def _device_guard(index: int) -> AbstractContextManager[Any]:
    """XLA has the device of a computation current itself."""
    return contextlib.nullcontext()


def _synchronize(index: int) -> None:
    """A device does what it is given in order, so the last of it is waited for."""
    import jax

    for device in jax.local_devices():
        if device_of(device).index == index:
            with jax.default_device(device):
                jax.numpy.zeros(()).block_until_ready()


def _contiguous_strides(array: Any) -> tuple[int, ...]:
    shape = array.shape
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))


def _namespace() -> Mapping[str, object]:
    return {"contiguous_strides": _contiguous_strides, "device_of_array": _device_of_array}


def _launch(kernel: Kernel) -> Callable[[Mapping[str, Any]], Any]:
    from ninetoothed_jax.launcher import Launcher

    return Launcher(kernel)


def _operator(definition: OperatorDefinition, functions: Callable[..., Any]) -> Any:
    from ninetoothed_jax.operators import registered

    return registered(definition, functions)


def _vmap(function: Callable[..., Any], in_dims: tuple[int | None, ...]) -> Callable[..., Any]:
    from ninetoothed_jax.operators import vmap

    return vmap(function, in_dims)


FRONTEND = Frontend(
    name="jax",
    # An array, what stands for one while JAX traces, and the description of an output.
    owns=owns_types(
        ("jaxlib._jax", "ArrayImpl"),
        ("jaxlib.xla_extension", "ArrayImpl"),
        ("jax._src.array", "ArrayImpl"),
        ("jax._src.core", "Tracer"),
        ("jax", "ShapeDtypeStruct"),
        ("jax._src.api", "ShapeDtypeStruct"),
        ("jax._src.core", "ShapeDtypeStruct"),
    ),
    dtypes=known_dtypes,
    device_of=device_of,
    empty=_empty,
    device_guard=_device_guard,
    synchronize=_synchronize,
    namespace=_namespace,
    strides="contiguous_strides({x})",
    pointer="{x}.unsafe_buffer_pointer()",
    device="device_of_array({x})",
    launch=_launch,
    operator=_operator,
    vmap=_vmap,
)


@hookimpl
def ninetoothed_frontends() -> Iterable[Frontend]:
    """JAX's arrays, and XLA's buffers within a custom call."""
    return (FRONTEND, BUFFERS)
