"""What is read of a call's arguments and checked, before a plan is made of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ninetoothed.errors import ArgumentError, DeviceError, NineToothedError, caller_location
from ninetoothed.kernels.analysis import analysis
from ninetoothed.kernels.definition import Definition
from ninetoothed.language import dtypes
from ninetoothed.launch import scalars
from ninetoothed.launch.overlap import overlaps
from ninetoothed.program.written import written

if TYPE_CHECKING:
    from ninetoothed.frontends.base import Frontend
    from ninetoothed.launch.kernel import Kernel
    from ninetoothed.tensors.arrange import Parameter

#: Of an address, in bytes: more makes no difference.
ALIGNMENT = 16


def described(
    kernel: Definition, frontend: Frontend, bound: Mapping[str, Any]
) -> tuple[dict[str, Any], tuple[Any, ...]]:
    """What `Kernel.new_plan` wants to know, and what the plan is called with."""
    given, values = dict(bound), []
    untouched = _only_sizes_matter(kernel, frontend, bound)
    for parameter in kernel.call_parameters:
        name, value = parameter.name, bound[parameter.name]
        if parameter.kind == "scalar":
            given[name] = scalars.number(kernel, frontend, parameter, value)
            values.append(given[name])
        if parameter.kind != "tensor":
            continue
        if name in untouched:
            shape = _shape_of(frontend, value)
            given[name] = (shape, (0,) * len(shape), None, None, ALIGNMENT)
            values += [0] if parameter.source.jagged_dim is None else [0, 0]
            continue
        try:
            given[name], pointers = _read(kernel, frontend, parameter, value)
        except NineToothedError:
            raise
        except Exception as error:
            # A class of the user's may answer its framework's questions in its own way.
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{name}` of {type(value).__module__}."
                f"{type(value).__qualname__} cannot be read: {type(error).__name__}: {error}"
            ) from error
        values += pointers
    is_beside_float64 = _has_float64(kernel, frontend, given, kernel.untouched)
    for parameter in kernel.call_parameters:
        if parameter.kind == "scalar":
            number = given[parameter.name]
            dtype = scalars.dtype_of(number, parameter.dtype, is_beside_float64)
            given[parameter.name] = dtype, scalars.is_scale(number, dtype)
    return given, tuple(values)


def _read(
    kernel: Definition, frontend: Frontend, parameter: Parameter, value: Any
) -> tuple[tuple[Any, ...], list[int]]:
    """What a plan depends on of a tensor, and the addresses that it is called with."""
    _check_accepted(kernel, frontend, parameter, value)
    _check_jagged(kernel, frontend, parameter, value)
    _check_writable(kernel, frontend, parameter, value)
    is_jagged = parameter.source.jagged_dim is not None
    held = frontend.evaluate("jagged.values", value) if is_jagged else value
    prefix = "jagged." if is_jagged else ""
    pointers = [_address(kernel, frontend, parameter.name, held)]
    if is_jagged:
        offsets = frontend.evaluate("jagged.offsets", value)
        pointers.append(frontend.evaluate("pointer", offsets))
    read = (
        frontend.evaluate(f"{prefix}shape", value),
        frontend.evaluate(f"{prefix}strides", value),
        frontend.evaluate("dtype", held),
        frontend.evaluate("device", held),
        math.gcd(pointers[0], ALIGNMENT),
    )
    # A launch looks it up.
    hash(read)
    frontend.check_device(read[3])
    if not is_jagged:
        _check_apart(kernel, parameter, *read[:2])
    return read, pointers


def check_tensors(
    kernel: Definition,
    frontend: Frontend,
    bound: Mapping[str, Any],
    numbers: Sequence[tuple[Sequence[int], Sequence[int]]],
) -> None:
    """What `described` checks of tensors, where all but sizes and strides is as in a call before.

    Addresses need not be asked: that one is null is told with their alignment, and no call shares a plan
    with an empty tensor's.

    Args:
        numbers: the shape and the strides of each.
    """
    stored, refused = _written(kernel), frontend.refused
    for parameter, (shape, strides) in zip(kernel.tensor_parameters, numbers):
        value, is_written = bound[parameter.name], parameter.name in stored
        if refused is not None and refused(value, is_written) is not None:
            _check_accepted(kernel, frontend, parameter, value)
        if is_written:
            _check_writable(kernel, frontend, parameter, value)
            _check_apart(kernel, parameter, shape, strides)


def _check_apart(
    kernel: Definition, parameter: Parameter, shape: Sequence[int], strides: Sequence[int]
) -> None:
    """That the elements of a tensor that is stored to have addresses of their own."""
    if is_stored(kernel, parameter) and overlaps(shape, strides):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{parameter.name}` is stored to, and several of its elements are at one "
            f"address: its shape is {tuple(shape)}, its strides {tuple(strides)}, as `expand` or "
            "`as_strided` makes them. Give a copy of it, or the tensor that it was made of."
        )


def _has_float64(
    kernel: Definition, frontend: Frontend, given: Mapping[str, Any], untouched: Collection[str]
) -> bool:
    """Whether a tensor that the program touches has elements of float64."""
    native = [given[p.name][2] for p in kernel.tensor_parameters if p.name not in untouched]
    try:
        return any(frontend.dtype_of(dtype) is dtypes.float64 for dtype in native)
    except ArgumentError:
        # It is told of with the parameter's name once the call is checked.
        return False


def _address(kernel: Definition, frontend: Frontend, name: str, held: Any) -> int:
    """Where a tensor's elements are.

    Raises:
        ArgumentError: it has no memory: it is sparse, freed, or a transformation's stand-in.
        DeviceError: nothing is kept on its device.
    """
    subject = f"kernel `{kernel.name}`: `{name}`"
    try:
        pointer: int = frontend.evaluate("pointer", held)
    except NineToothedError:
        raise
    except RuntimeError as error:
        raise ArgumentError(
            f"{subject} has no memory that a kernel could reach: {error}. Give a dense tensor that "
            "holds its elements: `.to_dense()` makes one of a sparse tensor; what a transformation "
            "such as vmap hands around holds none."
        ) from error
    if pointer == 0:
        try:
            frontend.device_of(frontend.evaluate("device", held))
        except DeviceError as error:
            raise DeviceError(f"{subject}: {error.message}", caller_location()) from None
        shape = tuple(frontend.evaluate("shape", held))
        if 0 not in shape:
            raise ArgumentError(
                f"{subject} of shape {shape} has no memory: its address is 0, as that of a tensor "
                "whose storage was freed, or that only wraps others. Only an empty tensor may."
            )
    return pointer


def _only_sizes_matter(
    kernel: Definition, frontend: Frontend, bound: Mapping[str, Any]
) -> frozenset[str]:
    """The tensors that the program does not touch, but for one that says where it runs."""
    untouched = kernel.untouched
    parameters = {parameter.name: parameter for parameter in kernel.tensor_parameters}
    owned = [name for name in parameters if frontend.owns(type(bound[name]))]
    first = next((name for name in owned if name not in untouched), owned[0])
    untouched -= {first}
    if not untouched or not _is_on_cpu(frontend, parameters[first], bound[first]):
        return untouched
    # There the application itself runs, and reads what the program has no use for.
    return frozenset(
        name
        for name in untouched
        if name not in owned or not _is_as_declared(frontend, parameters[name], bound[name])
    )


def _is_on_cpu(frontend: Frontend, parameter: Parameter, value: Any) -> bool:
    if parameter.source.jagged_dim is not None:
        value = frontend.evaluate("jagged.values", value)
    try:
        return frontend.device_of(frontend.evaluate("device", value)).kind == "cpu"
    except DeviceError:
        return False


def _shape_of(frontend: Frontend, value: Any) -> tuple[Any, ...]:
    """The sizes of what is not touched: a tensor, or anything that has a shape."""
    if not frontend.owns(type(value)):
        return tuple(value.shape)
    prefix = "jagged." if _is_jagged(frontend, value) else ""
    return tuple(frontend.evaluate(f"{prefix}shape", value))


def _is_jagged(frontend: Frontend, value: Any) -> bool:
    return frontend.jagged is not None and bool(frontend.evaluate("jagged.test", value))


def _is_as_declared(frontend: Frontend, parameter: Parameter, value: Any) -> bool:
    """Whether a tensor could stand where the program touches it."""
    source = parameter.source
    shape = _shape_of(frontend, value)
    if source.jagged_dim is not None or len(shape) != source.ndim or _is_jagged(frontend, value):
        return False
    try:
        frontend.dtype_of(frontend.evaluate("dtype", value))
    except ArgumentError:
        return False
    sizes = zip(source.shape, shape)
    return all(size == given for size, given in sizes if isinstance(size, int)) and _is_on_cpu(
        frontend, parameter, value
    )


def _check_jagged(kernel: Definition, frontend: Frontend, parameter: Parameter, value: Any) -> None:
    wanted = parameter.source.jagged_dim
    subject = f"kernel `{kernel.name}`: `{parameter.name}`"
    if frontend.jagged is None:
        if wanted is not None:
            raise ArgumentError(f"{subject} is jagged, and {frontend.name} has no such tensors")
        return
    is_jagged = _is_jagged(frontend, value)
    if is_jagged and wanted is None:
        raise ArgumentError(
            f"{subject} is a jagged tensor; declare it with jagged_dim, as in "
            f"Tensor({parameter.source.ndim}, jagged_dim=1)"
        )
    if wanted is not None and not is_jagged:
        raise ArgumentError(f"{subject} was declared with jagged_dim={wanted}; it is not jagged")
    if wanted is not None:
        found = frontend.evaluate("jagged.ragged_dim", value)
        if found != wanted:
            raise ArgumentError(
                f"{subject} was declared with jagged_dim={wanted}; its dimension {found} varies"
            )


def sizes_of(kernel: Definition, bound: Mapping[str, Any]) -> dict[Any, Any]:
    """The shape of each source tensor and the value of each constexpr symbol of a call.

    A tuple may stand for a tensor of that shape.
    """
    given: dict[Any, Any] = {symbol: bound[kernel.names[symbol]] for symbol in kernel.symbols}
    for parameter in kernel.tensor_parameters:
        value = bound[parameter.name]
        if value is None and parameter.name in kernel.untouched:
            continue
        try:
            given[parameter.source] = tuple(int(size) for size in getattr(value, "shape", value))
        except (AttributeError, RuntimeError, TypeError, ValueError):
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}` has no shape of plain numbers, but is "
                f"of type {type(value).__name__}. Give a tensor, or its shape as a tuple; in a jagged "
                "dimension, the longest sequence's length."
            ) from None
    return given


def is_stored(kernel: Definition, parameter: Parameter) -> bool:
    """Whether the program stores to a tensor."""
    return parameter.kind == "tensor" and parameter.name in _written(kernel)


@analysis
def _written(kernel: Definition) -> frozenset[str]:
    return written(kernel.program)


def stored_places(kernel: Definition) -> tuple[int, ...]:
    """The places among the tensors of those that the program stores to."""
    tensors = enumerate(kernel.tensor_parameters)
    return tuple(place for place, parameter in tensors if is_stored(kernel, parameter))


def may_be_stored(kernel: Kernel) -> tuple[int, ...]:
    """The places among the tensors of those that the program stores to, or does with some constants."""
    plain = kernel.specializations.plain
    if isinstance(plain, Definition):
        return stored_places(plain)
    return tuple(range(len(kernel.declaration.tensor_parameters)))


def _check_accepted(
    kernel: Definition, frontend: Frontend, parameter: Parameter, value: Any
) -> None:
    if frontend.refused is None:
        return
    why = frontend.refused(value, is_stored(kernel, parameter))
    if why is not None:
        raise ArgumentError(f"kernel `{kernel.name}`: `{parameter.name}` {why}")


def _check_writable(
    kernel: Definition, frontend: Frontend, parameter: Parameter, value: Any
) -> None:
    if frontend.read_only is None or not is_stored(kernel, parameter):
        return
    if frontend.evaluate("read_only", value):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{parameter.name}` is written to, and the argument is "
            "read-only. Pass a copy."
        )
