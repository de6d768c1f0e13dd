"""What `make` knows of a kernel: arrangement, program, parameters and names.

A `Declaration` is a kernel whose compile-time constants are still open. They decide what the application
means, so that it has a `Definition` for each value of them. Neither ever changes what it says. A
`Definition` is what analyses, emission and tuning take; it knows no frontend, no backend, no plan and
no device.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, fields, replace
from types import FunctionType
from typing import Any

from ninetoothed import threads
from ninetoothed.errors import (
    ApplicationError,
    ArgumentError,
    ArrangementError,
    Location,
    NineToothedError,
    caller_location,
    located_where_too_deep,
)
from ninetoothed.kernels import checks
from ninetoothed.kernels.call import Call
from ninetoothed.kernels.constant_keys import constant_key
from ninetoothed.kernels.keeping import frozen, held
from ninetoothed.kernels.naming import (
    all_symbols,
    is_kernel_name,
    named_symbols,
    names_in,
    symbols_in,
    written_symbols,
)
from ninetoothed.parsing import Decisions, parse
from ninetoothed.parsing.source import begins_at, own_function
from ninetoothed.program.program import Program
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol, evaluated
from ninetoothed.tensors.arrange import NO_VALUE, Arrangement, Parameter
from ninetoothed.tensors.level import owner_of

Integers = int | Sequence[int] | None

#: A definition, or why there is none; and the constexpr symbols that would have decided something.
_Parsed = tuple["Definition | NineToothedError", Collection[Symbol]]

#: Past so many values of a kernel's constants the definitions used longest ago go.
MOST_DEFINITIONS = 64


@dataclass(frozen=True, eq=False)
class Declaration:
    """A kernel without a device, whatever its constants are.

    Attributes:
        name: the kernel's name.
        application: the user's function.
        frozen: the same, with its free names as they were when the kernel was made.
        arrangement: parameters, grid and accesses.
        symbols: the constexpr symbols that a call gives, after the parameters.
        meta_symbols: the symbols that the tuner chooses.
        names: how each symbol, size and stride is called in generated code.
        num_warps, num_stages: what the tuner may choose from; None where that is open.
        max_num_configs: how many configurations the tuner may consider; None for all.
        specialize: whether it is compiled for ``"classes"`` of sizes, or for all ``"sizes"`` apart.
        stores_apart: whether no call gives it memory to store to that it loads from too.
        functions: the functions that ``frozen`` was made of, each with what became of it.
        values: of the parameters that are constants, as they are kept.
    """

    name: str
    application: Callable[..., Any]
    frozen: Callable[..., Any]
    arrangement: Arrangement
    symbols: tuple[Symbol, ...]
    meta_symbols: tuple[Symbol, ...]
    names: Mapping[Symbol, str]
    num_warps: Integers = None
    num_stages: Integers = None
    max_num_configs: int | None = None
    specialize: str = "classes"
    stores_apart: bool = False
    functions: Mapping[Any, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)

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
        return self.arrangement.tensors

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
            if p.kind in ("scalar", "constexpr") and p.value is not NO_VALUE
        }

    @threads.cached_property
    def constants(self) -> tuple[str, ...]:
        """The parameters that are compile-time constants given at the call."""
        return tuple(p.name for p in self.call_parameters if p.kind == "constexpr")


@dataclass(frozen=True, eq=False)
class Definition(Declaration):
    """A kernel without a device, and what it does.

    Attributes:
        program: what one program does.
        is_optimized: whether the passes have run over the program.
        answers: of `analysis`, to questions about the kernel alone.
        further_answers: to those that have arguments.
    """

    program: Program = field(kw_only=True)
    is_optimized: bool = False
    answers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    further_answers: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def environment(self, call: Call) -> dict[Symbol, int]:
        """The value of every size, stride and constexpr symbol in this call."""
        values: dict[Symbol, int] = {}
        # What the program does not touch may have fewer dimensions than were declared, and says
        # nothing of a size that others share with it.
        for parameter in sorted(self.tensor_parameters, key=lambda p: p.name in self.untouched):
            argument = call.arguments[parameter.name]
            source = parameter.source
            missing = source.ndim - len(argument.shape)
            for symbol, value in zip(source.strides, (*argument.strides, *[0] * missing)):
                values.setdefault(as_symbol(symbol), value)
            for size, value in zip(source.shape, (*argument.shape, *[1] * missing)):
                if isinstance(size, Symbol) and size.op == "leaf":
                    values.setdefault(size, value)
        for symbol in self.symbols:
            values[symbol] = call.constants[self.names[symbol]]
        return values

    @threads.cached_property
    def optimized(self) -> Program:
        """The program after all passes."""
        from ninetoothed import passes

        return self.program if self.is_optimized else passes.run(self.program)

    def verified_grid(self, environment: Mapping[Symbol, int]) -> tuple[int, ...]:
        """The grid for these values of all sizes and symbols.

        Raises:
            ArrangementError: the meta-operations do not fit these sizes, or the outermost shapes
                differ.
        """
        try:
            return self.arrangement.verify(lambda e: evaluated(e, environment), self.arranged)
        except ArrangementError as error:
            # An operation points at the arrangement; without that, point at the call.
            location = error.location or caller_location()
            raise ArrangementError(f"kernel `{self.name}`: {error.message}", location) from None

    @threads.cached_property
    def arranged(self) -> frozenset[str]:
        """The tensor parameters that take part in the rule of arrangement."""
        return self.program.arranged

    @threads.cached_property
    def arranged_parameters(self) -> tuple[Parameter, ...]:
        """The tensor parameters that take part in it: the others' tiles are no matter."""
        return tuple(p for p in self.tensor_parameters if p.name in self.arranged)

    @threads.cached_property
    def by_number(self) -> Definition:
        """The same kernel, right where dimensions of size 1 stand anywhere in the outermost shapes."""
        return replace(self, arrangement=self.arrangement.by_number(self.arranged))

    @threads.cached_property
    def untouched(self) -> frozenset[str]:
        """The tensor parameters that the program does not touch."""
        return frozenset(p.name for p in self.tensor_parameters) - self.program.touched()

    @threads.cached_property
    def used_symbols(self) -> frozenset[Symbol]:
        """What the program, its tiles and its grid are computed from."""
        return frozenset(all_symbols(self.arrangement, self.program, self.arranged))


