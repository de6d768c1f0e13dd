"""A kernel's variants: for each assumption the source, what it is launched with, and how it compiles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ninetoothed.backends.triton.ahead.assumptions import Assumption, Assumptions
from ninetoothed.backends.triton.ahead.declared_sizes import exact_call
from ninetoothed.backends.triton.ahead.default_config import choose, has_declared_sizes, large_call
from ninetoothed.backends.triton.ahead.devices import limits_of, target_of
from ninetoothed.backends.triton.ahead.levels import (
    lowered,
    tiles_of,
    with_descriptors,
    with_likeness,
    with_parts,
)
from ninetoothed.backends.triton.analysis import reduction_form
from ninetoothed.backends.triton.analysis.full_iterations import is_worth_it
from ninetoothed.backends.triton.compiler import versions
from ninetoothed.backends.triton.compiler.compile import compile_source
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.ir.lowered import Lowered
from ninetoothed.backends.triton.ir.nodes import MOST_COUNTERS
from ninetoothed.backends.triton.minus_zero import kept
from ninetoothed.backends.triton.options.option import Case
from ninetoothed.backends.triton.printers.emission import KernelParameter, constexpr_symbols
from ninetoothed.backends.triton.printers.triton import Emitted, emit
from ninetoothed.backends.triton.specialization.divisors import MOST
from ninetoothed.backends.triton.specialization.tiles import check_tiles
from ninetoothed.backends.triton.translation import descriptor_of, environment_of, most_registers_of
from ninetoothed.errors import ArgumentError, DeviceError, Location
from ninetoothed.kernels.ahead import (
    Condition,
    Described,
    Edition,
    Fixed,
    Image,
    LaunchArgument,
    Variant,
    Workspace,
    offsets_of,
)
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.definition import Definition
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.tuning.estimate import DeviceLimits
from ninetoothed.tuning.space import Config

#: Text for the driver's own compiler serves later architectures, but where it asks for what only one
#: has: so Triton does from this capability on.
_FIRST_SPECIFIC = 90

_FORMATS = {"cuda": "cubin", "hip": "hsaco"}

_COUNTER_BYTES = 4 * MOST_COUNTERS

#: Addresses in the workspace, by the parameter's kind: of what they are, and where they point.
_WORKSPACE = {"arrivals": ("*i32", 0), "partials": ("*fp32", _COUNTER_BYTES)}


@dataclass(frozen=True)
class Work:
    """What a variant is compiled from.

    Attributes:
        name: of the function.
        source: the module's text.
        signature, constants, divisors: as `compile_source` takes them.
        num_warps, num_stages: likewise.
        externs: functions that the source uses and does not define.
        most_registers: that a thread may have; None where the compiler decides.
        is_persistent: whether there need be no more programs than the device holds at a time.
        is_dependent: whether its programs wait for the kernel before.
    """

    name: str
    source: str
    signature: tuple[tuple[str, str], ...]
    constants: tuple[tuple[str, Any], ...]
    divisors: tuple[tuple[str, int], ...]
    num_warps: int
    num_stages: int
    externs: tuple[tuple[str, Any], ...]
    most_registers: int | None = None
    is_persistent: bool = False
    is_dependent: bool = False


def edition_of(
    kernel: Definition,
    fixed: Fixed,
    target: str,
    device: str | None = None,
    tuned: tuple[Call, Config] | None = None,
) -> Edition:
    """The kernel as it is best for a target, its variants not compiled yet.

    Args:
        target: what meta symbols, warps and stages are chosen for.
        device: the name of one of the target's, where there are several.
        tuned: a call, and what was found to be best for it; by default the estimate chooses for a large one.

    Raises:
        ArgumentError: a size that decides a tile's shape is not declared, or a tile is too large.
    """
    _check_known(kernel)
    _check_jagged(kernel)
    limits: DeviceLimits = limits_of(target, device)
    call = large_call(kernel, fixed)
    if tuned is None:
        config, seconds = choose(kernel, call, limits)
    else:
        (call, config), seconds = tuned, math.inf
    known: dict[Symbol, int] = {
        symbol: config[kernel.names[symbol]] for symbol in kernel.meta_symbols
    }
    known |= {symbol: fixed.constants[kernel.names[symbol]] for symbol in kernel.symbols}
    check_tiles(kernel, known)
    tensors = {
        p.name: fixed.dtypes[p.name] for p in kernel.tensor_parameters if p.name in fixed.dtypes
    }
    found: list[Variant] = []
    added: tuple[Condition, ...] = ()
    levels = Assumptions(kernel, known, tensors).chain()
    case = Case(kernel, call, environment_of(kernel, call, config), limits)
    exact = None
    if has_declared_sizes(kernel):
        asked = [condition for level in levels[:-1] for condition in level.added]
        exact = exact_call(kernel, call, config, asked)
    elif "descriptors" in dict(config.options):
        levels = with_descriptors(levels, case, config, known)
    elif dict(config.options).get("split_k", 1) > 1:
        levels = with_parts(levels, case, config, known)
    if exact is None:
        levels = with_likeness(levels, case, config, known)
    variants = [
        _variant(kernel, fixed, known, level, case, config)
        for level in (levels if exact is None else levels[:-1])
    ]
    if exact is not None:
        variants.append(_exact_variant(kernel, fixed, known, *exact, config))
    for variant in variants:
        added += variant.added
        if found and found[-1].work == variant.work:
            # What is assumed besides changes nothing; a stronger variant asks for it too.
            continue
        found.append(replace(variant, added=added))
        added = ()
    return Edition(known, config.num_warps, config.num_stages, tuple(reversed(found)), seconds)


def _check_known(kernel: Definition) -> None:
    """`ArgumentError` where a size must be known when the kernel is compiled, and is not declared."""
    given = {*kernel.symbols, *kernel.meta_symbols}
    for symbol in sorted(constexpr_symbols(kernel) - given, key=str):
        raise ArgumentError(
            f"kernel `{kernel.name}`: `{kernel.names[symbol]}` decides a tile's shape, or was declared as "
            "a constant, so it must be known when the kernel is compiled ahead. Declare it, as in "
            "Tensor(shape=(None, 4096)).",
            Location(
                kernel.application.__code__.co_filename, kernel.application.__code__.co_firstlineno
            ),
        )


def _check_jagged(kernel: Definition) -> None:
    """`ArgumentError` where no tensor can vary as it was declared."""
    for parameter in kernel.tensor_parameters:
        if parameter.source.jagged_dim == 0:
            raise ArgumentError(
                f"kernel `{kernel.name}`: `{parameter.name}` was declared with jagged_dim=0, and a jagged "
                "tensor's first dimension counts its sequences. Declare another, as in "
                "Tensor(2, jagged_dim=1).",
                parameter.source.location,
            )


def _variant(
    kernel: Definition,
    fixed: Fixed,
    known: Mapping[Symbol, int],
    assumption: Assumption,
    case: Case,
    config: Config,
) -> Variant:
    facts = assumption.facts
    if not assumption.options and not facts.wide and is_worth_it(kernel, facts):
        assumption = replace(assumption, options=(("loop_splitting", 1),))
    # Whether programs wait for the kernel before has nothing to do with what a call is.
    waits = dict(config.options).get("dependent_launch", 0)
    result = lowered(kernel, assumption, case, dependent_launch=waits)
    emitted = emit(result)
    signature: dict[str, str] = {}
    constants: dict[str, Any] = {}
    divisors: dict[str, int] = {}
    arguments: list[LaunchArgument] = []
    for parameter in emitted.parameters:
        name = parameter.name
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            constants[name] = kept(_value(fixed, known, parameter))
            continue
        given, by = _given(parameter, fixed, known, assumption, case, result)
        signature[name] = given[0].type
        arguments += given
        if by > 1:
            divisors[name] = by
    registers = most_registers_of(emitted, kernel, known)
    told = signature, constants, divisors
    work = _work(kernel, emitted, config, *told, registers, result.is_persistent)
    programs = workspace = None
    if result.parts > 1:
        form = reduction_form.form_of(kernel)
        assert form is not None
        programs = tiles_of(kernel, known) * result.parts
        size = programs * (4 * reduction_form.room(form, known))
        workspace = Workspace(as_symbol(size + _COUNTER_BYTES), _COUNTER_BYTES)
    return Variant(
        assumption.name, assumption.added, tuple(arguments), emitted.text, work, programs, workspace
    )


def _work(
    kernel: Definition,
    emitted: Emitted,
    config: Config,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    divisors: Mapping[str, int],
    most_registers: int | None,
    is_persistent: bool,
) -> Work:
    return Work(
        kernel.name,
        emitted.text,
        tuple(signature.items()),
        tuple(constants.items()),
        tuple(divisors.items()),
        config.num_warps,
        config.num_stages,
        tuple(sorted(emitted.externs.items())),
        most_registers,
        is_persistent,
        emitted.waits,
    )


def _given(
    parameter: KernelParameter,
    fixed: Fixed,
    known: Mapping[Symbol, int],
    assumption: Assumption,
    case: Case,
    result: Lowered,
) -> tuple[tuple[LaunchArgument, ...], int]:
    """What a launch hands over for a parameter, and what that is a multiple of."""
    if parameter.kind == "descriptor":
        return _descriptor(parameter, case, result), 1
    if parameter.kind in _WORKSPACE:
        type_, at = _WORKSPACE[parameter.kind]
        return (LaunchArgument(parameter.name, type_, in_workspace=at),), MOST
    argument = _argument(parameter, fixed, known, assumption.facts.wide)
    if parameter.kind == "pointer":
        # An element's address is a multiple of its size: the runtime refuses any other.
        size = fixed.dtypes[parameter.parameter].itemsize
        return (argument,), max(assumption.alignment, size)
    by = 1 if parameter.symbol is None else assumption.divisors.get(parameter.symbol, 1)
    return (argument,), by


def _exact_variant(
    kernel: Definition,
    fixed: Fixed,
    known: Mapping[Symbol, int],
    specialized: Specialized,
    added: tuple[Condition, ...],
    config: Config,
) -> Variant:
    """The variant of the call whose every number is known."""
    emitted = specialized.emitted
    arguments: list[LaunchArgument] = []
    for parameter in specialized.run_time_parameters:
        name, type_ = parameter.name, specialized.signature[parameter.name]
        if parameter.kind == "descriptor":
            numbers = specialized.described[name]
            described = Described(
                tuple(map(as_symbol, numbers.shape)), tuple(map(as_symbol, numbers.strides))
            )
            arguments += _of_descriptor(parameter, type_, described)
        elif parameter.kind in _WORKSPACE:
            _, at = _WORKSPACE[parameter.kind]
            arguments.append(LaunchArgument(name, type_, in_workspace=at))
        else:
            argument = _argument(parameter, fixed, known, False)
            arguments.append(replace(argument, type=type_))
    told = specialized.signature, specialized.constants, specialized.divisors
    registers, is_persistent = specialized.most_registers, specialized.is_persistent
    work = _work(kernel, emitted, config, *told, registers, is_persistent)
    workspace = None
    if specialized.workspace:
        workspace = Workspace(as_symbol(_COUNTER_BYTES + specialized.workspace), _COUNTER_BYTES)
    return Variant(
        "exact",
        added,
        tuple(arguments),
        emitted.text,
        work,
        as_symbol(specialized.num_programs),
        workspace,
    )


def _argument(
    parameter: KernelParameter, fixed: Fixed, known: Mapping[Symbol, int], is_wide: bool
) -> LaunchArgument:
    if parameter.symbol is not None:
        expression = as_symbol(parameter.symbol.substitute(known))
        return LaunchArgument(parameter.name, "i64" if is_wide else "i32", None, expression)
    if parameter.kind == "offsets":
        return LaunchArgument(parameter.name, "*i64", offsets_of(parameter.parameter))
    dtype = fixed.dtypes[parameter.parameter]
    if parameter.kind == "pointer":
        return LaunchArgument(parameter.name, f"*{dtype.signature}", parameter.parameter)
    signature = "u1" if dtype.signature == "i1" else dtype.signature
    return LaunchArgument(parameter.name, signature, parameter.parameter)


def _descriptor(
    parameter: KernelParameter, case: Case, result: Lowered
) -> tuple[LaunchArgument, ...]:
    """A descriptor, and the sizes and strides that the launch has after it."""
    of = parameter.parameter
    box, _, type_ = descriptor_of(result, case.call, of, case.environment)
    source = case.kernel.program.parameter(of).source
    described = Described(
        tuple(as_symbol(source.shape[dim]) for dim in box.dims),
        tuple(as_symbol(source.strides[dim]) for dim in box.dims),
    )
    return _of_descriptor(parameter, type_, described)


def _of_descriptor(
    parameter: KernelParameter, type_: str, described: Described
) -> tuple[LaunchArgument, ...]:
    of = parameter.parameter
    return (
        LaunchArgument(parameter.name, type_, of, described=described),
        *(LaunchArgument(f"{of}_size", "i32", None, size) for size in described.shape),
        *(LaunchArgument(f"{of}_stride", "i64", None, stride) for stride in described.strides),
    )


def _value(fixed: Fixed, known: Mapping[Symbol, int], parameter: KernelParameter) -> Any:
    if parameter.symbol is None:
        return fixed.constants[parameter.parameter]
    return known[parameter.symbol]


def images_of(work: Work, target: str, with_text: bool) -> list[Image]:
    """A variant, compiled for a target that need not be there.

    Args:
        with_text: whether the driver is to have text too, for architectures that come later.

    Raises:
        CompilationError: Triton refuses it.
        DeviceError: it needs more than devices of the target have.
    """
    limits, wanted = limits_of(target), target_of(target)
    compiled = compile_source(
        work.source,
        work.name,
        dict(work.signature),
        dict(work.constants),
        dict(work.divisors),
        wanted,
        num_warps=work.num_warps,
        num_stages=work.num_stages,
        externs=dict(work.externs),
        # Named in what is compiled: it must not depend on where that is done.
        path=Path(f"{work.name}.py"),
        most_registers=work.most_registers,
        waits=work.is_dependent,
    )
    metadata = compiled.metadata
    if metadata.shared > limits.shared_memory_per_block:
        raise DeviceError(
            f"kernel `{work.name}` needs {metadata.shared} bytes of shared memory a program, and "
            f"{target} has {limits.shared_memory_per_block}. Use smaller block sizes, or fewer "
            f"stages than num_stages={work.num_stages}."
        )
    if getattr(metadata, "global_scratch_size", 0) or metadata.num_ctas != 1:
        raise DeviceError(
            f"kernel `{work.name}` needs memory of its own for each program, which nothing gives "
            "it where there is no Python. Use smaller tiles."
        )

    def image(called: str, data: bytes) -> Image:
        return Image(
            called,
            data,
            metadata.name,
            wanted.backend == "cuda" and int(wanted.arch) >= _FIRST_SPECIFIC,
            metadata.num_warps * metadata.warp_size,
            metadata.shared,
            versions.SCRATCH_PARAMETERS,
            tuple(versions.tensor_maps(metadata)),
            work.is_persistent,
            work.is_dependent,
        )

    found = [image(target, compiled.asm[_FORMATS[wanted.backend]])]
    if with_text and wanted.backend == "cuda" and int(wanted.arch) < _FIRST_SPECIFIC:
        found.append(image(f"ptx_{wanted.arch}", compiled.asm["ptx"].encode()))
    return found
