"""A kernel's calls with JAX's arrays: each is a custom call within a computation of XLA's.

Parameters that the kernel writes to are outputs. What is given for one is either the array that it
starts as (it is left as it was), or a `jax.ShapeDtypeStruct` where nothing is read from it.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy

from ninetoothed import plugins
from ninetoothed.backends.base import Device
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.constant_keys import PLAIN, constant_key
from ninetoothed.launch.arguments import described
from ninetoothed.program.written import written
from ninetoothed_jax.buffers import BUFFERS, CURRENT, Buffer, device_of
from ninetoothed_jax.ffi import Invocation, handler
from ninetoothed_jax.varying import axes_of, varying

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed_jax.native import Native

_TARGET = "ninetoothed_launch"

#: The bits of an address that plans ask about: 0 where it is aligned as well as matters.
_UNALIGNED = 15

_identities = itertools.count(1)

#: Where a launch depends on more of the addresses, C is told of so many for a call.
_MOST_TOLD = 64

#: The handlers in C, by the kind of device.
_NATIVE: dict[str, Native] = {}

#: All custom calls by their attribute. Compiled computations refer to them, so none ever goes.
_calls: dict[int, _Call] = {}


def _refused(kernel: Kernel, bound: Mapping[str, Any], error: Exception) -> ArgumentError | None:
    """What JAX's error says of a call: that it has no derivative, or an array no memory any more."""
    if "cannot be differentiated" in str(error):
        return ArgumentError(
            f"kernel `{kernel.name}` is asked for a derivative, and JAX does not see into a kernel. Make an "
            "operator of it, as with `ninetoothed.op`, and give that a `backward`."
        )
    for name, value in bound.items():
        if (
            isinstance(value, jax.Array)
            and not isinstance(value, jax.core.Tracer)
            and value.is_deleted()
        ):
            return ArgumentError(
                f"kernel `{kernel.name}`: `{name}` has no memory: it was deleted, or donated to a "
                "computation (`donate_argnums`). Keep the array, or give what the computation returned."
            )
    return None


