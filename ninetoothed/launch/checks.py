"""What is checked of a call, once for each new key: that the arguments are as they were declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.errors import ArgumentError
from ninetoothed.language import dtypes
from ninetoothed.symbols.expr import Symbol, as_symbol, is_integer
from ninetoothed.tensors.metaops import shape_text

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tensors.arrange import Parameter


def checked_call(kernel: Definition, frontend: Frontend, given: Mapping[str, Any]) -> Call:
    """The `Call` of a new key.

    Args:
        given: see `Kernel.new_plan`.

    Raises:
        ArgumentError: a tensor or a constant is not as it was declared.
    """
    scalars = {p.name: given[p.name] for p in kernel.parameters if p.kind == "scalar"}
    tensors: dict[str, Argument] = {}
    devices: dict[str, Device] = {}
    for parameter in kernel.tensor_parameters:
        shape, strides, dtype, device, alignment = given[parameter.name]
        if dtype is None:
            # The program does not touch it: only its sizes matter.
            tensors[parameter.name] = Argument(tuple(shape), tuple(strides), dtypes.int8, alignment)
            continue
        try:
            element = frontend.dtype_of(dtype)
        except ArgumentError as error:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}`: {error.message}"
            ) from None
        argument = Argument(tuple(shape), tuple(strides), element, alignment)
        _check_argument(kernel, parameter, argument)
        tensors[parameter.name] = argument
        devices[parameter.name] = frontend.device_of(device)
    first, device = next(iter(devices.items()))
    for name, other in devices.items():
        if other != device:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{first}` is on {device} and `{name}` on {other}; all "
                "tensors of a call must be on one device. Move one of them."
            )
    constants = {
        name: _neutral(kernel, frontend, name, given[name])
        for name in kernel.call_names
        if name not in tensors and name not in scalars
    }
    for symbol in kernel.symbols:
        name = kernel.names[symbol]
        constants[name] = _checked_constant(kernel, symbol, constants[name])
    call = Call(tensors, scalars, constants, device, frontend)
    _check_shared_sizes(kernel, call)
    return call


def _neutral(kernel: Definition, frontend: Frontend, name: str, constant: Any) -> Any:
    """A constant as it is, a NumPy number as Python's, our element type where it is a framework's."""
    if isinstance(constant, Symbol):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is a constant of a call, and was given the Symbol "
            f"`{constant}`, which has no value. Give the value."
        )
    if isinstance(constant, np.generic):
        return constant.item()
    # A number may equal one of a framework's element types, as 4 does Paddle 2.6's float16.
    if isinstance(constant, (int, float, str)):
        return constant
    try:
        return frontend.dtype_of(constant)
    except ArgumentError:
        return constant


def _check_argument(kernel: Definition, parameter: Parameter, argument: Argument) -> None:
    source, subject = parameter.source, f"kernel `{kernel.name}`: `{parameter.name}`"
    if len(argument.shape) != source.ndim:
        raise ArgumentError(
            f"{subject} has {len(argument.shape)} dimensions, shape {argument.shape}; it was "
            f"declared with {source.ndim}, as Tensor({source.ndim}). Reshape the argument."
        )
    if source.dtype is not None and source.dtype is not argument.dtype:
        raise ArgumentError(
            f"{subject} has elements of {argument.dtype}; it was declared with "
            f"dtype={source.dtype}. Convert the argument."
        )
    for dim, (size, value) in enumerate(zip(source.shape, argument.shape)):
        low = high = size if isinstance(size, int) else None
        if isinstance(size, Symbol) and size.op == "leaf":
            low, high = size.leaf.lower_bound, size.leaf.upper_bound
            if size.leaf.power_of_two and value & (value - 1):
                raise ArgumentError(
                    f"{subject} has size {value} in dimension {dim}, shape {argument.shape}; it "
                    "was declared as a power of two there."
                )
        if (low is not None and value < low) or (high is not None and value > high):
            allowed = f"{low}" if low == high else f"{low} to {high}"
            raise ArgumentError(
                f"{subject} has size {value} in dimension {dim}, shape {argument.shape}; it "
                f"was declared as {shape_text(source.shape)} with {allowed} there."
            )


def _checked_constant(kernel: Definition, symbol: Symbol, value: Any) -> int:
    """A symbol's value as an int."""
    leaf, name = symbol.leaf, kernel.names[symbol]
    if not is_integer(value):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is an integer constant, got {value!r}"
        )
    number: int = value.__index__()
    low, high = leaf.lower_bound, leaf.upper_bound
    if (low is not None and number < low) or (high is not None and number > high):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is {number}, outside of its bounds, {low} to {high}"
        )
    if leaf.power_of_two and number & (number - 1):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is {number}, and must be a power of two"
        )
    return number


def _check_shared_sizes(kernel: Definition, call: Call) -> None:
    """A symbol that several dimensions were declared with has one value."""
    environment = kernel.environment(call)
    for parameter in kernel.tensor_parameters:
        argument = call.arguments[parameter.name]
        for dim, (size, value) in enumerate(zip(parameter.source.shape, argument.shape)):
            if not isinstance(size, Symbol):
                continue
            needed = int(size.evaluate(environment))
            if needed != value:
                raise ArgumentError(
                    f"kernel `{kernel.name}`: `{parameter.name}` has size {value} in dimension "
                    f"{dim}, shape {argument.shape}; `{size}` is {needed} in this call"
                )
        for stride, value in zip(parameter.source.strides, argument.strides):
            if environment[as_symbol(stride)] != value:
                raise ArgumentError(
                    f"kernel `{kernel.name}`: `{parameter.name}` has strides {argument.strides}, but "
                    "another parameter was arranged from the same Tensor and has others; give each "
                    "parameter a Tensor of its own"
                )
