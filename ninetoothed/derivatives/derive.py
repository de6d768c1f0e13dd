"""A kernel's backward kernel, without a device."""

from __future__ import annotations

import ast
import builtins
import contextlib
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ninetoothed.derivatives import arranging
from ninetoothed.derivatives.absent import left_out, moves, read_as_zeros
from ninetoothed.derivatives.accesses import (
    SharedError,
    check_stores,
    has_sharers,
    may_end,
    same_along,
    shared,
    unstored,
)
from ninetoothed.derivatives.arranging import arranged_as, sizes_of, symbols_of, unexpanded
from ninetoothed.derivatives.exchange import Exchange, ExchangeError, regrouped
from ninetoothed.derivatives.record import Recorder, with_rounds_as_loops
from ninetoothed.derivatives.redefined import redefined
from ninetoothed.derivatives.reverse import needed
from ninetoothed.derivatives.saving import backwards, decide_sums
from ninetoothed.derivatives.tape import Loop, Widened, place_of, refused, widened_values
from ninetoothed.errors import ApplicationError, ArgumentError, Location, near
from ninetoothed.kernels.definition import Definition, Specializations
from ninetoothed.parsing.source import begins_at
from ninetoothed.passes.mask_padding import without_idle_rounds
from ninetoothed.program.effects import names_read
from ninetoothed.program.nodes import Store, SymbolValue, walk
from ninetoothed.program.written import written
from ninetoothed.records import dataclass
from ninetoothed.symbols.expr import Expression, Symbol, as_symbol
from ninetoothed.tensors.arrange import Parameter
from ninetoothed.tensors.level import owner_of
from ninetoothed.tensors.tensor import Tensor