@dataclass(frozen=True, eq=False)
class Specializations:
    """The definitions of a kernel, one for each value of its constants, made when they are asked for.

    Attributes:
        declaration: what all of them have in common.
        plain: the one in which the constants are names, decided by the backend's compiler; or why
            there is none.
        undecided: the constexpr symbols whose values decide something in it.
    """

    declaration: Declaration
    plain: Definition | NineToothedError
    undecided: Collection[Symbol] = ()
    _known: OrderedDict[Any, _Parsed] = field(default_factory=OrderedDict, init=False)
    _lock: Any = field(default_factory=threads.lock, init=False)

    @threads.cached_property
    def may_have_scales(self) -> bool:
        """Whether it may make a difference which numbers of a call are scales."""
        return not isinstance(self.plain, Definition) or self.plain.program.has_lowest

    def of(self, constants: Mapping[str, Any]) -> Definition:
        """The kernel with these constants, which are hashable; parsed once for each.

        Args:
            constants: the constexpr parameters' values by name, and the constexpr symbols'; of those,
                only what the application asks in its branches makes a difference.

        Raises:
            ApplicationError: with these, the application uses what cannot be compiled.
        """
        declaration = self.declaration
        given = {name: constants[name] for name in declaration.constants}
        found = self._parsed(given) if given else (self.plain, self.undecided)
        # What one value decides may ask for another.
        while asked := self._names(found[1]) & (constants.keys() - given):
            given |= {name: constants[name] for name in sorted(asked)}
            found = self._parsed(given)
        if isinstance(found[0], Definition):
            return found[0]
        raise found[0].with_traceback(None)

    def _names(self, symbols: Collection[Symbol]) -> set[str]:
        return {self.declaration.names[s] for s in symbols if s in self.declaration.names}

    def _parsed(self, given: Mapping[str, Any]) -> _Parsed:
        key = tuple((name, value.__class__, constant_key(value)) for name, value in given.items())
        with self._lock:
            if key not in self._known:
                self._known[key] = _parsed(self.declaration, given)
                while len(self._known) > MOST_DEFINITIONS:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def fixed(self, constants: Mapping[str, Any]) -> Definition:
        """The kernel with these constants; if they are not all, that in which all are names.

        Raises:
            ApplicationError: what the application does depends on a constant that is not given.
        """
        needed = {*self.declaration.constants}
        if isinstance(self.plain, Definition):
            return self.of(constants) if needed <= {*constants} else self.plain
        needed |= self._names(self.undecided)
        if needed <= {*constants}:
            return self.of(constants)
        names = ", ".join(f"`{name}`" for name in self.declaration.call_names if name in needed)
        raise ApplicationError(
            f"What kernel `{self.declaration.name}` does is only known with its constants ({names}), "
            "which a call gives: it has a program and a source for each value. Give them defaults, "
            "`Tensor(0, constexpr=True, value=...)`, to see that of the defaults here. Without "
            f"values: {self.plain.message}",
            self.plain.location,
        )

    @property
    def shown(self) -> Definition:
        """The kernel with its constants' defaults; without them, that in which they are names.

        Raises:
            ApplicationError: what the application does depends on a constant that has no default.
        """
        return self.fixed(self.declaration.defaults)


