"""What `make` knows of a kernel: arrangement, program, parameters and names.

A `Definition` never changes. It is what analyses, emission and tuning take; it knows no frontend, no
backend, no plan and no device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ninetoothed import threads
from ninetoothed.errors import (
    ArgumentError,
    ArrangementError,
    Location,
    caller_location,
    located_where_too_deep,
)
from ninetoothed.kernels.checks import check_choices, check_count, check_sequences
from ninetoothed.kernels.naming import all_symbols, named_symbols, written_symbols
from ninetoothed.parsing import parse
from ninetoothed.program.program import Program
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.tensors.arrange import NO_VALUE, Arrangement, Parameter
from ninetoothed.tensors.level import owner_of

if TYPE_CHECKING:
    from ninetoothed.kernels.call import Call

Integers = int | Sequence[int] | None


@dataclass(frozen=True, eq=False)
class Definition:
    """A kernel without a device.

    Attributes:
        name: the kernel's name.
        application: the user's function.
        arrangement: parameters, grid and accesses.
        program: what one program does.
        symbols: the constexpr symbols that a call gives, after the parameters.
        meta_symbols: the symbols that the tuner chooses.
        names: how each symbol, size and stride is called in generated code.
        num_warps, num_stages: what the tuner may choose from; None where that is open.
        max_num_configs: how many configurations the tuner may consider; None for all.
        is_optimized: whether the passes have run over the program.
        answers: of `analysis`.
    """

    name: str
    application: Callable[..., Any]
    arrangement: Arrangement
    program: Program
    symbols: tuple[Symbol, ...]
    meta_symbols: tuple[Symbol, ...]
    names: Mapping[Symbol, str]
    num_warps: Integers = None
    num_stages: Integers = None
    max_num_configs: int | None = None
    is_optimized: bool = False
    answers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The application's parameters."""
        return self.arrangement.parameters

    @property
    def grid(self) -> tuple[Expression, ...]:
        """The outermost shape: one program runs for each element of it."""
        return self.arrangement.grid

    @threads.cached_property
    def tensor_parameters(self) -> tuple[Parameter, ...]:
        return _tensors(self.arrangement)

    @threads.cached_property
    def call_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that a call gives arguments for."""
        return tuple(p for p in self.parameters if p.kind != "constant")

    @threads.cached_property
    def call_names(self) -> tuple[str, ...]:
        """The names of a call's arguments, in order."""
        return tuple(p.name for p in self.call_parameters) + tuple(
            self.names[symbol] for symbol in self.symbols
        )

    @threads.cached_property
    def defaults(self) -> dict[str, Any]:
        """The defaults of those arguments that may be left out."""
        return {
            p.name: p.value
            for p in self.call_parameters
            if p.kind == "constexpr" and p.value is not NO_VALUE
        }

    @threads.cached_property
    def optimized(self) -> Program:
        """The program after all passes."""
        from ninetoothed import passes

        return self.program if self.is_optimized else passes.run(self.program)

    def environment(self, call: Call) -> dict[Symbol, int]:
        """The value of every size, stride and constexpr symbol in this call."""
        values: dict[Symbol, int] = {}
        for parameter in self.tensor_parameters:
            argument = call.arguments[parameter.name]
            source = parameter.source
            # What the program does not touch may have fewer dimensions than were declared.
            missing = source.ndim - len(argument.shape)
            for symbol, value in zip(source.strides, (*argument.strides, *[0] * missing)):
                values[as_symbol(symbol)] = value
            for size, value in zip(source.shape, (*argument.shape, *[1] * missing)):
                if isinstance(size, Symbol) and size.op == "leaf":
                    values.setdefault(size, value)
        for symbol in self.symbols:
            values[symbol] = call.constants[self.names[symbol]]
        return values

    def verified_grid(
        self, environment: Mapping[Symbol, int], call: Call | None = None
    ) -> tuple[int, ...]:
        """The grid for these values of all sizes and symbols.

        Args:
            call: whose constants decide what is touched; by default all that may be.

        Raises:
            ArrangementError: the meta-operations do not fit these sizes, or the outermost shapes
                differ.
        """
        try:
            touched = self._touched if call is None else self.touched(call.constants)
            return self.arrangement.verify(
                lambda e: int(as_symbol(e).evaluate(environment)), touched
            )
        except ArrangementError as error:
            # An operation points at the arrangement; without that, point at the call.
            location = error.location or caller_location()
            raise ArrangementError(f"kernel `{self.name}`: {error.message}", location) from None

    def touched(self, bound: Mapping[str, Any]) -> frozenset[str]:
        """The tensor parameters that the program, with these constants, touches."""
        constants = {p.name: bound[p.name] for p in self.call_parameters if p.kind == "constexpr"}
        return self.program.touched(constants) if constants else self._touched

    @threads.cached_property
    def _touched(self) -> frozenset[str]:
        return self.program.touched()

    @threads.cached_property
    def touched_parameters(self) -> tuple[Parameter, ...]:
        """The tensor parameters that the program may touch: the others' tiles are no matter."""
        return tuple(p for p in self.tensor_parameters if p.name in self._touched)

    @threads.cached_property
    def by_number(self) -> Definition:
        """The same kernel, right where dimensions of size 1 stand anywhere in the outermost shapes."""
        return replace(self, arrangement=self.arrangement.by_number())

    def untouched(self, bound: Mapping[str, Any]) -> frozenset[str]:
        """The tensor parameters that the program, with these constants, does not touch."""
        return frozenset(p.name for p in self.tensor_parameters) - self.touched(bound)