@dataclass(frozen=True)
class Derived:
    """A backward kernel.

    Attributes:
        specializations: the kernel.
        gradients: its parameters that are gradients of outputs, by the names of these.
        made: its parameters that are the gradients of inputs, by the names of these.
        unstored: why not every element's gradient may be stored, and where, by the inputs of which it is so.
        equal: what the sizes of gradients are the same as.
        parts: of gradients that are left in parts to be added up, the parts' shapes, by their inputs.
        atomic: the inputs whose gradients are added to what is there: to zeros, in float32 at least.
        widened: the values that a gradient is right of where they are not repeated.
    """

    specializations: Specializations
    gradients: dict[str, str]
    made: dict[str, str]
    unstored: dict[str, tuple[str, Location | None]]
    equal: dict[Symbol, Expression]
    parts: dict[str, tuple[Expression, ...]]
    atomic: frozenset[str] = frozenset()
    widened: tuple[Widened, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the kernel's parameters."""
        return tuple(p.name for p in self.specializations.declaration.call_parameters)


def differentiable(definition: Definition) -> tuple[str, ...]:
    """The tensors that a kernel only reads, and that may hold floats."""
    stored = written(definition.program)
    return tuple(
        p.name
        for p in definition.tensor_parameters
        if p.name not in stored and (p.dtype is None or p.dtype.is_floating())
    )


def dependent(definition: Definition, wrt: Sequence[str]) -> tuple[str, ...]:
    """Those of a kernel's inputs that an output depends on, so that they have a gradient.

    Raises:
        ApplicationError: a part of the program has no derivative.
    """
    if not wrt:
        return ()
    _, _, made, stores = _Deriving(definition, tuple(wrt), None).derived()
    return tuple(each for each in wrt if stores[made[each]])


def grouped(definition: Definition, wrt: Sequence[str]) -> list[tuple[str, ...]]:
    """Inputs in groups whose gradients one backward kernel computes.

    Raises:
        ApplicationError: of one, elements are shared in a way that is not known to be summed.
    """
    groups: dict[Any, list[str]] = {}
    for name in wrt:
        deriving = _Deriving(definition, (name,), None)
        dims = deriving.shared_by(name)
        is_alone = bool(dims) and bool(deriving.parameters[name].middle_levels)
        groups.setdefault((dims, name if is_alone else ""), []).append(name)
    return [tuple(group) for group in groups.values()]


def joined(groups: Sequence[tuple[str, ...]], definition: Definition) -> tuple[str, ...] | None:
    """Inputs of two groups whose gradients one kernel may compute; None where there are none.

    It sums the gradient of what all programs share in parts, and stores those of what each has alone.
    """
    by_dims = {_Deriving(definition, group, None).shared_by(group[0]): group for group in groups}
    if len(groups) != 2 or len(by_dims) != 2 or () not in by_dims:
        return None
    return (*by_dims.pop(()), *next(iter(by_dims.values())))


def derive(
    definition: Definition,
    wrt: Sequence[str],
    name: str | None = None,
    beside: Sequence[str] = (),
    equal: Mapping[Symbol, Expression] | None = None,
    parts: int | None = None,
    saved: Mapping[str, str] | None = None,
    atomic: bool = False,
    hidden: Collection[str] = (),
) -> Derived:
    """The kernel that computes the gradients of some of a kernel's inputs.

    Args:
        wrt: the names of these inputs.
        name: of the kernel.
        beside: inputs that are to be parameters of it, needed or not.
        equal: what sizes are known to be the same as.
        parts: in how many parts, at most, the gradient of what all programs have may be left.
        saved: outputs that are kept, by each the input of its element type; loaded where that moves less.
        atomic: whether gradients of what several programs have are added up by atomic operations.
        hidden: outputs that have no gradient, since nobody is given them.

    Raises:
        ArgumentError: one of them is no input.
        ApplicationError: a part of the program has no derivative.
    """
    given = definition, tuple(wrt), name, beside, equal or {}, parts, saved or {}, atomic, hidden
    if saved:
        # What cannot be computed again is loaded, whatever is made of it.
        with contextlib.suppress(ApplicationError):
            return _Deriving(*given, is_strict=True).run()
    return _Deriving(*given).run()


class _Deriving:
    def __init__(
        self,
        definition: Definition,
        wrt: tuple[str, ...],
        name: str | None,
        beside: Sequence[str] = (),
        equal: Mapping[Symbol, Expression] | None = None,
        parts: int | None = None,
        saved: Mapping[str, str] | None = None,
        atomic: bool = False,
        hidden: Collection[str] = (),
        is_strict: bool = False,
    ) -> None:
        self.definition, self.wrt, self.hidden = definition, wrt, hidden
        self.beside, self.equal, self.parts = beside, equal or {}, parts
        self.saved, self.is_strict = saved or {}, is_strict
        self.program = with_rounds_as_loops(without_idle_rounds(definition.program))
        self.atomic: set[str] = set()
        self.is_atomic = atomic
        self.name = name or f"{definition.name}_backward"
        self.parameters = {p.name: p for p in definition.tensor_parameters}
        stored = written(self.program)
        self.outputs = tuple(each for each in self.parameters if each in stored)
        _check_inputs(definition, wrt, self.outputs)
        inputs = [p for name, p in self.parameters.items() if name not in stored]
        ends = definition.arrangement, inputs, self.equal
        self.ending = {each for each in self.outputs if may_end(self.parameters[each], *ends)}
        self.names = {*definition.names.values(), *dir(builtins), "ntl", self.name}
        self.names |= {p.name for p in definition.parameters}

    def run(self) -> Derived:
        try:
            return self.made()
        except ExchangeError as error:
            raise self.refused_for(self.wrt[0], str(error)) from None

    def made(self) -> Derived:
        body, gradients, made, stores = self.derived()
        check_stores(self.recorder.items, self.definition.arrangement, self.hidden)
        for each, gradient in made.items():
            if not stores[gradient]:
                raise ArgumentError(
                    f"no output of kernel `{self.definition.name}` changes where `{each}` does by a "
                    "little, so there is no gradient of it"
                )
        return self.assembled(body, gradients, made)

    def derived(
        self,
    ) -> tuple[list[ast.stmt], dict[str, str], dict[str, str], dict[str, list[Store]]]:
        """The statements, the names of the gradients by what they are of, and their stores."""
        recorder = self.recorder = Recorder(self.program, self.wrt, self.outputs, self.names)
        gradients = {each: recorder.fresh(f"{each}_gradient") for each in self.outputs}
        made = {each: recorder.fresh(f"{each}_gradient") for each in self.wrt}
        for each in self.wrt:
            with contextlib.suppress(SharedError):
                found = shared(self.definition.arrangement, self.parameters[each])
                recorder.repeated[each] = found.selections
        if self.is_atomic:
            of_all = self.definition.arrangement
            sharing = {e for e in self.wrt if has_sharers(of_all, self.parameters[e])}
            self.atomic = recorder.atomic = sharing
        recorder.run()
        recorder.left_out = left_out(self.definition, recorder)
        # What has elements that an output has not is computed again, but for a loop's sum.
        has_loops = any(isinstance(item, Loop) for item in recorder.items)
        saved = {e: by for e, by in self.saved.items() if has_loops or e not in self.ending}
        given = saved, self.size_of, self.atomic, self.is_strict
        body = backwards(recorder, {**gradients, **made}, *given)
        stores: dict[str, list[Store]] = {gradient: [] for gradient in made.values()}
        for node in (n for statement in body for n in walk(statement) if isinstance(n, Store)):
            stores[node.tile.parameter].append(node)
        return body, gradients, made, stores

    def size_of(self, parameter: str) -> Expression:
        """How many elements a tile has."""
        sizes = map(as_symbol, self.parameters[parameter].tile_shape)
        return math.prod(sizes, start=as_symbol(1)).substitute(self.equal)

    def exchange(self, gradients: dict[str, str], made: dict[str, str]) -> Exchange | None:
        """The exchange of the grid's dimensions that the inputs' elements do not differ in."""
        groups = {self.shared_by(each): each for each in self.wrt}
        beside = frozenset(made[each] for each in self.wrt if not self.shared_by(each))
        if self.parts is not None and len(groups) == 2:
            # What no programs share is stored on the way.
            groups.pop((), None)
        if len(groups) > 1:
            one, other, *_ = groups.values()
            raise ArgumentError(
                f"`{one}` and `{other}` of kernel `{self.definition.name}` need backward kernels of their "
                "own: programs share their elements in different ways. Derive by each alone; "
                "`ninetoothed.op` does"
            )
        (absent,) = groups
        if not absent:
            return None
        named = self.parameters | {n: self.parameters[o] for o, n in (gradients | made).items()}
        given = self.definition.arrangement, absent, named
        repeated = {made[each]: places for each, places in self.recorder.repeated.items()}
        found = Exchange(*given, beside=beside, repeated=repeated, equal=self.equal)
        if self.parts is not None and all(map(found.may_be_in_parts, {*made.values()} - beside)):
            found.parts = self.parts
            inputs = {n: p for n, p in self.parameters.items() if n not in self.outputs}
            found.fixed = same_along(self.definition.arrangement, inputs, absent)
        elif beside:
            raise ExchangeError("the sum would be in one part")
        return found

    def shared_by(self, name: str) -> tuple[int, ...]:
        """The dimensions of the grid in which programs have the same elements of an input."""
        try:
            dims = shared(self.definition.arrangement, self.parameters[name]).programs
        except SharedError as error:
            raise self.refused_for(name, str(error)) from None
        return tuple(dim for dim in dims if self.definition.grid[dim] != 1)

    def refused_for(self, name: str, why: str) -> Exception:
        error = refused(f"of `{name}`, {why}.", ast.Pass())
        return type(error)(error.message, begins_at(self.definition.application))

    def assembled(
        self, body: list[ast.stmt], gradients: dict[str, str], made: dict[str, str]
    ) -> Derived:
        """The kernel: what it is given, in the forward kernel's order, then what it stores to."""
        exchange = None if self.is_atomic else self.exchange(gradients, made)
        if exchange is not None:
            body = needed(exchange.statements(body, [*made.values()], self.recorder.fresh))
        unstored = self.unstored(body, made, exchange)
        in_parts: set[str] = set()
        if exchange is not None and exchange.parts is not None:
            in_parts = {*made.values()} - exchange.beside
        # What else stands for a tensor whose sizes alone are needed.
        whole = {old: new for old, new in made.items() if new not in in_parts}
        standing = {**gradients, **whole}
        extra = [] if exchange is None else exchange.sizes
        kept = self.kept(body, standing, in_parts, extra)
        absent = [p.source for each, p in self.parameters.items() if each not in kept]
        zeros = self.outputs if moves(body) else self.ending
        sources = {
            new: Tensor(1 + len(self.parameters[old].tile_shape))
            if new in in_parts
            else arranging.gradient_like(self.parameters[old].source, old in zeros, absent)
            for old, new in (*made.items(), *gradients.items())
        }
        sizes: dict[Symbol, Expression] = {}
        as_zeros = kept & read_as_zeros(self.definition, body)
        redeclared = as_zeros | (kept & arranging.sized_by(absent, self.parameters))
        for name in redeclared:
            source = self.parameters[name].source
            other = 0 if name in as_zeros else source.other
            sources[name] = arranging.like(source, other, absent=absent)
            sizes |= sizes_of(source, sources[name]) | arranging.strides_of(source, sources[name])
        for old, new in standing.items():
            if old not in kept:
                sizes |= sizes_of(self.parameters[old].source, sources[new])
        arranged = self.inputs(body, gradients, sources, kept, sizes, exchange)
        parts: dict[str, tuple[Expression, ...]] = {}
        for old, new in made.items():
            parameter = self.parameters[old]
            if exchange is not None and new in in_parts:
                parts[old] = exchange.shape_of_parts(new, lambda n: as_symbol(n).substitute(sizes))
                arranged[new] = regrouped(
                    sources[new], [[(0, 0)], [(0, dim) for dim in range(1, sources[new].ndim)]]
                )
            else:
                is_made = exchange is None or new not in exchange.beside
                arranged[new] = self.arranged(
                    new, parameter, sources[new], sizes, exchange, is_made
                )
        for node in (n for each in body for n in walk(each) if isinstance(n, SymbolValue)):
            node.symbol = as_symbol(node.symbol).substitute(sizes)
        specializations = self.defined(body, arranged, sources)
        given = {old: new for old, new in gradients.items() if new in arranged}
        equal: dict[Symbol, Expression] = {
            symbol: as_symbol(size).substitute(self.equal)
            for old, new in (*standing.items(), *zip(redeclared, redeclared))
            for symbol, size in sizes_of(sources[new], self.parameters[old].source).items()
        }
        widened = tuple(widened_values(self.recorder.items, self.equal))
        more = {**self.equal, **equal}, parts, frozenset(self.atomic), widened
        return Derived(specializations, given, made, unstored, *more)

    def inputs(
        self,
        body: list[ast.stmt],
        gradients: dict[str, str],
        sources: dict[str, Tensor],
        kept: set[str],
        sizes: dict[Symbol, Expression],
        exchange: Exchange | None,
    ) -> dict[str, Any]:
        """What is read, arranged: the forward kernel's inputs, gradients of its outputs, and these."""
        arranged: dict[str, Any] = {}
        names = {name for each in body for name in names_read(each)}
        given = {p.name: p for p in self.definition.parameters if p.name not in self.outputs}
        given |= {new: self.parameters[old] for old, new in gradients.items()}
        given |= {old: self.parameters[old] for old in self.outputs}
        for name, parameter in given.items():
            if name in kept:
                source = sources.get(name, parameter.source)
                arranged[name] = self.arranged(name, parameter, source, sizes, exchange)
            elif parameter.kind != "tensor" and name in names:
                arranged[name] = parameter.given
        return arranged

    def unstored(
        self, body: list[ast.stmt], made: dict[str, str], exchange: Exchange | None
    ) -> dict[str, tuple[str, Location | None]]:
        """Why not every element's gradient may be stored, and where, by the inputs of which it is so."""
        found = {}
        for old, new in made.items():
            # What is a dimension of the grid has a program for each tile.
            taken = () if exchange is None else exchange.taken(new)
            given = body, self.recorder.repeated.get(old, ()), taken, self.equal
            why = unstored(self.definition.arrangement, self.parameters[old], new, *given)
            if why is not None and old not in self.atomic:
                found[old] = why[0], None if why[1] is None else place_of(why[1])
        return found

    def arranged(
        self,
        name: str,
        parameter: Parameter,
        source: Tensor,
        sizes: dict[Symbol, Expression],
        exchange: Exchange | None,
        is_made: bool = False,
    ) -> Tensor:
        """A source, arranged as a parameter is, with its own sizes in the place of that one's."""
        assert parameter.tensor is not None
        own = {} if source is parameter.source else sizes_of(parameter.source, source)
        if exchange is None:
            return arranged_as(parameter.tensor, source, {**sizes, **own})
        arranging = unexpanded if is_made or name in exchange.fixed else arranged_as
        tensor = arranging(parameter.tensor, source, {**sizes, **own})
        return exchange.arranged(
            tensor, name, lambda size: as_symbol(size).substitute(sizes), is_made
        )

    def kept(
        self,
        body: list[ast.stmt],
        new: dict[str, str],
        in_parts: set[str],
        sizes: Sequence[Expression],
    ) -> set[str]:
        """The tensors that are needed: those that are used, and those whose sizes are."""
        nodes = [node for statement in body for node in walk(statement)]
        used = {node.parameter for node in nodes if hasattr(node, "parameter")}
        values = (node.symbol for node in nodes if isinstance(node, SymbolValue))
        read = {leaf for size in (*sizes, *values) for leaf in as_symbol(size).leaves()}
        # Another tensor has these sizes too, but not these strides.
        named = self.parameters.items()
        strided = {n for n, p in named if not read.isdisjoint(map(as_symbol, p.source.strides))}
        used = {*used, *self.beside, *strided} - in_parts
        kept = {each for each in self.parameters if each in used}
        kept |= {each for each in new.values() if each in used}
        of_new = {name: old for old, name in new.items()}
        while True:
            symbols = set(read)
            for each in kept:
                tensor = self.parameters[of_new.get(each, each)].tensor
                assert tensor is not None
                symbols |= symbols_of(tensor)
            owners = {id(owner_of(symbol)) for symbol in symbols}
            owning = {n for n, p in self.parameters.items() if id(p.source) in owners}
            more = {new.get(name, name) for name in owning - kept}
            if more <= kept:
                return kept
            kept |= more

    def defined(
        self, body: list[ast.stmt], arranged: dict[str, Any], sources: dict[str, Tensor]
    ) -> Specializations:
        about = f"The gradients of `{self.definition.name}`, derived."
        decide_sums(body, self.definition.parameters)
        # Operators make what they give.
        is_apart = self.parts is not None
        return redefined(self.definition, self.name, body, arranged, sources, about, is_apart)


def _check_inputs(definition: Definition, wrt: Sequence[str], outputs: Sequence[str]) -> None:
    known = [p.name for p in definition.tensor_parameters if p.name not in outputs]
    for name in wrt:
        if name not in known:
            raise ArgumentError(
                f"kernel `{definition.name}` has no input {name!r} to derive by.{near(name, known)}"
            )
    if not wrt or len({*wrt}) != len(wrt):
        raise ArgumentError(
            f"a backward is derived by one input of kernel `{definition.name}` or several, each named "
            f"once, not by {tuple(wrt)!r}; its inputs are {', '.join(known)}"
        )
