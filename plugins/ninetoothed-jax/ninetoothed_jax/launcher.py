"""A kernel's calls with JAX's arrays: each is a custom call within a computation of XLA's.

Parameters that the kernel writes to are outputs. What is given for one is either the array that it
starts as (it is left as it was), or a `jax.ShapeDtypeStruct` where nothing is read from it.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy

from ninetoothed import plugins
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError
from ninetoothed.written import written
from ninetoothed_jax.buffers import BUFFERS, CURRENT, Buffer
from ninetoothed_jax.ffi import Invocation, handler

if TYPE_CHECKING:
    from ninetoothed.kernel import Kernel

_TARGET = "ninetoothed_launch"

_identities = itertools.count(1)

#: All custom calls by their attribute. Compiled computations refer to them, so none ever goes.
_calls: dict[int, _Call] = {}


class Launcher:
    """Takes the calls of one kernel; see `ninetoothed.frontends.base.Frontend.launch`."""

    def __init__(self, kernel: Kernel) -> None:
        _register()
        self._kernel = kernel
        self._written = written(kernel.program)
        kinds = {parameter.name: parameter.kind for parameter in kernel.call_parameters}
        self._kinds = {name: kinds.get(name, "symbol") for name in kernel.call_names}
        self._computations: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, bound: Mapping[str, Any]) -> Any:
        """The outputs: None, one array, or a tuple in the order of the parameters."""
        key: list[Any] = []
        operands = []
        for name, kind in self._kinds.items():
            value = bound[name]
            if _is_operand(kind, value):
                operands.append(value)
                key += (True, value.shape, value.dtype)
            elif kind == "tensor":
                key += (False, value.shape, value.dtype)
            else:
                key += (type(value), value)
        call, compute = self._computation(tuple(key), bound)
        try:
            results = compute(*operands)
        except Exception as error:
            # XLA tells of an error in a custom call by its text only.
            own, call.error = call.error, None
            raise own or error from None
        if len(results) == 1:
            return results[0]
        return results or None

    def _computation(self, key: Any, bound: Mapping[str, Any]) -> Any:
        """The custom call for this key, and the compiled function of the operands that makes it."""
        try:
            found = self._computations.get(key)
        except TypeError:
            raise self._unhashable(bound) from None
        if found is not None:
            return found
        call = self._new_call(bound)
        call.check()
        with self._lock:
            if key not in self._computations:
                _calls[call.identity] = call
                self._computations[key] = (call, jax.jit(call.compute))
            return self._computations[key]

    def _new_call(self, bound: Mapping[str, Any]) -> _Call:
        operands = [name for name, kind in self._kinds.items() if _is_operand(kind, bound[name])]
        for name in self._kinds:
            self._check(name, bound[name], name in operands)
        return _Call(
            self._kernel,
            {
                n: bound[n]
                for n, kind in self._kinds.items()
                if n not in operands and kind != "tensor"
            },
            {n: _description(bound[n]) for n, kind in self._kinds.items() if kind == "tensor"},
            {n: bound[n].dtype for n in operands if self._kinds[n] == "scalar"},
            tuple(operands),
            tuple(name for name in self._kinds if name in self._written),
        )

    def _check(self, name: str, value: Any, is_operand: bool) -> None:
        subject = f"kernel `{self._kernel.name}`: `{name}`"
        if self._kinds[name] == "scalar" and is_operand and value.ndim:
            raise ArgumentError(
                f"{subject} is passed by value and must be a number or an array of no dimensions, "
                f"got shape {value.shape}"
            )
        if self._kinds[name] == "tensor" and not is_operand and name not in self._written:
            raise ArgumentError(
                f"{subject} is only read, so it must be an array; a jax.ShapeDtypeStruct stands "
                f"for an output. The kernel writes to: {', '.join(sorted(self._written)) or 'none'}"
            )

    def _unhashable(self, bound: Mapping[str, Any]) -> ArgumentError:
        for name, kind in self._kinds.items():
            try:
                hash(None if kind == "tensor" else bound[name])
            except TypeError:
                return ArgumentError(
                    f"kernel `{self._kernel.name}`: `{name}` is a compile-time constant and must "
                    f"be hashable, got {bound[name]!r}"
                )
        return ArgumentError(f"kernel `{self._kernel.name}`: an argument cannot be hashed")


def _is_operand(kind: str, value: Any) -> bool:
    """Whether an argument is an array that a computation is given."""
    if kind == "tensor":
        return not isinstance(value, jax.ShapeDtypeStruct)
    return kind == "scalar" and isinstance(value, jax.Array)


@dataclass
class _Call:
    """A custom call: a kernel, and what each of its arguments is.

    Attributes:
        fixed: the arguments whose values are known.
        tensors: the arguments that are buffers, described.
        scalars: the element types of those that are passed by value and known only when it runs.
        operands, outputs: the names of the buffers that XLA gives.
        error: what was raised when it ran, until it is told.
    """

    kernel: Kernel
    fixed: Mapping[str, Any]
    tensors: Mapping[str, Buffer]
    scalars: Mapping[str, numpy.dtype]
    operands: tuple[str, ...]
    outputs: tuple[str, ...]
    identity: int = field(default_factory=lambda: next(_identities))
    error: BaseException | None = None

    def check(self) -> None:
        """Raises what a launch would raise for these shapes on any device."""
        zeros = {name: dtype.type(0).item() for name, dtype in self.scalars.items()}
        call = self.kernel.call_of(**self.fixed, **self.tensors, **zeros)
        # Nothing is run: it is asked for the sake of its checks of the sizes.
        plugins.backend_for("cpu").plan(self.kernel, call)

    def compute(self, *operands: Any) -> tuple[Any, ...]:
        """The outputs, as JAX traces it."""
        results = tuple(
            jax.ShapeDtypeStruct(self.tensors[name].shape, self.tensors[name].dtype)
            for name in self.outputs
        )
        # An output that was given as an array starts as that array's copy, or in its place where
        # nobody else needs it.
        aliases = {
            self.operands.index(name): place
            for place, name in enumerate(self.outputs)
            if name in self.operands
        }
        launch = jax.ffi.ffi_call(
            _TARGET,
            results,
            has_side_effect=not results,
            vmap_method="sequential",
            input_output_aliases=aliases,
        )
        return tuple(launch(*operands, identity=numpy.int64(self.identity)))

    def run(self, invocation: Invocation, device: Device) -> None:
        """Launches on XLA's buffers and stream."""
        addresses = dict(zip(self.operands, invocation.arguments))
        # An output that starts as an operand has that operand's buffer.
        addresses.update(zip(self.outputs, invocation.results))
        arguments = dict(self.fixed)
        for name, told in self.tensors.items():
            arguments[name] = Buffer(told.shape, told.strides, told.dtype, device, addresses[name])
        for name, dtype in self.scalars.items():
            arguments[name] = _value(addresses[name], dtype, invocation.stream, device)
        CURRENT.stream = invocation.stream
        try:
            self.kernel.launch_function(BUFFERS)(**arguments)
        except BaseException as error:
            self.error = error
            raise