@located_where_too_deep("An expression of the kernel", ArrangementError)
def define(
    arrangement: Arrangement,
    application: Callable[..., Any],
    name: str,
    names: Mapping[Symbol, str] | None = None,
    num_warps: Integers = None,
    num_stages: Integers = None,
    max_num_configs: int | None = None,
    specialize: str = "classes",
    stores_apart: bool = False,
) -> Specializations:
    """Parses the application and names everything.

    Args:
        names: what the user calls the symbols.

    Raises:
        ArgumentError: the name or an option is not as it must be.
        ApplicationError: the application uses what cannot be compiled, and has no constants that
            could make a difference.
        ArrangementError: a size is of a tensor that is not among the arranged ones.
    """
    if not is_kernel_name(name):
        raise ArgumentError(
            "kernel_name must be an identifier of letters from a to z, digits and underscores, with a meaning "
            f"neither in Python nor in the source that is generated, not {name!r}"
        )
    checks.check_choices("num_warps", num_warps)
    checks.check_choices("num_stages", num_stages)
    checks.check_count("max_num_configs", max_num_configs)
    checks.check_one_of("specialize", specialize, ("classes", "sizes"))
    names = names or {}
    decisions = Decisions()
    parsed: Program | NineToothedError
    tensors = arrangement.tensors
    # Meta-operations are checked with them, though sizes and accesses may do without.
    written = written_symbols(tensors)
    are_constants = any(parameter.kind == "constexpr" for parameter in arrangement.parameters)
    try:
        parsed = parse(application, arrangement.parameters, name, decisions=decisions)
        among = arrangement.among(parsed.arranged, begins_at(application))
        checks.check_sequences(parsed, among)
        if not (are_constants or decisions.missing):
            # What a constant leaves out may be what reads it.
            checks.check_scalars(parsed)
            checks.check_effects(parsed, application)
        found = list(dict.fromkeys([*all_symbols(among, parsed), *written]))
        taken = parsed.names
        checks.check_names(arrangement.parameters, found, begins_at(application))
    except (ApplicationError, ArrangementError) as error:
        if not (are_constants or decisions.missing):
            raise
        # Some branch makes no sense for now: it may be one that no value takes.
        parsed, taken = error, names_in(application)
        found = list(dict.fromkeys([*all_symbols(arrangement), *written, *symbols_in(application)]))
    _check_sources(name, begins_at(application), tensors, found)
    made: dict[Any, Any] = {}
    kept = frozen(own_function(application), made)
    values = {p.name: held(p.value, made) for p in arrangement.parameters if p.kind == "constant"}
    declaration = Declaration(
        name,
        application,
        kept,
        arrangement,
        _given_symbols(found, [*names, *written], tensors),
        tuple(s for s in found if s.leaf.role == "symbol" and s.leaf.meta),
        named_symbols(found, tensors, names, {*taken, *(p.name for p in arrangement.parameters)}),
        num_warps,
        num_stages,
        max_num_configs,
        specialize,
        stores_apart,
        {key: value for key, value in made.items() if isinstance(key, FunctionType)},
        values,
    )
    checks.check_call_names(name, declaration.call_names, begins_at(application))
    plain = _defined(declaration, parsed, among) if isinstance(parsed, Program) else parsed
    return Specializations(declaration, plain, decisions.missing)


def _given_symbols(
    found: Sequence[Symbol], written: Iterable[Symbol], tensors: Sequence[Parameter]
) -> tuple[Symbol, ...]:
    """The symbols that a call gives, in the order in which the user wrote them."""
    inferred = {size for p in tensors for size in p.source.shape}
    return tuple(
        s
        for s in dict.fromkeys([*(s for s in written if s in found), *found])
        if s.leaf.role == "symbol" and not s.leaf.meta and (s.leaf.constexpr or s not in inferred)
    )


def _parsed(declaration: Declaration, given: Mapping[str, Any]) -> _Parsed:
    """The kernel with these constants, or why there is none; and what else decides something in it."""
    made = {**declaration.functions}
    constants = {name: held(given[name], made) for name in declaration.constants}
    constants |= declaration.values
    decisions = Decisions({s: given[n] for s, n in declaration.names.items() if n in given})
    try:
        return _with_constants(declaration, constants, decisions), decisions.missing
    except (ApplicationError, ArrangementError) as error:
        return error, decisions.missing


def _with_constants(
    declaration: Declaration, constants: Mapping[str, Any], decisions: Decisions
) -> Definition:
    parameters, name = declaration.parameters, declaration.name
    taken = frozenset(declaration.names.values())
    program = parse(declaration.frozen, parameters, name, constants, taken, decisions)
    among = declaration.arrangement.among(program.arranged, begins_at(declaration.application))
    definition = _defined(replace(declaration, values=constants), program, among)
    checks.check_sequences(program, definition.arrangement)
    for symbol in all_symbols(definition.arrangement, program):
        if symbol not in declaration.names:
            raise ApplicationError(
                f"kernel `{declaration.name}` has no `{symbol}` that a call could give: only a helper "
                "reads it, and only with some constants. Read it in the application itself, or use it "
                "in the arrangement.",
                begins_at(declaration.application),
            )
    return definition


def _defined(declaration: Declaration, program: Program, among: Arrangement) -> Definition:
    shared = {each.name: getattr(declaration, each.name) for each in fields(declaration)}
    return Definition(**{**shared, "arrangement": among, "program": program})


def _check_sources(
    name: str, location: Location, tensors: Sequence[Parameter], symbols: Sequence[Symbol]
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
