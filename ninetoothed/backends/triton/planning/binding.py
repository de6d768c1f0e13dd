"""From sizes to what launches with them: a kernel is planned once, and bound to each call's sizes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.analysis.boxes import GRANULE
from ninetoothed.backends.triton.runtime.workspace import COUNTER_BYTES, workspaces
from ninetoothed.backends.triton.specialization.size_classes import Classes, Numbers
from ninetoothed.bounded import keep
from ninetoothed.errors import NineToothedError
from ninetoothed.kernels.assertions import assertions
from ninetoothed.kernels.meetings.agreement import check_meetings, equal_sizes
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Symbol, as_symbol
from ninetoothed.symbols.operators import FUNCTIONS
from ninetoothed.symbols.simplify import simplify
from ninetoothed.tensors.requirements import requirements

if TYPE_CHECKING:
    from ninetoothed.backends.base import Call
    from ninetoothed.backends.triton.compiler.specialized import Specialized
    from ninetoothed.backends.triton.printers.emission import KernelParameter
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
        launches_alone: a run is a launch and nothing else, whichever device is the current one.
    """

    symbols: tuple[Symbol, ...]
    bind: Callable[[Sequence[int]], Run]
    launches_alone: bool

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
    expressions = _Expressions(known)
    given = _Arguments(kernel, call, specialized, launchable, expressions)
    programs = expressions.text(specialized.programs)
    if specialized.is_persistent:
        programs = f"min({programs}, {launchable.resident})"
    computed = [*given.computed, f"programs = {programs}"]
    needs_memory = specialized.workspace or launchable.scratch_size
    launches_alone = launchable.bind is not None and not needs_memory
    lines = given.bound() if launches_alone else given.called(computed)
    body = "\n    ".join([*expressions.unpacking(), *computed, *lines])
    namespace = {**FUNCTIONS_BY_NAME, **given.names}
    exec(compile(f"def bind(numbers):\n    {body}\n", f"<run of {kernel.name}>", "exec"), namespace)
    symbols, bind = tuple(expressions.names), namespace["bind"]
    return Binder(symbols, bind, launches_alone)  # type: ignore[arg-type]


