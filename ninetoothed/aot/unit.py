"""What one C source launches: a kernel with all that is fixed of its calls, its editions and binaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import ArgumentError, Location
from ninetoothed.kernels.ahead import Condition, Edition, Fixed, Image, offsets_of
from ninetoothed.kernels.call_types import check_types, decisive_scales, with_scales
from ninetoothed.kernels.definition import Declaration, Definition, Specializations
from ninetoothed.language import dtypes
from ninetoothed.language.dtypes import DType
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import as_symbol
from ninetoothed.tensors.arrange import NO_VALUE, SCALE_TYPES, Parameter
from ninetoothed.tensors.level import Shape
from ninetoothed.tensors.tensor import Tensor


@dataclass(frozen=True)
class Binaries:
    """All variants of an edition, compiled for a target, in their order.

    Attributes:
        target: ``"sm_90"``, ``"ptx_80"``, …
        edition: the edition's place.
        number: which of the target's this is; the first whose sizes fit is launched.
        sizes: what a call's sizes are then.
        num_warps, num_stages: what they were compiled with.
    """

    target: str
    edition: int
    num_warps: int
    num_stages: int
    images: tuple[Image, ...]
    number: int = 0
    sizes: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class Unit:
    """What one C source launches.

    Attributes:
        name: of its functions.
        kernel: the kernel.
        fixed: what is fixed of its calls.
        editions: the kernel's, each with a configuration.
        binaries: by target.
    """

    name: str
    kernel: Definition
    fixed: Fixed
    editions: tuple[Edition, ...]
    binaries: tuple[Binaries, ...]

    @property
    def targets(self) -> dict[str, list[Binaries]]:
        """The binaries by target."""
        found: dict[str, list[Binaries]] = {}
        for each in self.binaries:
            found.setdefault(each.target, []).append(each)
        return found

    @threads.cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """What a call gives, in order: after a jagged tensor its offsets."""
        found: list[Parameter] = []
        for parameter in self.kernel.call_parameters:
            found.append(parameter)
            if parameter.kind == "tensor" and parameter.source.jagged_dim is not None:
                found.append(
                    Parameter(offsets_of(parameter.name), "tensor", _Offsets(parameter.source))
                )
        return tuple(found)

    def dtype(self, parameter: Parameter) -> DType | None:
        """A parameter's element type; None where the kernel does not touch it."""
        if isinstance(parameter.tensor, _Offsets):
            return dtypes.int64
        return self.fixed.dtypes.get(parameter.name)


class _Offsets(Tensor):
    """Where a jagged tensor's sequences begin in its packed values, and the end: (sequences + 1,), contiguous."""

    def __init__(self, values: Tensor) -> None:
        super().__init__(shape=(as_symbol(values.shape[0]) + 1,), dtype=dtypes.int64)

    @property
    def strides(self) -> Shape:
        return (1,)


def fixed_of(
    specializations: Specializations, given: Mapping[str, Any]
) -> tuple[Definition, Fixed]:
    """The kernel with what is fixed of all its calls: what was declared, and what is given.

    Args:
        given: values of constants by name.

    Raises:
        ArgumentError: an element type or a constant is missing.
        ApplicationError: with the declared element types the application makes no sense.
    """
    declaration = specializations.declaration
    constants: dict[str, Any] = {}
    for parameter in declaration.parameters:
        if parameter.kind == "constant":
            constants[parameter.name] = parameter.value
        elif parameter.kind == "constexpr":
            value = given.get(parameter.name, parameter.value)
            if value is NO_VALUE:
                raise _missing(declaration, parameter.name, "Tensor(0, constexpr=True, value=…)")
            constants[parameter.name] = value
    for symbol in declaration.symbols:
        name, leaf = declaration.names[symbol], symbol.leaf
        if name in given:
            constants[name] = given[name]
        elif leaf.lower_bound is not None and leaf.lower_bound == leaf.upper_bound:
            constants[name] = leaf.lower_bound
        else:
            raise _missing(declaration, name, "a number in the arrangement, or shape=(None, 4096)")
    kernel = specializations.of(constants)
    untouched = {p.name for p in kernel.tensor_parameters} - kernel.program.touched()
    types: dict[str, DType] = {}
    for parameter in kernel.parameters:
        if parameter.kind not in ("tensor", "scalar") or parameter.name in untouched:
            continue
        if parameter.dtype is None:
            rank = parameter.source.ndim
            raise ArgumentError(
                f"kernel `{kernel.name}`: the element type of `{parameter.name}` is not declared, and "
                f"ahead of time no argument has one: Tensor({rank}, dtype=ninetoothed.float16)",
                _location(kernel),
            )
        types[parameter.name] = parameter.dtype
    check_types(kernel, types)
    # A launch refuses other numbers, but where that makes no difference.
    floats = (p.name for p in kernel.parameters if p.kind == "scalar" and p.dtype in SCALE_TYPES)
    return with_scales(kernel, decisive_scales(kernel, floats)), Fixed(types, constants)


def _missing(kernel: Declaration, name: str, example: str) -> ArgumentError:
    return ArgumentError(
        f"kernel `{kernel.name}`: `{name}` is a compile-time constant, and ahead of time no call gives "
        f"its value. Declare it, as {example}",
        _location(kernel),
    )


def _location(kernel: Declaration) -> Location:
    code = kernel.application.__code__
    return Location(code.co_filename, code.co_firstlineno)


def same_interface(units: Sequence[Unit]) -> None:
    """`ArgumentError` where units that one function chooses from take different parameters."""
    first, *others = units
    for other in others:
        if [(p.name, p.kind) for p in other.parameters] != [
            (p.name, p.kind) for p in first.parameters
        ]:
            raise ArgumentError(
                f"kernel `{first.kernel.name}`: all configurations must have the same parameters, and "
                f"one has ({', '.join(p.name for p in first.parameters)}), another "
                f"({', '.join(p.name for p in other.parameters)})",
                _location(other.kernel),
            )
