"""From a Program to Triton source: text that a person can read, with the user's names.

Nothing here imports Triton. The same kernel and variant give the same text in any process.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ninetoothed.backends.triton.ir.products import Needs
from ninetoothed.backends.triton.options import (
    cooperative_reduction,
    dependent_launch,
    full_tile_versioning,
    interleaved_pairs,
    load_scheduling,
    loop_splitting,
    partial_reduction_sinking,
    persistent,
    register_prefetch,
    split_k,
    tma_pipeline,
)
from ninetoothed.backends.triton.options.registry import Options
from ninetoothed.backends.triton.printers.addresses import Addresses
from ninetoothed.backends.triton.printers.gluon import translation as gluon
from ninetoothed.backends.triton.printers.lowering import Lowering
from ninetoothed.backends.triton.specialization.call_facts import Variant
from ninetoothed.errors import Location
from ninetoothed.kernels.analysis import analysis
from ninetoothed.program.nodes import SymbolValue, Widened, clone, location
from ninetoothed.program.printer import with_bare_targets
from ninetoothed.symbols.expr import Symbol, as_symbol, over
from ninetoothed.symbols.simplify import floors_as_it_truncates, product

if TYPE_CHECKING:
    from ninetoothed.kernels.definition import Definition

#: Functions of the language whose arguments must be known when Triton compiles.
_COMPILE_TIME = frozenset({"arange", "static_range", "full", "zeros", "reshape", "broadcast_to"})

_GENERIC = Variant()
_PLAIN = Options()


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of the emitted function.

    Attributes:
        name: its name there.
        kind: ``"pointer"``, ``"offsets"`` (of a jagged tensor), ``"descriptor"``, ``"scalar"``,
            ``"symbol"`` or ``"constexpr"``; ``"arrivals"`` or ``"partials"``, pointers into the
            workspace (`split`).
        parameter: the application's parameter, or None for a symbol.
        symbol: the symbol whose value it has, or what is computed from symbols' values, or None.
    """

    name: str
    kind: str
    parameter: str | None = None
    symbol: Symbol | None = None
    is_constexpr: bool = False


@dataclass(frozen=True)
class Emitted:
    """Generated source.

    Attributes:
        text: a module with the kernel.
        parameters: the kernel's parameters, in order.
        lines: the user's location for lines of ``text`` (counted from 1).
        externs: functions that the module uses and does not define.
        needs: what must hold of a call, in Gluon.
    """

    text: str
    parameters: tuple[KernelParameter, ...]
    lines: dict[int, Location] = field(default_factory=dict)
    externs: dict[str, Any] = field(default_factory=dict)
    needs: Needs | None = None


def emit(kernel: Definition, variant: Variant = _GENERIC, options: Options = _PLAIN) -> Emitted:
    """The source of a kernel, for calls that the variant describes, with these options."""
    return _Emitter(kernel, variant, options).emit()


