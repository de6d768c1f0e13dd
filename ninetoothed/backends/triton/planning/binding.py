"""From sizes to what launches with them: a kernel is planned once, and bound to each call's sizes."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.analysis.boxes import GRANULE
from ninetoothed.backends.triton.runtime.descriptor_cache import remembering
from ninetoothed.backends.triton.runtime.workspace import COUNTER_BYTES, workspaces
from ninetoothed.backends.triton.specialization.size_classes import Classes, Numbers
from ninetoothed.bounded import keep
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.agreement import check_meetings
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import FUNCTIONS
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.requirements import requirements

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.specialized import Specialized
    from ninetoothed.backends.triton.runtime.driver import Launchable
    from ninetoothed.kernels.definition import Definition

Run = Callable[..., None]

#: So many classes a family remembers.
_MOST_PLANNED = 1024

#: What tells a jagged tensor's offsets from its values.
OFFSETS = " offsets"


@dataclass(frozen=True)
class Binder:
    """What makes the `Plan.run` of sizes.

    Attributes:
        symbols: the sizes and strides that it takes.
        bind: gives the run for their values.
    """

    symbols: tuple[Symbol, ...]
    bind: Callable[[Sequence[int]], Run]

    def run(self, environment: Mapping[Symbol, int]) -> Run:
        """What launches with the sizes and strides of a call."""
        return self.bind([environment[symbol] for symbol in self.symbols])


def value_names(kernel: Definition) -> list[str]:
    """The names of what a plan is called with, after the stream."""
    names = []
    for parameter in kernel.parameters:
        if parameter.kind in ("tensor", "scalar"):
            names.append(parameter.name)
        if parameter.kind == "tensor" and parameter.source.jagged_dim is not None:
            names.append(f"{parameter.name}{OFFSETS}")
    return names


def binder_of(
    kernel: Definition,
    call: Call,
    specialized: Specialized,
    launchable: Launchable,
    known: Mapping[Symbol, int],
) -> Binder:
    """The binder of a kernel, generated: sizes and strides put in, the C launcher called.

    Args:
        call: one that it is for.
        known: the values of symbols that are the same for all; where they are all symbols, there is one.
    """
    # Not by the parameters' names: the C launcher's arguments have names too.
    values = {name: f"value_{place}" for place, name in enumerate(value_names(kernel))}
    expressions = _Expressions(known)
    arguments: list[str] = []
    first: list[str] = []
    lines: list[str] = []
    after: list[str] = []
    names: dict[str, object] = {"remembering": remembering}
    for place, parameter in enumerate(specialized.run_time_parameters):
        if parameter.kind == "symbol":
            assert parameter.symbol is not None
            first.append(f"integer_{place} = {expressions.text(parameter.symbol)}")
            arguments.append(f"integer_{place}")
        elif parameter.kind == "descriptor":
            address = values[parameter.parameter or ""]
            source = kernel.program.parameter(parameter.parameter or "").source
            sizes, strides = [], []
            dims = specialized.boxes[parameter.name].dims
            granule = GRANULE // call.arguments[parameter.parameter or ""].dtype.itemsize
            for dim in dims:
                size = expressions.text(source.shape[dim])
                stride = expressions.text(source.strides[dim])
                # Along one element nothing is ever stepped.
                is_last = dim == dims[-1]
                sizes.append(size)
                strides.append(stride if is_last else f"({stride} if {size} > 1 else {granule})")
            names[f"describe_{place}"] = functools.partial(launchable.describe, parameter.name)
            shape = [f"size_{place}_{number}" for number in range(len(sizes))]
            steps = [f"stride_{place}_{number}" for number in range(len(sizes))]
            first += [f"{name} = {text}" for name, text in zip(shape, sizes)]
            first += [f"{name} = {text}" for name, text in zip(steps, strides)]
            made = f"describe_{place}(({', '.join(shape)},), ({', '.join(steps)},))"
            first.append(f"known_{place}, make_{place} = remembering({made})")
            found = f"descriptor_{place}"
            lines.append(f"{found} = known_{place}.get({address}) or make_{place}({address})")
            arguments += [found, *shape, *steps]
        elif parameter.kind in ("arrivals", "partials"):
            skipped = COUNTER_BYTES if parameter.kind == "partials" else 0
            arguments.append(f"workspace + {skipped}")
        else:
            suffix = OFFSETS if parameter.kind == "offsets" else ""
            arguments.append(values[f"{parameter.parameter}{suffix}"])
    if specialized.workspace:
        names["borrow"] = workspaces(launchable.index, launchable.backend).borrow
        lines.append(f"workspace, give_back = borrow(stream, {specialized.workspace})")
        after = ["if give_back:", "    give_back(workspace, stream)"]
    programs = expressions.text(specialized.programs)
    if specialized.is_persistent:
        programs = f"min({programs}, {launchable.resident})"
    first.append(f"programs = {programs}")
    namespace = launchable.names
    if launchable.scratch_size:
        namespace = {"launch_with_scratch": launchable.run}
        lines.append(f"launch_with_scratch(programs, stream, {', '.join(arguments)})")
    else:
        lines.append(launchable.call("programs", "stream", arguments))
    body = "\n        ".join([*lines, *after])
    head = "\n    ".join([*expressions.unpacking(), *first])
    # Defaults, not variables of the function around: those are objects that the collector follows, and
    # runs are many.
    computed = [target for line in first for target in line.partition(" = ")[0].split(", ")]
    known_here = "".join(f", {target}={target}" for target in computed)
    text = (
        f"def bind(numbers):\n    {head}\n"
        f"    def run(stream, {', '.join(values.values())}{known_here}):\n        {body}\n"
        "    return run\n"
    )
    namespace = {**namespace, **FUNCTIONS_BY_NAME, **names}
    exec(compile(text, f"<run of {kernel.name}>", "exec"), namespace)
    return Binder(tuple(expressions.names), namespace["bind"])  # type: ignore[arg-type]


#: What `Symbol.ast` calls that Python does not have.
FUNCTIONS_BY_NAME = {"padded": FUNCTIONS["padded"], "min": min, "max": max}


class _Expressions:
    """Expressions over sizes and strides as Python's, under names of their own."""

    def __init__(self, known: Mapping[Symbol, int]) -> None:
        self._known = known
        self.names: dict[Symbol, str] = {}

    def text(self, expression: Any) -> str:
        """The expression as Python text."""
        symbol = as_symbol(expression)
        if all(leaf in self._known for leaf in symbol.leaves()):
            return repr(int(symbol.evaluate(self._known)))
        tree = symbol.substitute(self._known).ast(self._name)
        return f"({ast.unparse(ast.fix_missing_locations(tree))})"

    def unpacking(self) -> list[str]:
        """What gives the names their values."""
        listed = "".join(f"{name}, " for name in self.names.values())
        return [f"({listed}) = numbers"] if self.names else []

    def _name(self, leaf: Symbol) -> ast.expr:
        return ast.Name(self.names.setdefault(leaf, f"number_{len(self.names)}"), ast.Load())


