"""What is checked of a call, once for each new key: that the arguments are as they were declared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ninetoothed.backends.base import Argument, Call, Device
from ninetoothed.errors import ApplicationError, ArgumentError
from ninetoothed.language import dtypes
from ninetoothed.passes import remove_dead
from ninetoothed.program.nodes import SequenceLength, location
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tensors.access import sequence_of
from ninetoothed.tensors.metaops import shape_text

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.tensors.arrange import Arrangement, Parameter


def checked_call(kernel: Kernel, frontend: Frontend, given: Mapping[str, Any]) -> Call:
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
        name: _neutral(frontend, given[name])
        for name in kernel.call_names
        if name not in tensors and name not in scalars
    }
    for symbol in kernel.symbols:
        name = kernel.names[symbol]
        constants[name] = _checked_constant(kernel, symbol, constants[name])
    call = Call(tensors, scalars, constants, device, frontend)
    _check_shared_sizes(kernel, call)
    return call


def check_choices(option: str, value: Any) -> None:
    """`ArgumentError` where ``num_warps`` or ``num_stages`` is neither None, an int nor several."""
    if value is None:
        return
    choices = (value,) if isinstance(value, int) or not isinstance(value, Sequence) else value
    are_counts = all(
        isinstance(choice, int) and not isinstance(choice, bool) and choice > 0
        for choice in choices
    )
    if isinstance(value, str) or not choices or not are_counts:
        raise ArgumentError(
            f"{option} must be a positive int, or several to choose from, as in (4, 8); got {value!r}"
        )
    if option == "num_warps" and any(choice & (choice - 1) for choice in choices):
        raise ArgumentError(f"num_warps must be a power of two, as in (4, 8); got {value!r}")


def check_sequences(program: Program, arrangement: Arrangement) -> None:
    """`ApplicationError` where a length is asked for of a tile that is of several sequences."""
    asked = (node for node in program.nodes() if isinstance(node, SequenceLength))
    several = {n.parameter for n in asked if sequence_of(arrangement.accesses[n.parameter]) is None}
    for node in remove_dead.run(program).nodes() if several else ():
        if isinstance(node, SequenceLength) and node.parameter in several:
            raise ApplicationError(
                f"`{node.parameter}.source.shape[{node.dim}]` is the length of the sequence at "
                f"hand, and a program's tiles of `{node.parameter}` are of several sequences. In "
                "the arrangement, tile dimension 0 by 1, and let it be one of the grid's.",
                location(node),
            )


def check_count(option: str, value: Any) -> None:
    """`ArgumentError` where an option is neither None nor a positive int."""
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ArgumentError(f"{option} must be a positive int, got {value!r}")


def _neutral(frontend: Frontend, constant: Any) -> Any:
    """A constant as it is, a NumPy number as Python's, our element type where it is a framework's."""
    if isinstance(constant, np.generic):
        return constant.item()
    # A number may equal one of a framework's element types, as 4 does Paddle 2.6's float16.
    if isinstance(constant, (int, float, str)):
        return constant
    try:
        return frontend.dtype_of(constant)
    except ArgumentError:
        return constant


def _check_argument(kernel: Kernel, parameter: Parameter, argument: Argument) -> None:
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


def _checked_constant(kernel: Kernel, symbol: Symbol, value: Any) -> int:
    """A symbol's value as an int."""
    leaf, name = symbol.leaf, kernel.names[symbol]
    if not hasattr(value, "__index__"):
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


def _check_shared_sizes(kernel: Kernel, call: Call) -> None:
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
