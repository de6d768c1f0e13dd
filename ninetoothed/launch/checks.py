"""What is checked of a call, once for each new key: that the arguments fit, and are as declared."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.errors import ArgumentError, shown, warn_of_declaration
from ninetoothed.frontends.base import Frontend
from ninetoothed.kernels.call_types import check_types
from ninetoothed.kernels.definition import Declaration, Definition
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.symbols.expr import Symbol, as_symbol, is_integer
from ninetoothed.symbols.leaf import Leaf
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.meta_operation import shape_text


def constants_of(kernel: Declaration, frontend: Any, bound: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the constexpr parameters and symbols, in our own terms.

    Args:
        frontend: that of the call's tensors; None where there is none.

    Raises:
        ArgumentError: one is a tensor, or not hashable; a symbol's is no integer.
    """
    names = {*kernel.constants, *(kernel.names[symbol] for symbol in kernel.symbols)}
    for name in kernel.call_names if frontend is not None else ():
        # It may change while it stays the same object, and what was compiled for it would not.
        if name in names and frontend.owns(type(bound[name])):
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{name}` is a compile-time constant, got a tensor of "
                f"{frontend.name}. Give the number that it holds, as `.item()` does."
            )
    for name in names:
        try:
            hash(bound[name])
        except Exception:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{name}` is a compile-time constant and must be "
                f"hashable, got {shown(bound[name])}{_as_tuple(bound[name])}"
            ) from None
    values = {name: _neutral(kernel, frontend, name, bound[name]) for name in kernel.constants}
    return values | {
        kernel.names[symbol]: _integer(kernel, symbol, bound[kernel.names[symbol]])
        for symbol in kernel.symbols
    }


def _as_tuple(value: Any) -> str:
    return f". Give {tuple(value)!r}." if isinstance(value, list) else ""


def checked_call(kernel: Definition, frontend: Frontend, given: Mapping[str, Any]) -> Call:
    """The `Call` of a new key.

    Args:
        given: see `Kernel.new_plan`.

    Raises:
        ArgumentError: a tensor or a constant is not as it was declared.
        ApplicationError: with their element types the application makes no sense.
    """
    numbers = {p.name: given[p.name] for p in kernel.parameters if p.kind == "scalar"}
    scalars = {name: dtype for name, (dtype, _) in numbers.items()}
    scales = frozenset(name for name, (_, is_scale) in numbers.items() if is_scale)
    tensors: dict[str, Argument] = {}
    devices: dict[str, Device] = {}
    touched = frozenset(p.name for p in kernel.tensor_parameters) - kernel.untouched
    for parameter in kernel.tensor_parameters:
        shape, strides, dtype, device, alignment = given[parameter.name]
        if dtype is None:
            # The program does not touch it: only its sizes matter.
            if len(shape) != parameter.source.ndim:
                check_no_size_used(kernel, parameter, f"an argument of shape {tuple(shape)}")
            tensors[parameter.name] = Argument(tuple(shape), tuple(strides), dtypes.int8, alignment)
            continue
        try:
            element = frontend.dtype_of(dtype)
        except ArgumentError as error:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}`: {error.message}"
            ) from None
        argument = Argument(tuple(shape), tuple(strides), element, alignment)
        if parameter.name in touched:
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
        constants[name] = _integer(kernel, symbol, constants[name])
        _check_bounds(symbol.leaf, constants[name], f"kernel `{kernel.name}`: `{name}`")
    for parameter in kernel.call_parameters:
        if parameter.kind == "scalar":
            _check_dtype(kernel, parameter, scalars[parameter.name])
    call = Call(tensors, scalars, constants, device, frontend, scales)
    _check_shared_sizes(kernel, call, touched)
    # Floats of which nothing was declared yield to what they meet.
    typed = {
        name: dtype
        for name, dtype in scalars.items()
        if dtype.kind in ("int", "uint") or kernel.program.parameter(name).dtype
    }
    check_types(kernel, typed | {name: tensors[name].dtype for name in devices})
    return call


def _neutral(kernel: Declaration, frontend: Frontend | None, name: str, constant: Any) -> Any:
    """A constant as it is, a NumPy number as Python's, our element type where it is a framework's."""
    if isinstance(constant, Symbol):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{name}` is a constant of a call, and was given the Symbol "
            f"`{constant}`, which has no value. Give the value."
        )
    if isinstance(constant, np.generic):
        return constant.item()
    # A number may equal one of a framework's element types, as 4 does Paddle 2.6's float16.
    if frontend is None or isinstance(constant, (int, float, str)):
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
    for dim, (size, value) in enumerate(zip(source.shape, argument.shape)):
        if isinstance(size, int) and size != value:
            raise ArgumentError(
                f"{subject} has size {value} in dimension {dim}, shape {argument.shape}; it "
                f"was declared as {shape_text(source.shape)} with {size} there."
            )
        if isinstance(size, Symbol) and size.op == "leaf" and size not in kernel.symbols:
            _check_bounds(size.leaf, value, f"{subject} in dimension {dim}")
    _check_dtype(kernel, parameter, argument.dtype)