class _Emitter:
    def __init__(self, kernel: Definition, variant: Variant, options: Options) -> None:
        self._kernel = kernel
        self._variant = variant
        self.options = options
        self._program = kernel.optimized
        if options.split == 1:
            self._program = interleaved_pairs.run(
                self._program, kernel.arrangement.accesses, variant
            )
        if variant.ring:
            self._program = tma_pipeline.run(self._program, dict(variant.ring.constants))
        self.library: set[str] = set()
        if options.early and load_scheduling.applies(kernel):
            self._program = load_scheduling.run(self._program)
        if options.defer and partial_reduction_sinking.applies(kernel):
            self._program = partial_reduction_sinking.run(self._program)
            self.library |= partial_reduction_sinking.FUNCTIONS
        self._constexpr = constexpr_symbols(kernel)
        self._taken = {*self._program.names, *kernel.names.values()}
        self._taken |= {p.name for p in kernel.parameters}
        self.used: dict[str, KernelParameter] = {}
        self.imports: set[str] = set()
        self._writer = _Writer()
        self._addresses = Addresses(self)
        #: The number of the element of the grid, where a program handles several (`persistent`).
        self.number = self.fresh("number") if options.persistent else ""
        #: The parts that each element of the grid is done in, where those are several.
        self.parts = self._parts()
        #: The rounds that are being emitted, where a loop is split (`peel`).
        self.whole: loop_splitting.Whole | full_tile_versioning.Interior | None = None
        #: The excesses of comparisons that hold in the first rounds of the loop that is being emitted.
        self.holding_at_first: frozenset[Symbol] = frozenset()

    def _parts(self) -> split_k.Parts | None:
        count = self.options.split
        if count > 1 and self.options.shares:
            return cooperative_reduction.Shares(self, count, self.options.shares - 1)
        return split_k.Parts(self, count) if count > 1 else None

    def emit(self) -> Emitted:
        addresses = self._addresses
        lowering = Lowering(self, addresses)
        body = self._body(lowering)
        helpers = [lowering.function(clone(h)) for h in self._program.helpers.values()]
        prologue = addresses.prologue()
        count = self.tree(product(self._kernel.grid)) if self.options.persistent else None
        statements = [s for group in body for s in group] or [ast.Pass()]
        statements += addresses.released()
        needs: Needs | None = None
        if ring := self._variant.ring:
            translation = gluon.Translation(
                [*prologue, *statements],
                ring.size,
                ring.is_one_loop,
                {p.name: p.parameter or "" for p in self.used.values() if p.kind == "descriptor"},
                self.widths,
                self.fresh,
            )
            prologue, statements = [], translation.statements()
            needs = translation.needs
            self.library = translation.library
        parameters = self._ordered()
        write = self._writer
        language = "gluon" if self._variant.ring else "triton"
        constexpr = "gl.constexpr" if self._variant.ring else "tl.constexpr"
        for line in self._header():
            write.line(line)
        for function in helpers:
            write.line("")
            write.line("")
            write.line("@triton.jit")
            write.statements([function], 0)
        write.line("")
        write.line("")
        write.line(f"@{language}.jit")
        write.line(f"def {self._kernel.name}(")
        for parameter in parameters:
            write.line(f"    {parameter.name}{f': {constexpr}' if parameter.is_constexpr else ''},")
        write.line("):")
        if self.options.overlap:
            write.line(f"    {dependent_launch.WAIT}")
        if count is not None:
            total = self.fresh("num_tiles")
            statements = persistent.loop(self.number, total, count, [*prologue, *statements])
            write.statements(statements, 1)
        else:
            write.statements(prologue, 1)
            if prologue:
                write.line("")
            write.statements(statements, 1)
        return Emitted(
            write.text(),
            tuple(parameters),
            write.locations,
            dict(self._program.externs),
            needs,
        )

    def widths(self, parameter: str) -> list[ast.expr]:
        """The shape of a tensor's tiles."""
        shape = self._program.parameter(parameter).tile_shape
        return [self._addresses.width(size) for size in shape]

    def _body(self, lowering: Lowering) -> list[list[ast.stmt]]:
        """The program's statements, each after what it needs; twice where masks are left out."""
        if not self._variant.interior - self._variant.holding:
            return [lowering.statement(statement) for statement in self._statements()]
        self.whole = full_tile_versioning.Interior(self._variant.interior)
        inside = [new for s in self._statements() for new in lowering.statement(s)]
        self.whole = None
        beyond = [new for s in self._statements() for new in lowering.statement(s)]
        label = self.fresh("has_all")
        branches = ast.If(ast.Name(label, ast.Load()), inside, beyond)
        return [[*full_tile_versioning.asked(self, label), branches]]

    def _statements(self) -> list[ast.stmt]:
        """The program's body, copied, as the options have it."""
        parts, early = self.parts, self._variant.ahead
        body = parts.cut(self._program) if parts else [clone(s) for s in self._program.body]
        return register_prefetch.fetched(body, early, self.fresh) if early else body

    def _header(self) -> Iterator[str]:
        kernel = self._kernel
        code = kernel.application.__code__
        file = code.co_filename.replace("\\", "/").rpartition("/")[2]
        yield f"# {kernel.name}: generated by NineToothed; do not edit."
        yield f"# Application: {kernel.application.__qualname__}, {file}:{code.co_firstlineno}."
        count = self.options.split
        yield f"# {f'{count} programs' if count > 1 else 'One program'} for each element of the grid "
        self._writer.amend(
            ", ".join(ast.unparse(self.tree(size, record=False)) for size in kernel.grid)
        )
        if self._variant.ring:
            yield "import triton"
            if self.options.overlap:
                yield "import triton.language as tl"
            yield from gluon.IMPORTS.splitlines()
            yield from self._library("gluon_library")
            return
        yield "import triton"
        yield "import triton.language as tl"
        if "libdevice" in self.imports:
            yield "from triton.language.extra import libdevice"
        yield from self._library("library")

    def _library(self, module: str) -> Iterator[str]:
        if self.library:
            names = ", ".join(sorted(self.library))
            yield ""
            yield f"from ninetoothed.backends.triton.{module} import {names}"

    @property
    def kernel(self) -> Definition:
        return self._kernel

    @property
    def variant(self) -> Variant:
        return self._variant

    def fresh(self, wanted: str) -> str:
        """A name that nothing in the emitted function has yet."""
        name, number = wanted, 1
        while name in self._taken:
            name, number = f"{wanted}_{number}", number + 1
        self._taken.add(name)
        return name

    def pointer(self, parameter: str) -> ast.expr:
        """The pointer to a tensor's first element."""
        return self._use(f"{parameter}_ptr", "pointer", parameter)

    def offsets(self, parameter: str) -> ast.expr:
        """The pointer to a jagged tensor's offsets."""
        return self._use(f"{parameter}_offsets_ptr", "offsets", parameter)

    def descriptor(self, parameter: str) -> ast.expr:
        """The descriptor of a tensor (`descriptors`)."""
        return self._use(f"{parameter}_descriptor", "descriptor", parameter)

    def value(self, parameter: str) -> ast.expr:
        """A scalar or a compile-time constant."""
        kind = self._program.parameter(parameter).kind
        return self._use(parameter, kind, parameter, is_constexpr=kind == "constexpr")

    def workspace(self, what: str) -> ast.expr:
        """A pointer into the workspace: ``"arrivals"`` or ``"partials"`` (`split`)."""
        return self._use(f"{what}_ptr", what)

    def tree(self, expression: Any, record: bool = True) -> ast.expr:
        """A symbolic integer as an expression of the kernel's parameters."""

        symbol = as_symbol(expression)
        if not record:
            return symbol.ast(lambda leaf: ast.Name(self._kernel.names[leaf], ast.Load()))
        if symbol.op == "leaf":
            return self._leaf(symbol)
        if symbol.op == "const":
            return symbol.ast()
        return self.over(symbol, [self.tree(operand) for operand in symbol.operands])

    def _leaf(self, symbol: Symbol) -> ast.expr:
        """A size, a stride or a constexpr symbol."""
        if symbol in self._variant.unit_strides:
            return ast.Constant(1)
        is_constexpr = symbol in self._constexpr
        return self._use(
            self._kernel.names[symbol], "symbol", symbol=symbol, is_constexpr=is_constexpr
        )

    def over(self, expression: Symbol, operands: list[ast.expr]) -> ast.expr:
        """An expression over its operands' trees; division rounds down, as Python's does."""
        is_division = expression.op in ("//", "%")
        if not is_division or floors_as_it_truncates(expression) or self._is_known(expression):
            return over(expression.op, operands)
        function = "floor_quotient" if expression.op == "//" else "floor_remainder"
        self.library.add(function)
        return ast.Call(ast.Name(function, ast.Load()), operands, [])

    def _is_known(self, expression: Symbol) -> bool:
        """Whether Triton's compiler computes the value, which it does as Python."""
        return all(leaf in self._constexpr for leaf in expression.leaves())

    def inverse(self, wanted: str, value: Symbol) -> ast.expr:
        """A value that is computed from sizes before the launch, under such a name (`order`)."""
        return self._use(wanted, "symbol", symbol=value)

    def position(self, expression: Symbol) -> ast.expr:
        """A symbolic integer over the program's position as an expression."""
        op, operands = expression.op, expression.operands
        programs = self._kernel.arrangement.programs
        if expression in programs:
            return self._addresses.program(programs.index(expression))
        if op == "widened":
            return self._addresses.width(operands[0])
        if op in ("const", "leaf"):
            return self.tree(expression)
        return self.over(expression, [self.position(operand) for operand in operands])

    def _use(
        self,
        wanted: str,
        kind: str,
        parameter: str | None = None,
        symbol: Symbol | None = None,
        is_constexpr: bool = False,
    ) -> ast.expr:
        key = f"{kind} {parameter or wanted}"
        if key not in self.used:
            is_fixed = kind in ("scalar", "constexpr", "symbol")
            name = wanted if is_fixed else self.fresh(wanted)
            self.used[key] = KernelParameter(name, kind, parameter, symbol, is_constexpr)
        return ast.Name(self.used[key].name, ast.Load())

    def _ordered(self) -> list[KernelParameter]:
        """Pointers and scalars in the application's order, then sizes, strides and constants."""
        order = [parameter.name for parameter in self._kernel.parameters]
        names = list(self._kernel.names)
        kinds = {"size": 0, "stride": 1, "symbol": 2}

        def place(parameter: KernelParameter) -> tuple[Any, ...]:
            if parameter.symbol is None:
                owner = parameter.parameter
                position = len(order) if owner is None else order.index(owner)
                return (parameter.is_constexpr, 0, position, parameter.kind != "pointer")
            if parameter.symbol.op != "leaf":
                return (parameter.is_constexpr, 2, parameter.name)
            leaf = parameter.symbol.leaf
            return (
                parameter.is_constexpr,
                1,
                kinds[leaf.role],
                *_natural(parameter.name, order, names, parameter),
            )

        return sorted(self.used.values(), key=place)


