"""Runs the examples' emitted source in Triton's interpreter: ``python -m tests.examples.interpreter
VARIANT TABLE [SEED]``; with a seed, with options and meta symbols that are drawn.

A program of its own, since ``TRITON_INTERPRET`` must be set before Triton is imported. Kernels on CPU
tensors go through emission here, and not to the NumPy backend: a second opinion on both.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import json
import math
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
import triton.runtime.interpreter

from ninetoothed import plugins
from ninetoothed.backends.base import Argument, Backend, Call, Plan, run_nothing
from ninetoothed.backends.numpy.execution.planning import fitting_meta
from ninetoothed.backends.triton.compiler.compile import load
from ninetoothed.backends.triton.compiler.specialized import Specialized
from ninetoothed.backends.triton.planning import choices as choosing
from ninetoothed.backends.triton.planning.space import settled
from ninetoothed.backends.triton.printers.triton import Emitted, KernelParameter, emit
from ninetoothed.backends.triton.specialization.boxes import Description
from ninetoothed.backends.triton.specialization.call_facts import CallFacts, facts_of
from ninetoothed.backends.triton.specialization.size_classes import general_call
from ninetoothed.backends.triton.specialization.target import Target
from ninetoothed.backends.triton.specialization.tiles import check_tiles
from ninetoothed.backends.triton.translation import generic, specialize
from ninetoothed.cache import write_source
from ninetoothed.errors import CompilationError
from ninetoothed.kernels.assertions import check_assertions
from ninetoothed.kernels.call_sizes import explained
from ninetoothed.kernels.meetings.agreement import check_meetings, guarded
from ninetoothed.kernels.steps import refused_steps
from ninetoothed.tuning.space import Config, fitting, values_of
from tests.examples.cases import EXAMPLES, LAYOUTS, Example, Maker
from tests.examples.checking import check
from tests.examples.more_cases import MORE
from tests.with_each_option import VALUES

# No kernel runs before one here that it could wait for (`dependent_launch`).
tl.extra.cuda.gdc_wait = lambda: None

_builder = triton.runtime.interpreter.InterpreterBuilder
_along = triton.runtime.interpreter.ReduceScanOpInterface
_checked, _held = _along.check_tensor, _along.to_tensor
_histogram, _clamp = _builder.create_histogram, _builder.create_clampf


def _of_truth(compare: Any) -> Any:
    """A comparison whose result has the type of a truth value; the interpreter's has its operands', which
    makes numbers of it where a scalar meets a tile."""

    def compared(*operands: Any) -> Any:
        result = compare(*operands)
        return type(result)(result.data, tl.int1)

    return compared


def _of_one_bit(operate: Any) -> Any:
    """A sum or a difference that leaves truth values one bit, as on a device; NumPy's is another, or none."""

    def operated(builder: Any, left: Any, right: Any) -> Any:
        of_truth = left.data.dtype == right.data.dtype == np.bool_
        return (builder.create_xor if of_truth else partial(operate, builder))(left, right)

    return operated


def _of_elements_in_order(operate: Any) -> Any:
    """An atomic operation; the interpreter's takes elements to lie side by side, which halves of a tile do not."""

    def operated(builder: Any, *operands: Any) -> Any:
        handle = triton.runtime.interpreter.TensorHandle
        given = (
            handle(np.array(each.data, order="C"), each.dtype) if isinstance(each, handle) else each
            for each in operands
        )
        return operate(builder, *given)

    return operated


def _without_nan(operate: Any) -> Any:
    """A greatest or least number that leaves NaN out, as a device's; the interpreter's hands it on."""
    return lambda builder, left, right: builder.binary_op(left, right, operate)


def _clamped(builder: Any, value: Any, low: Any, high: Any, propagates: Any) -> Any:
    """The same of a number between two."""
    if propagates == tl.PropagateNan.ALL:
        return _clamp(builder, value, low, high, propagates)
    return builder.create_minnumf(builder.create_maxnumf(value, low), high)


def _counts(builder: Any, *operands: Any) -> Any:
    """The interpreter's are as wide as what they count, whatever type they say they have."""
    counted = _histogram(builder, *operands)
    return type(counted)(counted.data.astype(np.int32), counted.dtype)


def _from_the_first(along: Any, inputs: Any) -> None:
    """The interpreter counts dimensions from the first one, whatever was asked for."""
    _checked(along, inputs)
    if along.axis is not None:
        along.axis %= max(1, inputs[0].handle.data.ndim)


