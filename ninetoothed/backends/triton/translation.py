"""From a call and a configuration to what Triton's compiler is told, and the arguments of a launch."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.analysis import boxes, reduction_form
from ninetoothed.backends.triton.analysis.resources import lanes, most_registers
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.ir.lowered import UNKNOWN, Lowered
from ninetoothed.backends.triton.minus_zero import kept
from ninetoothed.backends.triton.options.option import Case
from ninetoothed.backends.triton.printers.triton import Emitted, KernelParameter, emit
from ninetoothed.backends.triton.specialization import divisors, size_classes
from ninetoothed.backends.triton.specialization.boxes import Box, Description
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.simplify import product

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.specialization.call_facts import CallFacts
    from ninetoothed.kernels.definition import Definition
    from ninetoothed.tuning.space import Config

_LARGEST_INT32 = 2**31 - 1

#: What CUDA and HIP take as the first dimension of a grid.
_MOST_PROGRAMS = 2**31 - 1

#: The types of what a workspace holds.
_WORKSPACE = {"arrivals": "*i32", "partials": "*fp32"}


def environment_of(kernel: Definition, call: Call, config: Config | None) -> dict[Symbol, int]:
    """The value of every symbol in this call under a configuration."""
    environment = kernel.environment(call)
    for symbol in kernel.meta_symbols:
        assert config is not None
        environment[symbol] = config[kernel.names[symbol]]
    return environment


def specialize(
    kernel: Definition, call: Call, config: Config | None, general: Call | None = None
) -> Specialized:
    """The kernel for this call under a configuration.

    Args:
        general: the call that stands for the class of this one (`size_classes`), if it is to share its
            source with that.

    Raises:
        ArrangementError: the sizes do not fit the arrangement.
        ArgumentError: there are too many programs, or a tile is too large for any device.
    """
    decisive = general or call
    known = environment_of(kernel, decisive, config)
    environment = known if general is None else environment_of(kernel, call, config)
    result = lowered(kernel, decisive, known, dict(config.options) if config else {})
    kernel = result.kernel
    grid = kernel.verified_grid(environment)
    num_programs = math.prod(grid) * result.parts
    if num_programs > _MOST_PROGRAMS:
        raise ArgumentError(
            f"kernel `{kernel.name}` would have {num_programs} programs, grid {grid}; a device takes "
            f"{_MOST_PROGRAMS}. Use larger tiles."
        )
    emitted = _emitted(kernel, result)
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    told: dict[str, int] = {}
    deciding = divisors.of_parameters(kernel, known)
    integers: dict[str, int] = {}
    described: dict[str, Description] = {}
    moved: dict[str, Box] = {}
    for parameter in emitted.parameters:
        name = parameter.name
        value = _known_value(parameter, decisive, known)
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            constants[name] = kept(value)
            continue
        if parameter.kind == "descriptor":
            moved[name], described[name], signature[name] = descriptor_of(
                result, call, parameter.parameter, environment
            )
            continue
        signature[name] = _type_of(parameter, call, value)
        if parameter.kind == "symbol":
            integers[name] = _known_value(parameter, call, environment)
            told[name] = _told(parameter, value, deciding, decisive)
        if parameter.kind == "pointer":
            told[name] = call.arguments[parameter.parameter].alignment
        if parameter.kind in _WORKSPACE:
            told[name] = divisors.MOST
    return Specialized(
        emitted,
        signature,
        constants,
        {name: by for name, by in told.items() if by > 1},
        integers,
        num_programs,
        as_symbol(product(kernel.grid)) * result.parts,
        described,
        moved,
        reduction_form.workspace_bytes(kernel, known, result.parts),
        result.is_persistent,
        most_registers_of(emitted, kernel, known),
    )


def descriptor_of(
    result: Lowered, call: Call, parameter: str, environment: Mapping[Symbol, int]
) -> tuple[Box, Description, str]:
    """A tensor's box, what its descriptor is made of, and the type of the kernel's parameter."""
    box, argument = result.box(parameter), call.arguments[parameter]
    assert box is not None
    tensor = result.kernel.program.parameter(parameter)
    found = boxes.describe(tensor, box, argument, environment)
    return box, found, found.signature(argument.dtype, result.tma_pipeline is not None)


def lowered(
    kernel: Definition, call: Call, environment: Mapping[Symbol, int], values: Mapping[str, int]
) -> Lowered:
    """The kernel for a call, and what options with these values decide about it."""
    case = Case(kernel, call, environment)
    return decided(Lowered.of(kernel, call, environment), case, values)


def decided(plain: Lowered, case: Case, values: Mapping[str, int]) -> Lowered:
    """What options with these values decide about a kernel in a call."""
    result = plain
    for option in sorted(options.OPTIONS, key=lambda option: option.phase):
        value = values.get(option.name, option.default)
        if value != option.off:
            result = option.apply(result, case, value)
    return result


def generic(
    kernel: Definition, facts: CallFacts = UNKNOWN, case: Case | None = None, **values: int
) -> Lowered:
    """The kernel for all calls of which some facts are known.

    Args:
        facts: they.
        case: one of the calls, for options that ask for one.
        values: of options, by name.
    """
    known = {option.name for option in options.OPTIONS}
    assert values.keys() <= known, f"no options: {values.keys() - known}"
    result = Lowered(kernel, facts)
    for option in sorted(options.OPTIONS, key=lambda option: option.phase):
        value = values.get(option.name, option.default)
        if value != option.off and (option.is_generic or option.name in values):
            result = option.apply(result, case, value)  # type: ignore[arg-type]
    return result


@analysis
def source_of(kernel: Definition) -> str:
    """The Triton source with nothing known of the arguments."""
    return emit(generic(kernel)).text


@analysis
def _emitted(kernel: Definition, result: Lowered) -> Emitted:
    return emit(result)


def most_registers_of(
    emitted: Emitted, kernel: Definition, environment: Mapping[Symbol, int]
) -> int | None:
    """The most that a thread is given; None where the compiler decides."""
    if emitted.needs is None:
        return None
    products, size = emitted.needs.products, functools.partial(lanes, known=environment)
    return most_registers(
        (size(each.rows) * size(each.columns) for each in products),
        # Two elements of 16 bits a register.
        sum(2 * size(each.rows) * size(each.inner) for each in products if each.is_kept),
    )


def _told(parameter: KernelParameter, value: int, deciding: frozenset[Symbol], call: Call) -> int:
    """What the compiler is told that a size or a stride is a multiple of."""
    known = divisors.divisor(value)
    symbol = parameter.symbol
    if symbol is not None and symbol in deciding:
        is_size = symbol.leaf.role == "size"
        return size_classes.told(call, value) if call.is_general and is_size else known
    is_leaf = symbol is not None and symbol.op == "leaf"
    if is_leaf and known == divisors.MOST and not call.is_general:
        return known
    return 1


def _known_value(parameter: KernelParameter, call: Call, environment: Mapping[Symbol, int]) -> Any:
    if parameter.symbol is not None:
        is_leaf = parameter.symbol.op == "leaf"
        return environment[parameter.symbol] if is_leaf else parameter.symbol.evaluate(environment)
    return call.constants.get(parameter.parameter)


def _type_of(parameter: KernelParameter, call: Call, value: Any) -> str:
    if parameter.kind == "pointer":
        return "*" + call.arguments[parameter.parameter].dtype.signature
    if parameter.kind == "offsets":
        return "*i64"
    if parameter.kind in _WORKSPACE:
        return _WORKSPACE[parameter.kind]
    if parameter.kind == "scalar":
        signature = call.scalars[parameter.parameter].signature
        return "u1" if signature == "i1" else signature
    return "i32" if -_LARGEST_INT32 <= value <= _LARGEST_INT32 else "i64"