def _natural(
    name: str, order: Sequence[str], names: Sequence[Symbol], parameter: KernelParameter
) -> tuple[Any, ...]:
    symbol = parameter.symbol
    assert symbol is not None
    if symbol.leaf.dim is None:
        return (names.index(symbol),)
    owner = name.rsplit("_", 2)[0]
    return (order.index(owner) if owner in order else len(order), symbol.leaf.dim)


@analysis
def constexpr_symbols(kernel: Definition) -> frozenset[Symbol]:
    """The symbols that Triton must know when it compiles: those that decide a tile's shape."""
    found: set[Symbol] = {*kernel.symbols, *kernel.meta_symbols}
    for parameter in kernel.tensor_parameters:
        for size in parameter.tile_shape:
            found |= set(as_symbol(size).leaves())
        found |= {
            s for size in parameter.source.shape for s in as_symbol(size).leaves() if s.constexpr
        }
    for node in kernel.optimized.nodes():
        if isinstance(node, Widened) or _is_compile_time(node):
            found |= set(_symbols_in(node))
    return frozenset(found)


def _is_compile_time(node: ast.AST) -> bool:
    if isinstance(node, ast.AnnAssign):
        return True
    return isinstance(node, ast.Call) and getattr(node.func, "name", None) in _COMPILE_TIME