def _description(array: Any) -> Buffer:
    """An array, or what is to be one, as a custom call gets it: contiguous."""
    shape = tuple(array.shape)
    strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
    return Buffer(shape, strides, numpy.dtype(array.dtype), Device("cpu"))


def _value(address: int, dtype: numpy.dtype, stream: int, device: Device) -> Any:
    """The number that a buffer of one element holds; on a GPU its stream is waited for."""
    if device.kind == "cpu":
        import ctypes

        data = ctypes.string_at(address, dtype.itemsize)
    else:
        from ninetoothed.backends.triton.runtime import runtime

        library = runtime(device.kind)
        library.synchronize(stream)
        data = library.copy_to_host(address, dtype.itemsize)
    return numpy.frombuffer(data, dtype)[0].item()


def _run_on(kind: str, invocation: Invocation) -> None:
    _calls[invocation.identity].run(invocation, Device(kind, invocation.index))


@functools.cache
def _register() -> tuple[Any, ...]:
    """The handlers, registered with XLA; they live as long as the process."""
    handlers = []
    for platform, kind in (("cpu", "cpu"), ("CUDA", "cuda"), ("ROCM", "hip")):
        function = handler(functools.partial(_run_on, kind), has_stream=kind != "cpu")
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(function), platform=platform)
        handlers.append(function)
    return tuple(handlers)
