"""The Program's own nodes, turned into plain Triton."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator
from typing import Any

from ninetoothed.backends.triton.analysis.full_iterations import Holding
from ninetoothed.backends.triton.ir.nodes import (
    LibraryRef,
    PairLoad,
    PairStore,
    PartPosition,
    PointedType,
    SliceStore,
    SplitLoop,
    TritonRef,
    Workspace,
    mark,
    marked_loop,
)
from ninetoothed.backends.triton.ir.trees import (
    all_of,
    assign,
    attribute,
    element,
    language,
    name,
    next_power_of_2,
)
from ninetoothed.backends.triton.printers import scans
from ninetoothed.backends.triton.printers.addresses import Addresses
from ninetoothed.backends.triton.printers.emission import Emission, Scope
from ninetoothed.backends.triton.printers.integer_lowering import IntegerLowering
from ninetoothed.backends.triton.printers.validity import known_size
from ninetoothed.backends.triton.specialization.comparisons import Comparison, comparisons_of
from ninetoothed.kernels.assertions import is_of_call
from ninetoothed.language import dtypes, operations
from ninetoothed.program import nodes
from ninetoothed.program.arguments import Given
from ninetoothed.program.effects import names_assigned, names_read, place_changed
from ninetoothed.program.types import UNKNOWN, type_of
from ninetoothed.symbols.bounds import interval
from ninetoothed.symbols.expr import as_symbol


class Lowering(IntegerLowering):
    """Replaces each node by what Triton has for it; children first."""

    def __init__(self, emission: Emission, addresses: Addresses) -> None:
        self._emission = emission
        self._addresses = addresses
        kinds = {p.name: p.kind for p in emission.kernel.parameters}
        self._values = {n for n, kind in kinds.items() if kind in ("scalar", "constexpr")}
        self._everywhere: set[str] = set()

    @contextlib.contextmanager
    def where(self, holding: Holding) -> Iterator[None]:
        """What is lowered within is for where these conditions hold, and what is found out is for there alone."""
        everywhere = set(self._everywhere)
        self._emission.holding = holding
        yield
        self._emission.holding, self._everywhere = None, everywhere

    def statement(self, statement: ast.stmt) -> list[ast.stmt]:
        """A statement, after those that compute and load its tiles."""
        if isinstance(statement, SplitLoop):
            return self._split(statement)
        return self._unsplit(statement)

    def _unsplit(self, statement: ast.stmt) -> list[ast.stmt]:
        outer, self._emission.scope = self._emission.scope, Scope()
        is_passed = isinstance(statement, ast.For) and self.passed(statement) is not None
        result = self._visit_head(statement)
        if result is None:
            self._emission.scope = outer
            return []
        before = [nodes.at(new, statement) for new in self._emission.scope.before]
        self._emission.scope = outer
        for block in ("body", "orelse"):
            inner = getattr(result, block, None)
            if isinstance(inner, list):
                lowered = [new for old in inner for new in self.statement(old)]
                setattr(result, block, lowered)
        if is_passed:
            assert isinstance(result, ast.For)
            result.body.insert(0, self.counted(result))
        return [*before, result]

    def _split(self, loop: SplitLoop) -> list[ast.stmt]:
        """The statements of a loop's two parts; of both as one where Gluon is written."""
        assert isinstance(loop.iter, ast.Call)
        full, variable = loop.full, loop.full.holding.variable
        before: list[ast.stmt] = []
        bounds = [ast.Constant(0), *loop.iter.args][-2:]
        for place, label in enumerate(("first", "end")):
            if not isinstance(bounds[place], (ast.Name, ast.Constant)):
                label = self._emission.fresh(f"{variable}_{label}")
                before += self.statement(nodes.at(assign(label, bounds[place]), loop))
                bounds[place] = name(label)
        start, end = bounds
        middle = self._emission.fresh(f"{variable}_whole")
        before += self.statement(nodes.at(assign(middle, nodes.clone(end)), loop))
        for count in full.counts:
            least = language("minimum", name(middle), self._emission.position(count))
            before.append(nodes.at(assign(middle, least), loop))
        is_zero = isinstance(start, ast.Constant) and start.value == 0
        if not is_zero or any(interval(count)[0] < 0 for count in full.counts):
            before.append(nodes.at(assign(middle, language("maximum", name(middle), start)), loop))
        if self._emission.lowered.tma_pipeline:
            self._emission.holding_at_first = full.holding.comparisons
            *inside, one = self._unsplit(_part(loop, start, end))
            self._emission.holding_at_first = frozenset()
            assert isinstance(one, ast.For)
            return [*before, *inside, marked_loop(one, middle)]
        with self.where(full.holding):
            first = self._unsplit(_part(loop, start, name(middle)))
        rest = _part(loop, name(middle), end)
        # Of these there are few: nothing is begun ahead.
        rest.iter.keywords = []  # type: ignore[attr-defined]
        return [*before, *first, *self._unsplit(rest)]

    def function(self, function: ast.FunctionDef) -> ast.FunctionDef:
        """A helper that the language calls back."""
        function.body = [new for old in function.body for new in self.statement(old)]
        return function

    def _visit_head(self, statement: ast.stmt) -> ast.stmt:
        """Visits all of a statement but its blocks."""
        blocks = {
            block: getattr(statement, block)
            for block in ("body", "orelse")
            if isinstance(getattr(statement, block, None), list)
        }
        for block in blocks:
            setattr(statement, block, [])
        result = self.visit(statement)
        for block, inner in blocks.items():
            setattr(result, block, inner)
        return result

    def _tile(self, tile: nodes.TileRef) -> nodes.TileRef:
        """A tile whose indices are names or numbers: a longer index is computed before."""
        wanted = f"{tile.parameter}_selected"
        indices = [self._position(index, wanted) for index in tile.indices]
        return nodes.TileRef(parameter=tile.parameter, indices=indices)

    def visit_Load(self, node: Any) -> Any:
        if not isinstance(node, nodes.Load):
            return node
        loaded = nodes.at(self._addresses.load(self._tile(node.tile)), node)
        return self._emission.named(f"{node.tile.parameter}_tile", loaded)

    def visit_PairLoad(self, node: PairLoad) -> ast.expr:
        return self._addresses.load_pair(self._tile(node.tile), node.pair)

    def visit_PairStore(self, node: PairStore) -> ast.stmt:
        values = self.visit(node.value).elts
        return self._addresses.store_pair(self._tile(node.tile), node.pair, values)

    def visit_SliceStore(self, node: SliceStore) -> ast.stmt:
        value = self.visit(node.value)
        return self._addresses.store_slice(self._tile(node.tile), node.tile_slice, value)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | None:
        if (
            isinstance(node.value, nodes.Kept)
            and self._conjunction(nodes.clone(node.value).masks) is None
            and names_read(node.value.value) == names_assigned([node])
        ):
            return None
        made = [part for part in nodes.walk(node.value) if isinstance(part, nodes.Exists)]
        if made and all(self._conjunction(nodes.clone(part).masks) is None for part in made):
            # All of its elements exist: nothing has to be said of them.
            self._everywhere |= names_assigned([node])
            return None
        if isinstance(node.value, nodes.Load) and not isinstance(node.value, PairLoad):
            # The user gave the loaded tile a name.
            node.value = nodes.at(self._addresses.load(self._tile(node.value.tile)), node.value)
            return node
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_While(self, node: ast.While) -> ast.stmt:
        return self._unhoisted(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        node.test = self.visit(node.test)
        node.body, node.orelse = self._unhoisted(node.body), self._unhoisted(node.orelse)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node.values = [self.visit(node.values[0]), *map(self._unhoisted, node.values[1:])]
        return node

    def _unhoisted(self, node: Any) -> Any:
        """What is evaluated several times or not at all: nothing of it may be computed before."""
        scope = self._emission.scope
        previous, scope.is_open = scope.is_open, False
        result = self.generic_visit(node) if isinstance(node, ast.stmt) else self.visit(node)
        scope.is_open = previous
        return result

    def visit_Store(self, node: Any) -> Any:
        if not isinstance(node, nodes.Store):
            return node
        value = self.visit(node.value)
        return self._addresses.store(self._tile(node.tile), value)

    def visit_Padded(self, node: nodes.Padded) -> ast.expr:
        inner = node.value
        if isinstance(inner, nodes.SymbolValue):
            return self._emission.width(known_size(inner.symbol))
        if isinstance(inner, ast.Constant) and isinstance(inner.value, int):
            return self._emission.width(inner.value)
        return next_power_of_2(self.visit(inner))

    def visit_SequenceLength(self, node: nodes.SequenceLength) -> ast.expr:
        return self._addresses.length(node.parameter)

    def visit_SourcePointer(self, node: nodes.SourcePointer) -> ast.expr:
        return self._emission.pointer(node.parameter)

    def visit_ElementType(self, node: nodes.ElementType) -> ast.expr:
        pointer = self._emission.pointer(node.parameter)
        return PointedType(parameter=node.parameter, pointer=pointer)

    def visit_SourceLoad(self, node: nodes.SourceLoad) -> ast.expr:
        pointer, mask = self._element(node.parameter, node.indices)
        filler = self._addresses.filler(node.parameter)
        return language("load", pointer, mask=mask, other=filler)

    def visit_SourceStore(self, node: nodes.SourceStore) -> ast.stmt:
        reals: list[ast.expr] = []
        value = self.visit(self._real(node.value, reals))
        pointer, mask = self._element(node.parameter, node.indices)
        return ast.Expr(language("store", pointer, value, mask=all_of([mask, *reals])))

    def _element(self, parameter: str, indices: list[ast.expr]) -> tuple[ast.expr, ast.expr]:
        """The address of any element of a source, and whether it is one."""
        source = self._emission.kernel.program.parameter(parameter).source
        address: ast.expr = self._emission.pointer(parameter)
        conditions: list[ast.expr] = []
        sequence: tuple[ast.expr, ast.expr] | None = None
        for dim, (index, stride) in enumerate(zip(indices, source.strides)):
            # Where it is padding it names no element.
            term = self._position(self._real(index, conditions), f"{parameter}_at_{dim}")
            own = sequence if dim == source.jagged_dim else None
            size = own[1] if own is not None else self._emission.tree(source.shape[dim])
            conditions += [
                ast.Compare(term, [ast.GtE()], [ast.Constant(0)]),
                ast.Compare(term, [ast.Lt()], [size]),
            ]
            if source.jagged_dim is not None and dim == 0:
                sequence = self._sequence(parameter, term, all_of(conditions))
                continue
            if own is not None:
                term = ast.BinOp(term, ast.Add(), own[0])
            if self._emission.facts.wide:
                term = language("cast", term, element(dtypes.int64))
            if as_symbol(stride) not in self._emission.facts.unit_strides:
                term = ast.BinOp(term, ast.Mult(), self._emission.tree(stride))
            address = ast.BinOp(address, ast.Add(), term)
        return address, all_of(conditions) if conditions else ast.Constant(True)

    def _sequence(
        self, parameter: str, number: ast.expr, mask: ast.expr
    ) -> tuple[ast.expr, ast.expr]:
        """Where a jagged tensor's sequence begins and how long it is; 0 where there is none."""
        place = ast.BinOp(self._emission.offsets(parameter), ast.Add(), number)
        after = ast.BinOp(place, ast.Add(), ast.Constant(1))
        first, last = (
            language("load", offset, mask=mask, other=ast.Constant(0)) for offset in (place, after)
        )
        first = self._emission.named(f"{parameter}_start", first)
        return first, self._emission.named(f"{parameter}_length", ast.BinOp(last, ast.Sub(), first))

    def visit_LanguageRef(self, node: nodes.LanguageRef) -> ast.expr:
        operation = operations.find(node.name)
        known = node.name if operation is None else operation.triton or node.name
        if not isinstance(known, str):
            return name(self._emission.extern(node.name, known))
        if known.partition(".")[0] == "libdevice":
            self._emission.imports.add("libdevice")
        return TritonRef(name=known)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if place := place_changed(node):
            return self._old(node, place)
        if computed := self._quotient(node) or self._float(node):
            return computed
        called = node.func.name if isinstance(node.func, nodes.LanguageRef) else None
        if called == "static_assert" and is_of_call(node):
            node.func = nodes.LanguageRef(name="device_assert")
        self._in_own_types(node)
        dtype, operand = type_of(node).dtype, Given(node).get(0)
        operand_type = UNKNOWN if operand is None else type_of(operand)
        is_of_number = isinstance(node.func, ast.Attribute) and _may_be_pythons(node.func.value)
        self.generic_visit(node)
        if called == "static_print":
            # Triton's own tuples print as lists of texts.
            node.args = [
                ast.JoinedStr(list(_printed(argument))) if self._is_constant(argument) else argument
                for argument in node.args
            ]
        if isinstance(node.func, ast.Attribute):
            method = operations.find(node.func.attr)
            if is_of_number:
                node.func.value = language("add", node.func.value, ast.Constant(0))
            if method is not None and method.member_of == "tile" and method.triton is not None:
                called = node.func.attr
                node.func = ast.Attribute(node.func.value, method.triton, ast.Load())
        if isinstance(node.func, ast.Attribute) and node.func.attr in scans.NAMES:
            called = node.func.attr
        if called in scans.NAMES:
            return scans.lowered(node, called, operand_type, self._emission)
        given = {keyword.arg for keyword in node.keywords}
        node.keywords = [keyword for keyword in node.keywords if not _asks_nothing(keyword)]
        if called == "dot" and len(node.args) < 4 and not given & {"input_precision", "allow_tf32"}:
            # Triton's own default rounds float32 operands to tf32.
            node.keywords.append(ast.keyword("input_precision", ast.Constant("ieee")))
        if called == "dot" and dtype is not dtypes.float32 and "out_dtype" not in given:
            acc = Given(node).node_of("acc", 2)
            if acc is not None and not isinstance(acc, ast.Constant) and len(node.args) < 7:
                # Triton asks for the name of a type that is not float32.
                named = attribute(nodes.clone(acc), "dtype")
                node.keywords.append(ast.keyword("out_dtype", named))
        return node

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether a tuple is known when the kernel is compiled."""
        kernel = self._emission.kernel
        constants = {kernel.names[symbol] for symbol in kernel.symbols}
        return (
            isinstance(node, ast.Tuple)
            and names_read(node) <= constants
            and not any(isinstance(child, ast.Call) for child in ast.walk(node))
        )

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        comparison = comparisons_of(self._emission.kernel).of(node)
        if comparison is not None and self._holds(comparison):
            sizes = [self._emission.width(size) for size in comparison.dims]
            shape = ast.Tuple(sizes, ast.Load())
            return language("full", shape, ast.Constant(True), element(dtypes.bool))
        if comparison is not None and comparison.slack in self._emission.holding_at_first:
            mark(node)
        if (signed := super().visit_Compare(node)) is not node:
            return signed
        if len(node.ops) == 1 and any(map(_is_plain, (node.left, node.comparators[0]))):
            # Identity of numbers and texts is an accident of one process.
            equals = {ast.Is: ast.Eq, ast.IsNot: ast.NotEq}
            node.ops = [equals.get(type(op), type(op))() for op in node.ops]
        return node

    def _holds(self, comparison: Comparison) -> bool:
        """Whether a comparison holds for every lane."""
        known = self._emission.facts.comparisons
        if self._emission.holding is not None:
            known |= self._emission.holding.comparisons
        return comparison.slack in known

    def visit_LibraryRef(self, node: LibraryRef) -> ast.expr:
        return self._emission.function(node.name)

    def visit_Workspace(self, node: Workspace) -> ast.expr:
        return self._emission.workspace(node.what)

    def visit_PartPosition(self, node: PartPosition) -> ast.expr:
        parts = self._emission.parts
        assert parts is not None
        return name(parts.tile if node.what == "tile" else parts.part)

    def visit_ExternRef(self, node: nodes.ExternRef) -> ast.expr:
        return name(node.name)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if isinstance(node.ctx, ast.Load) and node.id in self._values:
            return self._emission.value(node.id)
        return node


def _part(loop: ast.For, start: ast.expr, end: ast.expr) -> ast.For:
    """A part of a loop, from a round to another."""
    whole = nodes.clone(loop)
    part = nodes.at(ast.For(whole.target, whole.iter, whole.body, whole.orelse), loop)
    part.iter.args = [nodes.clone(start), nodes.clone(end)]  # type: ignore[attr-defined]
    return part


def _printed(item: ast.expr) -> Iterator[ast.Constant | ast.FormattedValue]:
    """A tuple as Python prints it, and what is in one."""
    if isinstance(item, ast.Constant):
        yield ast.Constant(repr(item.value))
        return
    if not isinstance(item, ast.Tuple):
        yield ast.FormattedValue(item, -1)
        return
    for place, entry in enumerate(item.elts):
        yield ast.Constant(", " if place else "(")
        yield from _printed(entry)
    yield ast.Constant(",)" if len(item.elts) == 1 else ")" if item.elts else "()")


def _may_be_pythons(node: ast.expr) -> bool:
    """Whether a value is a number of Python's, where what it is computed from is known to the compiler."""
    computed = any(isinstance(part, (ast.Call, nodes.Load)) for part in nodes.walk(node))
    return type_of(node).is_scalar and not computed


def _asks_nothing(keyword: ast.keyword) -> bool:
    """Whether this is a mask that holds everywhere."""
    is_true = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
    return keyword.arg == "mask" and is_true


def _is_plain(node: ast.expr) -> bool:
    """Whether this is a number or a text, and not one of a kind as None is."""
    if not isinstance(node, ast.Constant):
        return False
    return isinstance(node.value, (int, float, str)) and not isinstance(node.value, bool)