class Family:
    """What runs calls that differ in sizes and strides alone, where their class was planned.

    Args:
        kernel: it.
        call: one of them.
        classes: of the kernel's sizes.
    """

    def __init__(self, kernel: Definition, call: Call, classes: Classes) -> None:
        self._kernel, self._call, self._classes = kernel, call, classes
        self._planned: dict[Numbers, Callable[[dict[Symbol, int]], Run]] = {}
        self._symbols = [
            tuple(as_symbol(number) for number in (*p.source.shape, *p.source.strides))
            for p in kernel.tensor_parameters
        ]

    def add(
        self,
        numbers: Numbers,
        binder: Binder,
        known: Mapping[Symbol, int],
        finish: Callable[[Run], Run],
    ) -> None:
        """A class is planned.

        Args:
            numbers: those that stand for it.
            known: the values of the symbols that are neither sizes nor strides.
            finish: what is put around each run.
        """
        check = self._check(known)

        def planned(environment: dict[Symbol, int]) -> Run:
            environment.update(known)
            check(environment)
            return finish(binder.run(environment))

        self._planned.pop(numbers, None)
        keep(self._planned, numbers, planned, _MOST_PLANNED)

    def __call__(self, numbers: Numbers) -> Run | None:
        """The `Plan.run` for these sizes and strides; None where they must be planned or refused."""
        standing = self._classes.standing_for(numbers)
        planned = None if standing is None else self._planned.get(standing)
        if planned is None:
            return None
        environment: dict[Symbol, int] = {}
        for symbols, (shape, strides) in zip(self._symbols, numbers):
            environment.update(zip(symbols, (*shape, *strides)))
        try:
            return planned(environment)
        except NineToothedError:
            return None

    def _check(self, known: Mapping[Symbol, int]) -> Callable[[dict[Symbol, int]], None]:
        """What raises where sizes do not fit the arrangement, or tiles that meet differ."""
        kernel, call = self._kernel, self._call
        expressions = _Expressions(known)
        needed = dict.fromkeys(
            (asked.expression, asked.low, asked.high)
            for requirement in requirements(kernel.arrangement, kernel.arranged)
            if (asked := requirement.given(known)) is not None
        )
        tests = [
            f"{low} <= {expressions.text(expression)}{'' if high is None else f' <= {high}'}"
            for expression, low, high in needed
        ]
        grid = "".join(f"{expressions.text(simplify(size))}, " for size in kernel.grid)
        head = "\n    ".join(expressions.unpacking())
        text = (
            f"def check(numbers):\n    {head}\n"
            f"    return ({grid}) if {' and '.join(tests) or True} else None\n"
        )
        namespace: dict[str, Any] = dict(FUNCTIONS_BY_NAME)
        exec(compile(text, f"<check of {kernel.name}>", "exec"), namespace)
        symbols, grid_of = tuple(expressions.names), namespace["check"]

        def check(environment: dict[Symbol, int]) -> None:
            grid = grid_of([environment[symbol] for symbol in symbols])
            if grid is None:
                raise NineToothedError("the sizes do not fit the arrangement")
            check_meetings(kernel, call, environment, grid)

        return check


def families_key(kernel: Definition, call: Call) -> tuple[Any, ...]:
    """What calls that differ in sizes and strides alone have in common."""
    arguments = tuple(
        (argument.dtype, argument.alignment, len(argument.shape))
        for argument in call.arguments.values()
    )
    constants = tuple((n, type(v), v) for n, v in call.constants.items())
    return arguments, tuple(call.scalars.items()), constants, call.device