def _wrapped(along: Any, value: Any, dtype: Any) -> Any:
    """A sum over all dimensions is NumPy's wide integer; the interpreter refuses one that does not fit."""
    if isinstance(value, np.integer):
        value = value.astype(triton.runtime.interpreter._get_np_dtype(dtype))
    return _held(along, value, dtype)


def _rounds(*bounds: Any) -> Any:
    """A loop's numbers in the type that the compiler gives them, which may be too narrow to count in; the
    interpreter's are Python's, which yield to a tile of fewer bits."""
    handle = triton.runtime.interpreter.TensorHandle
    types = [getattr(bound, "dtype", None) or _type_of_number(bound) for bound in bounds]
    bits = max(max(dtype.primitive_bitwidth for dtype in types), 32)
    assert not any(dtype.is_int_unsigned() and dtype.primitive_bitwidth == bits for dtype in types)
    dtype = tl.int64 if bits == 64 else tl.int32
    numbers = range(*map(int, bounds))
    if len(numbers):
        # What counts down is counted up, from its end.
        least, most = sorted((numbers.start, numbers.stop))
        after = least + len(numbers) * abs(numbers.step)
        assert after < 2 ** (bits - 1), "the counter of a loop wraps around"
    for number in numbers:
        held = np.array([number], np.int64 if bits == 64 else np.int32)
        yield tl.tensor(handle(held, dtype), dtype)


def _type_of_number(value: int) -> Any:
    """The type of a number that the compiler knows."""
    if -(2**31) <= value < 2**31:
        return tl.int32
    return tl.uint32 if 0 <= value < 2**32 else tl.int64


for name in dir(_builder):
    if name.startswith(("create_icmp", "create_fcmp")):
        setattr(_builder, name, _of_truth(getattr(_builder, name)))
_along.check_tensor, _along.to_tensor = _from_the_first, _wrapped
_builder.create_histogram, _builder.create_clampf = _counts, _clamped
_builder.create_maxnumf, _builder.create_minnumf = map(_without_nan, (np.fmax, np.fmin))
for name in ("create_add", "create_sub"):
    setattr(_builder, name, _of_one_bit(getattr(_builder, name)))
for name in ("create_atomic_rmw", "create_atomic_cas"):
    setattr(_builder, name, _of_elements_in_order(getattr(_builder, name)))

#: What the emitted source is for: a device that has all options.
_DEVICE = Target("cuda", 90, 32)

#: What is off here whatever is fixed: rings are emitted in Gluon, which has no interpreter.
_LEFT_OUT = {"tma_pipeline": 0}

#: The values of options that are drawn.
_VALUES = [
    (name, value)
    for name, default in choosing.defaults().items()
    for value in dict.fromkeys((default, *VALUES.get(name, (0, 1))))
]

#: The tables of examples, by the name that a caller gives.
TABLES = {"examples": EXAMPLES, "more": MORE}

_TORCH_DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
    "int64": torch.int64,
    "int32": torch.int32,
    "int16": torch.int16,
    "int8": torch.int8,
    "uint8": torch.uint8,
    "uint16": torch.uint16,
    "uint32": torch.uint32,
    "uint64": torch.uint64,
    "bool": torch.bool,
}


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """What the interpreter raises, as what a compiler tells of: shapes that do not fit, say."""
    try:
        yield
    except triton.runtime.errors.InterpreterError as error:
        raise CompilationError(str(error)) from error


