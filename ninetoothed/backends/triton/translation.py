"""From a call and a configuration to what Triton's compiler is told, and the arguments of a launch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton import options
from ninetoothed.backends.triton.analysis import boxes, reduction_form
from ninetoothed.backends.triton.analysis.resources import most_registers, number
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.ir.lowered import UNKNOWN, Lowered
from ninetoothed.backends.triton.options.option import Case
from ninetoothed.backends.triton.printers.triton import Emitted, KernelParameter, emit
from ninetoothed.backends.triton.specialization import divisors
from ninetoothed.backends.triton.specialization.boxes import Description
from ninetoothed.errors import ArgumentError
from ninetoothed.kernels.analysis import analysis
from ninetoothed.symbols.expr import Symbol

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


def specialize(kernel: Definition, call: Call, config: Config | None) -> Specialized:
    """The kernel for this call under a configuration.

    Raises:
        ArrangementError: the sizes do not fit the arrangement.
        ArgumentError: there are too many programs, or a tile is too large for any device.
    """
    environment = environment_of(kernel, call, config)
    result = lowered(kernel, call, environment, dict(config.options) if config else {})
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
    deciding = divisors.of_parameters(kernel, environment)
    integers: dict[str, int] = {}
    described: dict[str, Description] = {}
    for parameter in emitted.parameters:
        name = parameter.name
        value = _known_value(parameter, call, environment)
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            constants[name] = value
            continue
        if parameter.kind == "descriptor":
            argument = call.arguments[parameter.parameter or ""]
            box = result.box(parameter.parameter or "")
            assert box is not None
            tensor = kernel.program.parameter(parameter.parameter or "")
            described[name] = boxes.describe(tensor, box, argument, environment)
            signature[name] = described[name].signature(
                argument.dtype, result.tma_pipeline is not None
            )
            continue
        signature[name] = _type_of(parameter, call, value)
        if parameter.kind == "symbol":
            integers[name] = value
            known = divisors.divisor(value)
            is_size = parameter.symbol is not None and parameter.symbol.op == "leaf"
            is_told = parameter.symbol in deciding or (is_size and known == divisors.MOST)
            told[name] = known if is_told else 1
        if parameter.kind == "pointer":
            told[name] = call.arguments[parameter.parameter or ""].alignment
        if parameter.kind in _WORKSPACE:
            told[name] = divisors.MOST
    return Specialized(
        emitted,
        signature,
        constants,
        {name: by for name, by in told.items() if by > 1},
        integers,
        num_programs,
        described,
        reduction_form.workspace_bytes(kernel, environment, result.parts),
        result.is_persistent,
        most_registers_of(emitted, kernel, environment),
    )


def lowered(
    kernel: Definition,
    call: Call,
    environment: Mapping[Symbol, int],
    values: Mapping[str, int],
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
    kernel: Definition,
    facts: CallFacts = UNKNOWN,
    case: Case | None = None,
    **values: int,
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
    known = {kernel.names[symbol]: value for symbol, value in environment.items()}
    products = emitted.needs.products
    return most_registers(number(p.rows, known) * number(p.columns, known) for p in products)


def _known_value(parameter: KernelParameter, call: Call, environment: Mapping[Symbol, int]) -> Any:
    if parameter.symbol is not None:
        is_leaf = parameter.symbol.op == "leaf"
        return environment[parameter.symbol] if is_leaf else parameter.symbol.evaluate(environment)
    return call.constants.get(parameter.parameter or "")


def _type_of(parameter: KernelParameter, call: Call, value: Any) -> str:
    if parameter.kind == "pointer":
        return "*" + call.arguments[parameter.parameter or ""].dtype.signature
    if parameter.kind == "offsets":
        return "*i64"
    if parameter.kind in _WORKSPACE:
        return _WORKSPACE[parameter.kind]
    if parameter.kind == "scalar":
        signature = call.scalars[parameter.parameter or ""].signature
        return "u1" if signature == "i1" else signature
    return "i32" if -_LARGEST_INT32 <= value <= _LARGEST_INT32 else "i64"
