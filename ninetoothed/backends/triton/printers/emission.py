"""The kernel that is being emitted: its names and parameters, and expressions over them."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ninetoothed.backends.triton.analysis.full_iterations import Holding
from ninetoothed.backends.triton.ir import trees
from ninetoothed.backends.triton.ir.lowered import Lowered, Names
from ninetoothed.backends.triton.ir.trees import assign, element, language, name
from ninetoothed.backends.triton.printers.program_order import Parts
from ninetoothed.backends.triton.specialization.constant_sizes import constexpr_symbols
from ninetoothed.backends.triton.specialization.magnitudes import Widths
from ninetoothed.kernels.reach import LARGEST_INT32
from ninetoothed.kernels.verified_bounds import positive_names, verified_ranges
from ninetoothed.language import dtypes
from ninetoothed.parsing.frames import RESERVED
from ninetoothed.program.effects import names_assigned
from ninetoothed.program.types import COUNT
from ninetoothed.records import dataclass
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import Symbol, as_symbol, padded
from ninetoothed.symbols.operators import next_power_of_2, over
from ninetoothed.symbols.simplify import floors_as_it_truncates
from ninetoothed.tensors.access import is_power_of_two

#: Of an expression that has no selection, or none that is a number.
NOTHING_CHOSEN: Mapping[Symbol, int] = MappingProxyType({})


def is_large(expression: Symbol) -> bool:
    """Whether this is a number that no int32 holds, or hardly: not with another one added."""
    return expression.op == "const" and abs(expression.operands[0]) > LARGEST_INT32 // 2


@dataclass(frozen=True)
class KernelParameter:
    """A parameter of the emitted function.

    Attributes:
        name: its name there.
        kind: ``"pointer"``, ``"offsets"`` (of a jagged tensor), ``"descriptor"``, ``"scalar"``,
            ``"symbol"``, ``"width"`` (of a tile whose size is an argument) or ``"constexpr"``;
            ``"arrivals"`` or ``"partials"``, pointers into the workspace (`split_k`).
        parameter: the application's parameter; none for a symbol, and in the workspace.
        symbol: the symbol whose value it has, or what is computed from symbols' values, or None.
    """

    name: str
    kind: str
    parameter: str = ""
    symbol: Symbol | None = None
    is_constexpr: bool = False


class Scope:
    """What one statement computes before it: the positions and the values of its tiles."""

    def __init__(self) -> None:
        self.before: list[ast.stmt] = []
        self.is_open = True
        self._names: dict[str, str] = {}

    def named(self, emission: Emission, wanted: str, value: ast.expr) -> ast.expr:
        """A name for a value, or the value where nothing may be computed before."""
        if not self.is_open:
            return value
        text = ast.dump(value)
        if text not in self._names:
            self._names[text] = emission.fresh(wanted)
            self.before.append(assign(self._names[text], value))
        return name(self._names[text])


class Emission:
    """What the emission of one kernel has by now.

    Attributes:
        lowered: what is emitted.
        kernel, facts: of it.
        used: the parameters of the emitted function, each under what it is.
        library: the functions of the library that are called, with what each is called here.
        imports: what is imported besides Triton's language.
        number: the name of the element of the grid, where a program handles several.
        parts: the parts that each element of the grid is done in, where those are several.
        programs: the names of the program's positions by dimension of the grid, once they are asked.
        scope: what the statement that is being emitted computes before it.
        holding: what holds where statements are being emitted, besides what holds everywhere.
        holding_at_first: slacks of comparisons that hold in the first rounds of the loop that is
            being emitted.
    """

    def __init__(self, lowered: Lowered) -> None:
        kernel = lowered.kernel
        self.lowered, self.kernel, self.facts = lowered, kernel, lowered.facts
        self.used: dict[str, KernelParameter] = {}
        self.library: dict[str, str] = {}
        self.imports: set[str] = set()
        self._externs: dict[str, tuple[str, Any]] = {}
        self._computed: dict[Symbol, str] = {}
        self.programs: dict[int, str] = {}
        self.scope = Scope()
        self.holding: Holding | None = None
        self.holding_at_first: frozenset[Symbol] = frozenset()
        self._constexpr = constexpr_symbols(kernel) - lowered.facts.widths
        self._known = self._constexpr | lowered.facts.unit_strides
        self._widths = Widths(kernel, lowered.facts.magnitudes, lowered.facts.wide)
        self._names = Names(lowered.program, kernel)
        self._names.taken.add(kernel.name)
        # A symbol may be called as a variable, a parameter or a function of Python's is: a call gives it by
        # its own name.
        self._theirs = {
            *RESERVED,
            *names_assigned(lowered.program.body),
            *lowered.program.helpers,
            *(parameter.name for parameter in kernel.parameters),
        }
        self.number = self.fresh("number") if lowered.is_persistent else ""
        is_plain = not lowered.is_persistent and lowered.parts == 1 and not lowered.program.helpers
        self._quartered = lowered.facts.quartered if is_plain else frozenset()
        self.quarter = self.fresh("quarter") if self._quartered else ""
        self.parts = Parts(self.fresh) if lowered.parts > 1 else None

    def named(self, wanted: str, value: ast.expr) -> ast.expr:
        """A name for a value that is computed before the statement, or the value where none may be."""
        return self.scope.named(self, wanted, value)

    def program(self, dim: int) -> ast.expr:
        """The program's position in a dimension of the grid."""
        if dim not in self.programs:
            count = len(self.kernel.grid)
            wanted = "program" if count == 1 else f"program_{dim}"
            self.programs[dim] = self.fresh(wanted)
        return name(self.programs[dim])

    def widths(self, parameter: str) -> list[ast.expr]:
        """The shape of a tensor's tiles."""
        shape = self.lowered.program.parameter(parameter).tile_shape
        return [self.width(size) for size in shape]

    def width(self, size: Any) -> ast.expr:
        """A tile's size, padded to a power of two. Its type says which it is."""
        if isinstance(size, int):
            return ast.Constant(next_power_of_2(size))
        tree = self._width(size)
        tree.__dict__["type"] = replace(COUNT, number=as_symbol(padded(size)))
        return tree

    def _width(self, size: Any) -> ast.expr:
        if as_symbol(size) in self.facts.empty:
            return ast.Constant(1)
        if as_symbol(size) in self.facts.widths:
            return self._width_argument(as_symbol(size))
        tree = self.tree(size)
        if is_power_of_two(size) or as_symbol(size) in self.facts.powers_of_two:
            return tree
        return trees.next_power_of_2(tree)

    def _width_argument(self, size: Symbol) -> ast.expr:
        """The power of two that a size is padded to, where the size itself is an argument."""
        wanted = f"{self.kernel.names[size]}_widened"
        return self._use(wanted, "width", symbol=as_symbol(padded(size)), is_constexpr=True)

    def below(self, position: ast.expr, size: Symbol, tree: ast.expr) -> ast.expr:
        """Whether a position is below a size, which is this tree."""
        if size not in self._quartered:
            return ast.Compare(position, [ast.Lt()], [tree])
        return self.call("below", position, tree, self.width(size), name(self.quarter))

    def for_each_quarter(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The body of a program, written for each quarter that a row may end in."""
        if not self._quartered:
            return body
        size = min(self._quartered, key=lambda symbol: self.kernel.names[symbol])
        ends = self.call("ends_in_quarter", self.tree(size), self.width(size), name(self.quarter))
        inside = ast.If(ends, body, [])
        quarters = language("static_range", ast.Constant(4))
        return [ast.For(ast.Name(self.quarter, ast.Store()), quarters, [inside], [])]

    def function(self, wanted: str) -> ast.expr:
        """A function of the library, under a name that nothing else has."""
        if wanted not in self.library:
            self.library[wanted] = self.fresh(wanted)
        return name(self.library[wanted])

    def call(self, wanted: str, *operands: ast.expr) -> ast.expr:
        """A call of a function of the library."""
        return ast.Call(self.function(wanted), list(operands), [])

    def fresh(self, wanted: str) -> str:
        """A name that nothing in the emitted function has yet."""
        return self._names.fresh(wanted)

    @property
    def externs(self) -> dict[str, Any]:
        """Functions that the emitted text uses and does not define, by name."""
        return {**self.lowered.program.externs, **dict(self._externs.values())}

    def extern(self, operation: str, function: Any) -> str:
        """The name of a function that an operation of the language is in Triton."""
        if operation not in self._externs:
            self._externs[operation] = self.fresh(operation), function
        return self._externs[operation][0]

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
        kind = self.lowered.program.parameter(parameter).kind
        return self._use(parameter, kind, parameter, is_constexpr=kind == "constexpr")

    def workspace(self, what: str) -> ast.expr:
        """A pointer into the workspace: ``"arrivals"`` or ``"partials"`` (`split_k`)."""
        return self._use(f"{what}_ptr", what)

    def tree(self, expression: Any, record: bool = True) -> ast.expr:
        """A symbolic integer as an expression of the kernel's parameters."""

        symbol = as_symbol(expression)
        if not record:
            return symbol.ast(lambda leaf: ast.Name(self.kernel.names[leaf], ast.Load()))
        if symbol.op == "leaf":
            return self._leaf(symbol)
        if symbol.op == "const":
            return symbol.ast()
        operands = self.of_64_bits(symbol, [self.tree(operand) for operand in symbol.operands])
        return (
            self._rounded(symbol, operands)
            if self._may_divide_by_zero(symbol)
            else self.over(symbol, operands)
        )

    def _leaf(self, symbol: Symbol) -> ast.expr:
        """A size, a stride or a constexpr symbol."""
        if symbol in self.facts.unit_strides:
            return ast.Constant(1)
        is_constexpr = symbol in self._constexpr
        return self._use(
            self.kernel.names[symbol], "symbol", symbol=symbol, is_constexpr=is_constexpr
        )

    def over(self, expression: Symbol, operands: list[ast.expr]) -> ast.expr:
        """An expression over its operands' trees; division rounds down, as Python's does."""
        is_division = expression.op in ("//", "%")
        if is_division and self.is_known(expression):
            operands = [operands[0], self._above_zero(expression.operands[1], operands[1])]
        if (
            not is_division
            or self.is_known(expression)
            or floors_as_it_truncates(expression, positive_names(self.kernel))
        ):
            return over(expression.op, operands)
        return self._rounded(expression, operands)

    def of_64_bits(
        self,
        expression: Symbol,
        trees: list[ast.expr],
        chosen: Mapping[Symbol, int] = NOTHING_CHOSEN,
    ) -> list[ast.expr]:
        """The trees of an operation's operands, of 64 bits where Triton's compiler does not compute it: large
        numbers, beside an int32 it takes none that no int32 holds, and what a result needs (`magnitudes`).

        Args:
            chosen: selections that are numbers.
        """
        if self.is_known(expression):
            return trees
        trees = [
            language("cast", tree, element(dtypes.int64)) if self._is_large(operand) else tree
            for operand, tree in zip(expression.operands, trees)
        ]
        if self._widths.must_widen(expression, chosen):
            trees[0] = language("cast", trees[0], element(dtypes.int64))
        return trees

    def _is_large(self, operand: Symbol) -> bool:
        """Whether the compiler knows this as a number that no int32 holds."""
        return is_large(operand) or (
            operand.op != "const" and self.is_known(operand) and self._widths.is_large(operand)
        )

    def _rounded(self, division: Symbol, operands: list[ast.expr]) -> ast.expr:
        """A division by the library, which has no divisor be 0."""
        function = "floor_quotient" if division.op == "//" else "floor_remainder"
        return self.call(function, *operands)

    def _may_divide_by_zero(self, expression: Symbol) -> bool:
        """Whether this is a division of the running kernel's by a size that a call may give as 0."""
        if expression.op not in ("//", "%") or self.is_known(expression):
            return False
        return interval(expression.operands[1], verified_ranges(self.kernel))[0] <= 0

    def _above_zero(self, size: Symbol, tree: ast.expr) -> ast.expr:
        """A divisor that Triton's compiler computes with: 1 for the size of an empty dimension, where nothing
        is found whatever the quotient."""
        if size.op != "leaf" or interval(size, verified_ranges(self.kernel))[0] > 0:
            return tree
        return over("+", [tree, over("==", [tree, ast.Constant(0)])])

    def is_known(self, expression: Symbol) -> bool:
        """Whether Triton's compiler computes the value, which it does as Python."""
        return all(leaf in self._known for leaf in expression.leaves())

    def inverse(self, wanted: str, value: Symbol) -> ast.expr:
        """A value that is computed from sizes before the launch, under such a name (`program_order`)."""
        return self._use(wanted, "symbol", symbol=value)

    def computed(self, value: Symbol) -> ast.expr:
        """Arithmetic on sizes that is done before the launch, where no number is too large."""
        if value not in self._computed:
            self._computed[value] = self.fresh("computed")
        return self._use(self._computed[value], "symbol", symbol=value)

    def position(self, expression: Symbol) -> ast.expr:
        """A symbolic integer over the program's position as an expression."""
        op, operands = expression.op, expression.operands
        programs = self.kernel.arrangement.programs
        if expression in programs:
            return self.program(programs.index(expression))
        if op == "padded":
            return self.width(operands[0])
        if op in ("const", "leaf"):
            return self.tree(expression)
        trees = [self.position(operand) for operand in operands]
        return self.over(expression, self.of_64_bits(expression, trees))

    def _use(
        self,
        wanted: str,
        kind: str,
        parameter: str = "",
        symbol: Symbol | None = None,
        is_constexpr: bool = False,
    ) -> ast.expr:
        key = f"{kind} {parameter or wanted}"
        if key not in self.used:
            is_fixed = kind in ("scalar", "constexpr")
            is_fixed |= kind == "symbol" and wanted not in self._theirs
            name = wanted if is_fixed else self.fresh(wanted)
            self.used[key] = KernelParameter(name, kind, parameter, symbol, is_constexpr)
        return ast.Name(self.used[key].name, ast.Load())

    def ordered(self) -> list[KernelParameter]:
        """Pointers and scalars in the application's order, then sizes, strides and constants."""
        order = [parameter.name for parameter in self.kernel.parameters]
        names = list(self.kernel.names)
        kinds = {"size": 0, "stride": 1, "symbol": 2}

        def place(parameter: KernelParameter) -> tuple[Any, ...]:
            if parameter.symbol is None:
                owner = parameter.parameter
                position = order.index(owner) if owner else len(order)
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