class Launcher:
    """Takes the calls of one kernel; see `ninetoothed.frontends.base.Frontend.launch`."""

    def __init__(self, kernel: Kernel) -> None:
        _register()
        self._kernel = kernel
        kinds = {parameter.name: parameter.kind for parameter in kernel.declaration.call_parameters}
        self._kinds = {name: kinds.get(name, "symbol") for name in kernel.declaration.call_names}
        self._readers: dict[tuple[type, ...], _Reader] = {}
        self._computations: dict[Any, Any] = {}
        self._lock = threading.Lock()

    def __call__(self, bound: Mapping[str, Any]) -> Any:
        """The outputs: None, one array, or a tuple in the order of the parameters."""
        values = bound.values()
        classes = tuple([value.__class__ for value in values])
        reader = self._readers.get(classes) or self._new_reader(classes, values)
        key, operands = reader(*values)
        try:
            call, compute = self._computations[key]
        except (KeyError, TypeError):
            call, compute = self._new_computation(key, bound)
        try:
            results = compute(*operands)
        except Exception as error:
            # XLA tells of an error in a custom call by its text only.
            own, call.error = call.error, None
            raise own or _refused(self._kernel, bound, error) or error from None
        if len(results) == 1:
            return results[0]
        return results or None

    def _new_reader(self, classes: tuple[type, ...], values: Iterable[Any]) -> _Reader:
        kinds = self._kinds.values()
        are_operands = [_is_operand(kind, value) for kind, value in zip(kinds, values)]
        self._readers[classes] = _reader(tuple(zip(kinds, are_operands, classes)))
        return self._readers[classes]

    def _new_computation(self, key: Any, bound: Mapping[str, Any]) -> Any:
        """The custom call for this key, and the compiled function of the operands that makes it."""
        try:
            hash(key)
        except TypeError:
            raise self._unhashable(bound) from None
        call = self._new_call(bound)
        call.check()
        with self._lock:
            if key not in self._computations:
                _calls[call.identity] = call
                self._computations[key] = (call, jax.jit(call.compute))
            return self._computations[key]

    def _new_call(self, bound: Mapping[str, Any]) -> _Call:
        operands = [name for name, kind in self._kinds.items() if _is_operand(kind, bound[name])]
        definition = self._kernel.definition_of(bound)
        stored = written(definition.program)
        for name in self._kinds:
            self._check(name, bound[name], name in operands, stored)
        return _Call(
            self._kernel,
            definition,
            {
                n: bound[n]
                for n, kind in self._kinds.items()
                if n not in operands and kind != "tensor"
            },
            {n: _description(bound[n]) for n, kind in self._kinds.items() if kind == "tensor"},
            {n: bound[n].dtype for n in operands if self._kinds[n] == "scalar"},
            tuple(operands),
            tuple(name for name in self._kinds if name in stored),
        )

    def _check(self, name: str, value: Any, is_operand: bool, stored: Collection[str]) -> None:
        subject = f"kernel `{self._kernel.name}`: `{name}`"
        if self._kinds[name] == "scalar" and is_operand and value.ndim:
            raise ArgumentError(
                f"{subject} is passed by value and must be a number or an array of no dimensions, "
                f"got shape {value.shape}"
            )
        if self._kinds[name] == "tensor" and not is_operand and name not in stored:
            raise ArgumentError(
                f"{subject} is only read, so it must be an array; a jax.ShapeDtypeStruct stands "
                f"for an output. The kernel writes to: {', '.join(sorted(stored)) or 'none'}"
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


#: Gives the key of some arguments and those that are operands.
_Reader = Callable[..., tuple[Any, tuple[Any, ...]]]


def _is_operand(kind: str, value: Any) -> bool:
    """Whether an argument is an array that a computation is given; its class decides that."""
    if kind == "tensor":
        return value.__class__ is not jax.ShapeDtypeStruct
    return kind == "scalar" and isinstance(value, jax.Array)


@functools.lru_cache(maxsize=256)
def _reader(arguments: tuple[tuple[str, bool, type], ...]) -> _Reader:
    """What reads arguments of these kinds and classes, where some are operands."""
    key, operands = [], []
    for place, (kind, is_operand, class_) in enumerate(arguments):
        name = f"argument_{place}"
        if is_operand:
            operands.append(name)
            # It has the shape and the dtype, and is read in the time of one of them.
            key.append(f"{name}.aval")
        elif kind == "tensor":
            key += [f"{name}.shape", f"{name}.dtype"]
        else:
            key += [f"{name}.__class__", name if class_ in PLAIN else f"constant_key({name})"]
    head = ", ".join(f"argument_{place}" for place in range(len(arguments)))
    parts, given = ("".join(f"{each}, " for each in listed) for listed in (key, operands))
    return eval(f"lambda {head}: (({parts}), ({given}))", {"constant_key": constant_key})  # type: ignore[no-any-return]


#: The kind and the index of a device, and the alignment of the buffers.
_Key = tuple[str, int, Any]


class _Planned(NamedTuple):
    """A plan of a call.

    Attributes:
        run: launches, given the stream and the values.
        values: places among the addresses (True, place), or fixed values (False, value).
        record: what C could launch instead and does not know all of yet.
    """

    run: Callable[..., None]
    values: list[tuple[bool, Any]]
    record: Any


@dataclass
class _Call:
    """A custom call: a kernel, and what each of its arguments is.

    Attributes:
        definition: the kernel with its constants.
        fixed: the arguments whose values are known.
        tensors: the arguments that are buffers, described.
        scalars: the element types of those that are passed by value and known only when it runs.
        operands, outputs: the names of the buffers that XLA gives.
        error: what was raised when it ran, until it is told.
        plans: what runs it, by kind and index of the device and the alignment of the buffers.
        planning: held while a plan is made.
        told: for how many executions C has been told what to launch.
    """

    kernel: Kernel
    definition: Definition
    fixed: Mapping[str, Any]
    tensors: Mapping[str, Buffer]
    scalars: Mapping[str, numpy.dtype]
    operands: tuple[str, ...]
    outputs: tuple[str, ...]
    identity: int = field(default_factory=lambda: next(_identities))
    error: BaseException | None = None
    plans: dict[_Key, _Planned] = field(default_factory=dict)
    planning: Any = field(default_factory=threading.Lock)
    told: int = 0

    def check(self) -> None:
        """Raises what a launch would raise for these shapes on any device."""
        zeros = {name: dtype.type(0).item() for name, dtype in self.scalars.items()}
        call = self.kernel.call_of(**self.fixed, **self.tensors, **zeros)
        # Nothing is run: it is asked for the sake of its checks of the sizes.
        plugins.backend_for("cpu").plan(self.definition, call)

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
        made = launch(*operands, identity=numpy.int64(self.identity))
        return varying(made, axes_of(operands))

    def run(self, kind: str, invocation: Invocation) -> None:
        """Launches on XLA's buffers and stream, on a device of this kind."""
        _, operands, results, stream, index = invocation
        try:
            if self.scalars:
                self._launch(kind, invocation)
                return
            pointers = operands + results
            together = 0
            for pointer in pointers:
                together |= pointer
            # All else that a plan depends on is the call's own.
            alignment = together & _UNALIGNED and tuple([p & _UNALIGNED for p in pointers])
            key = kind, index, alignment
            plan = self.plans.get(key) or self._new_plan(key, invocation)
            plan.run(stream, *[pointers[value] if place else value for place, value in plan.values])
            if plan.record is not None:
                self._tell(key, plan, pointers)
        except BaseException as error:
            self.error = error
            raise

    def _launch(self, kind: str, invocation: Invocation) -> None:
        """Launches with numbers that are known only now, so that a key must be made of them."""
        CURRENT.stream = invocation.stream
        self.kernel.launch_function(BUFFERS)(**self._arguments(kind, invocation))

    def _arguments(self, kind: str, invocation: Invocation) -> dict[str, Any]:
        device = Device(kind, invocation.index)
        addresses = dict(zip(self.operands, invocation.arguments))
        # An output that starts as an operand has that operand's buffer.
        addresses.update(zip(self.outputs, invocation.results))
        arguments = dict(self.fixed)
        for name, told in self.tensors.items():
            arguments[name] = Buffer(told.shape, told.strides, told.dtype, device, addresses[name])
        for name, dtype in self.scalars.items():
            arguments[name] = _value(addresses[name], dtype, invocation.stream, device)
        return self.kernel.bind((), arguments)

    def _new_plan(self, key: _Key, invocation: Invocation) -> _Planned:
        """What runs a call at addresses so aligned; made once."""
        with self.planning:
            if key not in self.plans:
                kind = key[0]
                CURRENT.stream = invocation.stream
                bound = self._arguments(kind, invocation)
                given, values = described(self.definition, BUFFERS, bound)
                plan, _ = self.kernel.new_plan(
                    self.definition, BUFFERS, given, (invocation.stream, *values)
                )
                find = plan.details.get("launch_record") if kind in _NATIVE else None
                self.plans[key] = _Planned(
                    plan.run, self._values(bound, values), find() if find else None
                )
            return self.plans[key]

    def _tell(self, key: _Key, plan: _Planned, pointers: list[int]) -> None:
        """Tells C what has just been launched, so that it does without Python from now on."""
        kind, index, _ = key
        with self.planning:
            is_told = self.told < _MOST_TOLD and _NATIVE[kind].add(
                self.identity, index, plan.record, plan.values, pointers, _UNALIGNED
            )
            self.told += is_told
            if not (is_told and plan.record.is_of_addresses):
                # All addresses are told of, or nothing more will be.
                self.plans[key] = plan._replace(record=None)

    def _values(self, bound: Mapping[str, Any], values: tuple[Any, ...]) -> list[tuple[bool, Any]]:
        """What a plan is called with: places among the addresses (True, place), or fixed values."""
        places = {name: place for place, name in enumerate((*self.operands, *self.outputs))}
        names = [p.name for p in self.definition.call_parameters if p.kind in ("tensor", "scalar")]
        untouched = self.definition.untouched
        return [
            (True, places[name])
            if name in self.tensors and name not in untouched
            else (False, value)
            for name, value in zip(names, values, strict=True)
        ]


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
        from ninetoothed.backends.triton.runtime.device_api import runtime

        library = runtime(device.kind)
        library.synchronize(stream)
        data = library.copy_to_host(address, dtype.itemsize)
    return numpy.frombuffer(data, dtype)[0].item()


def _run_on(kind: str, invocation: Invocation) -> None:
    _calls[invocation.identity].run(kind, invocation)


def _indices(kind: str) -> list[int]:
    """The indices of the devices of a kind that JAX has; all of the CPU's are one."""
    if kind == "cpu":
        return [0]
    devices = [device_of(device) for device in jax.local_devices()]
    return [device.index for device in devices if device.kind == kind]


@functools.cache
def _register() -> tuple[Any, ...]:
    """The handlers, registered with XLA; they live as long as the process."""
    handlers = []
    for platform, kind in (("cpu", "cpu"), ("CUDA", "cuda"), ("ROCM", "hip")):
        run = functools.partial(_run_on, kind)
        devices = _indices(kind)
        only_index = devices[0] if len(devices) == 1 else None
        function = handler(run, has_stream=kind != "cpu", only_index=only_index)
        handlers.append(function)
        if kind == "cuda" and devices:
            from ninetoothed_jax import native

            if (started := native.start(function, only_index)) is not None:
                _NATIVE[kind] = started
                function = started.handler
        jax.ffi.register_ffi_target(_TARGET, jax.ffi.pycapsule(function), platform=platform)
    return tuple(handlers)