class Interpreter(Backend):
    """Emits source as the Triton backend does, and runs it in Triton's interpreter.

    Args:
        is_specialised: whether the source may use what is known of a call.
        seed: of what is drawn for each call, of all that a search could choose; without one options are
            the plain ones, or those that $NINETOOTHED_OPTIONS fixes.
    """

    name = "interpreter"
    device_kinds = ("cpu",)

    def __init__(self, is_specialised: bool, seed: int | None = None) -> None:
        self._is_specialised = is_specialised
        self._seed = seed

    def plan(self, kernel: Any, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        """The plan of a call of this key."""
        known = kernel.environment(call)
        chosen = fitting_meta(kernel, known)
        if chosen and self._seed is not None:
            chosen = self._drawn_meta(kernel, known)
        environment = known | chosen
        grid = kernel.verified_grid(environment)
        check_tiles(kernel, environment)
        check_assertions(kernel, environment, grid)
        refusals = check_meetings(kernel, call, environment, grid)
        refusals += refused_steps(kernel, environment, grid)
        emitted, num_programs, specialized = self._emitted(kernel, call, environment, chosen)
        if num_programs == 0:
            return Plan(run_nothing)
        path = write_source(kernel.name, emitted.text)
        function = load(emitted.text, kernel.name, path, emitted.externs)
        function.fn.__globals__["range"] = _rounds
        workspace = _workspace(specialized) if specialized else {}

        def run(stream: int, *values: Any) -> None:
            given = _by_parameter(kernel, call, values)
            arguments = {}
            for parameter in emitted.parameters:
                if parameter.kind in workspace:
                    arguments[parameter.name] = workspace[parameter.kind]
                    continue
                value = _value(parameter, call, environment, given)
                if parameter.kind == "descriptor":
                    value = _descriptor(value, specialized.described[parameter.name])
                arguments[parameter.name] = value
            with explained(kernel, environment), _told():
                function[(num_programs,)](**arguments)
            assert not any(workspace.get("arrivals", ())), "a counter is not 0 again"

        return Plan(guarded(kernel, run, refusals))

    def _emitted(
        self, kernel: Any, call: Call, environment: Any, chosen: Any
    ) -> tuple[Emitted, int, Specialized | None]:
        """The source, the number of its programs, and what else a launch is given."""
        if self._is_specialised:
            # The source of the whole class of sizes, where there is one.
            general = general_call(kernel, call)
            if self._seed is not None and self._seed % 3 == 0:
                # As ahead of time.
                general = None
            decisive = general or call
            standing = {**kernel.environment(decisive), **chosen}
            options = self._options(kernel, decisive, standing)
            values = tuple((kernel.names[symbol], value) for symbol, value in chosen.items())
            config = settled(Config(values, 4, 3, options))
            specialized = specialize(kernel, call, config, general)
            launched = specialized.num_programs
            if specialized.is_persistent:
                # As on a device that holds few at a time.
                launched = min(launched, 3)
            return specialized.emitted, launched, specialized
        grid = kernel.verified_grid(environment)
        # All that the source cannot do without: an empty tile has another width, and what leaves its
        # level is asked.
        facts = facts_of(kernel, environment, grid)
        types = {name: argument.dtype for name, argument in call.arguments.items()} | call.scalars
        booleans = frozenset(name for name, dtype in types.items() if dtype.name == "bool")
        facts = CallFacts(
            empty=facts.empty,
            booleans=booleans,
            beside_float64=facts.with_types(types).beside_float64,
            has_unsigned=facts.with_types(types).has_unsigned,
            narrowest=facts.with_types(types).narrowest,
            wide=facts.wide,
            far=facts.far,
            is_long=facts.is_long,
            outsized=facts.outsized,
            passed=facts.passed,
            magnitudes=facts.magnitudes,
            beyond=facts.beyond,
        )
        return emit(replace(generic(kernel), facts=facts)), math.prod(grid), None

    def _options(self, kernel: Any, call: Call, environment: Any) -> tuple[tuple[str, int], ...]:
        """The options of a call, as `Config.options`."""
        given = {**choosing.fixed(), **_LEFT_OUT}
        found, *_ = choosing.choices(kernel, call, environment, _DEVICE, given)
        if self._seed is None:
            return found
        chosen, known = {**choosing.defaults(), **dict(found)}, choosing.defaults().items()
        # One after the other, in an order of the seed's: where two exclude each other, either may win.
        drawn = {
            name: value for name, value in sorted(_VALUES, key=self._rank) if name not in given
        }
        for name, value in drawn.items():
            tried = tuple(sorted({**chosen, name: value}.items() - known))
            if choosing.are_right(kernel, call, environment, _DEVICE, tried):
                found, chosen[name] = tried, value
        return found

    def _drawn_meta(self, kernel: Any, known: Any) -> dict[Any, int]:
        """Values of meta symbols that fit a call."""

        def values(config: Config) -> dict[Any, int]:
            return {symbol: config[kernel.names[symbol]] for symbol in kernel.meta_symbols}

        def check(config: Config) -> None:
            environment = {**known, **values(config)}
            check_tiles(kernel, environment)
            kernel.verified_grid(environment)

        return values(max(fitting(values_of(kernel), check), key=self._rank))

    def _rank(self, item: Any) -> float:
        """A place among all items that does not depend on which others there are."""
        return random.Random(f"{self._seed} {item}").random()


def _workspace(specialized: Specialized) -> dict[str, Any]:
    """The counters and the room for sums of programs that share a reduction."""
    return {
        "arrivals": torch.zeros(specialized.num_programs, dtype=torch.int32),
        "partials": torch.full((specialized.workspace // 4,), torch.nan),
    }


def _by_parameter(kernel: Any, call: Call, values: tuple[Any, ...]) -> dict[tuple[str, str], Any]:
    """The launch's values by the parameter's name and what of it they are."""
    rest, given = iter(values), {}
    for parameter in kernel.parameters:
        if parameter.kind == "tensor":
            given["pointer", parameter.name] = next(rest)
            if parameter.source.jagged_dim is not None:
                given["offsets", parameter.name] = next(rest)
        elif parameter.kind == "scalar":
            given["scalar", parameter.name] = next(rest)
        elif parameter.kind == "constexpr":
            value = call.constants.get(parameter.name, parameter.value)
            # The emitted source knows an enumeration by its values.
            value = value.value if isinstance(value, enum.Enum) else value
            given["constexpr", parameter.name] = value
    return given


def _value(
    parameter: KernelParameter, call: Call, environment: Any, given: dict[tuple[str, str], Any]
) -> Any:
    """What the emitted function is given for a parameter."""
    if parameter.symbol is not None:
        return int(parameter.symbol.evaluate(environment))
    kind = "pointer" if parameter.kind == "descriptor" else parameter.kind
    value = given[kind, parameter.parameter]
    if kind == "pointer":
        argument = call.arguments[parameter.parameter]
        return _tensor_at(value, _extent(argument), _TORCH_DTYPES[argument.dtype.name])
    if parameter.kind == "offsets":
        return _tensor_at(value, call.arguments[parameter.parameter].shape[0] + 1, torch.int64)
    if isinstance(value, int | float) and kind == "scalar":
        return _number(value, tl.str_to_ty(call.scalars[parameter.parameter].signature, None))
    return value


def _number(value: float, dtype: Any) -> Any:
    """A number as a device has it, of a type; the interpreter leaves it Python's."""
    held = np.array([value], triton.runtime.interpreter._get_np_dtype(dtype))
    return tl.tensor(triton.runtime.interpreter.TensorHandle(held, dtype), dtype)


def _descriptor(base: torch.Tensor, description: Description) -> Any:
    """What Triton's interpreter takes for a descriptor."""
    from triton.tools.tensor_descriptor import TensorDescriptor

    return TensorDescriptor(
        base, list(description.shape), list(description.strides), list(description.extents)
    )


def _extent(argument: Argument) -> int:
    """How many elements there are from a tensor's first to its last."""
    # A jagged tensor's last sequence ends wherever it does: the interpreter checks no bounds.
    return 1 + sum(
        (size - 1) * stride for size, stride in zip(argument.shape, argument.strides, strict=True)
    )


def _tensor_at(address: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """A view of so many elements in memory; an empty tensor may have no address."""
    if address == 0:
        return torch.empty(1, dtype=dtype)
    content = (ctypes.c_char * (max(count, 1) * dtype.itemsize)).from_address(address)
    return torch.frombuffer(content, dtype=dtype)


def results(
    is_specialised: bool, examples: tuple[Example, ...], seed: int | None = None
) -> dict[str, Any]:
    """How many cases ran, and what is wrong by case; each case draws from the seed after the last one's."""
    ran, failures = 0, {}

    for example in examples:
        for label, parameters in example.small.items():
            for dtype in (torch.float32, torch.float16):
                for layout in LAYOUTS if label == "odd" else LAYOUTS[:1]:
                    backend = Interpreter(is_specialised, None if seed is None else seed + ran)
                    plugins.backend_for = lambda kind, backend=backend: backend
                    ran += 1
                    try:
                        check(example.name, parameters, Maker(dtype, layout=layout))
                    except Exception as error:
                        case = f"{example.name}, {label}, {dtype}, {layout}"
                        failures[case] = f"{type(error).__name__}: {error}"

    return {"ran": ran, "failures": failures}


if __name__ == "__main__":
    variant, table, *seed = sys.argv[1:]
    print(json.dumps(results(variant == "specialised", TABLES[table], *map(int, seed))))