def _symbols_in(tree: ast.AST) -> Iterable[Symbol]:
    for node in ast.walk(tree):
        if isinstance(node, SymbolValue):
            yield from as_symbol(node.symbol).leaves()


def _text_of(statement: ast.stmt, width: int) -> list[str]:
    """A simple statement's lines; the arguments of a call that is too long have one each."""
    if isinstance(statement, ast.Assign):
        statement = with_bare_targets(statement)
    text = ast.unparse(ast.fix_missing_locations(statement))
    call = getattr(statement, "value", None)
    if len(text) <= width or not isinstance(call, ast.Call):
        return text.splitlines()
    arguments = [ast.unparse(a) for a in call.args]
    arguments += [f"{k.arg}={ast.unparse(k.value)}" for k in call.keywords]
    head = text[: len(text) - len(ast.unparse(call))] + ast.unparse(call.func)
    return [f"{head}(", *(f"    {argument}," for argument in arguments), ")"]


class _Writer:
    """Collects lines, and where in the user's source each came from."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self.locations: dict[int, Location] = {}

    def line(self, text: str) -> None:
        self._lines.append(text)

    def amend(self, text: str) -> None:
        """Puts ``text`` at the end of the last line."""
        self._lines[-1] += f"({text})."

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def statements(self, statements: Iterable[ast.stmt], depth: int) -> None:
        for statement in statements:
            self._statement(statement, depth)

    def _statement(self, statement: ast.stmt, depth: int) -> None:
        where = location(statement) if getattr(statement, "file", None) else None
        blocks = [
            (name, getattr(statement, name, None) or [])
            for name in ("body", "orelse")
            if not isinstance(statement, ast.Expr)
        ]
        if not any(block for _, block in blocks):
            for text in _text_of(statement, 100 - 4 * depth):
                self._mark(where)
                self.line("    " * depth + text)
            return
        shell = clone(statement)
        shell.body = [ast.Pass()]  # type: ignore[attr-defined]
        if hasattr(shell, "orelse"):
            shell.orelse = []
        head = ast.unparse(ast.fix_missing_locations(shell)).splitlines()[:-1]
        for text in head:
            self._mark(where)
            self.line("    " * depth + text)
        self.statements(blocks[0][1] or [ast.Pass()], depth + 1)
        if blocks[1][1]:
            self.line("    " * depth + "else:")
            self.statements(blocks[1][1], depth + 1)

    def _mark(self, where: Location | None) -> None:
        if where is not None:
            self.locations[len(self._lines) + 1] = where