@located_where_too_deep("An expression of the kernel", ArrangementError)
def define(
    arrangement: Arrangement,
    application: Callable[..., Any],
    name: str,
    names: Mapping[Symbol, str] | None = None,
    num_warps: Integers = None,
    num_stages: Integers = None,
    max_num_configs: int | None = None,
) -> Definition:
    """Parses the application and names everything.

    Args:
        names: what the user calls the symbols.

    Raises:
        ArgumentError: the name or an option is not as it must be.
        ApplicationError: the application uses what cannot be compiled.
        ArrangementError: a size is of a tensor that is not among the arranged ones.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ArgumentError(f"kernel_name must be an identifier, not {name!r}")
    check_choices("num_warps", num_warps)
    check_choices("num_stages", num_stages)
    check_count("max_num_configs", max_num_configs)
    names = names or {}
    program = parse(application, arrangement.parameters, name)
    code = application.__code__
    location = Location(code.co_filename, code.co_firstlineno)
    arrangement = arrangement.among(program.always_touched() or program.touched(), location)
    check_sequences(program, arrangement)
    found = all_symbols(arrangement, program)
    tensors = _tensors(arrangement)
    inferred = {s for p in tensors for s in p.source.shape}
    written = [*names, *written_symbols(tensors)]
    ordered = dict.fromkeys([*(s for s in written if s in found), *found])
    symbols = tuple(
        s
        for s in ordered
        if s.leaf.role == "symbol" and not s.leaf.meta and (s.leaf.constexpr or s not in inferred)
    )
    _check_sources(name, location, tensors, found)
    return Definition(
        name,
        application,
        arrangement,
        program,
        symbols,
        tuple(s for s in found if s.leaf.role == "symbol" and s.leaf.meta),
        named_symbols(found, tensors, names, program),
        num_warps,
        num_stages,
        max_num_configs,
    )


def _tensors(arrangement: Arrangement) -> tuple[Parameter, ...]:
    return arrangement.tensors


def _check_sources(
    name: str,
    location: Location,
    tensors: Sequence[Parameter],
    symbols: Sequence[Symbol],
) -> None:
    """Every size that is used must belong to a tensor that a call is given."""
    known = {id(p.source) for p in tensors}
    for symbol in symbols:
        if symbol.leaf.role not in ("size", "stride"):
            continue
        owner = owner_of(symbol)
        if owner is None or id(owner) not in known:
            raise ArrangementError(
                f"the arrangement uses `{symbol}`, but the tensor that it belongs to is not "
                f"among the arranged ones, so no call of `{name}` gives its value; return "
                "that tensor too, and add a parameter for it",
                location,
            )