class _Arguments:
    """The arguments of a launch, as expressions of a generated function.

    Attributes:
        computed: assignments of what is computed once for sizes.
        names: what the text uses, by name.
    """

    def __init__(
        self,
        kernel: Definition,
        call: Call,
        specialized: Specialized,
        launchable: Launchable,
        expressions: _Expressions,
    ) -> None:
        self._kernel, self._call, self._specialized = kernel, call, specialized
        self._launchable, self._expressions = launchable, expressions
        # Not by the parameters' names: the C launcher's arguments have names too.
        self._values = {name: f"value_{place}" for place, name in enumerate(value_names(kernel))}
        self._listed: list[str] = []
        #: For each descriptor the address, and the names of what makes it and of its sizes and strides.
        self._described: dict[str, tuple[str, ...]] = {}
        self.computed: list[str] = []
        self.names: dict[str, object] = {}
        for place, parameter in enumerate(specialized.run_time_parameters):
            if parameter.kind == "symbol":
                assert parameter.symbol is not None
                self.computed.append(f"integer_{place} = {expressions.text(parameter.symbol)}")
                self._listed.append(f"integer_{place}")
            elif parameter.kind == "descriptor":
                self._add_descriptor(place, parameter)
            elif parameter.kind in ("arrivals", "partials"):
                skipped = COUNTER_BYTES if parameter.kind == "partials" else 0
                self._listed.append(f"workspace + {skipped}")
            else:
                suffix = OFFSETS if parameter.kind == "offsets" else ""
                self._listed.append(self._values[f"{parameter.parameter}{suffix}"])

    def _add_descriptor(self, place: int, parameter: KernelParameter) -> None:
        of, text = parameter.parameter, self._expressions.text
        source = self._kernel.program.parameter(of).source
        dims = self._specialized.boxes[parameter.name].dims
        granule = GRANULE // self._call.arguments[of].dtype.itemsize
        sizes = [text(source.shape[dim]) for dim in dims]
        strides = [text(source.strides[dim]) for dim in dims]
        # Along one element nothing is ever stepped.
        strides[:-1] = [
            f"({stride} if {size} > 1 else {granule})"
            for stride, size in zip(strides[:-1], sizes[:-1])
        ]
        self.names[f"describe_{place}"] = self._launchable.describing(parameter.name)
        shape = [f"size_{place}_{number}" for number in range(len(dims))]
        steps = [f"stride_{place}_{number}" for number in range(len(dims))]
        pairs = zip([*shape, *steps], [*sizes, *strides])
        self.computed += [f"{name} = {value}" for name, value in pairs]
        self.computed.append(f"sizes_{place} = ({', '.join(shape)},)")
        self.computed.append(f"strides_{place} = ({', '.join(steps)},)")
        made_by = f"describe_{place}", f"sizes_{place}", f"strides_{place}"
        self._described[f"descriptor_{place}"] = self._values[of], *made_by
        self._listed += [f"descriptor_{place}", *shape, *steps]

    def bound(self) -> list[str]:
        """Where each argument is a value of the call, a descriptor of one or a number: C does it all."""
        given = list(self._values.values())
        self.names["bound"] = self._launchable.bind
        places, constants = [], ""
        for argument in self._listed:
            value, *making = self._described.get(argument, (argument,))
            places.append(given.index(value) if value in given else -1)
            if making:
                constants += f"({', '.join(making)}), "
            elif value not in given:
                constants += f"{value}, "
        self.names["places"] = tuple(places)
        return [f"return bound(programs, {len(given)}, places, ({constants}))"]

    def called(self, computed: Sequence[str]) -> list[str]:
        """A function that launches, with a workspace where one is needed."""
        launchable, after = self._launchable, list[str]()
        lines = [
            f"{found} = {describe}({address}, {sizes}, {strides})"
            for found, (address, describe, sizes, strides) in self._described.items()
        ]
        if self._specialized.workspace:
            self.names["borrow"] = workspaces(launchable.index, launchable.backend).borrow
            lines.append(f"workspace, give_back = borrow(stream, {self._specialized.workspace})")
            after = ["if give_back:", "    give_back(workspace, stream)"]
        if launchable.scratch_size:
            self.names["launch_with_scratch"] = launchable.run
            lines.append(f"launch_with_scratch(programs, stream, {', '.join(self._listed)})")
        else:
            self.names.update(launchable.names)
            lines.append(launchable.call("programs", "stream", self._listed))
        # Defaults, not variables of the function around: those are objects that the collector follows,
        # and runs are many.
        known = [line.partition(" = ")[0] for line in computed]
        defaults = "".join(f", {target}={target}" for target in known)
        head = f"def run(stream, {', '.join(self._values.values())}{defaults}):"
        return [head, *(f"    {line}" for line in [*lines, *after]), "return run"]


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
        self._planned: dict[Numbers, Callable[[list[int]], Run | None]] = {}
        sources = [parameter.source for parameter in kernel.tensor_parameters]
        symbols = [as_symbol(n) for source in sources for n in (*source.shape, *source.strides)]
        #: Where each is among a call's sizes and strides, tensor by tensor.
        self._places = {symbol: place for place, symbol in enumerate(symbols)}

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
        fits, bind = self._check(known), binder.bind
        places = [self._places[symbol] for symbol in binder.symbols]

        def planned(flat: list[int]) -> Run | None:
            return finish(bind([flat[place] for place in places])) if fits(flat) else None

        self._planned.pop(numbers, None)
        keep(self._planned, numbers, planned, _MOST_PLANNED)

    def __call__(self, numbers: Numbers) -> Run | None:
        """The `Plan.run` for these sizes and strides; None where they must be planned or refused."""
        standing = self._classes.standing_for(numbers)
        planned = None if standing is None else self._planned.get(standing)
        if planned is None:
            return None
        flat: list[int] = []
        for shape, strides in numbers:
            flat += shape
            flat += strides
        return planned(flat)

    def _check(self, known: Mapping[Symbol, int]) -> Callable[[list[int]], bool]:
        """What says whether sizes fit the arrangement and what is asserted, and tiles that meet have the same
        elements."""
        kernel, call, places = self._kernel, self._call, self._places
        expressions = _Expressions(known)
        asserted = [assertion.requirement for assertion in assertions(kernel)]
        needed = dict.fromkeys(
            (asked.expression, asked.low, asked.high)
            for requirement in (*requirements(kernel.arrangement, kernel.arranged), *asserted)
            if (asked := requirement.given(known)) is not None
        )
        tests = [
            f"{low} <= {expressions.text(expression)}{'' if high is None else f' <= {high}'}"
            for expression, low, high in needed
        ]
        pairs = equal_sizes(kernel)
        leaves = {leaf for pair in pairs for size in pair for leaf in size.leaves()}
        equal = ["False"]
        if leaves <= places.keys() | known.keys():
            equal = [f"{expressions.text(one)} == {expressions.text(size)}" for one, size in pairs]
        grid = "".join(f"{expressions.text(simplify(size))}, " for size in kernel.grid)
        head = "\n    ".join(expressions.unpacking())
        text = (
            f"def check(numbers):\n    {head}\n"
            f"    if not ({' and '.join(tests) or True}):\n        return None\n"
            f"    return True if {' and '.join(equal) or True} else ({grid})\n"
        )
        namespace: dict[str, Any] = dict(FUNCTIONS_BY_NAME)
        exec(compile(text, f"<check of {kernel.name}>", "exec"), namespace)
        taken, grid_of = [places[symbol] for symbol in expressions.names], namespace["check"]

        def fits(flat: list[int]) -> bool:
            grid = grid_of([flat[place] for place in taken])
            if grid is None or grid is True:
                return grid is True
            environment = {symbol: flat[place] for symbol, place in places.items()}
            try:
                return not check_meetings(kernel, call, {**environment, **known}, grid)
            except NineToothedError:
                return False

        return fits


def families_key(kernel: Definition, call: Call) -> tuple[Any, ...]:
    """What calls that differ in sizes and strides alone have in common."""
    arguments = tuple(
        (argument.dtype, argument.alignment, len(argument.shape))
        for argument in call.arguments.values()
    )
    constants = tuple((n, type(v), v) for n, v in call.constants.items())
    return arguments, tuple(call.scalars.items()), constants, call.device, call.scales