def check_no_size_used(kernel: Definition, parameter: Parameter, given: str) -> None:
    """That nothing is computed from the sizes of a tensor that is given something else.

    Raises:
        ArgumentError: the tile of another tensor, the grid or the program is.
    """
    others = [p for p in kernel.tensor_parameters if p.name not in kernel.untouched]
    known = {as_symbol(s) for p in others for s in (*p.source.shape, *p.source.strides)}
    needed = kernel.used_symbols.difference(known, kernel.symbols)
    source = parameter.source
    for size in map(as_symbol, (*source.shape, *source.strides)):
        if size in needed:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}` is given {given}. Its elements are not "
                f"used, but its `{kernel.names[size]}` is. Give a tensor of {source.ndim} dimensions."
            )


def _check_dtype(kernel: Definition, parameter: Parameter, dtype: DType) -> None:
    """Warns of another element type than was declared."""
    if parameter.dtype not in (None, dtype):
        warn_of_declaration(
            f"kernel `{kernel.name}`: `{parameter.name}` was declared with dtype={parameter.dtype}; it is "
            f"given {dtype}, and runs with that.",
            parameter.source.location,
        )


def _check_bounds(leaf: Leaf, value: int, subject: str) -> None:
    """Warns of a value that is not as it was declared."""
    low, high = leaf.lower_bound, leaf.upper_bound
    is_within = (low is None or value >= low) and (high is None or value <= high)
    if is_within and not (leaf.power_of_two and (value < 1 or value & (value - 1))):
        return
    declared = {"lower_bound": low, "upper_bound": high, "power_of_two": leaf.power_of_two or None}
    listed = ", ".join(f"{name}={bound}" for name, bound in declared.items() if bound is not None)
    warn_of_declaration(
        f"{subject} was declared with {listed}; it is given {value}, and runs with that.",
        leaf.location,
    )


def _integer(kernel: Declaration, symbol: Symbol, value: Any) -> int:
    """A symbol's value as an int."""
    if not is_integer(value):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{kernel.names[symbol]}` is an integer constant, got {shown(value)}"
        )
    number: int = value.__index__()
    if number.bit_length() > 63:
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{kernel.names[symbol]}` is an integer constant, got one of "
            f"{number.bit_length()} bits, which fits no int64"
        )
    return number


def _check_shared_sizes(kernel: Definition, call: Call, touched: Collection[str]) -> None:
    """A symbol that several dimensions were declared with has one value."""
    environment = kernel.environment(call)
    for parameter in kernel.tensor_parameters:
        if parameter.name not in touched:
            continue
        argument = call.arguments[parameter.name]
        for dim, (size, value) in enumerate(zip(parameter.source.shape, argument.shape)):
            if not isinstance(size, Symbol):
                continue
            needed = int(size.evaluate(environment))
            if needed != value:
                alike = [p.name for p in kernel.tensor_parameters if p.source is parameter.source]
                names = " and ".join(f"`{name}`" for name in alike)
                why = f": {names} were arranged from one Tensor; give each a Tensor of its own"
                raise ArgumentError(
                    f"kernel `{kernel.name}`: `{parameter.name}` has size {value} in dimension "
                    f"{dim}, shape {argument.shape}; `{size}` is {needed} in this call"
                    + why
                    * (len(alike) > 1)
                )
        for stride, value in zip(parameter.source.strides, argument.strides):
            if environment[as_symbol(stride)] != value:
                raise ArgumentError(
                    f"kernel `{kernel.name}`: `{parameter.name}` has strides {argument.strides}, but "
                    "another parameter was arranged from the same Tensor and has others; give each "
                    "parameter a Tensor of its own"
                )
