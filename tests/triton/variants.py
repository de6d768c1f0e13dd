"""Variants that are compiled ahead of their calls, in Triton's interpreter: all that a call may take."""

from __future__ import annotations

import math
from typing import Any

import torch
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from ninetoothed.aot.unit import Unit
from ninetoothed.backends.base import Backend, Call, Plan, run_nothing
from ninetoothed.backends.triton.ahead.variants import edition_of
from ninetoothed.backends.triton.compiler.compile import load
from ninetoothed.cache import write_source
from ninetoothed.kernels.ahead import Edition, Fixed, LaunchArgument, Variant, offsets_of
from ninetoothed.kernels.meetings.agreement import check_meetings, guarded
from tests.aot.making import tensor_map
from tests.aot.reference import View, chosen, environment
from tests.examples.interpreter import _TORCH_DTYPES as TORCH_DTYPES
from tests.examples.interpreter import _by_parameter as by_parameter
from tests.examples.interpreter import _extent as extent
from tests.examples.interpreter import _number as number
from tests.examples.interpreter import _tensor_at as tensor_at


class Ahead(Backend):
    """Launches one of the variants that a call may take.

    Attributes:
        place: which, counted from the one that assumes nothing.
        name_of_variant: what was launched.
        has_run: whether it could be.
        is_last: whether the call may take none that assumes more.
    """

    name = "ahead"
    device_kinds = ("cpu",)

    def __init__(self, place: int) -> None:
        self.place, self.name_of_variant = place, ""
        self.has_run = self.is_last = True

    def plan(self, kernel: Any, call: Call, values: tuple[Any, ...] | None = None) -> Plan:
        touched = {p.name for p in kernel.tensor_parameters} - kernel.untouched
        dtypes = {name: call.arguments[name].dtype for name in touched} | dict(call.scalars)
        fixed = Fixed(dtypes, call.constants)
        edition = edition_of(kernel, fixed, "sm_90")
        unit = Unit(kernel.name, kernel, fixed, (edition,), ())

        def run(stream: int, *values: Any) -> None:
            self._launch(unit, edition, call, by_parameter(kernel, call, values))

        known = kernel.environment(call) | dict(edition.known)
        grid = kernel.verified_grid(known)
        refusals = check_meetings(kernel, call, known, grid)
        return Plan(guarded(kernel, run if math.prod(grid) else run_nothing, refusals))

    def _launch(
        self, unit: Unit, edition: Edition, call: Call, given: dict[tuple[str, str], Any]
    ) -> None:
        views = {
            name: View(argument.shape, argument.strides, given["pointer", name])
            for name, argument in call.arguments.items()
        }
        for name, argument in call.arguments.items():
            if ("offsets", name) in given:
                where = given["offsets", name]
                views[offsets_of(name)] = View((argument.shape[0] + 1,), (1,), where, "int64")
        known = environment(unit, edition, views)
        last = len(edition.variants) - 1
        strongest = chosen(edition, known, views)
        self.is_last = last - self.place <= strongest
        variant = edition.variants[last - self.place]
        self.name_of_variant = variant.name
        # Values that fit 32 bits have another type in the variant for those that do not.
        takes_wider = variant.name == "plain" and any(
            other.name == "valued" for other in edition.variants[strongest:]
        )
        self.has_run = "gluon" not in variant.source and not takes_wider
        if not self.has_run:
            return
        path = write_source(unit.name, variant.source)
        function = load(variant.source, unit.name, path, dict(variant.work.externs))
        arguments = dict(variant.work.constants)
        for argument in variant.arguments:
            # What a launch has after a descriptor has no name.
            if argument.name in function.arg_names:
                arguments[argument.name] = _value(argument, variant, call, known, given)
        programs = math.prod(unit.kernel.verified_grid(known))
        if variant.programs is not None:
            programs = variant.programs.evaluate(known)
        # As on a device that holds few at a time.
        function[(min(programs, 3) if variant.work.is_persistent else programs,)](**arguments)


def _value(argument: LaunchArgument, variant: Variant, call: Call, known: Any, given: Any) -> Any:
    """What a function is given in one place."""
    if argument.in_workspace is not None:
        assert variant.workspace is not None
        if argument.in_workspace == 0:
            return torch.zeros(variant.workspace.zeros // 4, dtype=torch.int32)
        rest = variant.workspace.size.evaluate(known) - argument.in_workspace
        return torch.full((rest // 4,), math.nan)
    if argument.expression is not None:
        return number(argument.expression.evaluate(known), tl.str_to_ty(argument.type, None))
    name = argument.parameter or ""
    for jagged, tensor in call.arguments.items():
        if name == offsets_of(jagged):
            return tensor_at(given["offsets", jagged], tensor.shape[0] + 1, torch.int64)
    if name in call.scalars:
        return number(given["scalar", name], tl.str_to_ty(argument.type, None))
    tensor = call.arguments[name]
    held = tensor_at(given["pointer", name], extent(tensor), TORCH_DTYPES[tensor.dtype.name])
    if argument.described is None:
        return held
    return TensorDescriptor(
        held,
        [size.evaluate(known) for size in argument.described.shape],
        [stride.evaluate(known) for stride in argument.described.strides],
        list(tensor_map(argument.type).extents),
    )
